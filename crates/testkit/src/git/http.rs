//! [`HttpServer`]: repositories below a folder over http, smart or dumb, guarded or not.

use base64::Engine as _;
use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

/// Whom a server lets in.
#[derive(Clone)]
pub enum Guard {
    /// Everybody.
    Nobody,
    /// Who has this user and password.
    Basic(&'static str, &'static str),
    /// Who sends this value of the header `Authorization`.
    Header(&'static str),
}

/// Repositories over http.
pub struct HttpServer {
    port: u16,
    served: Arc<Served>,
}

struct Served {
    folder: PathBuf,
    dumb: bool,
    guard: Mutex<Guard>,
    requests: Mutex<Vec<String>>,
}

impl HttpServer {
    /// Serves a folder as git does.
    pub fn smart(folder: &Path, guard: Guard) -> Self {
        Self::start(folder, guard, false)
    }

    /// Serves a folder as any web server would; repositories must be prepared with `git update-server-info`.
    pub fn dumb(folder: &Path) -> Self {
        Self::start(folder, Guard::Nobody, true)
    }

    fn start(folder: &Path, guard: Guard, dumb: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let port = listener.local_addr().expect("it has an address").port();
        let (guard, requests) = (Mutex::new(guard), Mutex::default());
        let served = Arc::new(Served { folder: folder.to_owned(), dumb, guard, requests });
        let serving = served.clone();
        // It ends with the program: nothing depends on when.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let served = serving.clone();
                std::thread::spawn(move || served.answer(stream));
            }
        });
        Self { port, served }
    }

    /// The url of a repository.
    pub fn url(&self, name: &str) -> String {
        format!("http://{}/{name}", self.host())
    }

    /// Host and port.
    pub fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Changes whom it lets in.
    pub fn guard(&self, guard: Guard) {
        *self.served.guard.lock().expect("no request panicked") = guard;
    }

    /// Requests that were let in: methods, paths and questions.
    pub fn requests(&self) -> Vec<String> {
        self.served.requests.lock().expect("no request panicked").clone()
    }
}

impl Served {
    fn answer(&self, stream: TcpStream) {
        let mut reader = BufReader::new(stream.try_clone().expect("a stream can be shared"));
        let Some((line, headers)) = head(&mut reader) else { return };
        let body = body(&mut reader, &headers);
        let mut words = line.split(' ');
        let (method, target) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
        let reply = match self.lets_in(headers.get("authorization")) {
            false => b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"git\"\r\n\
                       Content-Length: 0\r\nConnection: close\r\n\r\n"
                .to_vec(),
            true => {
                let asked = format!("{method} {target}");
                self.requests.lock().expect("no request panicked").push(asked);
                let (path, query) = target.split_once('?').unwrap_or((target, ""));
                match self.dumb {
                    true => self.file(path),
                    false => self.backend((method, path, query), &headers, body),
                }
            }
        };
        // Who has gone does not listen.
        let _ = (&stream).write_all(&reply);
    }

    fn lets_in(&self, sent: Option<&String>) -> bool {
        let guard = self.guard.lock().expect("no request panicked").clone();
        let sent = sent.map(String::as_str).unwrap_or_default();
        match guard {
            Guard::Nobody => true,
            Guard::Header(value) => sent == value,
            Guard::Basic(user, password) => {
                let pair = base64::prelude::BASE64_STANDARD.encode(format!("{user}:{password}"));
                sent == format!("Basic {pair}")
            }
        }
    }

    fn file(&self, path: &str) -> Vec<u8> {
        match std::fs::read(self.folder.join(path.trim_start_matches('/'))) {
            Ok(bytes) => {
                let head = format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                    bytes.len()
                );
                [head.into_bytes(), bytes].concat()
            }
            Err(_) => {
                b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_vec()
            }
        }
    }

    fn backend(
        &self,
        (method, path, query): (&str, &str, &str),
        headers: &HashMap<String, String>,
        body: Vec<u8>,
    ) -> Vec<u8> {
        let header = |name: &str| headers.get(name).cloned().unwrap_or_default();
        let mut command = Command::new("git");
        command.arg("http-backend").env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin");
        command.env("GIT_PROJECT_ROOT", &self.folder).env("GIT_HTTP_EXPORT_ALL", "1");
        command.env("REQUEST_METHOD", method).env("PATH_INFO", path).env("QUERY_STRING", query);
        command
            .env("CONTENT_TYPE", header("content-type"))
            .env("CONTENT_LENGTH", body.len().to_string());
        command.env("HTTP_CONTENT_ENCODING", header("content-encoding"));
        command.env("GIT_PROTOCOL", header("git-protocol")).env("REMOTE_ADDR", "127.0.0.1");
        command
            .env("GIT_CONFIG_COUNT", "1")
            .env("GIT_CONFIG_KEY_0", "safe.directory")
            .env("GIT_CONFIG_VALUE_0", "*");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("git can be started");
        let mut stdin = child.stdin.take().expect("standard input is a pipe");
        let feed = std::thread::spawn(move || stdin.write_all(&body));
        let done = child.wait_with_output().expect("git ends");
        let _ = feed.join();
        let split = done.stdout.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(0);
        let (head, rest) = done.stdout.split_at(split);
        let head = String::from_utf8_lossy(head);
        let status =
            head.lines().find_map(|line| line.strip_prefix("Status: ")).unwrap_or("200 OK");
        let kept: Vec<&str> = head.lines().filter(|line| !line.starts_with("Status: ")).collect();
        let body = rest.get(4..).unwrap_or_default();
        let head = format!(
            "HTTP/1.1 {status}\r\n{}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            kept.join("\r\n"),
            body.len()
        );
        [head.into_bytes(), body.to_vec()].concat()
    }
}

/// First line and headers, names in lower case.
fn head(reader: &mut BufReader<TcpStream>) -> Option<(String, HashMap<String, String>)> {
    let mut first = String::new();
    reader.read_line(&mut first).ok().filter(|length| *length > 0)?;
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    Some((first.trim_end().to_owned(), headers))
}

/// The body, by its length or in chunks.
fn body(reader: &mut BufReader<TcpStream>, headers: &HashMap<String, String>) -> Vec<u8> {
    let mut body = vec![];
    if headers.get("transfer-encoding").is_some_and(|kind| kind == "chunked") {
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return body;
            }
            let length = usize::from_str_radix(line.trim(), 16).unwrap_or(0);
            let mut chunk = vec![0; length + 2];
            if reader.read_exact(&mut chunk).is_err() || length == 0 {
                return body;
            }
            body.extend_from_slice(&chunk[..length]);
        }
    }
    let length = headers.get("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    body.resize(length, 0);
    let _ = reader.read_exact(&mut body);
    body
}
