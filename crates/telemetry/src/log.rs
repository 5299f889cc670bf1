//! [`LogTail`]: the end of a span's output, bounded in lines and bytes.

use crate::output::Output;
use protocol::LogStream;
use std::borrow::Cow;
use std::collections::VecDeque;

/// One line of output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Where it comes from.
    pub stream: LogStream,
    /// When its end arrived, in microseconds since the Unix epoch.
    pub at: u64,
    /// The text, without a line end; escape sequences are still in it.
    pub text: Box<str>,
}

/// The end of a span's output.
#[derive(Debug, Default)]
pub struct LogTail {
    lines: VecDeque<Line>,
    bytes: usize,
    /// How many lines fell off the front.
    dropped: u64,
    /// Pieces of two streams must not be joined into one line.
    streams: [Output; 4],
}

/// How much a tail keeps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TailLimits {
    pub(crate) lines: usize,
    pub(crate) bytes: usize,
}

impl LogTail {
    /// The kept lines, oldest first.
    pub fn lines(&self) -> impl DoubleEndedIterator<Item = &Line> + ExactSizeIterator {
        self.lines.iter()
    }

    /// How many lines are not kept any more.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Whether nothing was ever printed.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.dropped == 0 && self.streams.iter().all(Output::is_quiet)
    }

    /// The last lines as a terminal would show them now, at most so many: with those that are not
    /// complete, and with those that were corrected since.
    pub fn tail(&self, count: usize) -> Vec<Cow<'_, str>> {
        let pages: Vec<Option<Vec<String>>> = self.streams.iter().map(Output::rows).collect();
        let mut on_page: Vec<usize> = pages
            .iter()
            .map(|rows| match rows {
                None => 0,
                Some(rows) if rows.len() >= Output::PAGE => rows.len(),
                // Everything that the stream has printed still stands there.
                Some(_) => usize::MAX,
            })
            .collect();
        let lines = self.lines.iter().rev().filter(|line| {
            let on_page = &mut on_page[index(line.stream)];
            let passed = *on_page == 0;
            *on_page = on_page.saturating_sub(1);
            passed
        });
        let mut tail: Vec<Cow<'_, str>> =
            lines.take(count).map(|line| Cow::Borrowed(&*line.text)).collect();
        tail.reverse();
        tail.extend(pages.into_iter().flatten().flatten().map(Cow::Owned));
        let partials = self.streams.iter().map(Output::partial);
        tail.extend(partials.filter(|partial| !partial.is_empty()).map(Cow::Borrowed));
        tail.split_off(tail.len().saturating_sub(count))
    }

    /// Bytes that are kept.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn push(
        &mut self,
        stream: LogStream,
        text: &str,
        at: u64,
        limits: TailLimits,
    ) -> Vec<Line> {
        let mut texts = vec![];
        let before = self.lines.iter().filter(|line| line.stream == stream);
        let before = before.map(|line| &*line.text);
        self.streams[index(stream)].push(text, before, &mut texts);
        let complete: Vec<Line> = texts.into_iter().map(|text| Line { stream, at, text }).collect();
        self.keep(&complete, limits);
        complete
    }

    pub(crate) fn finish(&mut self, at: u64, limits: TailLimits) -> Vec<Line> {
        let mut complete = vec![];
        for stream in STREAMS {
            self.streams[index(stream)]
                .finish(|line| complete.push(Line { stream, at, text: line.into() }));
        }
        self.keep(&complete, limits);
        complete
    }

    /// Lets go of everything but the last `lines` lines.
    pub(crate) fn shrink(&mut self, limits: TailLimits) {
        while self.lines.len() > limits.lines || self.bytes > limits.bytes {
            let Some(first) = self.lines.pop_front() else { break };
            self.bytes -= first.text.len();
            self.dropped += 1;
        }
        self.lines.shrink_to_fit();
        self.streams = Default::default();
    }

    fn keep(&mut self, complete: &[Line], limits: TailLimits) {
        let skipped = complete.len().saturating_sub(limits.lines);
        self.dropped += skipped as u64;
        for line in &complete[skipped..] {
            self.bytes += line.text.len();
            self.lines.push_back(line.clone());
        }
        while self.lines.len() > limits.lines || self.bytes > limits.bytes {
            let Some(first) = self.lines.pop_front() else { break };
            self.bytes -= first.text.len();
            self.dropped += 1;
        }
    }
}

/// All there are, in the order of their numbers.
const STREAMS: [LogStream; 4] =
    [LogStream::Stdout, LogStream::Stderr, LogStream::Engine, LogStream::Notice];

fn index(stream: LogStream) -> usize {
    match stream {
        LogStream::Stdout => 0,
        LogStream::Stderr => 1,
        LogStream::Engine => 2,
        LogStream::Notice => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: TailLimits = TailLimits { lines: 3, bytes: 10 };

    fn texts(tail: &LogTail) -> Vec<&str> {
        tail.lines().map(|line| &*line.text).collect()
    }

    #[test]
    fn keeps_the_end_within_both_limits() {
        let mut tail = LogTail::default();
        let complete = tail.push(LogStream::Stdout, "1\n2\n3\n4\n5\n", 0, LIMITS);
        assert_eq!(complete.len(), 5);
        assert_eq!((texts(&tail), tail.dropped()), (vec!["3", "4", "5"], 2));
        tail.push(LogStream::Stdout, "123456789\n", 0, LIMITS);
        assert_eq!((texts(&tail), tail.dropped()), (vec!["5", "123456789"], 4));
    }

    #[test]
    fn the_tail_shows_what_is_not_complete() {
        let limits = TailLimits { lines: 9, bytes: 1000 };
        let mut tail = LogTail::default();
        tail.push(LogStream::Stdout, "one\ntwo\n10%\r20%", 0, limits);
        assert_eq!(tail.tail(2), ["two", "20%"]);
        tail.push(LogStream::Stdout, "\r\x1b[2ATWO\n", 0, limits);
        assert_eq!(tail.tail(9), ["TWO", "two", "20%"]);
        assert_eq!(tail.tail(1), ["20%"]);
        tail.push(LogStream::Stderr, "warning\n", 0, limits);
        assert_eq!(tail.tail(9), ["warning", "TWO", "two", "20%"]);
    }

    #[test]
    fn what_has_left_the_page_is_still_in_the_tail() {
        let limits = TailLimits { lines: 100, bytes: 10_000 };
        let mut tail = LogTail::default();
        let text: String = (1..=40).map(|line| format!("{line}x\x08\n")).collect();
        tail.push(LogStream::Stdout, &text, 0, limits);
        let expected: Vec<String> = (1..=40).map(|line| format!("{line}x")).collect();
        assert_eq!(tail.tail(100), expected);
    }

    #[test]
    fn does_not_join_two_streams() {
        let mut tail = LogTail::default();
        assert_eq!(tail.push(LogStream::Stdout, "out", 0, LIMITS), []);
        assert_eq!(tail.push(LogStream::Stderr, "err", 0, LIMITS), []);
        tail.push(LogStream::Stdout, "put\n", 0, LIMITS);
        tail.finish(0, LIMITS);
        assert_eq!(texts(&tail), ["output", "err"]);
    }
}
