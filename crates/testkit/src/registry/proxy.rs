//! [`FaultyProxy`]: stands before a registry and misbehaves on demand.
//!
//! Each connection carries one request, so that a fault hits exactly the request it is meant for.
//! What no fault is meant for passes unchanged.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What happens to one request.
#[derive(Clone, Debug)]
pub enum Fault {
    /// Nothing is answered, and the connection stays open.
    Hang,
    /// The answer stops after as many bytes of its body, and the connection stays open.
    HangAfter(u64),
    /// The answer stops after as many bytes of its body, and the connection is closed.
    CutAfter(u64),
    /// The registry gets as many bytes of the request's body, then both sides are closed.
    CutUpload(u64),
    /// The registry does not get to see the request; this status and these header lines come back.
    Status(u16, &'static str),
    /// The byte at this place of the answer's body is another one.
    Flip(u64),
    /// The answer's digest header says this.
    DigestHeader(String),
    /// The answer is the address of another host, which has it.
    Redirect,
    /// The request's range is left out on its way to the registry.
    NoRange,
}

/// A fault that waits for its request.
#[derive(Debug)]
struct Trap {
    method: &'static str,
    path: String,
    fault: Fault,
    times: u32,
}

/// A running proxy.
pub struct FaultyProxy {
    port: u16,
    state: Arc<State>,
}

struct State {
    registry: String,
    /// The host that redirects lead to.
    elsewhere: u16,
    traps: Mutex<Vec<Trap>>,
    requests: Mutex<Vec<Head>>,
    requests_elsewhere: Mutex<Vec<Head>>,
    held: Mutex<Vec<TcpStream>>,
}

impl FaultyProxy {
    /// Before the registry at `host:port`.
    pub fn before(registry: &str) -> Self {
        let (listener, port) = listen();
        let (listener_elsewhere, elsewhere) = listen();
        let state = Arc::new(State {
            registry: registry.to_owned(),
            elsewhere,
            traps: Mutex::default(),
            requests: Mutex::default(),
            requests_elsewhere: Mutex::default(),
            held: Mutex::default(),
        });
        accept(listener, state.clone(), |connection, state| {
            let head = read_head(&mut &connection)?;
            lock(&state.requests).push(head.clone());
            let fault = state.spring(&head);
            answer(connection, head, fault, state)
        });
        accept(listener_elsewhere, state.clone(), |connection, state| {
            let head = read_head(&mut &connection)?;
            lock(&state.requests_elsewhere).push(head.clone());
            answer(connection, head, None, state)
        });
        Self { port, state }
    }

    /// `127.0.0.1:<port>`.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Lets the next requests with this method and this text in their path meet a fault. Of several
    /// faults for one request the one that was set first comes first.
    pub fn fault(&self, method: &'static str, path: &str, fault: Fault, times: u32) {
        lock(&self.state.traps).push(Trap { method, path: path.to_owned(), fault, times });
    }

    /// Takes back all faults that have not met their request yet.
    pub fn clear(&self) {
        lock(&self.state.traps).clear();
    }

    /// Faults that have not met their request yet.
    pub fn unmet(&self) -> u32 {
        lock(&self.state.traps).iter().map(|trap| trap.times).sum()
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<Head> {
        lock(&self.state.requests).clone()
    }

    /// Requests with this method and this text in their path.
    pub fn count(&self, method: &str, path: &str) -> usize {
        let requests = lock(&self.state.requests);
        requests.iter().filter(|head| head.method() == method && head.path().contains(path)).count()
    }

    /// Requests to the host that redirects led to.
    pub fn requests_elsewhere(&self) -> Vec<Head> {
        lock(&self.state.requests_elsewhere).clone()
    }
}

impl State {
    /// Takes the fault that waits for a request.
    fn spring(&self, head: &Head) -> Option<Fault> {
        let mut traps = lock(&self.traps);
        let trap = traps.iter_mut().find(|trap| {
            trap.times > 0 && trap.method == head.method() && head.path().contains(&trap.path)
        })?;
        trap.times -= 1;
        Some(trap.fault.clone())
    }
}

fn listen() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let port = listener.local_addr().expect("a listener has an address").port();
    (listener, port)
}

/// Serves until the test program ends: a proxy holds nothing but ports.
fn accept(
    listener: TcpListener,
    state: Arc<State>,
    serve: fn(TcpStream, &State) -> io::Result<()>,
) {
    std::thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            let state = state.clone();
            std::thread::spawn(move || {
                let Ok(copy) = connection.try_clone() else { return };
                // Either side may hang up at any time; the other one then sees it.
                if serve(connection, &state).is_err() {
                    let _ = copy.shutdown(Shutdown::Both);
                }
            });
        }
    });
}

