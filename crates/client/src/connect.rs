//! Dialling an engine and greeting it.
//!
//! Whoever finds no engine at its own socket starts one ([`crate::start`]); at another's socket that
//! is an error. A socket file nobody listens on is the same as none.

use crate::address::Address;
use crate::environment::ClientEnvironment;
use crate::error::OtherVersion;
use crate::files::Engine;
use crate::route::Route;
use crate::session::{Session, SessionOptions};
use crate::{Error, own, start};
use link::Stream;
use protocol::session::{
    ClientSettings, Greeting, Hello, MAX_GREETING_BYTES, Purpose, Refusal, Welcome,
};
use protocol::{VERSION, WIRE_VERSION};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::time::timeout;

/// How long an engine on another machine may take to answer the greeting: it may be opening its store,
/// and one behind ssh may have to log us in and start it first.
const GREETING_TIME: Duration = Duration::from_secs(60);

/// A greeted connection. The buffer may hold the first bytes of what follows the greeting.
pub(crate) type Connection = BufReader<Stream>;

/// Opens a session: joins the one named in the environment, else opens one on the engine that the
/// environment names, else on one's own engine, which is started when it does not run.
pub async fn connect(
    environment: &ClientEnvironment,
    options: SessionOptions,
) -> Result<Session, Error> {
    if !environment.session_port.is_empty() {
        return Session::join(&environment.session_port, &environment.session_token);
    }
    let address = start::address(environment)?;
    let settings = ClientSettings {
        workdir: environment.workdir.to_string_lossy().into_owned(),
        home: environment.home(),
        labels: options.labels,
        compat: options.compat,
        interactive: options.interactive,
        lock: options.lock,
        remote: matches!(&address, Address::Other(route) if !route.is_local()),
    };
    let purpose = Purpose::Query(settings.clone());
    let (connection, welcome, route) = match address {
        Address::Other(route) => {
            let (connection, welcome) = dial(&route, purpose).await?;
            (connection, welcome, route)
        }
        Address::Own(files) => {
            let reached = own::reach(environment, &files, purpose, &options.notices).await?;
            (reached.0, reached.1, Route::Socket(reached.2))
        }
    };
    for notice in &welcome.notices {
        options.notices.tell(notice);
    }
    let (logins, variables) = (environment.logins.clone(), environment.secrets.clone());
    let engine = Engine {
        route,
        session: welcome.session.clone(),
        logins,
        variables,
        terminals: options.terminals,
    };
    Session::open(connection, welcome, settings, engine).await
}

/// Asks the engine to end and waits until it has, and so for the one that this version may have
/// beside it. Running sessions make them refuse unless `force`. Says whether there was any.
pub async fn stop(environment: &ClientEnvironment, force: bool) -> Result<bool, Error> {
    let routes = match start::address(environment)? {
        Address::Other(route) => vec![route],
        Address::Own(files) => {
            let beside = Some(files.beside(VERSION).socket()).filter(|path| path.exists());
            std::iter::once(files.socket()).chain(beside).map(Route::Socket).collect()
        }
    };
    let mut stopped = false;
    for route in routes {
        stopped |= end(&route, Purpose::Stop { force, when_idle: false }).await?;
    }
    Ok(stopped)
}

/// Asks for the end of an engine and waits for it. Says whether there was an engine.
pub(crate) async fn end(route: &Route, stop: Purpose) -> Result<bool, Error> {
    let mut connection = match dial(route, stop).await {
        Ok((connection, _)) => connection,
        Err(Error::Absent { .. } | Error::Gone(_)) => return Ok(false),
        Err(error) => return Err(error),
    };
    // The engine keeps this connection until it ends, so its end is the engine's. A reset is one.
    let mut rest = [0; 64];
    while matches!(connection.read(&mut rest).await, Ok(count) if count > 0) {}
    Ok(true)
}

/// Dials an engine and says what for.
pub(crate) async fn dial(route: &Route, purpose: Purpose) -> Result<(Connection, Welcome), Error> {
    let mut connection = BufReader::new(route.open().await?);
    let greeting = match route {
        // One that is opening its store answers when it has.
        Route::Socket(path) => match greet(&mut connection, purpose).await {
            Ok(Some(greeting)) => greeting,
            Ok(None) => return Err(Error::NotAnEngine(path.clone())),
            Err(_) => return Err(Error::Gone(path.clone())),
        },
        Route::Tcp(_) | Route::Ssh(_) => {
            match timeout(GREETING_TIME, greet(&mut connection, purpose)).await {
                Ok(Ok(Some(greeting))) => greeting,
                Ok(Ok(None)) => return Err(route.unreachable("what answers is no engine")),
                Ok(Err(error)) => return Err(broke(route, connection, &error).await),
                Err(_) => return Err(route.silent()),
            }
        }
    };
    match greeting {
        Greeting::Welcome(welcome) => Ok((connection, welcome)),
        Greeting::Refused(Refusal { error, engine: None }) => Err(Error::Refused(error)),
        Greeting::Refused(Refusal { error: refusal, engine: Some(engine) }) => {
            Err(Error::OtherVersion(Box::new(OtherVersion { engine, refusal })))
        }
    }
}

/// Why a connection to another machine ended before it was greeted.
async fn broke(route: &Route, connection: Connection, error: &io::Error) -> Error {
    if let Stream::Program(mut program) = connection.into_inner() {
        let words = program.last_words().await;
        if !words.is_empty() {
            return route.unreachable(words);
        }
    }
    match error.kind() {
        io::ErrorKind::UnexpectedEof => route.unreachable("it closed the connection"),
        _ => match link::tls::refusal(error) {
            Some(refusal) => route.unreachable(refusal),
            None => route.unreachable(error),
        },
    }
}

/// Sends the hello and reads the answer; none when the answer is no greeting.
async fn greet(connection: &mut Connection, purpose: Purpose) -> io::Result<Option<Greeting>> {
    let hello = Hello { wire: WIRE_VERSION, version: VERSION.into(), purpose };
    let mut line = serde_json::to_vec(&hello)?;
    line.push(b'\n');
    connection.write_all(&line).await?;
    connection.flush().await?;
    line.clear();
    let mut limited = connection.take(MAX_GREETING_BYTES as u64);
    limited.read_until(b'\n', &mut line).await?;
    if line.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(serde_json::from_slice(&line).ok())
}
