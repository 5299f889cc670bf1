//! [`Replay`]: the answers of a session from memory, for what a client takes with no work behind it.

use anyhow::{Context as _, Result, bail};
use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use testkit::Endpoint;

/// A server that passes a question on to a session once, and answers it itself from then on. Its
/// threads end with this program.
pub(crate) struct Replay {
    endpoint: Endpoint,
}

type Answers = Mutex<HashMap<Vec<u8>, Vec<u8>>>;

impl Replay {
    /// Listens on a port of its own in front of a session.
    pub(crate) fn of(session: Endpoint) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let (behind, answers) = (session.clone(), Arc::new(Answers::default()));
        std::thread::spawn(move || {
            for stream in listener.incoming().filter_map(Result::ok) {
                let (behind, answers) = (behind.clone(), answers.clone());
                // A client whose connection is closed before it has its answer says so itself.
                std::thread::spawn(move || drop(serve(stream, &behind, &answers)));
            }
        });
        Ok(Self { endpoint: Endpoint { port, ..session } })
    }

    /// A run of a program that finds this session in its environment.
    pub(crate) fn run(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env(protocol::env::COMPAT_SESSION_PORT, self.endpoint.port.to_string());
        command.env(protocol::env::COMPAT_SESSION_TOKEN, &self.endpoint.token);
        command
    }
}

/// Answers the requests of one connection until its end.
fn serve(stream: TcpStream, session: &Endpoint, answers: &Answers) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    while let Some(question) = body(&mut stream)? {
        let known = || answers.lock().unwrap_or_else(PoisonError::into_inner);
        let recorded = known().get(&question).cloned();
        let answer = match recorded {
            Some(answer) => answer,
            None => {
                let reply = session.send(&session.request(question.clone()))?;
                if reply.status != 200 {
                    bail!("status {}", reply.status);
                }
                known().insert(question, reply.body.clone());
                reply.body
            }
        };
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            answer.len()
        );
        stream.get_mut().write_all(&[head.as_bytes(), &answer].concat())?;
    }
    Ok(())
}

/// The body of the next request, if there is one.
fn body(stream: &mut BufReader<TcpStream>) -> Result<Option<Vec<u8>>> {
    let mut length = None;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = Some(value.trim().parse()?);
        }
    }
    let mut body = vec![0; length.context("a request without a length")?];
    stream.read_exact(&mut body)?;
    Ok(Some(body))
}
