//! A plain HTTP/1.1 client for the session endpoint.
//!
//! By hand, because tests send what a well-behaved library would refuse to: wrong methods, broken
//! heads, bodies that stop half way.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

/// Where a session listens, and the word that opens it.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Port on loopback.
    pub port: u16,
    /// Token.
    pub token: String,
}

/// A request; [`Endpoint::request`] fills in what is right.
#[derive(Clone, Debug)]
pub struct Request {
    /// Method.
    pub method: String,
    /// Path.
    pub path: String,
    /// User part of basic authentication; none leaves the header out.
    pub token: Option<String>,
    /// Further headers.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Vec<u8>,
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Reply {
    /// Status code.
    pub status: u16,
    /// Headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Vec<u8>,
}

impl Endpoint {
    /// A `POST` of this body to `/query` with the right token.
    pub fn request(&self, body: impl Into<Vec<u8>>) -> Request {
        Request {
            method: "POST".to_owned(),
            path: "/query".to_owned(),
            token: Some(self.token.clone()),
            headers: vec![("content-type".to_owned(), "application/json".to_owned())],
            body: body.into(),
        }
    }

    /// Sends a request on a connection of its own.
    pub fn send(&self, request: &Request) -> std::io::Result<Reply> {
        let mut stream = self.connect()?;
        stream.write_all(&head(request))?;
        // The answer to a body that is too long may come before all of it was sent.
        let _ = stream.write_all(&request.body);
        read_reply(&mut BufReader::new(stream))
    }

    /// A connection to the endpoint.
    pub fn connect(&self) -> std::io::Result<TcpStream> {
        let stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(crate::surroundings::deadline()))?;
        Ok(stream)
    }
}

impl Reply {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The body as JSON.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| {
            panic!("no JSON ({error}): {}", String::from_utf8_lossy(&self.body))
        })
    }
}

/// Sends a request on an open connection, which stays open.
pub fn send_on(
    writer: &mut TcpStream,
    reader: &mut BufReader<TcpStream>,
    request: &Request,
) -> std::io::Result<Reply> {
    writer.write_all(&head(request))?;
    writer.write_all(&request.body)?;
    read_reply(reader)
}

/// Writes a request and leaves the answer for later.
pub fn write_request(writer: &mut TcpStream, request: &Request) -> std::io::Result<()> {
    writer.write_all(&whole(request))
}

/// All bytes of a request.
pub fn whole(request: &Request) -> Vec<u8> {
    [head(request), request.body.clone()].concat()
}

/// The head of a request whose body follows in chunks.
pub fn chunked_head(request: &Request) -> Vec<u8> {
    let text = String::from_utf8(head(request)).expect("a head is text");
    let length = format!("content-length: {}\r\n", request.body.len());
    text.replace(&length, "transfer-encoding: chunked\r\n").into_bytes()
}

/// Reads the answer to what was written on a connection.
pub fn read_answer(connection: TcpStream) -> std::io::Result<Reply> {
    read_reply(&mut BufReader::new(connection))
}

/// Line and headers of a request.
fn head(request: &Request) -> Vec<u8> {
    let mut head = format!("{} {} HTTP/1.1\r\n", request.method, request.path);
    head += "host: 127.0.0.1\r\n";
    head += &format!("content-length: {}\r\n", request.body.len());
    if !request.headers.iter().any(|(name, _)| name == "connection") {
        head += "connection: close\r\n";
    }
    if let Some(token) = &request.token {
        head += &format!("authorization: Basic {}\r\n", base64(format!("{token}:").as_bytes()));
    }
    for (name, value) in &request.headers {
        head += &format!("{name}: {value}\r\n");
    }
    head += "\r\n";
    head.into_bytes()
}

/// Reads one answer, its body by length, by chunks or until the end.
fn read_reply(stream: &mut BufReader<TcpStream>) -> std::io::Result<Reply> {
    let first = read_line(stream)?;
    let status = first.split(' ').nth(1).and_then(|word| word.parse().ok());
    let status = status.ok_or_else(|| std::io::Error::other(format!("no status in `{first}`")))?;
    let mut headers = Vec::new();
    loop {
        let line = read_line(stream)?;
        let Some((name, value)) = line.split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut reply = Reply { status, headers, body: Vec::new() };
    if reply.header("transfer-encoding") == Some("chunked") {
        read_chunks(stream, &mut reply.body)?;
    } else if let Some(length) = reply.header("content-length").and_then(|text| text.parse().ok()) {
        reply.body.resize(length, 0);
        stream.read_exact(&mut reply.body)?;
    } else {
        stream.read_to_end(&mut reply.body)?;
    }
    Ok(reply)
}

fn read_chunks(stream: &mut BufReader<TcpStream>, body: &mut Vec<u8>) -> std::io::Result<()> {
    loop {
        let line = read_line(stream)?;
        let length = usize::from_str_radix(&line, 16).map_err(std::io::Error::other)?;
        let start = body.len();
        body.resize(start + length, 0);
        stream.read_exact(&mut body[start..])?;
        read_line(stream)?;
        if length == 0 {
            return Ok(());
        }
    }
}

fn read_line(stream: &mut BufReader<TcpStream>) -> std::io::Result<String> {
    let mut line = String::new();
    if stream.read_line(&mut line)? == 0 {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    Ok(line.trim_end().to_owned())
}

/// Standard base64.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let mut group = [0u8; 3];
        group[..chunk.len()].copy_from_slice(chunk);
        let number = u32::from_be_bytes([0, group[0], group[1], group[2]]);
        for index in 0..4 {
            let digit = DIGITS[(number >> (18 - 6 * index)) as usize & 63];
            text.push(if index <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_padded() {
        for (bytes, text) in
            [("", ""), ("a", "YQ=="), ("ab", "YWI="), ("abc", "YWJj"), ("x:", "eDo=")]
        {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }

    #[test]
    fn a_chunked_answer_is_put_together() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut line = String::new();
            BufReader::new(stream.try_clone().unwrap()).read_line(&mut line).unwrap();
            let reply = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
            stream.write_all(reply.as_bytes()).unwrap();
            line
        });
        let endpoint = Endpoint { port, token: "t".to_owned() };
        let reply = endpoint.send(&endpoint.request("{}")).unwrap();
        assert_eq!((reply.status, reply.body.as_slice()), (200, b"abcde".as_slice()));
        assert_eq!(server.join().unwrap(), "POST /query HTTP/1.1\r\n");
    }
}
