//! Questions about histories, of repositories on disk that have all of them, or so much of them as the answer needs.

use crate::run::text;
use crate::{Error, Git};
use std::path::Path;

/// A repository, and another one whose commits are known too.
pub struct Range<'a> {
    /// The repository.
    pub repository: &'a Path,
    /// The other one.
    pub other: Option<&'a Path>,
}

impl Range<'_> {
    fn ask<'g>(&self, git: &'g Git, words: &[&str]) -> crate::run::Asked<'g> {
        let asked = git.ask(words).on(self.repository);
        match self.other {
            Some(other) => asked.knowing(other),
            None => asked,
        }
    }
}

/// All ancestors of a commit, newest first, without itself.
pub async fn ancestors(git: &Git, repository: &Path, commit: &str) -> Result<Vec<String>, Error> {
    let words = ["rev-list", "--topo-order", "--skip=1", commit, "--"];
    let listed = git.ask(&words).on(repository).success("cannot read a history").await?;
    Ok(text(listed).lines().map(str::to_owned).collect())
}

/// The best commit that two have in common.
pub async fn common_ancestor(
    git: &Git,
    range: &Range<'_>,
    one: &str,
    other: &str,
) -> Result<Option<String>, Error> {
    let output = range.ask(git, &["merge-base", one, other]).run().await?;
    match output.code {
        0 => Ok(text(output.stdout).lines().next().map(str::to_owned)),
        1 => Ok(None),
        _ => Err(Error::of_command("cannot compare histories", &output)),
    }
}

/// What git says of a commit that is not there, before it says what it wanted of it.
const ENDED: &str = "error: Could not read ";

/// Commits of a history, newest first: at most so many, only those that changed one of some paths, and not those of
/// another history. None if the repository has too little of the history to tell.
pub async fn log(
    git: &Git,
    range: &Range<'_>,
    (commit, without): (&str, Option<&str>),
    (limit, paths): (u32, &[String]),
) -> Result<Option<Vec<String>>, Error> {
    let limit = format!("--max-count={limit}");
    let without = without.map(|without| format!("^{without}"));
    let mut words = vec!["--literal-pathspecs", "rev-list", &limit, commit];
    words.extend(without.as_deref());
    words.push("--");
    let from_top =
        |path: &'_ String| path.trim_start_matches('/').trim_start_matches("./").to_owned();
    let paths: Vec<String> = paths.iter().map(from_top).collect();
    words.extend(paths.iter().map(String::as_str).filter(|path| !matches!(*path, "" | ".")));
    let output = range.ask(git, &words).run().await?;
    match output.code {
        0 => Ok(Some(text(output.stdout).lines().map(str::to_owned).collect())),
        _ if String::from_utf8_lossy(&output.stderr).contains(ENDED) => Ok(None),
        _ => Err(Error::of_command("cannot read a history", &output)),
    }
}
