//! [`LogTail`]: the end of a span's output, bounded in lines and bytes.

use crate::LineSplitter;
use protocol::LogStream;
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
#[derive(Clone, Debug, Default)]
pub struct LogTail {
    lines: VecDeque<Line>,
    bytes: usize,
    /// How many lines fell off the front.
    dropped: u64,
    /// One splitter a stream: pieces of two streams must not be joined into one line.
    partial: [LineSplitter; 3],
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
        self.lines.is_empty() && self.dropped == 0
    }

    pub(crate) fn push(
        &mut self,
        stream: LogStream,
        text: &str,
        at: u64,
        limits: TailLimits,
    ) -> Vec<Line> {
        let mut complete = vec![];
        self.partial[index(stream)]
            .push(text, |line| complete.push(Line { stream, at, text: line.into() }));
        self.keep(&complete, limits);
        complete
    }

    pub(crate) fn finish(&mut self, at: u64, limits: TailLimits) -> Vec<Line> {
        let mut complete = vec![];
        for stream in [LogStream::Stdout, LogStream::Stderr, LogStream::Engine] {
            self.partial[index(stream)]
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
        self.partial = Default::default();
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

fn index(stream: LogStream) -> usize {
    match stream {
        LogStream::Stdout => 0,
        LogStream::Stderr => 1,
        LogStream::Engine => 2,
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
    fn does_not_join_two_streams() {
        let mut tail = LogTail::default();
        assert_eq!(tail.push(LogStream::Stdout, "out", 0, LIMITS), []);
        assert_eq!(tail.push(LogStream::Stderr, "err", 0, LIMITS), []);
        tail.push(LogStream::Stdout, "put\n", 0, LIMITS);
        tail.finish(0, LIMITS);
        assert_eq!(texts(&tail), ["output", "err"]);
    }
}
