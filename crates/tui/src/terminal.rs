//! The terminal itself: its size, and redrawing a block of lines in place.
//!
//! A frame is written over the last one line by line, each line erased to its right only after its
//! new text stands, inside a synchronized update: nothing flickers. Lines are never longer than the
//! terminal is wide, so that going up by their number always lands on the first one; when the
//! terminal got narrower meanwhile, the rows that the old lines now take are counted instead.

use crate::text;
use std::fmt::Write as _;

/// Columns and rows of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Columns.
    pub columns: usize,
    /// Rows.
    pub rows: usize,
}

/// The size of the terminal that standard error is, if it is one and knows its size.
pub fn stderr_size() -> Option<Size> {
    let size = rustix::termios::tcgetwinsize(rustix::stdio::stderr()).ok()?;
    let size = Size { columns: size.ws_col.into(), rows: size.ws_row.into() };
    (size.columns > 0 && size.rows > 0).then_some(size)
}

const BEGIN_UPDATE: &str = "\x1b[?2026h\x1b[?25l";
const END_UPDATE: &str = "\x1b[?25h\x1b[?2026l";
const ERASE_RIGHT: &str = "\x1b[K";
const ERASE_BELOW: &str = "\x1b[J";

/// One line of a frame: what is written, and how many columns it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FrameLine {
    pub(crate) text: String,
    pub(crate) columns: usize,
}

impl FrameLine {
    /// A line of clean text, painted by `paint` after it was measured.
    pub(crate) fn new(plain: &str, text: String) -> Self {
        Self { text, columns: text::width(plain) }
    }
}

/// Remembers the frame on the screen.
#[derive(Debug, Default)]
pub(crate) struct Painter {
    drawn: Vec<FrameLine>,
}

impl Painter {
    /// Writes what turns the frame on the screen into this one.
    pub(crate) fn draw(&mut self, frame: Vec<FrameLine>, columns: usize, out: &mut String) {
        if frame == self.drawn && self.rows(columns) == self.drawn.len() {
            return;
        }
        out.push_str(BEGIN_UPDATE);
        self.go_to_top(columns, out);
        for line in &frame {
            let _ = write!(out, "{}{ERASE_RIGHT}\r\n", line.text);
        }
        out.push_str(ERASE_BELOW);
        out.push_str(END_UPDATE);
        self.drawn = frame;
    }

    /// Writes what takes the frame off the screen.
    pub(crate) fn erase(&mut self, columns: usize, out: &mut String) {
        if self.drawn.is_empty() {
            return;
        }
        self.go_to_top(columns, out);
        out.push_str(ERASE_BELOW);
        self.drawn.clear();
    }

    fn go_to_top(&self, columns: usize, out: &mut String) {
        match self.rows(columns) {
            0 => {}
            rows => {
                let _ = write!(out, "\x1b[{rows}A\r");
            }
        }
    }

    fn rows(&self, columns: usize) -> usize {
        let columns = columns.max(1);
        self.drawn.iter().map(|line| line.columns.div_ceil(columns).max(1)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(lines: &[&str]) -> Vec<FrameLine> {
        lines.iter().map(|line| FrameLine::new(line, (*line).to_owned())).collect()
    }

    fn draw(painter: &mut Painter, lines: &[&str], columns: usize) -> String {
        let mut out = String::new();
        painter.draw(frame(lines), columns, &mut out);
        out.replace('\x1b', "^")
    }

    #[test]
    fn draws_over_the_last_frame() {
        let mut painter = Painter::default();
        assert_eq!(
            draw(&mut painter, &["a", "b"], 80),
            "^[?2026h^[?25la^[K\r\nb^[K\r\n^[J^[?25h^[?2026l"
        );
        assert_eq!(draw(&mut painter, &["c"], 80), "^[?2026h^[?25l^[2A\rc^[K\r\n^[J^[?25h^[?2026l");
        assert_eq!(draw(&mut painter, &["c"], 80), "", "nothing changed, nothing written");
    }

    #[test]
    fn counts_the_rows_of_lines_that_wrapped_after_a_resize() {
        let mut painter = Painter::default();
        draw(&mut painter, &["0123456789", "x"], 80);
        assert!(draw(&mut painter, &["y"], 4).contains("^[4A"));
    }

    #[test]
    fn erases_everything() {
        let mut painter = Painter::default();
        draw(&mut painter, &["a", "b"], 80);
        let mut out = String::new();
        painter.erase(80, &mut out);
        assert_eq!(out, "\x1b[2A\r\x1b[J");
        out.clear();
        painter.erase(80, &mut out);
        assert_eq!(out, "");
    }
}
