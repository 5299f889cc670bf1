//! The terminal of a client of a few lines.

use super::*;
use futures::StreamExt as _;
use protocol::attach::{TERMINAL_PATH, TerminalInput};

/// A client whose user does what these bytes say, whatever is shown.
fn answering(bytes: Vec<u8>) -> Arc<AttachedHost> {
    let (ours, theirs) = UnixStream::pair().unwrap();
    tokio::spawn(async move {
        let service = service_fn(move |request: Request<Incoming>| {
            let bytes = bytes.clone();
            async move {
                assert_eq!(request.uri().path(), TERMINAL_PATH);
                Ok::<_, Infallible>(Response::new(full(bytes)))
            }
        });
        let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        let _ = builder.serve_connection(TokioIo::new(theirs), service).await;
    });
    attached(ours)
}

#[tokio::test]
async fn a_terminal_begins_with_its_size_and_ends_with_its_user() {
    let keys = TerminalInput::Keys(b"exit\r".to_vec());
    let mut bytes = TerminalInput::Size { columns: 80, rows: 24 }.encode();
    bytes.extend(keys.encode());
    let mut terminal = answering(bytes).terminal().await.unwrap();
    assert_eq!(terminal.size, (80, 24));
    assert_eq!(terminal.input.next().await, Some(keys));
    assert_eq!(terminal.input.next().await, None);
}

#[tokio::test]
async fn what_no_terminal_says_ends_it() {
    for bytes in [&[][..], &[2, 80], &[9, 9, 9, 9, 9], &[1, 1, 0, b'x']] {
        let refused = answering(bytes.to_vec()).terminal().await.map(drop).unwrap_err();
        assert!(refused.message.contains("without a size"), "{bytes:?}: {refused:?}");
    }
    let mut bytes = TerminalInput::Size { columns: 1, rows: 1 }.encode();
    bytes.extend([7; 100]);
    let mut terminal = answering(bytes).terminal().await.unwrap();
    assert_eq!(terminal.input.next().await, None);
}
