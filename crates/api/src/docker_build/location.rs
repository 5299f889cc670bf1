//! Where in a Dockerfile something went wrong, for messages.

use protocol::Error;

/// Longest piece of a line that a message shows.
const SHOWN: usize = 100;

/// A line of a Dockerfile.
#[derive(Clone, Debug)]
pub(super) struct Location {
    pub(super) file: String,
    pub(super) line: usize,
    pub(super) text: String,
}

impl Location {
    /// The line as a title, cut when it is long.
    pub(super) fn title(&self) -> String {
        let text = self.text.split_whitespace().collect::<Vec<_>>().join(" ");
        match text.char_indices().nth(SHOWN) {
            Some((end, _)) => format!("{}...", &text[..end]),
            None => text,
        }
    }

    /// The error with the line before its message.
    pub(super) fn of(&self, mut error: Error) -> Error {
        error.message =
            format!("{}:{}: `{}`: {}", self.file, self.line, self.title(), error.message);
        error
    }

    /// The error of the language with its line.
    pub(super) fn of_language(&self, error: dockerfile::Error) -> Error {
        self.of(plain(error))
    }
}

/// An error of the language about a whole file or a line of it.
pub(super) fn in_file(file: &str, text: &str, error: dockerfile::Error) -> Error {
    match text.lines().nth(error.line.wrapping_sub(1)) {
        None => {
            let mut error = plain(error);
            error.message = format!("{file}: {}", error.message);
            error
        }
        Some(line) => {
            let location =
                Location { file: file.to_owned(), line: error.line, text: line.trim().to_owned() };
            location.of_language(error)
        }
    }
}

fn plain(error: dockerfile::Error) -> Error {
    let plain = Error::user(error.message);
    match error.hint {
        Some(hint) => plain.with_hint(hint),
        None => plain,
    }
}
