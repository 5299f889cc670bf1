//! Downloads from a loopback server that misbehaves on demand.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use fetch::{Error, Expected, Fetcher, Piece, Request, Settings, Validators};
use sha2::{Digest, Sha256};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What the server does with one request.
enum Answer {
    /// Sends these bytes and closes the connection.
    Close(Vec<u8>),
    /// Sends these bytes and then nothing more, without closing.
    Hang(Vec<u8>),
}

struct Server {
    url: String,
    /// Head of each request, in order.
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Answers request number `n` (from 0) by `answer(n, head of the request)`.
    async fn start(answer: impl Fn(usize, &str) -> Answer + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/file", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(vec![]));
        let seen = requests.clone();
        tokio::spawn(async move {
            let mut hanging = vec![];
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let head = read_head(&mut stream).await;
                let number = seen.lock().unwrap().len();
                let answer = answer(number, &head);
                seen.lock().unwrap().push(head);
                match answer {
                    Answer::Close(bytes) => {
                        stream.write_all(&bytes).await.unwrap();
                        stream.shutdown().await.unwrap();
                    }
                    Answer::Hang(bytes) => {
                        stream.write_all(&bytes).await.unwrap();
                        hanging.push(stream);
                    }
                }
            }
        });
        Self { url, requests }
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

async fn read_head(stream: &mut TcpStream) -> String {
    let mut head = vec![];
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap().to_lowercase()
}

/// An answer with a status line, headers, the length it promises and the bytes it sends.
fn http(status: &str, headers: &str, promised: usize, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-length: {promised}\r\nconnection: close\r\n{headers}\r\n"
    );
    [head.as_bytes(), body].concat()
}

fn ok(body: &[u8]) -> Answer {
    Answer::Close(http("200 OK", "", body.len(), body))
}

fn fetcher() -> Fetcher {
    Fetcher::new(Settings { pause: Duration::from_millis(1), ..Settings::default() })
}

fn body() -> Vec<u8> {
    (0..100_000_u32).map(|number| (number % 251) as u8).collect()
}

fn expected(bytes: &[u8]) -> Expected {
    Expected { sha256: Sha256::digest(bytes).into(), size: bytes.len() as u64 }
}

/// Downloads to a file that holds `before`, and gives what is in it afterwards.
async fn to_file(url: &str, before: &[u8], expected: &Expected) -> Result<Vec<u8>, Error> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    if !before.is_empty() {
        std::fs::write(&path, before).unwrap();
    }
    fetcher().fetch_to_file(url, &path, expected, &mut |_, _| ()).await?;
    Ok(std::fs::read(&path).unwrap())
}

#[tokio::test]
async fn a_document_comes_with_progress_and_validators() {
    let server = Server::start(|_, _| {
        Answer::Close(http("200 OK", "etag: \"1\"\r\nlast-modified: Sat\r\n", 5, b"hello"))
    })
    .await;
    let mut seen = vec![];
    let document = fetcher()
        .fetch_newer(&server.url, &Validators::default(), &mut |done, total| {
            seen.push((done, total));
        })
        .await
        .unwrap()
        .unwrap();
    assert_eq!(document.bytes, b"hello");
    assert_eq!(document.validators.etag.as_deref(), Some("\"1\""));
    assert_eq!(document.validators.last_modified.as_deref(), Some("Sat"));
    assert_eq!(seen.last(), Some(&(5, Some(5))));
}

#[tokio::test]
async fn an_unchanged_document_is_not_sent_again() {
    let server = Server::start(|_, head| match head.contains("if-none-match: \"1\"") {
        true => Answer::Close(b"HTTP/1.1 304 Not Modified\r\nconnection: close\r\n\r\n".to_vec()),
        false => ok(b"new"),
    })
    .await;
    let known = Validators { etag: Some("\"1\"".into()), last_modified: Some("Sat".into()) };
    let answer = fetcher().fetch_newer(&server.url, &known, &mut |_, _| ()).await.unwrap();
    assert!(answer.is_none());
    assert!(server.requests()[0].contains("if-modified-since: sat"));
}

