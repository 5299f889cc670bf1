//! Cells of a screen as text with colours, written so that each row stands for itself.

use alacritty_terminal::term::cell::{Cell, Flags};
use alacritty_terminal::vte::ansi::{Color, NamedColor};

/// The characters of a cell: the one it shows and those that combine with it.
pub(crate) fn write_characters(cell: &Cell, into: &mut String) {
    if cell.flags.intersects(Flags::WIDE_CHAR_SPACER | Flags::LEADING_WIDE_CHAR_SPACER) {
        return;
    }
    // A tab is one cell that holds it; the blanks after it are cells of their own.
    into.push(if cell.c == '\t' { ' ' } else { cell.c });
    into.extend(cell.zerowidth().into_iter().flatten());
}

/// A row that is being written.
#[derive(Default)]
pub(crate) struct Text {
    text: String,
    /// Up to where the row is not blank.
    filled: usize,
    style: String,
}

impl Text {
    /// Adds a cell.
    pub(crate) fn push(&mut self, cell: &Cell) {
        let style = style(cell);
        let blank = cell.c == ' ' && style.is_empty();
        if style != self.style {
            let lead = if self.style.is_empty() { "" } else { "0;" };
            match style.is_empty() {
                true => self.text.push_str("\x1b[0m"),
                false => self.text.push_str(&format!("\x1b[{lead}{style}m")),
            }
            if blank {
                // The end of a style belongs to what it ends.
                self.filled = self.text.len();
            }
            self.style = style;
        }
        write_characters(cell, &mut self.text);
        if !blank {
            self.filled = self.text.len();
        }
    }

    /// The row, without the blanks at its end.
    pub(crate) fn finish(mut self) -> String {
        self.text.truncate(self.filled);
        if !self.style.is_empty() {
            self.text.push_str("\x1b[0m");
        }
        self.text
    }
}

/// The parameters of the sequence that sets the style of a cell; none for the plain one.
fn style(cell: &Cell) -> String {
    let mut codes: Vec<String> = vec![];
    let flags = [
        (Flags::BOLD, "1"),
        (Flags::DIM, "2"),
        (Flags::ITALIC, "3"),
        (Flags::ALL_UNDERLINES, "4"),
        (Flags::INVERSE, "7"),
        (Flags::STRIKEOUT, "9"),
    ];
    let set = flags.iter().filter(|(flag, _)| cell.flags.intersects(*flag));
    codes.extend(set.map(|(_, code)| (*code).to_owned()));
    codes.extend(colour(cell.fg, 30));
    codes.extend(colour(cell.bg, 40));
    codes.join(";")
}

/// The parameters of a colour, as text or behind it (`base` 30 or 40).
fn colour(colour: Color, base: u8) -> Option<String> {
    match colour {
        Color::Spec(rgb) => Some(format!("{};2;{};{};{}", base + 8, rgb.r, rgb.g, rgb.b)),
        Color::Indexed(index) => Some(format!("{};5;{index}", base + 8)),
        Color::Named(name) => named(name).map(|index| match index {
            0..8 => format!("{}", base + index),
            bright => format!("{}", base + 60 + bright - 8),
        }),
    }
}

/// Which of the sixteen a name stands for; none for what the terminal has anyway.
fn named(name: NamedColor) -> Option<u8> {
    u8::try_from(name as usize).ok().filter(|index| *index < 16)
}
