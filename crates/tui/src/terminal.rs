//! The terminal itself: its size, and redrawing a block of lines in place.
//!
//! Of a frame only the lines that changed are written, each over its old text and erased to its
//! right only after the new text stands, inside a synchronized update: nothing flickers. Lines are
//! never as long as the terminal is wide, so that going up by their number always lands on the first
//! one; when the terminal got narrower meanwhile, the rows that the old lines now take are counted
//! instead. The cursor is hidden while a frame stands.

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

/// Nothing that follows is shown before the end of the update.
pub(crate) const BEGIN_UPDATE: &str = "\x1b[?2026h";
/// The end of an update.
pub(crate) const END_UPDATE: &str = "\x1b[?2026l";
const HIDE_CURSOR: &str = "\x1b[?25l";
const SHOW_CURSOR: &str = "\x1b[?25h";
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
    /// The size of the terminal when it was drawn.
    size: Option<Size>,
    hides_cursor: bool,
}

impl Painter {
    /// Writes what turns the frame on the screen into this one.
    pub(crate) fn draw(&mut self, frame: Vec<FrameLine>, size: Size, out: &mut String) {
        // A terminal that changed its size may have moved what stood on it.
        let moved = self.size.replace(size).is_some_and(|before| before != size);
        if frame == self.drawn && !moved {
            return;
        }
        out.push_str(BEGIN_UPDATE);
        if !std::mem::replace(&mut self.hides_cursor, true) {
            out.push_str(HIDE_CURSOR);
        }
        match moved {
            true => self.draw_all(&frame, size.columns, out),
            false => self.draw_changes(&frame, out),
        }
        out.push_str(END_UPDATE);
        self.drawn = frame;
    }

    /// Writes what takes the frame off the screen.
    pub(crate) fn erase(&mut self, columns: usize, out: &mut String) {
        if !self.drawn.is_empty() {
            self.go_to_top(columns, out);
            out.push_str(ERASE_BELOW);
            self.drawn.clear();
        }
        self.show_cursor(out);
    }

    /// Shows the cursor again, wherever it is.
    pub(crate) fn show_cursor(&mut self, out: &mut String) {
        if std::mem::take(&mut self.hides_cursor) {
            out.push_str(SHOW_CURSOR);
        }
    }

    /// Whether a frame stands on the screen.
    pub(crate) fn is_drawn(&self) -> bool {
        !self.drawn.is_empty()
    }

    fn draw_all(&self, frame: &[FrameLine], columns: usize, out: &mut String) {
        self.go_to_top(columns, out);
        for line in frame {
            let _ = write!(out, "{}{ERASE_RIGHT}\r\n", line.text);
        }
        out.push_str(ERASE_BELOW);
    }

    fn draw_changes(&self, frame: &[FrameLine], out: &mut String) {
        let same = |index: usize| self.drawn.get(index) == frame.get(index);
        let first = (0..frame.len()).find(|index| !same(*index)).unwrap_or(frame.len());
        if self.drawn.len() > first {
            let _ = write!(out, "\x1b[{}A\r", self.drawn.len() - first);
        }
        let mut skipped = 0;
        for (index, line) in frame.iter().enumerate().skip(first) {
            if same(index) {
                skipped += 1;
                continue;
            }
            go_down(std::mem::take(&mut skipped), out);
            let _ = write!(out, "{}{ERASE_RIGHT}\r\n", line.text);
        }
        go_down(skipped, out);
        if frame.len() < self.drawn.len() {
            out.push_str(ERASE_BELOW);
        }
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

fn go_down(rows: usize, out: &mut String) {
    if rows > 0 {
        let _ = write!(out, "\x1b[{rows}B");
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
        painter.draw(frame(lines), Size { columns, rows: 24 }, &mut out);
        let inside = out.strip_prefix(BEGIN_UPDATE).and_then(|out| out.strip_suffix(END_UPDATE));
        inside.unwrap_or(&out).replace('\x1b', "^")
    }

    #[test]
    fn writes_only_the_lines_that_changed() {
        let mut painter = Painter::default();
        assert_eq!(
            draw(&mut painter, &["a", "b", "c", "d"], 80),
            "^[?25la^[K\r\nb^[K\r\nc^[K\r\nd^[K\r\n"
        );
        assert_eq!(draw(&mut painter, &["a", "B", "c", "d"], 80), "^[3A\rB^[K\r\n^[2B");
        assert_eq!(draw(&mut painter, &["A", "B", "c", "D"], 80), "^[4A\rA^[K\r\n^[2BD^[K\r\n");
        assert_eq!(draw(&mut painter, &["A", "B"], 80), "^[2A\r^[J");
        assert_eq!(draw(&mut painter, &["A", "B", "C"], 80), "C^[K\r\n");
        assert_eq!(
            draw(&mut painter, &["A", "B", "C"], 80),
            "",
            "nothing changed, nothing written"
        );
    }

    #[test]
    fn counts_the_rows_of_lines_that_wrapped_after_a_resize() {
        let mut painter = Painter::default();
        draw(&mut painter, &["0123456789", "x"], 80);
        assert_eq!(draw(&mut painter, &["y"], 4), "^[4A\ry^[K\r\n^[J");
    }

    #[test]
    fn erases_everything_and_shows_the_cursor() {
        let mut painter = Painter::default();
        draw(&mut painter, &["a", "b"], 80);
        let mut out = String::new();
        painter.erase(80, &mut out);
        assert_eq!(out, "\x1b[2A\r\x1b[J\x1b[?25h");
        out.clear();
        painter.erase(80, &mut out);
        assert_eq!(out, "");
    }
}