#[tokio::test]
async fn a_missing_document_is_an_error_at_once() {
    let server = Server::start(|_, _| Answer::Close(http("404 Not Found", "", 0, b""))).await;
    let error = fetcher().fetch(&server.url, &mut |_, _| ()).await.unwrap_err();
    assert!(matches!(error, Error::NotFound { .. }), "{error}");
    assert!(error.to_string().contains(&server.url));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_server_in_trouble_is_asked_again() {
    let server = Server::start(|number, _| match number {
        0 | 1 => Answer::Close(http("500 Internal Server Error", "", 0, b"")),
        _ => ok(b"fine"),
    })
    .await;
    assert_eq!(fetcher().fetch(&server.url, &mut |_, _| ()).await.unwrap(), b"fine");
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn tries_are_bounded() {
    let server = Server::start(|_, _| Answer::Close(http("503 Busy", "", 0, b""))).await;
    let error = fetcher().fetch(&server.url, &mut |_, _| ()).await.unwrap_err();
    assert!(matches!(error, Error::Status { status: 503, .. }), "{error}");
    assert_eq!(server.requests().len(), 5);
}

/// The rest of `body` that a request asks for.
fn rest(head: &str, body: &[u8]) -> Option<usize> {
    let (_, range) = head.split_once("range: bytes=")?;
    range.split_once('-')?.0.parse().ok().filter(|start| *start < body.len())
}

#[tokio::test]
async fn a_cut_download_goes_on_where_it_stopped() {
    let body = body();
    let served = body.clone();
    let server = Server::start(move |_, head| {
        let start = rest(head, &served).unwrap_or(0);
        let end = (start + 40_000).min(served.len());
        let status = if start > 0 { "206 Partial Content" } else { "200 OK" };
        Answer::Close(http(status, "etag: \"v\"\r\n", served.len() - start, &served[start..end]))
    })
    .await;
    assert_eq!(to_file(&server.url, b"", &expected(&body)).await.unwrap(), body);
    let requests = server.requests();
    assert_eq!(requests.len(), 3);
    assert!(requests[1].contains("range: bytes=40000-"), "{}", requests[1]);
    assert!(requests[1].contains("if-range: \"v\""), "{}", requests[1]);
    assert!(requests[2].contains("range: bytes=80000-"), "{}", requests[2]);
}

#[tokio::test]
async fn a_server_without_ranges_starts_over() {
    let body = body();
    let served = body.clone();
    let server = Server::start(move |number, _| match number {
        0 => Answer::Close(http("200 OK", "", served.len(), &served[..10])),
        _ => ok(&served),
    })
    .await;
    assert_eq!(to_file(&server.url, b"", &expected(&body)).await.unwrap(), body);
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn what_is_there_already_is_kept_if_it_is_right() {
    let body = body();
    let served = body.clone();
    let server = Server::start(move |_, head| match rest(head, &served) {
        Some(start) => {
            Answer::Close(http("206 Partial Content", "", served.len() - start, &served[start..]))
        }
        None => ok(&served),
    })
    .await;
    assert_eq!(to_file(&server.url, &body[..60_000], &expected(&body)).await.unwrap(), body);
    assert!(server.requests()[0].contains("range: bytes=60000-"));
    assert_eq!(to_file(&server.url, &body, &expected(&body)).await.unwrap(), body);
    assert_eq!(server.requests().len(), 1, "a whole file is not asked for");
    assert_eq!(to_file(&server.url, b"damaged", &expected(&body)).await.unwrap(), body);
    assert_eq!(server.requests().len(), 3, "a damaged beginning is dropped");
}

#[tokio::test]
async fn wrong_bytes_are_refused() {
    let mut wrong = body();
    wrong[5] ^= 1;
    let server = Server::start(move |_, _| ok(&wrong)).await;
    let error = to_file(&server.url, b"", &expected(&body())).await.unwrap_err();
    assert!(matches!(error, Error::Digest { .. }), "{error}");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn too_many_bytes_are_refused() {
    let server = Server::start(|_, _| ok(b"longer than that")).await;
    let error = to_file(&server.url, b"", &expected(b"short")).await.unwrap_err();
    assert!(matches!(error, Error::Size { expected: 5, .. }), "{error}");
}

#[tokio::test]
async fn a_stalled_server_is_given_up() {
    let server = Server::start(|number, _| match number {
        0 => Answer::Hang(http("200 OK", "", 10, b"12345")),
        _ => ok(b"1234567890"),
    })
    .await;
    let settings = Settings {
        stall_timeout: Duration::from_secs(1),
        pause: Duration::from_millis(1),
        ..Settings::default()
    };
    let bytes = Fetcher::new(settings).fetch(&server.url, &mut |_, _| ()).await.unwrap();
    assert_eq!(bytes, b"1234567890");
}

#[tokio::test]
async fn nobody_there() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/x", listener.local_addr().unwrap());
    drop(listener);
    let error = fetcher().fetch(&url, &mut |_, _| ()).await.unwrap_err();
    assert!(matches!(error, Error::Connect { .. }), "{error}");
}

#[tokio::test]
async fn redirects_are_followed_and_bounded() {
    let server = Server::start(|_, head| match head.starts_with("get /file ") {
        true => Answer::Close(http("302 Found", "location: /other\r\n", 0, b"")),
        false => ok(b"there"),
    })
    .await;
    assert_eq!(fetcher().fetch(&server.url, &mut |_, _| ()).await.unwrap(), b"there");
    let endless =
        Server::start(|_, _| Answer::Close(http("302 Found", "location: /x\r\n", 0, b""))).await;
    let error = fetcher().fetch(&endless.url, &mut |_, _| ()).await.unwrap_err();
    assert!(matches!(error, Error::Address { .. }), "{error}");
}

#[tokio::test]
async fn a_proxy_is_asked_instead() {
    let server = Server::start(|_, _| ok(b"by proxy")).await;
    let proxy = server.url.trim_end_matches("/file").to_owned();
    let fetcher = Fetcher::new(Settings { proxy: Some(proxy), ..Settings::default() });
    let bytes = fetcher.fetch("http://archive.example/debian", &mut |_, _| ()).await.unwrap();
    assert_eq!(bytes, b"by proxy");
    assert!(server.requests()[0].starts_with("get http://archive.example/debian "));
}

#[tokio::test]
async fn local_addresses_are_copied_and_checked() {
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("a+b");
    std::fs::write(&source, b"hello").unwrap();
    let url = format!("file://{}", directory.path().join("a%2bb").display());
    let got = to_file(&url, b"older and longer", &expected(b"hello")).await.unwrap();
    assert_eq!(got, b"hello");
    let error = to_file(&url, b"", &expected(b"hallo")).await.unwrap_err();
    assert!(matches!(error, Error::Digest { .. }), "{error}");
    let known = fetcher().fetch_newer(&url, &Validators::default(), &mut |_, _| ()).await;
    let known = known.unwrap().unwrap();
    assert_eq!(known.bytes, b"hello");
    let again = fetcher().fetch_newer(&url, &known.validators, &mut |_, _| ()).await.unwrap();
    assert!(again.is_none());
    let missing = format!("copy:{}", directory.path().join("none").display());
    let error = fetcher().fetch(&missing, &mut |_, _| ()).await.unwrap_err();
    assert!(matches!(error, Error::NotFound { .. }), "{error}");
}

#[tokio::test]
async fn an_unknown_scheme_is_refused() {
    let error = fetcher().fetch("cdrom:[Debian]/", &mut |_, _| ()).await.unwrap_err();
    assert!(matches!(error, Error::Address { .. } | Error::Broken { .. }), "{error}");
}

fn request(server: &Server) -> Request {
    let known = Validators::default();
    Request { url: server.url.clone(), authorization: None, known, elsewhere: None }
}

/// All bytes of a stream, and how often it began anew.
async fn whole(stream: &mut fetch::Stream) -> Result<(Vec<u8>, usize), Error> {
    let (mut bytes, mut restarts) = (vec![], 0);
    loop {
        match stream.next().await? {
            Piece::Data(piece) => bytes.extend_from_slice(&piece),
            Piece::Restart => {
                bytes.clear();
                restarts += 1;
            }
            Piece::End => return Ok((bytes, restarts)),
        }
    }
}

#[tokio::test]
async fn a_stream_goes_on_where_it_was_cut() {
    let body = b"0123456789";
    let server = Server::start(move |number, head| match (number, rest(head, body)) {
        (0, _) => Answer::Close(http("200 OK", "etag: \"1\"\r\n", 10, &body[..4])),
        (_, Some(start)) => {
            Answer::Close(http("206 Partial Content", "", 10 - start, &body[start..]))
        }
        _ => ok(body),
    })
    .await;
    let mut stream = fetcher().stream(request(&server)).await.unwrap().unwrap();
    assert_eq!(whole(&mut stream).await.unwrap(), (body.to_vec(), 0));
    assert_eq!(stream.sha256()[..], Sha256::digest(body)[..]);
    assert!(server.requests()[1].contains("if-range: \"1\""), "{:?}", server.requests());
}

#[tokio::test]
async fn a_stream_that_cannot_go_on_begins_anew() {
    let headers = "last-modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
    let server = Server::start(move |number, _| match number {
        0 => Answer::Close(http("200 OK", "etag: W/\"1\"\r\n", 10, b"0123")),
        _ => Answer::Close(http("200 OK", headers, 3, b"new")),
    })
    .await;
    let mut stream = fetcher().stream(request(&server)).await.unwrap().unwrap();
    assert_eq!(stream.modified(), None);
    assert_eq!(whole(&mut stream).await.unwrap(), (b"new".to_vec(), 1));
    assert_eq!(stream.sha256()[..], Sha256::digest(b"new")[..]);
    let since = stream.modified().unwrap().duration_since(std::time::UNIX_EPOCH).unwrap();
    assert_eq!(since.as_secs(), 784_111_777);
    assert!(!server.requests()[1].contains("range:"), "a weak tag is no version");
}

#[tokio::test]
async fn a_stream_is_refused_with_the_servers_words() {
    let server = Server::start(|_, head| match head.contains("authorization: bearer x") {
        true => ok(b"private"),
        false => Answer::Close(http("401 Unauthorized", "", 0, b"")),
    })
    .await;
    let error = fetcher().stream(request(&server)).await.unwrap_err();
    assert!(error.to_string().ends_with("status 401 Unauthorized"), "{error}");
    let authorized = Request { authorization: Some("Bearer x".into()), ..request(&server) };
    let mut stream = fetcher().stream(authorized).await.unwrap().unwrap();
    assert_eq!(whole(&mut stream).await.unwrap().0, b"private");
    let odd = Request { authorization: Some("a\nb".into()), ..request(&server) };
    let error = fetcher().stream(odd).await.unwrap_err();
    assert!(!error.to_string().contains("a\nb"), "{error}");
}

#[tokio::test]
async fn a_host_can_be_elsewhere() {
    let server = Server::start(|_, _| ok(b"here")).await;
    let address: std::net::SocketAddr =
        server.url["http://".len()..].trim_end_matches("/file").parse().unwrap();
    let url = format!("http://a-service:{}/file", address.port());
    let elsewhere = Some(("a-service".to_owned(), address));
    let mut stream =
        fetcher().stream(Request { url, elsewhere, ..request(&server) }).await.unwrap().unwrap();
    assert_eq!(whole(&mut stream).await.unwrap().0, b"here");
    assert!(server.requests()[0].contains("host: a-service:"), "{:?}", server.requests());
}
