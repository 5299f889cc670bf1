//! [`LineSplitter`]: pieces of output, cut anywhere, become lines.
//!
//! A carriage return starts the line over, as on a terminal: of a progress bar that redraws itself
//! only the last state remains. Lines are cut at a fixed length, so that output without newlines
//! cannot grow memory.

/// Longest line in bytes. A longer one is given out in pieces.
const MAX_LINE_BYTES: usize = 4096;

/// Splits one stream into lines.
#[derive(Clone, Debug, Default)]
pub struct LineSplitter {
    line: String,
    /// A carriage return came last: it ends the line if a newline follows and else restarts it.
    returned: bool,
}

impl LineSplitter {
    /// Takes the next piece and gives out each line that it completes, without the line end.
    pub fn push(&mut self, mut text: &str, mut emit: impl FnMut(&str)) {
        while let Some(position) = text.find(['\n', '\r']) {
            self.extend(&text[..position], &mut emit);
            if text.as_bytes()[position] == b'\n' {
                emit(&self.line);
                self.line.clear();
                self.returned = false;
            } else {
                self.returned = true;
            }
            text = &text[position + 1..];
        }
        self.extend(text, &mut emit);
    }

    /// Gives out what is left when the stream ends.
    pub fn finish(&mut self, mut emit: impl FnMut(&str)) {
        if !self.line.is_empty() {
            emit(&self.line);
        }
        *self = Self::default();
    }

    /// Takes what has come of the line that is not complete yet, with the return at its end.
    pub(crate) fn take(&mut self) -> String {
        let Self { mut line, returned } = std::mem::take(self);
        if returned {
            line.push('\r');
        }
        line
    }

    /// What has come of the line that is not complete yet.
    pub fn partial(&self) -> &str {
        &self.line
    }

    fn extend(&mut self, mut text: &str, emit: &mut impl FnMut(&str)) {
        if text.is_empty() {
            return;
        }
        if std::mem::take(&mut self.returned) {
            self.line.clear();
        }
        while self.line.len() + text.len() > MAX_LINE_BYTES {
            let (head, tail) =
                text.split_at(text.floor_char_boundary(MAX_LINE_BYTES - self.line.len()));
            self.line.push_str(head);
            emit(&self.line);
            self.line.clear();
            text = tail;
        }
        self.line.push_str(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(pieces: &[&str]) -> Vec<String> {
        let mut splitter = LineSplitter::default();
        let mut lines = vec![];
        for piece in pieces {
            splitter.push(piece, |line| lines.push(line.to_owned()));
        }
        splitter.finish(|line| lines.push(line.to_owned()));
        lines
    }

    #[test]
    fn joins_pieces_and_splits_lines() {
        assert_eq!(split(&["a", "b\nc\n\nd"]), ["ab", "c", "", "d"]);
        assert_eq!(split(&["a\n"]), ["a"]);
        assert_eq!(split(&[]), [""; 0]);
    }

    #[test]
    fn a_carriage_return_starts_the_line_over() {
        assert_eq!(split(&["10%\r50%\r", "100%\n"]), ["100%"]);
        assert_eq!(split(&["dos\r", "\nline\r\n"]), ["dos", "line"]);
        assert_eq!(split(&["kept\r"]), ["kept"]);
    }

    #[test]
    fn cuts_lines_without_end() {
        let long = "é".repeat(MAX_LINE_BYTES);
        let lines = split(&[&long]);
        assert!(lines.iter().all(|line| line.len() <= MAX_LINE_BYTES));
        assert_eq!(lines.concat(), long);
    }
}
