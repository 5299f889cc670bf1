//! Secrets, sockets and ports, asked for as an engine asks.

use super::*;
use protocol::attach::{
    ListenDecoder, ListenEvent, ListenRequest, SECRET_PATH, SOCKET_HEADER, SOCKET_PATH,
    SecretRequest, SocketAddress,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket, UnixListener};

/// A request whose body comes piece by piece.
fn streamed(address: &str) -> (mpsc::Sender<Bytes>, Request<Body>) {
    let (sender, mut pieces) = mpsc::channel::<Bytes>(1);
    let frames = stream::poll_fn(move |context| {
        pieces.poll_recv(context).map(|piece| piece.map(|bytes| Ok(Frame::data(bytes))))
    });
    let body = StreamBody::new(frames).boxed_unsync();
    let request = Request::post(SOCKET_PATH).header(SOCKET_HEADER, address).body(body).unwrap();
    (sender, request)
}

#[tokio::test]
async fn a_secret_is_its_bytes() {
    let mut served = Served::new().await;
    served.write("key", "hunter2\n");
    let mut ask = async |uri: &str| {
        let head = serde_json::to_vec(&SecretRequest { uri: uri.into() }).unwrap();
        served.post(Request::post(SECRET_PATH).body(full(head.into())).unwrap()).await
    };
    assert_eq!(ask("file://key").await, (StatusCode::OK, "hunter2\n".into()));
    assert_eq!(ask("cmd://cat key").await, (StatusCode::OK, "hunter2\n".into()));
    for uri in ["file://none", "env://NONE", "cmd://false", "gcp://x", "", "://", "env://"] {
        let (status, body) = ask(uri).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{uri}");
        serde_json::from_slice::<Error>(&body).unwrap();
    }
}

#[tokio::test]
async fn bytes_travel_both_ways_until_both_sides_end() {
    let mut served = Served::new().await;
    let listener = UnixListener::bind(served.work().join("s")).unwrap();
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"hello").await.unwrap();
        let mut all = vec![];
        // Our side is open for long after the other has ended.
        stream.read_to_end(&mut all).await.unwrap();
        stream.write_all(format!(" got {}", all.len()).as_bytes()).await.unwrap();
    });
    let (sender, request) = streamed(&SocketAddress::Unix("s".into()).to_header());
    let response = served.sender.send_request(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    let mut body = response.into_body();
    let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
    assert_eq!(first, "hello", "what the socket says comes before we have said anything");
    for _ in 0..64 {
        sender.send(vec![7; 64 << 10].into()).await.unwrap();
    }
    drop(sender);
    let rest = body.collect().await.unwrap().to_bytes();
    assert_eq!(rest, format!(" got {}", 64 * (64 << 10)));
    server.await.unwrap();
}

#[tokio::test]
async fn a_port_is_a_socket_too() {
    let mut served = Served::new().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut all = String::new();
        stream.read_to_string(&mut all).await.unwrap();
        stream.write_all(all.to_uppercase().as_bytes()).await.unwrap();
    });
    let (sender, request) = streamed(&SocketAddress::Tcp("localhost".into(), port).to_header());
    sender.send("shout".into()).await.unwrap();
    drop(sender);
    assert_eq!(served.post(request).await, (StatusCode::OK, "SHOUT".into()));
    server.await.unwrap();
}

#[tokio::test]
async fn a_socket_that_is_not_there_is_named() {
    let mut served = Served::new().await;
    served.write("plain", "");
    for path in ["none", "plain"] {
        let (_sender, request) = streamed(&SocketAddress::Unix(path.into()).to_header());
        let (status, body) = served.post(request).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{path}");
        let error: Error = serde_json::from_slice(&body).unwrap();
        assert!(error.message.contains(&format!("socket {path}: ")), "{error}");
    }
}

/// What happens on a port of the client's.
struct Port {
    body: Incoming,
    decoder: ListenDecoder,
}

impl Port {
    async fn next(&mut self) -> ListenEvent {
        loop {
            if let Some(event) = self.decoder.next_event().unwrap() {
                return event;
            }
            self.decoder.push(&self.body.frame().await.unwrap().unwrap().into_data().unwrap());
        }
    }
}

fn about(path: &str, port: u16, udp: bool) -> Request<Body> {
    let head = serde_json::to_vec(&ListenRequest { port, udp }).unwrap();
    Request::post(path).body(full(head.into())).unwrap()
}

#[tokio::test]
async fn a_port_is_closed_when_that_is_answered() {
    let mut served = Served::new().await;
    for udp in [false, true] {
        let response = served.sender.send_request(about(LISTEN_PATH, 0, udp)).await.unwrap();
        let mut port = Port { body: response.into_body(), decoder: ListenDecoder::default() };
        let ListenEvent::Open(number) = port.next().await else { panic!("the port comes first") };
        // Somebody is there, and was taken: that keeps no port open.
        let (mut tcp, sender) = (None, UdpSocket::bind("127.0.0.1:0").await.unwrap());
        match udp {
            true => drop(sender.send_to(b"hello", ("127.0.0.1", number)).await.unwrap()),
            false => tcp = Some(TcpStream::connect(("127.0.0.1", number)).await.unwrap()),
        }
        let ListenEvent::Connection(connection) = port.next().await else { panic!("somebody") };
        let (_open, mut request) = streamed("");
        *request.uri_mut() = ACCEPT_PATH.parse().unwrap();
        request.headers_mut().insert(CONNECTION_HEADER, connection.into());
        let taken = served.sender.send_request(request).await.unwrap();
        assert_eq!(taken.status(), StatusCode::OK);
        let closed = served.post(about(CLOSE_PATH, number, udp)).await;
        assert_eq!(closed, (StatusCode::OK, "null".into()));
        // Whoever wants it can have it.
        match udp {
            true => drop(UdpSocket::bind(("127.0.0.1", number)).await.unwrap()),
            false => assert!(TcpStream::connect(("127.0.0.1", number)).await.is_err()),
        }
        let rest = port.body.collect().await.unwrap().to_bytes();
        assert!(rest.is_empty(), "nothing happens there any more");
        // What is not open is left alone.
        assert_eq!(served.post(about(CLOSE_PATH, number, udp)).await.0, StatusCode::OK);
        drop(tcp);
    }
}

#[tokio::test]
async fn garbage_is_answered_and_ends_nothing() {
    let mut served = Served::new().await;
    let heads = ["", "{", "{}", "[]", "{\"unix\":7}", "{\"tcp\":[\"a\",99999]}", "{\"udp\":1}"];
    for head in heads {
        let (_sender, request) = streamed(head);
        assert_ne!(served.post(request).await.0, StatusCode::OK, "{head}");
        let request = Request::post(SECRET_PATH).body(full(head.into())).unwrap();
        assert_ne!(served.post(request).await.0, StatusCode::OK, "{head}");
    }
    served.write("key", "still here");
    let head = serde_json::to_vec(&SecretRequest { uri: "file://key".into() }).unwrap();
    let request = Request::post(SECRET_PATH).body(full(head.into())).unwrap();
    assert_eq!(served.post(request).await.1, "still here");
}
