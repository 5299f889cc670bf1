//! The first line of a connection: who is it, and what for.
//!
//! A client of another version is told so in a way it can show: it may not be able to read anything
//! else of ours. To be ended is all that a client of any version may ask.

use link::Stream;
use protocol::session::{
    EngineVersion, Greeting, Hello, MAX_GREETING_BYTES, Purpose, Refusal, Welcome,
};
use protocol::{Error, VERSION, WIRE_VERSION};
use serde::Deserialize;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};

/// How long a client may take to greet.
const GREETING_TIME: Duration = Duration::from_secs(10);

/// A connection whose greeting has been read. The buffer may hold the first bytes of what follows.
pub(crate) type Connection = BufReader<Stream>;

/// Reads a hello; the error is to be sent as a refusal.
pub(crate) async fn read(connection: &mut Connection) -> io::Result<Result<Purpose, Refusal>> {
    let mut line = vec![];
    let mut limited = connection.take(MAX_GREETING_BYTES as u64);
    let read = limited.read_until(b'\n', &mut line);
    tokio::time::timeout(GREETING_TIME, read).await??;
    if line.last() != Some(&b'\n') {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(understand(&line))
}

/// Lets the client in.
pub(crate) async fn welcome(connection: &mut Connection, session: &str) -> io::Result<()> {
    welcome_with(connection, session, vec![]).await
}

/// Lets the client in and gives it something to tell the user.
pub(crate) async fn welcome_with(
    connection: &mut Connection,
    session: &str,
    notices: Vec<String>,
) -> io::Result<()> {
    let welcome = Welcome { version: VERSION.into(), session: session.into(), notices };
    send(connection, &Greeting::Welcome(welcome)).await
}

/// Sends the client away.
pub(crate) async fn refuse(
    connection: &mut Connection,
    reason: impl Into<Refusal>,
) -> io::Result<()> {
    send(connection, &Greeting::Refused(reason.into())).await
}

async fn send(connection: &mut Connection, greeting: &Greeting) -> io::Result<()> {
    let mut line = serde_json::to_vec(greeting)?;
    line.push(b'\n');
    connection.write_all(&line).await?;
    connection.flush().await
}

/// The part of a hello that every version has.
#[derive(Deserialize)]
struct AnyHello {
    wire: u32,
    version: String,
}

fn understand(line: &[u8]) -> Result<Purpose, Refusal> {
    let any: AnyHello = serde_json::from_slice(line)
        .map_err(|error| Error::user(format!("this is no greeting: {error}")))?;
    let hello: Result<Hello, _> = serde_json::from_slice(line);
    if let Ok(Hello { purpose: stop @ Purpose::Stop { .. }, .. }) = hello {
        return Ok(stop);
    }
    if any.wire != WIRE_VERSION || any.version != VERSION {
        return Err(other_version(&any.version));
    }
    hello.map(|hello| hello.purpose).map_err(|error| Error::internal(error.to_string()).into())
}

fn other_version(client: &str) -> Refusal {
    let pid = std::process::id();
    let engine = EngineVersion { version: VERSION.into(), wire: WIRE_VERSION, pid };
    let error = Error::environment(format!(
        "the running engine is version {VERSION}, this client is {client}"
    ))
    .with_hint(format!(
        "`ci-tool engine stop` ends it (process {pid}); it also ends by itself when it is idle"
    ))
    .with_hint("to keep both, give this client a folder of its own with CITOOL_STATE_DIR");
    Refusal { error, engine: Some(engine) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::session::ClientSettings;
    use serde_json::json;

    fn hello(wire: u32, version: &str, purpose: &Purpose) -> Vec<u8> {
        json!({ "wire": wire, "version": version, "purpose": purpose }).to_string().into_bytes()
    }

    #[test]
    fn only_the_same_version_is_let_in() {
        let purpose = Purpose::Query(ClientSettings::default());
        let same = understand(&hello(WIRE_VERSION, VERSION, &purpose));
        assert_eq!(same.unwrap(), purpose);
        for (wire, version) in [(WIRE_VERSION, "0.0.9"), (WIRE_VERSION + 1, VERSION)] {
            let error = understand(&hello(wire, version, &purpose)).unwrap_err();
            assert!(error.error.message.contains(version), "{error:?}");
            assert_eq!(error.engine.unwrap().pid, std::process::id());
        }
    }

    #[test]
    fn anybody_may_ask_the_engine_to_end() {
        let stop = Purpose::Stop { force: false, when_idle: true };
        assert_eq!(understand(&hello(99, "9.9.9", &stop)).unwrap(), stop);
        let line =
            json!({ "wire": 0, "version": "0.0.1", "purpose": { "stop": { "force": true } } });
        let stop = Purpose::Stop { force: true, when_idle: false };
        assert_eq!(understand(line.to_string().as_bytes()).unwrap(), stop);
    }

    #[test]
    fn a_newer_client_whose_purpose_is_unknown_is_told_of_the_version() {
        let line = json!({ "wire": 99, "version": "9.9.9", "purpose": { "dance": {} } });
        let error = understand(line.to_string().as_bytes()).unwrap_err();
        assert!(error.error.message.contains("9.9.9"), "{error:?}");
    }

    #[test]
    fn noise_is_no_greeting() {
        for noise in ["GET / HTTP/1.1\r\n", "{}", "[]", ""] {
            let error = understand(noise.as_bytes()).unwrap_err();
            assert!(error.error.message.starts_with("this is no greeting"), "{error:?}");
        }
    }
}
