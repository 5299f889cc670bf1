//! [`Screen`]: a terminal in memory. It takes what a program writes to a terminal and knows what a
//! user would see.
//!
//! The emulation is a crate's; this is the one place that knows its types. Output of commands that
//! moves the cursor is read through it, and tests look at the program under test with it. There is no
//! clock in here: a synchronized update shows at once.

mod style;

use alacritty_terminal::Term;
use alacritty_terminal::event::VoidListener;
use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::cell::{Cell, Flags};
use alacritty_terminal::term::{Config, TermMode};
use alacritty_terminal::vte::ansi::{Processor, Timeout};
use std::fmt;
use std::time::Duration;

/// A terminal in memory.
pub struct Screen {
    term: Term<VoidListener>,
    parser: Processor<Never>,
}

/// Columns and rows.
#[derive(Clone, Copy)]
struct Size {
    columns: usize,
    rows: usize,
}

/// Synchronized updates never wait.
#[derive(Default)]
struct Never;

impl Screen {
    /// An empty screen that keeps so many rows that have scrolled off its top.
    pub fn new(columns: usize, rows: usize, history: usize) -> Self {
        let config = Config { scrolling_history: history, ..Config::default() };
        let size = Size::of(columns, rows);
        Self { term: Term::new(config, &size, VoidListener), parser: Processor::new() }
    }

    /// Takes what a program writes.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.parser.advance(&mut self.term, bytes);
    }

    /// Gives the screen another size; lines that no longer fit are wrapped.
    pub fn resize(&mut self, columns: usize, rows: usize) {
        self.term.resize(Size::of(columns, rows));
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.term.screen_lines()
    }

    /// How many columns there are.
    pub fn columns(&self) -> usize {
        self.term.columns()
    }

    /// Row and column of the cursor, from zero.
    pub fn cursor(&self) -> (usize, usize) {
        let point = self.term.grid().cursor.point;
        (usize::try_from(point.line.0).unwrap_or(0), point.column.0)
    }

    /// Whether the cursor is shown.
    pub fn shows_cursor(&self) -> bool {
        self.term.mode().contains(TermMode::SHOW_CURSOR)
    }

    /// The text of a row, without the blanks at its end.
    pub fn row(&self, row: usize) -> String {
        self.text_of(Line(i32::try_from(row).unwrap_or(i32::MAX)))
    }

    /// The text of a row with its colours, without the blanks at its end.
    pub fn styled_row(&self, row: usize) -> String {
        let mut text = style::Text::default();
        for cell in self.cells(Line(i32::try_from(row).unwrap_or(i32::MAX))) {
            text.push(cell);
        }
        text.finish()
    }

    /// Whether a row goes on in the next one because it was too long.
    pub fn is_wrapped(&self, row: usize) -> bool {
        let line = Line(i32::try_from(row).unwrap_or(i32::MAX));
        self.cells(line).last().is_some_and(|cell| cell.flags.contains(Flags::WRAPLINE))
    }

    /// All rows, without the empty ones at the end.
    pub fn text(&self) -> String {
        self.lines_from(0)
    }

    /// All rows and those that have scrolled off, without the empty ones at the end.
    pub fn everything(&self) -> String {
        self.lines_from(self.term.topmost_line().0)
    }

    fn lines_from(&self, first: i32) -> String {
        let lines = (first..=self.term.bottommost_line().0).map(|line| self.text_of(Line(line)));
        let text = lines.collect::<Vec<_>>().join("\n");
        text.trim_end().to_owned()
    }

    fn text_of(&self, line: Line) -> String {
        let mut text = String::new();
        for cell in self.cells(line) {
            style::write_characters(cell, &mut text);
        }
        text.truncate(text.trim_end_matches(' ').len());
        text
    }

    /// The cells of a row; none of a row that is not there.
    fn cells(&self, line: Line) -> impl Iterator<Item = &Cell> {
        let grid = self.term.grid();
        let known = line >= grid.topmost_line() && line <= grid.bottommost_line();
        let columns = if known { grid.columns() } else { 0 };
        (0..columns).map(move |column| &grid[line][Column(column)])
    }
}

impl fmt::Debug for Screen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Screen").field("text", &self.text()).finish_non_exhaustive()
    }
}

impl Size {
    /// A terminal without rows or columns is none.
    fn of(columns: usize, rows: usize) -> Self {
        Self { columns: columns.max(1), rows: rows.max(1) }
    }
}

impl Dimensions for Size {
    fn total_lines(&self) -> usize {
        self.rows
    }

    fn screen_lines(&self) -> usize {
        self.rows
    }

    fn columns(&self) -> usize {
        self.columns
    }
}

impl Timeout for Never {
    fn set_timeout(&mut self, _: Duration) {}

    fn clear_timeout(&mut self) {}

    fn pending_timeout(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn screen(text: &str) -> Screen {
        let mut screen = Screen::new(10, 3, 5);
        screen.feed(text.as_bytes());
        screen
    }

    #[test]
    fn shows_what_is_left_of_overwritten_text() {
        assert_eq!(screen("abc\rX").text(), "Xbc");
        assert_eq!(screen("abc\x08\x08Y").text(), "aYc");
        assert_eq!(screen("one\r\ntwo\x1b[1A\r\x1b[2KONE").text(), "ONE\ntwo");
    }

    #[test]
    fn keeps_what_scrolled_off() {
        let screen = screen("1\r\n2\r\n3\r\n4\r\n5");
        assert_eq!(screen.text(), "3\n4\n5");
        assert_eq!(screen.everything(), "1\n2\n3\n4\n5");
        assert_eq!(screen.cursor(), (2, 1));
    }

    #[test]
    fn wide_characters_take_two_columns() {
        let screen = screen("日本x");
        assert_eq!((screen.row(0).as_str(), screen.cursor()), ("日本x", (0, 5)));
    }

    #[test]
    fn long_rows_are_wrapped_and_know_it() {
        let screen = screen("0123456789abc");
        assert_eq!(screen.text(), "0123456789\nabc");
        assert!(screen.is_wrapped(0) && !screen.is_wrapped(1));
    }

    #[test]
    fn colours_are_told_and_end_with_the_row() {
        let screen = screen("a\x1b[1;31mb\x1b[0mc\x1b[38;5;200md\x1b[48;2;1;2;3me");
        let expected = "a^[1;31mb^[0mc^[38;5;200md^[0;38;5;200;48;2;1;2;3me^[0m";
        assert_eq!(screen.styled_row(0).replace('\x1b', "^"), expected);
    }

    #[test]
    fn a_synchronized_update_shows_at_once() {
        assert_eq!(screen("\x1b[?2026hx").text(), "x");
    }

    #[test]
    fn knows_whether_the_cursor_is_shown() {
        let mut screen = screen("\x1b[?25l");
        assert!(!screen.shows_cursor());
        screen.feed(b"\x1b[?25h");
        assert!(screen.shows_cursor());
    }

    #[test]
    fn another_size_wraps_again() {
        let mut screen = screen("01234567");
        screen.resize(4, 3);
        assert_eq!(screen.everything(), "0123\n4567");
        assert_eq!((screen.columns(), screen.rows()), (4, 3));
    }
}
