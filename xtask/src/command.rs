//! Starting other programs: shown before they run, checked after.

use crate::project::variable;
use anyhow::{Context as _, Result, bail};
use std::process::Command;

/// Shows and runs a command; anything but success is an error that names it.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    println!("$ {}", line(command));
    quietly(command)
}

/// Runs a command without showing it; anything but success is an error that names it.
pub(crate) fn quietly(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start `{}`", line(command)))?;
    if !status.success() {
        bail!("`{}` failed: {status}", line(command));
    }
    Ok(())
}

/// What a command prints, or nothing when it cannot run or fails.
pub(crate) fn output(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok()
}

/// Whether a program of this name is on the path.
pub(crate) fn exists(program: &str) -> bool {
    let path = variable("PATH").unwrap_or_default();
    let mut folders: Vec<_> = std::env::split_paths(&path).collect();
    // Programs for the administrator are often not on a user's path.
    folders.extend(["/usr/sbin".into(), "/sbin".into()]);
    folders.iter().any(|folder| folder.join(program).is_file())
}

/// The command as one would type it.
pub(crate) fn line(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy().into_owned()];
    words.extend(command.get_args().map(|word| quote(&word.to_string_lossy())));
    words.join(" ")
}

/// Quotes a word that a shell would take apart.
fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:+,@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_split_them() {
        for (word, expected) in
            [("a=b", "a=b"), ("", "''"), ("a b", "'a b'"), ("it's", r"'it'\''s'"), ("$x", "'$x'")]
        {
            assert_eq!(quote(word), expected);
        }
    }

    #[test]
    fn a_command_that_fails_is_an_error_that_names_it() {
        let error = quietly(Command::new("false").arg("x y")).unwrap_err();
        assert!(error.to_string().contains("`false 'x y'` failed"), "{error}");
    }
}
