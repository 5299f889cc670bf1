//! [`Page`]: output that moves the cursor, read as a terminal would show it.
//!
//! Most output is lines and never comes here. Bars that redraw several lines, and text that is
//! corrected in place, make sense only on a screen; this one is small and lives while its command runs.

use screen::Screen;

/// Columns of the screen that such output is shown on.
const COLUMNS: usize = 160;
/// Rows of it: how far back a program may go and correct what it wrote.
const ROWS: usize = 16;

/// A screen for the output of one stream.
#[derive(Debug)]
pub(crate) struct Page {
    screen: Screen,
}

impl Page {
    /// How many lines there is room for above the one that is being written.
    pub(crate) const CAPACITY: usize = ROWS - 1;

    /// A page on which these lines stand, and what has come of the next one.
    pub(crate) fn after<'a>(lines: impl Iterator<Item = &'a str>, partial: &str) -> Self {
        let mut screen = Screen::new(COLUMNS, ROWS, 0);
        for line in lines {
            screen.feed(line.as_bytes());
            screen.feed(b"\x1b[0m\r\n");
        }
        screen.feed(partial.as_bytes());
        Self { screen }
    }

    /// Takes the next piece and gives out each line that it ends, as it stands then.
    pub(crate) fn push(&mut self, text: &str, mut emit: impl FnMut(&str)) {
        for piece in text.split_inclusive('\n') {
            let body = piece.strip_suffix('\n');
            self.screen.feed(body.unwrap_or(piece).as_bytes());
            if body.is_some() {
                emit(&self.current());
                self.screen.feed(b"\r\n");
            }
        }
    }

    /// Gives out the line that was not ended.
    pub(crate) fn finish(&self, mut emit: impl FnMut(&str)) {
        let current = self.current();
        if !current.is_empty() {
            emit(&current);
        }
    }

    /// The rows that are not empty, with their colours.
    pub(crate) fn rows(&self) -> Vec<String> {
        let rows = (0..self.screen.rows()).map(|row| self.screen.styled_row(row));
        let mut rows: Vec<String> = rows.collect();
        let filled = rows.iter().rposition(|row| !row.is_empty()).map_or(0, |last| last + 1);
        rows.truncate(filled);
        rows
    }

    /// The line that the cursor is in, over all rows it takes.
    fn current(&self) -> String {
        let (cursor, _) = self.screen.cursor();
        let first = (0..cursor).rev().find(|row| !self.screen.is_wrapped(*row));
        let first = first.map_or(0, |row| row + 1);
        let mut line = self.screen.styled_row(first);
        let mut row = first;
        while self.screen.is_wrapped(row) {
            row += 1;
            line.push_str(&self.screen.styled_row(row));
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn play(pieces: &[&str]) -> (Vec<String>, Vec<String>) {
        let mut page = Page::after(std::iter::empty(), "");
        let mut lines = vec![];
        for piece in pieces {
            page.push(piece, |line| lines.push(line.to_owned()));
        }
        page.finish(|line| lines.push(line.to_owned()));
        (lines, page.rows())
    }

    #[test]
    fn what_is_corrected_in_place_is_given_out_as_it_ends() {
        assert_eq!(play(&["a\x08b\x1b[2D", "\x1b[Cc\nnext"]).0, ["bc", "next"]);
        assert_eq!(play(&["10%\x1b[1G20%\n"]).0, ["20%"]);
    }

    #[test]
    fn bars_of_several_lines_stay_where_they_are() {
        let (_, rows) = play(&["a 1%\nb 1%\n", "\x1b[2Aa 9%\n\x1b[32mb 7%\x1b[0m\n"]);
        assert_eq!(rows, ["a 9%", "\x1b[32mb 7%\x1b[0m"]);
    }

    #[test]
    fn a_line_that_was_wrapped_is_one_line() {
        let long = "x".repeat(COLUMNS + 20);
        assert_eq!(play(&[&long, "\n"]).0, [long]);
    }

    #[test]
    fn what_stood_before_can_be_corrected() {
        let mut page = Page::after(["one", "two"].into_iter(), "thr");
        page.push("\x1b[2A\rONE", |_| {});
        assert_eq!(page.rows(), ["ONE", "two", "thr"]);
    }
}
