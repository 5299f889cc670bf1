//! [`Error`]: what git said, as a user can use it.
//!
//! Git's own words are kept where they say more than we can; secrets are in neither arguments nor configuration, so they
//! are not in those words either.

use crate::run::{Output, RunError};

/// Why git did not do it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no git here.
    #[error("git error: the program `git` is not installed where the engine runs")]
    NoGit,
    /// The other side does not let us in.
    #[error("git error: authentication failed for `{url}`: {said}")]
    Authentication {
        /// Who.
        url: String,
        /// Git's last words.
        said: String,
    },
    /// The other side is not who it should be.
    #[error("git error: the host key of `{url}` is not trusted: {said}")]
    HostKey {
        /// Who.
        url: String,
        /// Git's last words.
        said: String,
    },
    /// There is no repository.
    #[error("git error: repository `{url}` was not found: {said}")]
    NoRepository {
        /// Where.
        url: String,
        /// Git's last words.
        said: String,
    },
    /// The repository does not have what was asked for.
    #[error("repository does not contain {0}")]
    NotThere(String),
    /// What it was asked for cannot be done with a mirror that is there.
    #[error("git error: {action}: {said}")]
    Failed {
        /// What was being done.
        action: String,
        /// Git's last words.
        said: String,
    },
    /// Git answered something that it should not.
    #[error("git error: {0}")]
    Odd(String),
    /// A file of ours could not be read or written.
    #[error("git error: cannot {action} `{path}`: {source}")]
    File {
        /// What was being done.
        action: &'static str,
        /// Which.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// Git could not be run.
    #[error("git error: {0}")]
    Run(String),
}

/// Lines that say nothing of what happened.
const NOISE: &[&str] = &[
    "hint:",
    "warning: redirecting",
    "Please make sure you have the correct access rights",
    "and the repository exists.",
];
/// What git says after whoever it started has said more.
const NO_WORD: &str = "fatal: Could not read from remote repository.";
/// How many of git's last lines are told.
const TOLD_LINES: usize = 4;

impl Error {
    /// The way out, where there is one.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NoGit => Some("install it there with `apt install git`"),
            Self::Authentication { .. } => Some(
                "pass `httpAuthToken`, `httpAuthHeader` or `sshAuthSocket`, or log in with a credential helper of git",
            ),
            Self::HostKey { .. } => {
                Some("pass the lines of a known_hosts file with `sshKnownHosts`")
            }
            _ => None,
        }
    }

    /// What a command that talked to a remote has failed with.
    pub(crate) fn of_remote(url: &str, action: &str, output: &Output) -> Self {
        let said = last_words(&output.stderr);
        let (url, lower) = (url.to_owned(), said.to_lowercase());
        let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
        if has(&["host key verification failed", "remote host identification has changed"]) {
            return Self::HostKey { url, said };
        }
        if has(&[
            "authentication failed",
            "could not read username",
            "could not read password",
            "terminal prompts disabled",
            "permission denied (",
            "returned error: 401",
            "returned error: 403",
            "http 401",
            "http 403",
            "access denied",
            "too many authentication failures",
        ]) {
            return Self::Authentication { url, said };
        }
        let missing = ["not found", "does not appear to be a git repository", "error: 404"];
        if has(&missing) && !lower.contains("couldn't find remote ref") {
            return Self::NoRepository { url, said };
        }
        Self::Failed { action: action.to_owned(), said }
    }

    /// What a command on our own files has failed with.
    pub(crate) fn of_command(action: &str, output: &Output) -> Self {
        Self::Failed { action: action.to_owned(), said: last_words(&output.stderr) }
    }

    /// Puts what was being done to an error of a file.
    pub(crate) fn file(
        action: &'static str,
        path: &std::path::Path,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.display().to_string();
        move |source| Self::File { action, path, source }
    }
}

impl From<RunError> for Error {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Missing => Self::NoGit,
            RunError::Failed(reason) => Self::Run(reason),
        }
    }
}

/// The end of what git said, without advice and progress.
fn last_words(said: &[u8]) -> String {
    let text = String::from_utf8_lossy(said);
    let lines = text
        .split(['\n', '\r'])
        .map(str::trim)
        .filter(|line| !line.is_empty() && !NOISE.iter().any(|noise| line.starts_with(noise)));
    let mut lines: Vec<&str> = lines.collect();
    if lines.len() > 1 {
        lines.retain(|line| *line != NO_WORD);
    }
    let told = &lines[lines.len().saturating_sub(TOLD_LINES)..];
    match told {
        [] => "it gave no reason".to_owned(),
        told => told.join("; "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(words: &str) -> Output {
        Output { code: 128, stdout: vec![], stderr: words.into() }
    }

    #[test]
    fn the_other_sides_refusals_are_told_apart() {
        let error = |words: &str| Error::of_remote("https://h/r", "look", &said(words)).to_string();
        for words in [
            "fatal: could not read Username for 'https://h': terminal prompts disabled",
            "remote: no\nfatal: Authentication failed for 'https://h/r/'",
            "git@h: Permission denied (publickey).\nfatal: Could not read from remote repository.",
            "error: RPC failed; HTTP 403 curl 22 The requested URL returned error: 403",
        ] {
            let error = error(words);
            assert!(
                error.contains("git error: authentication failed for `https://h/r`"),
                "{error}"
            );
        }
        assert!(error("Host key verification failed.").contains("is not trusted"));
        assert!(error("fatal: repository 'https://h/r/' not found").contains("was not found"));
        assert!(error("fatal: early EOF").starts_with("git error: look: fatal: early EOF"));
        assert!(error("").ends_with("it gave no reason"));
        let ssh = "ssh: connect to host h port 1: Connection refused\nfatal: Could not read from remote repository.\n\n\
                   Please make sure you have the correct access rights\nand the repository exists.\n";
        assert_eq!(
            error(ssh),
            "git error: look: ssh: connect to host h port 1: Connection refused"
        );
    }
}
