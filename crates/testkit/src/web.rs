//! [`Web`]: a web server of the test's own on loopback, which answers as the test says.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

/// A web server. Its threads end with the test program.
pub struct Web {
    address: String,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Web {
    /// Answers every request by its head, in small letters but for the path: with all bytes that go
    /// back, after which the connection is closed.
    pub fn start(answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let address = listener.local_addr().expect("a listener has an address").to_string();
        let heads = Arc::new(Mutex::new(vec![]));
        let (seen, answer) = (heads.clone(), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming().filter_map(Result::ok) {
                let (seen, answer) = (seen.clone(), answer.clone());
                std::thread::spawn(move || serve(stream, &seen, &*answer));
            }
        });
        Self { address, heads }
    }

    /// The address of a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The heads of all requests so far.
    pub fn requests(&self) -> Vec<String> {
        self.heads.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// An answer with a status such as `200 OK`, header lines and a body.
    pub fn answer(status: &str, headers: &[&str], body: impl AsRef<[u8]>) -> Vec<u8> {
        let body = body.as_ref();
        let mut head = format!("HTTP/1.1 {status}\r\nconnection: close\r\n");
        head += &format!("content-length: {}\r\n", body.len());
        headers.iter().for_each(|line| head += &format!("{line}\r\n"));
        [head.as_bytes(), b"\r\n", body].concat()
    }
}

fn serve(stream: TcpStream, seen: &Mutex<Vec<String>>, answer: &dyn Fn(&str) -> Vec<u8>) {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    loop {
        let mut line = String::new();
        match reader.read_line(&mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) if line.trim().is_empty() => break,
            Ok(_) => {
                let first = head.is_empty();
                let (name, rest) = line.split_once(':').unwrap_or((&line, ""));
                match first {
                    true => head += &line,
                    false => head += &format!("{}:{rest}", name.to_ascii_lowercase()),
                }
            }
        }
    }
    seen.lock().unwrap_or_else(PoisonError::into_inner).push(head.clone());
    let mut stream = reader.into_inner();
    // Who asked may be gone.
    let _ = stream.write_all(&answer(&head));
}
