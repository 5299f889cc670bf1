//! What a client hears of a session, and what it does not when it is slow.

use super::*;
use protocol::{Outcome, SpanKind, Unit};

fn started(id: u64) -> Event {
    Event::Started {
        id: SpanId(id),
        parent: None,
        name: "n".into(),
        kind: SpanKind::Call,
        call: None,
        at: 0,
    }
}

fn ended(id: u64) -> Event {
    Event::Ended { id: SpanId(id), outcome: Outcome::Done, at: 7 }
}

fn log(id: u64, text: &str) -> Event {
    Event::Log { id: SpanId(id), stream: LogStream::Stdout, text: text.into(), at: 0 }
}

fn progress(id: u64, done: u64) -> Event {
    Event::Progress { id: SpanId(id), done, total: None, unit: Unit::Bytes, at: 0 }
}

async fn read_all(buffer: &Arc<EventBuffer>) -> Vec<Event> {
    let mut reader = buffer.read().unwrap();
    read_rest(buffer, &mut reader).await
}

async fn read_rest(buffer: &EventBuffer, reader: &mut Reader) -> Vec<Event> {
    buffer.finish();
    let mut events = vec![];
    while let Some(chunk) = reader.next_chunk().await {
        for line in chunk.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            events.push(serde_json::from_slice(line).unwrap());
        }
    }
    events
}

#[tokio::test]
async fn events_come_in_order() {
    let buffer = Arc::new(EventBuffer::default());
    for event in [started(1), started(2), log(2, "x"), ended(2), ended(1)] {
        buffer.emit(event);
    }
    let expected = [started(1), started(2), log(2, "x"), ended(2), ended(1)];
    assert_eq!(read_all(&buffer).await, expected);
}

#[tokio::test]
async fn pieces_of_one_output_and_states_of_one_progress_are_joined() {
    let buffer = Arc::new(EventBuffer::default());
    let events =
        [log(1, "a"), log(1, "b"), log(2, "c"), progress(1, 1), progress(1, 2), progress(2, 1)];
    for event in events {
        buffer.emit(event);
    }
    let expected = [log(1, "ab"), log(2, "c"), progress(1, 2), progress(2, 1)];
    assert_eq!(read_all(&buffer).await, expected);
}

#[tokio::test]
async fn output_that_comes_too_fast_is_dropped_with_a_note_before_the_end() {
    let buffer = Arc::new(EventBuffer::default());
    let mut reader = buffer.read().unwrap();
    let line = "x".repeat(1000);
    buffer.emit(started(1));
    for _ in 0..10_000 {
        buffer.emit(log(1, &line));
    }
    buffer.emit(ended(1));
    let held: usize = buffer.lock().events.len();
    assert!(held < 200, "{held} events wait");
    let events = read_rest(&buffer, &mut reader).await;
    assert_eq!((events.first(), events.last()), (Some(&started(1)), Some(&ended(1))));
    let shown: usize = events
        .iter()
        .filter_map(|event| match event {
            Event::Log { text, stream: LogStream::Stdout, .. } => Some(text.len()),
            _ => None,
        })
        .sum();
    assert!(shown <= MAX_TEXT && shown > MAX_TEXT - line.len());
    let text = format!(
        "[{} bytes of output are not shown: they came too fast]\n",
        10_000_000 - shown as u64
    );
    let note = Event::Log { id: SpanId(1), stream: LogStream::Engine, text, at: 7 };
    assert_eq!(events[events.len() - 2], note);
}

#[tokio::test]
async fn a_client_that_does_not_keep_up_costs_a_bounded_amount() {
    let buffer = Arc::new(EventBuffer::default());
    let _reader = buffer.read().unwrap();
    for id in 0..70_000 {
        buffer.emit(started(id));
        buffer.emit(progress(id, 1));
        buffer.emit(log(id, "x"));
    }
    let waiting = buffer.lock();
    assert_eq!(waiting.events.len(), MAX_EVENTS);
    assert!(waiting.dropped_text.len() <= MANY_EVENTS);
}

#[tokio::test]
async fn a_client_that_never_asks_costs_nothing_after_a_while() {
    let buffer = Arc::new(EventBuffer::default());
    for id in 0..MAX_UNHEARD as u64 {
        assert!(buffer.enabled());
        buffer.emit(started(id));
    }
    buffer.emit(started(0));
    assert!(buffer.lock().events.is_empty());
    assert!(!buffer.enabled(), "nobody asked: nothing more is made");
    let mut reader = buffer.read().unwrap();
    assert!(buffer.enabled(), "somebody asks after all");
    buffer.emit(started(7));
    let chunk = reader.next_chunk().await.unwrap();
    assert_eq!(serde_json::from_slice::<Event>(&chunk).unwrap(), started(7));
}

#[tokio::test]
async fn a_waiting_reader_wakes_for_news_and_for_the_end() {
    let buffer = Arc::new(EventBuffer::default());
    let mut reader = buffer.read().unwrap();
    assert!(buffer.read().is_none(), "there is one reader");
    let reading = tokio::spawn(async move {
        let first = reader.next_chunk().await;
        (first, reader.next_chunk().await)
    });
    tokio::task::yield_now().await;
    buffer.emit(started(1));
    tokio::task::yield_now().await;
    buffer.finish();
    let (first, second) = reading.await.unwrap();
    assert!(first.unwrap().ends_with(b"\n"));
    assert_eq!(second, None);
    assert!(buffer.read().is_some(), "a reader that left makes room");
}
