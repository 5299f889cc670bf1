//! [`EventBuffer`]: the events of a session on their way to its client.
//!
//! Who reports never waits for who draws. What a slow client leaves behind is bounded: output of
//! commands is dropped first, and the client is told how much of which command's; beginnings and ends
//! are dropped only when tens of thousands of them wait. Events are sent in batches, as many as wait.
//! What comes before the client has asked for events is kept for it, but not for long: a client that
//! does not ask soon will not ask at all.

use bytes::Bytes;
use graph::EventSink;
use protocol::{Event, LogStream, SpanId};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Most bytes of output that wait.
const MAX_TEXT: usize = 1 << 20;
/// Most events that wait before progress is dropped, and before everything is.
const MANY_EVENTS: usize = 1 << 12;
const MAX_EVENTS: usize = 1 << 16;
/// Most events that are kept for a client which has not asked for them.
const MAX_UNHEARD: usize = 1 << 11;
/// A piece of output grows to this size before another one is begun.
const MAX_PIECE: usize = 32 << 10;
/// A batch is sent when it has this size.
const BATCH: usize = 64 << 10;

/// What waits for the client.
#[derive(Default)]
pub(super) struct EventBuffer {
    waiting: Mutex<Waiting>,
    news: Notify,
}

#[derive(Default)]
struct Waiting {
    events: VecDeque<Event>,
    text: usize,
    /// Bytes of output that were dropped, by span, since the client last heard of it.
    dropped_text: HashMap<SpanId, u64>,
    /// Whether nobody asked for the events in time.
    given_up: bool,
    finished: bool,
    has_reader: bool,
}

/// The one reader of a buffer.
pub(super) struct Reader(Arc<EventBuffer>);

impl EventBuffer {
    /// The reader; none when there is one already.
    pub(super) fn read(self: &Arc<Self>) -> Option<Reader> {
        let mut waiting = self.lock();
        if waiting.has_reader {
            return None;
        }
        waiting.has_reader = true;
        waiting.given_up = false;
        Some(Reader(self.clone()))
    }

    /// No more events will come.
    pub(super) fn finish(&self) {
        self.lock().finished = true;
        self.news.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EventSink for EventBuffer {
    fn emit(&self, event: Event) {
        self.lock().take(event);
        self.news.notify_one();
    }

    fn enabled(&self) -> bool {
        let waiting = self.lock();
        !waiting.finished && !waiting.given_up
    }
}

impl Reader {
    /// The next batch of lines; none after the last.
    pub(super) async fn next_chunk(&mut self) -> Option<Bytes> {
        loop {
            {
                let mut waiting = self.0.lock();
                let batch = waiting.batch();
                if !batch.is_empty() {
                    return Some(batch.into());
                }
                if waiting.finished {
                    return None;
                }
            }
            self.0.news.notified().await;
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.lock().has_reader = false;
    }
}

impl Waiting {
    fn take(&mut self, event: Event) {
        if !self.has_reader && (self.given_up || self.is_full_for_nobody()) {
            *self = Self { given_up: true, finished: self.finished, ..Self::default() };
            return;
        }
        match event {
            Event::Log { id, ref text, .. } if self.text + text.len() > MAX_TEXT => {
                self.drop_text(id, text.len());
            }
            Event::Log { .. } => self.take_text(event),
            Event::Progress { .. } => self.take_progress(event),
            _ if self.events.len() >= MAX_EVENTS => {}
            _ => self.events.push_back(event),
        }
    }

    fn is_full_for_nobody(&self) -> bool {
        self.events.len() >= MAX_UNHEARD || !self.dropped_text.is_empty()
    }

    fn take_text(&mut self, event: Event) {
        let Event::Log { id, stream, text, .. } = &event else { return };
        self.text += text.len();
        if let Some(Event::Log { id: last, stream: same, text: earlier, .. }) =
            self.events.back_mut()
            && (&*last, &*same) == (id, stream)
            && earlier.len() + text.len() <= MAX_PIECE
        {
            earlier.push_str(text);
            return;
        }
        if self.events.len() < MAX_EVENTS {
            self.events.push_back(event);
            return;
        }
        self.text -= text.len();
        self.drop_text(*id, text.len());
    }

    fn take_progress(&mut self, event: Event) {
        let Event::Progress { id, .. } = &event else { return };
        // Only the newest state of a span is news.
        if let Some(last @ Event::Progress { .. }) = self.events.back_mut()
            && matches!(last, Event::Progress { id: same, .. } if same == id)
        {
            *last = event;
        } else if self.events.len() < MANY_EVENTS {
            self.events.push_back(event);
        }
    }

    fn drop_text(&mut self, id: SpanId, bytes: usize) {
        let room = self.dropped_text.len() < MANY_EVENTS;
        match self.dropped_text.entry(id) {
            Entry::Occupied(mut dropped) => *dropped.get_mut() += bytes as u64,
            Entry::Vacant(dropped) if room => {
                dropped.insert(bytes as u64);
            }
            Entry::Vacant(_) => {}
        }
    }

    /// As many lines as make a batch.
    fn batch(&mut self) -> Vec<u8> {
        let mut lines = vec![];
        while lines.len() < BATCH
            && let Some(event) = self.events.pop_front()
        {
            if let Event::Log { text, .. } = &event {
                self.text -= text.len();
            }
            self.note_before(&event, &mut lines);
            write_line(&mut lines, &event);
        }
        if self.events.is_empty() {
            for (id, bytes) in std::mem::take(&mut self.dropped_text) {
                write_line(&mut lines, &note(id, bytes, 0));
            }
        }
        lines
    }

    /// A note about dropped output has to come before the end of the span it is about.
    fn note_before(&mut self, event: &Event, lines: &mut Vec<u8>) {
        let Event::Ended { id, at, .. } = event else { return };
        if let Some(bytes) = self.dropped_text.remove(id) {
            write_line(lines, &note(*id, bytes, *at));
        }
    }
}

fn note(id: SpanId, bytes: u64, at: u64) -> Event {
    let text = format!("[{bytes} bytes of output are not shown: they came too fast]\n");
    Event::Log { id, stream: LogStream::Engine, text, at }
}

fn write_line(lines: &mut Vec<u8>, event: &Event) {
    serde_json::to_writer(&mut *lines, event).expect("plain data has a JSON form");
    lines.push(b'\n');
}

#[cfg(test)]
mod tests;
