//! [`Output`]: one stream of a command's output on its way to lines.
//!
//! Lines are split and nothing more, until the stream first moves the cursor; from then on a
//! [`Page`] reads it.

use crate::LineSplitter;
use crate::page::Page;

/// Longest begin of an escape sequence that waits for its end.
const MAX_HELD: usize = 256;

/// One stream of output.
#[derive(Debug, Default)]
pub(crate) struct Output {
    splitter: LineSplitter,
    page: Option<Box<Page>>,
    /// The begin of an escape sequence whose end has not come.
    held: String,
}

/// What the escape sequences in a text do.
#[derive(Debug, PartialEq, Eq)]
enum Look {
    /// Nothing but colours, titles and the like.
    Lines,
    /// The one here moves the cursor.
    Moves(usize),
    /// The one here is not complete.
    Incomplete(usize),
}

impl Output {
    /// Lines that a page has room for.
    pub(crate) const PAGE: usize = Page::CAPACITY;

    /// Takes the next piece and adds the lines that it completes; `before` are those that were.
    pub(crate) fn push<'a>(
        &mut self,
        text: &str,
        before: impl Iterator<Item = &'a str>,
        complete: &mut Vec<Box<str>>,
    ) {
        if let Some(page) = &mut self.page {
            return page.push(text, |line| complete.push(line.into()));
        }
        let joined = std::mem::take(&mut self.held) + text;
        let text = joined.as_str();
        match look(text) {
            Look::Incomplete(at) if text.len() - at <= MAX_HELD => {
                self.splitter.push(&text[..at], |line| complete.push(line.into()));
                text[at..].clone_into(&mut self.held);
            }
            Look::Lines | Look::Incomplete(_) => {
                self.splitter.push(text, |line| complete.push(line.into()));
            }
            Look::Moves(at) => {
                self.splitter.push(&text[..at], |line| complete.push(line.into()));
                let mut lines: Vec<&str> = before.collect();
                lines.extend(complete.iter().map(|line| &**line));
                let skipped = lines.len().saturating_sub(Page::CAPACITY);
                let partial = self.splitter.take();
                let mut page = Page::after(lines[skipped..].iter().copied(), &partial);
                page.push(&text[at..], |line| complete.push(line.into()));
                self.page = Some(Box::new(page));
            }
        }
    }

    /// Gives out what is left when the stream ends.
    pub(crate) fn finish(&mut self, mut emit: impl FnMut(&str)) {
        match &self.page {
            Some(page) => page.finish(emit),
            None => self.splitter.finish(&mut emit),
        }
        *self = Self::default();
    }

    /// Whether nothing is on its way.
    pub(crate) fn is_quiet(&self) -> bool {
        self.page.is_none() && self.splitter.partial().is_empty()
    }

    /// What stands on the page, if there is one.
    pub(crate) fn rows(&self) -> Option<Vec<String>> {
        self.page.as_ref().map(|page| page.rows())
    }

    /// What has come of the line that is not complete yet.
    pub(crate) fn partial(&self) -> &str {
        self.splitter.partial()
    }
}

/// Looks for the first escape sequence that moves the cursor. Erasing to the right and carriage
/// returns are no such thing: of a line that begins anew only the last state counts.
fn look(text: &str) -> Look {
    let bytes = text.as_bytes();
    let mut from = 0;
    while let Some(offset) = bytes[from..].iter().position(|byte| matches!(byte, 0x08 | 0x1b)) {
        let at = from + offset;
        if bytes[at] == 0x08 {
            return Look::Moves(at);
        }
        match sequence(&bytes[at..]) {
            None => return Look::Incomplete(at),
            Some((_, true)) => return Look::Moves(at),
            Some((length, false)) => from = at + length,
        }
    }
    Look::Lines
}

/// Length of the escape sequence at the start, and whether it moves the cursor.
fn sequence(bytes: &[u8]) -> Option<(usize, bool)> {
    match bytes.get(1)? {
        b'[' => {
            let end = bytes[2..].iter().position(|byte| (0x40..=0x7e).contains(byte))?;
            let last = bytes[2 + end];
            Some((end + 3, b"ABCDEFGHILMPSTXZ@J`abdefrsu".contains(&last)))
        }
        b']' | b'P' | b'^' | b'_' => {
            let end = bytes[2..].iter().position(|byte| matches!(byte, 0x07 | 0x1b))?;
            let terminated = bytes[2 + end] == 0x1b;
            Some((end + if terminated { 4 } else { 3 }, false)).filter(|(n, _)| *n <= bytes.len())
        }
        byte => Some((2, b"78MDEc".contains(byte))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pieces: &[&str]) -> (Vec<Box<str>>, bool) {
        let mut output = Output::default();
        let mut complete = vec![];
        for piece in pieces {
            output.push(piece, std::iter::empty(), &mut complete);
        }
        let paged = output.rows().is_some();
        output.finish(|line| complete.push(line.into()));
        (complete, paged)
    }

    fn texts(pieces: &[&str]) -> Vec<String> {
        lines(pieces).0.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn colours_titles_and_bars_of_one_line_need_no_page() {
        for text in ["\x1b[31mred\x1b[0m\n", "\x1b]0;title\x07x", "1%\r\x1b[K2%", "\x1b[?25lx\n"] {
            assert!(!lines(&[text]).1, "{text:?}");
        }
        assert_eq!(texts(&["10%\r\x1b[K", "20%\r", "\x1b[K30%\n"]), ["\x1b[K30%"]);
    }

    #[test]
    fn what_moves_the_cursor_gets_a_page() {
        for text in ["a\x08b", "\x1b[2A", "\x1b[10;10H", "\x1b7x\x1b8", "\x1b[2J"] {
            assert!(lines(&[text]).1, "{text:?}");
        }
        assert_eq!(texts(&["one\ntwo", "\x1b[3Dxy\n"]), ["one", "xyo"]);
    }

    #[test]
    fn a_sequence_may_be_cut_anywhere() {
        for text in ["ab\x1b[1;31mred\x1b[0m\n", "ab\x1b[1Dx\n", "\x1b]8;;http://h\x1b\\y\n"] {
            let whole = texts(&[text]);
            for at in 0..text.len() {
                assert_eq!(texts(&[&text[..at], &text[at..]]), whole, "{text:?} at {at}");
            }
        }
    }

    #[test]
    fn a_sequence_without_end_is_not_waited_for() {
        let long = format!("\x1b]{}\nx\n", "0".repeat(2 * MAX_HELD));
        assert_eq!(texts(&[&long]).last().map(String::as_str), Some("x"));
    }
}