fn answer(
    mut client: TcpStream,
    mut head: Head,
    fault: Option<Fault>,
    state: &State,
) -> io::Result<()> {
    match &fault {
        Some(Fault::Hang) => {
            lock(&state.held).push(client);
            return Ok(());
        }
        Some(Fault::Status(status, headers)) => {
            let text = format!("HTTP/1.1 {status} Fault\r\ncontent-length: 0\r\n{headers}");
            client.write_all(format!("{text}connection: close\r\n\r\n").as_bytes())?;
            return drain(client);
        }
        Some(Fault::Redirect) => {
            let to = format!("http://127.0.0.1:{}{}", state.elsewhere, head.path());
            let text = "HTTP/1.1 307 Elsewhere\r\ncontent-length: 0\r\nconnection: close\r\n";
            return client.write_all(format!("{text}location: {to}\r\n\r\n").as_bytes());
        }
        Some(Fault::NoRange) => head.remove("range"),
        _ => {}
    }
    let mut registry = TcpStream::connect(&state.registry)?;
    head.remove("connection");
    head.lines.push("connection: close".to_owned());
    registry.write_all(head.text().as_bytes())?;
    if let Some(Fault::CutUpload(bytes)) = fault {
        io::copy(&mut (&mut client).take(bytes), &mut registry)?;
        registry.shutdown(Shutdown::Both)?;
        return client.shutdown(Shutdown::Both);
    }
    forward_body(&client, &registry)?;
    relay(client, registry, fault, state)
}

/// Lets the client finish what it sends, so that it sees the answer and no reset.
fn drain(mut client: TcpStream) -> io::Result<()> {
    client.shutdown(Shutdown::Write)?;
    io::copy(&mut client, &mut io::sink()).map(drop)
}

/// What the client sends goes to the registry while the answer may already be on its way.
fn forward_body(client: &TcpStream, registry: &TcpStream) -> io::Result<()> {
    let (mut from, mut to) = (client.try_clone()?, registry.try_clone()?);
    std::thread::spawn(move || io::copy(&mut from, &mut to));
    Ok(())
}

fn relay(
    mut client: TcpStream,
    mut registry: TcpStream,
    fault: Option<Fault>,
    state: &State,
) -> io::Result<()> {
    let mut head = read_head(&mut registry)?;
    if let Some(Fault::DigestHeader(digest)) = &fault {
        head.remove("docker-content-digest");
        head.lines.push(format!("docker-content-digest: {digest}"));
    }
    client.write_all(head.text().as_bytes())?;
    match fault {
        Some(Fault::CutAfter(bytes)) => {
            io::copy(&mut (&mut registry).take(bytes), &mut client)?;
        }
        Some(Fault::HangAfter(bytes)) => {
            io::copy(&mut (&mut registry).take(bytes), &mut client)?;
            lock(&state.held).push(client);
            return Ok(());
        }
        Some(Fault::Flip(at)) => {
            io::copy(&mut (&mut registry).take(at), &mut client)?;
            let mut byte = [0];
            registry.read_exact(&mut byte)?;
            client.write_all(&[!byte[0]])?;
            io::copy(&mut registry, &mut client)?;
        }
        _ => {
            io::copy(&mut registry, &mut client)?;
        }
    }
    client.shutdown(Shutdown::Both)
}

/// The head of a request or an answer.
#[derive(Clone, Debug)]
pub struct Head {
    first: String,
    lines: Vec<String>,
}

impl Head {
    /// `GET`.
    pub fn method(&self) -> &str {
        self.first.split(' ').next().unwrap_or_default()
    }

    /// `/v2/`, with what follows it.
    pub fn path(&self) -> &str {
        self.first.split(' ').nth(1).unwrap_or_default()
    }

    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let value = |line: &'_ String| {
            let (key, _) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then_some(key.len() + 1)
        };
        self.lines.iter().find_map(|line| Some(line[value(line)?..].trim()))
    }

    /// How long the body is, where that is said.
    pub(super) fn length(&self) -> Option<u64> {
        self.header("content-length")?.parse().ok()
    }

    fn remove(&mut self, name: &str) {
        self.lines.retain(|line| {
            line.split_once(':').is_none_or(|(key, _)| !key.eq_ignore_ascii_case(name))
        });
    }

    fn text(&self) -> String {
        let lines: String = self.lines.iter().map(|line| format!("{line}\r\n")).collect();
        format!("{}\r\n{lines}\r\n", self.first)
    }
}

/// Reads up to the empty line, and nothing after it.
pub(super) fn read_head(stream: &mut impl Read) -> io::Result<Head> {
    let mut bytes = vec![];
    while !bytes.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        bytes.push(byte[0]);
    }
    let text = String::from_utf8_lossy(&bytes);
    let mut lines = text.lines().map(str::to_owned).filter(|line| !line.is_empty());
    Ok(Head { first: lines.next().unwrap_or_default(), lines: lines.collect() })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read_changed_and_written() {
        let text = "GET /v2/ HTTP/1.1\r\nHost: a\r\nRange: bytes=1-\r\n\r\nbody";
        let mut head = read_head(&mut text.as_bytes()).unwrap();
        assert_eq!((head.method(), head.path()), ("GET", "/v2/"));
        assert_eq!(head.header("range"), Some("bytes=1-"));
        head.remove("RANGE");
        assert_eq!(head.text(), "GET /v2/ HTTP/1.1\r\nHost: a\r\n\r\n");
        assert!(read_head(&mut "GET".as_bytes()).is_err());
    }
}
