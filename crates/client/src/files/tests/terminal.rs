//! The terminal, asked for as an engine asks.

use super::*;
use crate::terminal::terminals;
use protocol::attach::{TERMINAL_PATH, TerminalDecoder, TerminalInput};

/// A request for the terminal whose body comes piece by piece.
fn request() -> (mpsc::Sender<Bytes>, Request<Body>) {
    let (sender, mut pieces) = mpsc::channel::<Bytes>(1);
    let frames = stream::poll_fn(move |context| {
        pieces.poll_recv(context).map(|piece| piece.map(|bytes| Ok(Frame::data(bytes))))
    });
    let body = StreamBody::new(frames).boxed_unsync();
    (sender, Request::post(TERMINAL_PATH).body(body).unwrap())
}

#[tokio::test]
async fn a_client_without_a_terminal_says_so() {
    let mut served = Served::new().await;
    let (_open, asked) = request();
    let (status, body) = served.post(asked).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    let error: Error = serde_json::from_slice(&body).unwrap();
    assert!(error.message.contains("no terminal"), "{error:?}");
    assert!(error.hints[0].contains("--progress=tty"));
    // One that had a terminal and let go of it says the same.
    let (terminals, loans) = terminals();
    drop(loans);
    let mut served = Served::lending(terminals).await;
    let (_open, asked) = request();
    assert_eq!(served.post(asked).await.0, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn what_is_shown_and_what_is_typed_travel_until_the_loan_ends() {
    let (terminals, mut loans) = terminals();
    let mut served = Served::lending(terminals).await;
    let user = tokio::spawn(async move {
        let mut lent = loans.next().await.unwrap().accept().unwrap();
        lent.input.send(TerminalInput::Size { columns: 80, rows: 24 }).await.unwrap();
        let mut seen = vec![];
        while let Some(bytes) = lent.output.recv().await {
            seen.extend_from_slice(&bytes);
            if bytes.ends_with(b"$ ") {
                lent.input.send(TerminalInput::Keys(b"exit\r".to_vec())).await.unwrap();
            }
        }
        seen
    });
    let (shown, asked) = request();
    let response = served.sender.send_request(asked).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    let mut body = response.into_body();
    let mut decoder = TerminalDecoder::default();
    let size = body.frame().await.unwrap().unwrap().into_data().unwrap();
    decoder.push(&size);
    let first = decoder.next_input().unwrap();
    assert_eq!(first, Some(TerminalInput::Size { columns: 80, rows: 24 }));
    shown.send("hello $ ".into()).await.unwrap();
    decoder.push(&body.frame().await.unwrap().unwrap().into_data().unwrap());
    assert_eq!(decoder.next_input().unwrap(), Some(TerminalInput::Keys(b"exit\r".to_vec())));
    drop(shown);
    let rest = body.collect().await.unwrap().to_bytes();
    assert!(rest.is_empty(), "the answer ends with the loan");
    assert_eq!(user.await.unwrap(), b"hello $ ");
}

#[tokio::test]
async fn who_stops_waiting_for_the_terminal_is_passed_over() {
    let (terminals, mut loans) = terminals();
    let mut served = Served::lending(terminals).await;
    let (_first, asked) = request();
    let gone = tokio::spawn(served.sender.send_request(asked));
    // The first has it; the second waits and gives up; the third is next.
    let first = loans.next().await.unwrap();
    let (_second, asked) = request();
    let second = tokio::spawn(served.sender.send_request(asked));
    tokio::task::yield_now().await;
    second.abort();
    let (_third, asked) = request();
    let third = tokio::spawn(served.sender.send_request(asked));
    let lent = first.accept().unwrap();
    assert_eq!(gone.await.unwrap().unwrap().status(), StatusCode::OK);
    drop(lent);
    let mut waiting = loans.next().await.unwrap();
    while waiting.accept().is_none() {
        waiting = loans.next().await.unwrap();
    }
    assert_eq!(third.await.unwrap().unwrap().status(), StatusCode::OK);
}
