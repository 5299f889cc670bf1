//! [`Page`]: one help screen, whatever it is about.
//!
//! Fixed commands and functions of the API have the same layout because both are turned into a page
//! and only pages are drawn.

pub(crate) mod command;

use std::fmt::Write as _;
use tui::Paint;

/// Width where the terminal's is not known.
const FALLBACK_WIDTH: usize = 79;
/// Widest left column; longer entries push their text to the next line.
const MAX_LEFT: usize = 34;

/// One help screen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Page {
    /// What it is about.
    pub(crate) about: String,
    /// The usage line.
    pub(crate) usage: String,
    /// Other names.
    pub(crate) aliases: Vec<String>,
    /// Lines to try.
    pub(crate) examples: Vec<String>,
    /// Tables in order.
    pub(crate) sections: Vec<Section>,
    /// Where to read on.
    pub(crate) hint: Option<String>,
}

/// A titled table.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    /// Its title, in capitals.
    pub(crate) title: &'static str,
    /// Its rows.
    pub(crate) rows: Vec<Row>,
}

/// A name and what it means.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// The name.
    pub(crate) left: String,
    /// What it means.
    pub(crate) right: String,
}

impl Page {
    /// The page as text, wrapped to one column less than the terminal has.
    pub(crate) fn render(&self, columns: Option<usize>, paint: Paint) -> String {
        let width = columns.map_or(FALLBACK_WIDTH, |columns| columns.saturating_sub(1)).max(40);
        let mut out = String::new();
        for paragraph in self.about.trim().lines() {
            wrap(paragraph, width, 0, &mut out);
        }
        if !self.about.trim().is_empty() {
            out.push('\n');
        }
        let _ = writeln!(out, "{}\n  {}", paint.bold("USAGE"), self.usage);
        if !self.aliases.is_empty() {
            let _ = writeln!(out, "\n{}\n  {}", paint.bold("ALIASES"), self.aliases.join(", "));
        }
        if !self.examples.is_empty() {
            let _ = writeln!(out, "\n{}", paint.bold("EXAMPLES"));
            for example in &self.examples {
                let _ = writeln!(out, "  {example}");
            }
        }
        for section in self.sections.iter().filter(|section| !section.rows.is_empty()) {
            let _ = writeln!(out, "\n{}", paint.bold(section.title));
            table(&section.rows, width, &mut out);
        }
        if let Some(hint) = &self.hint {
            let _ = writeln!(out, "\n{hint}");
        }
        out
    }
}

fn table(rows: &[Row], width: usize, out: &mut String) {
    let left_width = |row: &Row| row.left.chars().count();
    let column = rows.iter().map(left_width).filter(|left| *left <= MAX_LEFT).max().unwrap_or(0);
    let indent = column + 5;
    for row in rows {
        let left = left_width(row);
        let _ = write!(out, "  {}", row.left);
        if row.right.is_empty() {
            out.push('\n');
            continue;
        }
        if left > column {
            out.push('\n');
            out.push_str(&" ".repeat(indent));
        } else {
            out.push_str(&" ".repeat(column - left + 3));
        }
        wrap(&row.right, width, indent, out);
    }
}

/// Writes words in lines of a width; the first line begins where the text so far ends, at `indent`.
fn wrap(text: &str, width: usize, indent: usize, out: &mut String) {
    let room = width.saturating_sub(indent).max(20);
    let mut used = 0;
    for word in text.split(' ') {
        let length = word.chars().count();
        if used > 0 && used + 1 + length > room {
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            used = 0;
        }
        if used > 0 {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += length;
    }
    out.push('\n');
}
