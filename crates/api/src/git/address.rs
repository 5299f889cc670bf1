//! Texts that name a repository, a reference or something in a tree: `url#ref:path`, or a path of the caller's machine.

use super::access::Given;
use super::{GitRef, GitRepository};
use crate::directory::Directory;
use graph::Context;
use protocol::Error;

/// A text that names a repository, and perhaps what is meant in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GitAddress {
    pub(crate) repository: String,
    pub(crate) reference: Option<String>,
    /// A file or directory in the tree.
    pub(crate) path: Option<String>,
}

/// Whether a text is about a repository elsewhere, and not a path.
pub(crate) fn is_remote(text: &str) -> bool {
    if text.starts_with("file://") {
        return false;
    }
    let short = || match text.split_once(':') {
        Some((authority, path)) => {
            authority.contains('@') && !authority.contains('/') && !path.is_empty()
        }
        None => false,
    };
    text.contains("://") || short()
}

impl GitAddress {
    /// Takes a text apart.
    pub(crate) fn parse(text: &str) -> Self {
        let (repository, rest) = match text.split_once('#') {
            Some((repository, rest)) => (repository, Some(rest)),
            None => match at_sign(text) {
                Some(at) => (&text[..at], Some(&text[at + 1..])),
                None => (text, None),
            },
        };
        let (reference, path) = match rest.map(|rest| rest.split_once(':').unwrap_or((rest, ""))) {
            Some((reference, path)) => (Some(reference), Some(path)),
            None => (None, None),
        };
        let filled = |text: Option<&str>| text.filter(|text| !text.is_empty()).map(str::to_owned);
        let path = filled(path.map(|path| path.trim_matches('/')));
        Self { repository: repository.to_owned(), reference: filled(reference), path }
    }

    /// The repository; nothing in it may be named.
    pub(crate) async fn repository(&self, cx: &Context) -> Result<GitRepository, Error> {
        if let Some(named) = self.reference.as_ref().or(self.path.as_ref()) {
            return Err(Error::user(format!("`{named}` is more than a repository: leave it out")));
        }
        self.place(cx).await
    }

    /// A place without a protocol is a path here.
    async fn place(&self, cx: &Context) -> Result<GitRepository, Error> {
        match is_remote(&self.repository) || self.repository.starts_with("file://") {
            true => GitRepository::at(&self.repository, Given::default(), cx).await,
            false => GitRepository::on_host(&self.repository, None, cx).await,
        }
    }

    /// The reference, of which no path may be named.
    pub(crate) async fn reference(&self, cx: &Context) -> Result<GitRef, Error> {
        if let Some(path) = &self.path {
            return Err(Error::user(format!("`{path}` is a path in a tree, not a reference")));
        }
        self.named(cx).await
    }

    /// The reference of a repository that is elsewhere for sure, with these credentials.
    pub(crate) async fn elsewhere(&self, given: Given, cx: &Context) -> Result<GitRef, Error> {
        let repository = GitRepository::at(&self.repository, given, cx).await?;
        repository.any(self.reference.as_deref().unwrap_or("HEAD"), cx).await
    }

    async fn named(&self, cx: &Context) -> Result<GitRef, Error> {
        let repository = self.place(cx).await?;
        repository.any(self.reference.as_deref().unwrap_or("HEAD"), cx).await
    }

    /// The whole tree, without a repository in it.
    pub(crate) async fn tree(&self, cx: &Context) -> Result<Directory, Error> {
        self.named(cx).await?.files(cx).await
    }
}

/// Where a reference begins that is written after an `@`, as in `https://host/repository@v1`.
fn at_sign(text: &str) -> Option<usize> {
    let begin = match text.find("://") {
        Some(scheme) => scheme + 3,
        None => 0,
    };
    let path = match text[begin..].find(if begin == 0 { ':' } else { '/' }) {
        Some(path) => begin + path,
        None => return None,
    };
    text[path..].rfind('@').map(|at| path + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_taken_apart() {
        for (text, repository, reference, path) in [
            ("https://h/o/r", "https://h/o/r", None, None),
            ("https://h/o/r#main", "https://h/o/r", Some("main"), None),
            ("https://h/o/r.git#v1:a/b/", "https://h/o/r.git", Some("v1"), Some("a/b")),
            ("https://h/o/r#:a", "https://h/o/r", None, Some("a")),
            ("https://u@h/o/r", "https://u@h/o/r", None, None),
            ("https://u@h/o/r@v1", "https://u@h/o/r", Some("v1"), None),
            ("git@h:o/r", "git@h:o/r", None, None),
            ("git@h:o/r@v1:a", "git@h:o/r", Some("v1"), Some("a")),
            ("./r#main", "./r", Some("main"), None),
            ("./a@b", "./a@b", None, None),
        ] {
            let expect = GitAddress {
                repository: repository.into(),
                reference: reference.map(str::to_owned),
                path: path.map(str::to_owned),
            };
            assert_eq!(GitAddress::parse(text), expect, "{text}");
        }
    }

    #[test]
    fn paths_are_no_remotes() {
        for remote in ["https://h/r", "ssh://h/r", "git@h:r", "git://h/r"] {
            assert!(is_remote(remote), "{remote}");
        }
        for path in ["/a", ".", "~/a", "file:///a", "a/b", "a@b", "./u@h:r", "a:b"] {
            assert!(!is_remote(path), "{path}");
        }
    }
}
