//! [`Commit`]: what a commit says of itself.

use crate::date::date;
use crate::run::text;
use crate::{Error, Git};
use std::path::Path;

/// Somebody, and when.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Person {
    /// Name.
    pub name: String,
    /// Address.
    pub email: String,
    /// When, e.g. `2026-11-15T23:50:27+01:00`.
    pub date: String,
}

/// A commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Commit {
    /// Its id.
    pub id: String,
    /// Ids of its parents.
    pub parents: Vec<String>,
    /// Who wrote the change.
    pub author: Person,
    /// Who made the commit.
    pub committer: Person,
    /// The whole message.
    pub message: String,
}

impl Commit {
    /// Reads a commit of a repository on disk.
    pub async fn read(git: &Git, repository: &Path, id: &str) -> Result<Self, Error> {
        let asked = git.ask(&["cat-file", "commit", id]).on(repository);
        let raw = asked.success(&format!("cannot read the commit {id}")).await?;
        Self::parse(id, &text(raw)).ok_or_else(|| Error::Odd(format!("commit {id} is damaged")))
    }

    fn parse(id: &str, raw: &str) -> Option<Self> {
        let (head, message) = raw.split_once("\n\n").unwrap_or((raw.trim_end(), ""));
        let mut commit = Self { id: id.to_owned(), message: message.to_owned(), ..Self::default() };
        for line in head.lines() {
            match line.split_once(' ') {
                Some(("parent", parent)) => commit.parents.push(parent.to_owned()),
                Some(("author", author)) => commit.author = Person::parse(author)?,
                Some(("committer", committer)) => commit.committer = Person::parse(committer)?,
                _ => {}
            }
        }
        Some(commit)
    }

    /// The first digits of its id.
    pub fn short_id(&self) -> &str {
        self.id.get(..7).unwrap_or(&self.id)
    }

    /// The first paragraph of the message, in one line.
    pub fn headline(&self) -> String {
        let lines = self.message.lines().skip_while(|line| line.trim().is_empty());
        let lines: Vec<&str> = lines.take_while(|line| !line.trim().is_empty()).collect();
        lines.join(" ")
    }

    /// What comes after the first paragraph.
    pub fn body(&self) -> String {
        let lines = self.message.lines().skip_while(|line| line.trim().is_empty());
        let rest = lines.skip_while(|line| !line.trim().is_empty());
        let rest: Vec<&str> = rest.skip_while(|line| line.trim().is_empty()).collect();
        rest.join("\n").trim_end().to_owned()
    }
}

impl Person {
    /// `Name <address> 1700000000 +0100`.
    fn parse(line: &str) -> Option<Self> {
        let (name, rest) = line.split_once('<')?;
        let (email, time) = rest.rsplit_once('>')?;
        let (seconds, offset) = time.trim().split_once(' ').unwrap_or((time.trim(), "+0000"));
        let date = date(seconds.parse().unwrap_or(0), offset).unwrap_or_default();
        Some(Self { name: name.trim().to_owned(), email: email.to_owned(), date })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_is_read_as_it_stands() {
        let raw = "tree 1\nparent aa\nparent bb\nauthor A U. Thor <a@x> 1700000000 +0100\n\
                   committer C <> 0 +0000\ngpgsig -----BEGIN\n more\n\nHead\nline\n\nBody\n\nend\n";
        let commit = Commit::parse("0123456789", raw).unwrap();
        assert_eq!(commit.parents, ["aa", "bb"]);
        assert_eq!((&*commit.author.name, &*commit.author.email), ("A U. Thor", "a@x"));
        assert_eq!(commit.author.date, "2023-11-14T23:13:20+01:00");
        assert_eq!(
            (commit.short_id(), &*commit.committer.date),
            ("0123456", "1970-01-01T00:00:00Z")
        );
        assert_eq!((&*commit.headline(), &*commit.body()), ("Head line", "Body\n\nend"));
        let empty = Commit::parse("1", "tree 1\nauthor a <b> 1 +0000\n\n").unwrap();
        assert_eq!((&*empty.headline(), &*empty.body(), &*empty.message), ("", "", ""));
    }
}
