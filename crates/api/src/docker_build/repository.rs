//! `ADD` of a repository: `url#ref:folder`, or `url?branch=...&subdir=...`.

use super::build::Build;
use crate::directory::Directory;
use crate::git::{GitAddress, Given};
use crate::services::Services;
use dockerfile::Copy;
use graph::Context;
use protocol::Error;

/// Secrets of a build that open repositories, by BuildKit's names. One for a host has its name behind a dot.
const TOKEN: &str = "GIT_AUTH_TOKEN";
const HEADER: &str = "GIT_AUTH_HEADER";
/// Fewest digits that tell a commit.
const FEWEST_DIGITS: usize = 7;

/// What is taken of which repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Repository {
    url: String,
    reference: Option<String>,
    folder: Option<String>,
    /// The commit that it must be, or its first digits.
    checksum: Option<String>,
    /// Whether `.git` is taken too.
    keep: Option<bool>,
}

impl Repository {
    pub(super) fn parse(text: &str) -> Result<Self, Error> {
        let (place, fragment) = match text.split_once('#') {
            Some((place, fragment)) => (place, Some(fragment)),
            None => (text, None),
        };
        let (url, query) = match place.split_once('?') {
            Some((url, query)) => (url, query),
            None => (place, ""),
        };
        let mut repository = Self { url: url.to_owned(), ..Self::default() };
        if let Some(fragment) = fragment {
            let (reference, folder) = fragment.split_once(':').unwrap_or((fragment, ""));
            repository.reference = filled(reference);
            repository.folder = filled(folder);
        }
        for part in query.split('&').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            repository.set(name, &decoded(value), text)?;
        }
        Ok(repository)
    }

    /// One part of what stands behind a question mark.
    fn set(&mut self, name: &str, value: &str, text: &str) -> Result<(), Error> {
        let twice = || Err(Error::user(format!("`{text}` says twice what is meant: `{name}`")));
        match name {
            "ref" | "branch" | "tag" if self.reference.is_some() => return twice(),
            "subdir" if self.folder.is_some() => return twice(),
            "checksum" | "commit" if self.checksum.is_some() => return twice(),
            "ref" => self.reference = filled(value),
            "branch" => self.reference = Some(format!("refs/heads/{value}")),
            "tag" => self.reference = Some(format!("refs/tags/{value}")),
            "subdir" => self.folder = filled(value),
            "checksum" | "commit" => self.checksum = filled(value),
            "keep-git-dir" => self.keep = Some(matches!(value, "" | "1" | "true")),
            _ => {
                let error = Error::user(format!("`{text}`: unexpected query `{name}`"));
                return Err(error.with_hint(
                    "`ref`, `branch`, `tag`, `subdir`, `checksum` and `keep-git-dir` are known",
                ));
            }
        }
        Ok(())
    }

    /// The files that are copied.
    pub(super) async fn files(
        self,
        copy: &Copy,
        build: &Build,
        cx: &Context,
    ) -> Result<Directory, Error> {
        let Self { url, reference, folder, checksum, keep } = self;
        let given = credentials(&url, build);
        let address = GitAddress { repository: url, reference, path: None };
        let found = address.elsewhere(given, cx).await?;
        for checksum in [copy.checksum.as_ref(), checksum.as_ref()].into_iter().flatten() {
            require(found.id(), checksum)?;
        }
        // What is below a folder has no repository of its own.
        let Some(folder) = folder.filter(|folder| !folder.trim_matches('/').is_empty()) else {
            return match copy.keep_git_dir || keep == Some(true) {
                true => found.work_tree(cx).await,
                false => found.files(cx).await,
            };
        };
        let below =
            Directory::below(found.files(cx).await?.tree().clone(), folder.trim_matches('/'));
        below.typed(&folder).selected(cx.get::<Services>()?).await
    }
}

/// Refuses another commit than the one that was asked for.
fn require(commit: &str, checksum: &str) -> Result<(), Error> {
    let wanted = checksum.to_lowercase();
    let digits = wanted.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !digits || !(FEWEST_DIGITS..=commit.len()).contains(&wanted.len()) {
        let error = Error::user(format!("invalid checksum \"{checksum}\" for a repository"));
        return Err(error.with_hint("give the commit's id, or at least seven of its first digits"));
    }
    match commit.starts_with(&wanted) {
        true => Ok(()),
        false => Err(Error::user(format!("expected checksum to match {checksum}, got {commit}"))),
    }
}

/// What the build was given to open a repository with.
fn credentials(url: &str, build: &Build) -> Given {
    let host = url.split_once("://").map_or("", |(_, rest)| rest.split('/').next().unwrap_or(""));
    let host = host.rsplit('@').next().unwrap_or_default();
    let secret = |name: &str| {
        let of_host = build.secret(&format!("{name}.{host}"));
        of_host.or_else(|| build.secret(name)).cloned()
    };
    Given {
        header: secret(HEADER),
        token: secret(TOKEN),
        socket: build.request.ssh.clone(),
        ..Given::default()
    }
}

fn filled(text: &str) -> Option<String> {
    Some(text).filter(|text| !text.is_empty()).map(str::to_owned)
}

/// A value with its `%2F` and the like replaced; what is no such thing stays as it is.
fn decoded(value: &str) -> String {
    let mut bytes = vec![];
    let mut rest = value.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        let code = more.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let code = code.and_then(|two| u8::from_str_radix(two, 16).ok());
        match (first, code) {
            (b'%', Some(code)) => {
                bytes.push(code);
                rest = &more[2..];
            }
            (first, _) => {
                bytes.push(*first);
                rest = more;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> (String, Option<String>, Option<String>) {
        let found = Repository::parse(text).unwrap();
        (found.url, found.reference, found.folder)
    }

    #[test]
    fn references_and_folders_are_written_in_two_ways() {
        let url = "https://h/r.git";
        for (text, reference, folder) in [
            ("https://h/r.git", None, None),
            ("https://h/r.git#v1", Some("v1"), None),
            ("https://h/r.git#v1:a/b", Some("v1"), Some("a/b")),
            ("https://h/r.git#:a", None, Some("a")),
            ("https://h/r.git?ref=v1", Some("v1"), None),
            ("https://h/r.git?branch=x%2Fy&subdir=a", Some("refs/heads/x/y"), Some("a")),
            ("https://h/r.git?tag=v1", Some("refs/tags/v1"), None),
        ] {
            let expect = (url.to_owned(), reference.map(str::to_owned), folder.map(str::to_owned));
            assert_eq!(parsed(text), expect, "{text}");
        }
        assert_eq!(parsed("git@h:o/r.git#v1").0, "git@h:o/r.git");
        for wrong in
            ["https://h/r.git?branch=a&tag=b", "https://h/r.git?ref=a#b", "https://h/r.git?x=1"]
        {
            assert!(Repository::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_checksum_is_a_commit_or_its_beginning() {
        let commit = "0123456789abcdef0123456789abcdef01234567";
        assert!(require(commit, commit).is_ok() && require(commit, "0123456789A").is_ok());
        assert!(require(commit, "1123456").unwrap_err().message.contains("to match 1123456, got"));
        for wrong in ["012345", "sha256:0123456", "main"] {
            assert!(require(commit, wrong).unwrap_err().message.contains("invalid checksum"));
        }
    }
}
