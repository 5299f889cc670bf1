//! Dialling an engine and greeting it.
//!
//! Whoever finds no engine at its own socket starts one ([`crate::start`]); at another's socket that
//! is an error. A socket file nobody listens on is the same as none.

use crate::environment::ClientEnvironment;
use crate::error::OtherVersion;
use crate::session::{Session, SessionOptions};
use crate::{Address, Error, own, start};
use protocol::session::{
    ClientSettings, Greeting, Hello, MAX_GREETING_BYTES, Purpose, Refusal, Welcome,
};
use protocol::{VERSION, WIRE_VERSION};
use std::io;
use std::path::Path;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

/// Longest path that fits into a unix socket address, its closing zero left out.
const MAX_SOCKET_PATH: usize = 107;

/// A greeted connection. The buffer may hold the first bytes of what follows the greeting.
pub(crate) type Connection = BufReader<UnixStream>;

/// Opens a session: joins the one named in the environment, else opens one on the engine that the
/// environment names, else on one's own engine, which is started when it does not run.
pub async fn connect(
    environment: &ClientEnvironment,
    options: SessionOptions,
) -> Result<Session, Error> {
    if !environment.session_port.is_empty() {
        return Session::join(&environment.session_port, &environment.session_token);
    }
    let settings = ClientSettings {
        workdir: environment.workdir.to_string_lossy().into_owned(),
        home: environment.home(),
        labels: options.labels,
        compat: options.compat,
    };
    let purpose = Purpose::Query(settings.clone());
    let (connection, welcome, socket) = match start::address(environment)? {
        Address::Socket(path) => {
            let (connection, welcome) = dial(&path, purpose).await?;
            (connection, welcome, path)
        }
        Address::Own(files) => own::reach(environment, &files, purpose, &options.notices).await?,
    };
    for notice in &welcome.notices {
        options.notices.tell(notice);
    }
    let logins = environment.logins.clone();
    Session::open(connection, welcome, settings, (socket, logins)).await
}

/// Asks the engine to end and waits until it has, and so for the one that this version may have
/// beside it. Running sessions make them refuse unless `force`. Says whether there was any.
pub async fn stop(environment: &ClientEnvironment, force: bool) -> Result<bool, Error> {
    let sockets = match start::address(environment)? {
        Address::Socket(path) => vec![path],
        Address::Own(files) => {
            let beside = Some(files.beside(VERSION).socket()).filter(|path| path.exists());
            std::iter::once(files.socket()).chain(beside).collect()
        }
    };
    let mut stopped = false;
    for path in sockets {
        stopped |= end(&path, Purpose::Stop { force, when_idle: false }).await?;
    }
    Ok(stopped)
}

/// Asks for the end of an engine and waits for it. Says whether there was an engine.
pub(crate) async fn end(path: &Path, stop: Purpose) -> Result<bool, Error> {
    let mut connection = match dial(path, stop).await {
        Ok((connection, _)) => connection,
        Err(Error::Absent { .. } | Error::Gone(_)) => return Ok(false),
        Err(error) => return Err(error),
    };
    // The engine keeps this connection until it ends, so its end is the engine's. A reset is one.
    let mut rest = [0; 64];
    while matches!(connection.read(&mut rest).await, Ok(count) if count > 0) {}
    Ok(true)
}

/// Dials the socket and says what for.
pub(crate) async fn dial(path: &Path, purpose: Purpose) -> Result<(Connection, Welcome), Error> {
    if path.as_os_str().len() > MAX_SOCKET_PATH {
        return Err(Error::SocketPathTooLong(path.to_owned()));
    }
    let absent = |source| Error::Absent { path: path.to_owned(), source };
    let stream = UnixStream::connect(path).await.map_err(absent)?;
    let uid = stream.peer_cred().map_err(absent)?.uid();
    if uid != 0 && uid != rustix::process::geteuid().as_raw() {
        return Err(Error::Foreign { path: path.to_owned(), uid });
    }
    let mut connection = BufReader::new(stream);
    match greet(&mut connection, purpose).await {
        Ok(Some(Greeting::Welcome(welcome))) => Ok((connection, welcome)),
        Ok(Some(Greeting::Refused(Refusal { error, engine: None }))) => Err(Error::Refused(error)),
        Ok(Some(Greeting::Refused(Refusal { error: refusal, engine: Some(engine) }))) => {
            Err(Error::OtherVersion(Box::new(OtherVersion { engine, refusal })))
        }
        Ok(None) => Err(Error::NotAnEngine(path.to_owned())),
        Err(_) => Err(Error::Gone(path.to_owned())),
    }
}

/// Sends the hello and reads the answer; none when the answer is no greeting.
async fn greet(connection: &mut Connection, purpose: Purpose) -> io::Result<Option<Greeting>> {
    let hello = Hello { wire: WIRE_VERSION, version: VERSION.into(), purpose };
    let mut line = serde_json::to_vec(&hello)?;
    line.push(b'\n');
    connection.write_all(&line).await?;
    line.clear();
    let mut limited = connection.take(MAX_GREETING_BYTES as u64);
    limited.read_until(b'\n', &mut line).await?;
    if line.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(serde_json::from_slice(&line).ok())
}
