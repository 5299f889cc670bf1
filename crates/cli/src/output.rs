//! All printing of the command line that is not progress: results, notes and errors.
//!
//! Standard output is data, standard error is talk. A reader that goes away is an error here like
//! any other, never a panic.

use crate::error::{Error, Kind};
use std::io::{IsTerminal, Write};
use tui::{Paint, Size};

/// The two streams and what is known of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    stdout_is_terminal: bool,
    stderr_is_terminal: bool,
    stdin_is_terminal: bool,
    colour: bool,
}

impl Output {
    /// The streams of this process.
    pub(crate) fn new(no_color: bool) -> Self {
        Self {
            stdout_is_terminal: std::io::stdout().is_terminal(),
            stderr_is_terminal: std::io::stderr().is_terminal(),
            stdin_is_terminal: std::io::stdin().is_terminal(),
            colour: !no_color,
        }
    }

    pub(crate) fn stdin_is_terminal(&self) -> bool {
        self.stdin_is_terminal
    }

    pub(crate) fn stdout_is_terminal(&self) -> bool {
        self.stdout_is_terminal
    }

    pub(crate) fn stderr_is_terminal(&self) -> bool {
        self.stderr_is_terminal
    }

    /// Colours for standard error.
    pub(crate) fn paint(&self) -> Paint {
        Paint { colour: self.colour && self.stderr_is_terminal }
    }

    /// Colours for standard output.
    pub(crate) fn result_paint(&self) -> Paint {
        Paint { colour: self.colour && self.stdout_is_terminal }
    }

    /// Columns of the terminal, for help.
    pub(crate) fn columns(&self) -> Option<usize> {
        tui::stderr_size().map(|Size { columns, .. }| columns)
    }

    /// Prints a result. On a terminal its last line is ended; a pipe gets its exact bytes.
    pub(crate) fn result(&self, text: &str) -> Result<(), Error> {
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        if self.stdout_is_terminal && !text.is_empty() && !text.ends_with('\n') {
            stdout.write_all(b"\n")?;
        }
        stdout.flush()?;
        Ok(())
    }

    /// Prints a line for people.
    pub(crate) fn note(&self, text: &str) {
        self.talk(&format!("{text}\n"));
    }

    /// Prints a warning.
    pub(crate) fn warning(&self, text: &str) {
        self.talk(&format!("{} {text}\n", self.paint().yellow("warning:")));
    }

    /// Prints an error, once, and its ways out.
    pub(crate) fn error(&self, error: &Error) {
        self.talk(&describe(error, self.paint()));
    }

    fn talk(&self, text: &str) {
        // Nobody is left to tell when standard error is gone.
        let _ = std::io::stderr().lock().write_all(text.as_bytes());
    }
}

/// The words of an error.
pub(crate) fn describe(error: &Error, paint: Paint) -> String {
    let mut out = String::new();
    let label = paint.red("Error:");
    let message = without_marks(&error.message);
    match &error.kind {
        Kind::Interrupted | Kind::BrokenPipe => return out,
        Kind::Usage { usage } if usage.is_empty() => {
            out.push_str(&format!("{label} {message}\n"));
        }
        Kind::Usage { usage } => {
            let title = paint.bold("USAGE");
            out.push_str(&format!("{title}\n  {usage}\n\n{label} {message}\n"));
        }
        Kind::Failed(_) => {
            if !error.shown.reasons.contains(&error.message) {
                out.push_str(&format!("{label} {message}\n"));
            }
            out.push_str(&streams(error));
        }
    }
    if !error.hints.is_empty() {
        out.push('\n');
    }
    for hint in &error.hints {
        out.push_str(&format!("{} {hint}\n", paint.blue("hint:")));
    }
    out
}

/// The output of a failed command, unless it was shown.
fn streams(error: &Error) -> String {
    let Some(exec) = error.exec.as_ref().filter(|_| !error.shown.output) else {
        return String::new();
    };
    let block = |title: &str, text: &str| match text.trim_end_matches('\n') {
        "" => String::new(),
        text => format!("{title}\n{text}\n"),
    };
    block("Stdout:", &exec.stdout) + &block("Stderr:", &exec.stderr)
}

/// The message without the marks by which some engines point at a span.
fn without_marks(message: &str) -> String {
    let mut out = String::new();
    let mut rest = message;
    while let Some(start) = rest.find(" [traceparent:") {
        let Some(length) = rest[start..].find(']') else { break };
        out.push_str(&rest[..start]);
        rest = &rest[start + length + 1..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::ExecFailure;
    use tui::Shown;

    const PLAIN: Paint = Paint { colour: false };

    fn exec() -> Error {
        let failure = ExecFailure {
            cmd: vec!["make".into()],
            exit_code: 2,
            stdout: "building\n".into(),
            stderr: "no rule".into(),
        };
        let message = "process \"make\" failed: exit code: 2 [traceparent:0123-45]";
        protocol::Error::user(message).with_exec(failure).with_hint("read the Makefile").into()
    }

    #[test]
    fn a_failed_exec_comes_with_its_output() {
        insta::assert_snapshot!(describe(&exec(), PLAIN), @r#"
        Error: process "make" failed: exit code: 2
        Stdout:
        building
        Stderr:
        no rule

        hint: read the Makefile
        "#);
    }

    #[test]
    fn what_was_shown_is_not_repeated() {
        let mut error = exec();
        error.shown = Shown { reasons: vec![], output: true };
        insta::assert_snapshot!(describe(&error, PLAIN), @r#"
        Error: process "make" failed: exit code: 2

        hint: read the Makefile
        "#);
        error.shown.reasons.push(error.message.clone());
        insta::assert_snapshot!(describe(&error, PLAIN), @"hint: read the Makefile");
    }

    #[test]
    fn usage_comes_first() {
        let error = Error::usage("unknown flag: --x", "ci-tool query [options]")
            .with_hint("run `ci-tool query --help` for usage");
        insta::assert_snapshot!(describe(&error, PLAIN), @r#"
        USAGE
          ci-tool query [options]

        Error: unknown flag: --x

        hint: run `ci-tool query --help` for usage
        "#);
    }

    #[test]
    fn interruptions_were_told_before() {
        assert_eq!(describe(&Error::interrupted(), PLAIN), "");
    }
}
