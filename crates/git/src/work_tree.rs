//! [`WorkTree`]: what the files of a work tree are beside the last commit, in git's own eyes.
//!
//! Nothing is written but the index that is given, and every file that the index cannot vouch for is compared by what is
//! in it. Paths are bytes: git takes names that are no text.

use crate::{Error, Git};
use std::collections::BTreeSet;
use std::path::Path;

/// Where a repository on disk has the patterns of what it ignores besides `.gitignore` files.
pub const EXCLUDES: &str = "excludes";
/// Exit code of a refresh that has found differences.
const DIFFERS: i32 = 1;

/// The files of a work tree, and a repository on disk that they belong to.
pub struct WorkTree<'a> {
    /// The repository.
    pub repository: &'a Path,
    /// The files.
    pub folder: &'a Path,
    /// The index, which is written to; none if nothing was ever staged.
    pub index: &'a Path,
}

/// Paths at which there is something else than the last commit has there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Differing {
    /// Of what is new or changed, also of what git does not know and does not ignore.
    pub there: BTreeSet<Vec<u8>>,
    /// Of what the commit has and the work tree no longer has, or git no longer knows.
    pub gone: BTreeSet<Vec<u8>>,
}

impl WorkTree<'_> {
    /// What differs from a commit; from nothing where there is none yet.
    pub async fn differing(&self, git: &Git, commit: Option<&str>) -> Result<Differing, Error> {
        let refresh = ["update-index", "-q", "--refresh", "--unmerged", "--ignore-missing"];
        let refreshed = self.ask(git, &refresh).run().await?;
        if !(0..=DIFFERS).contains(&refreshed.code) {
            return Err(Error::of_command("cannot compare a work tree", &refreshed));
        }
        let mut differing = match commit {
            Some(commit) => {
                let words = ["diff-index", "-z", "--name-status", "--no-renames", commit, "--"];
                let asked = self.ask(git, &words);
                Differing::parse(&asked.success("cannot compare a work tree").await?)
            }
            None => Differing::default(),
        };
        if commit.is_none() {
            let staged = self.ask(git, &["ls-files", "-z", "--cached"]);
            let staged = staged.success("cannot list what is staged").await?;
            differing.there.extend(paths(&staged).map(<[u8]>::to_vec));
        }
        let unknown = self.unknown(git).await?;
        differing.gone.retain(|path| !unknown.contains(path));
        differing.there.extend(unknown);
        Ok(differing)
    }

    /// Paths that git does not know and does not ignore.
    async fn unknown(&self, git: &Git) -> Result<BTreeSet<Vec<u8>>, Error> {
        let excludes = self.repository.join(EXCLUDES);
        let excludes = excludes.exists().then(|| format!("--exclude-from={}", excludes.display()));
        let mut words = vec!["ls-files", "-z", "--others", "--exclude-standard"];
        words.extend(excludes.as_deref());
        let unknown = self.ask(git, &words).success("cannot list a work tree").await?;
        Ok(paths(&unknown).map(<[u8]>::to_vec).collect())
    }

    fn ask<'g>(&self, git: &'g Git, words: &[&str]) -> crate::run::Asked<'g> {
        let asked = git.ask(words).on(self.repository).within(self.folder);
        asked.with("GIT_WORK_TREE", self.folder).with("GIT_INDEX_FILE", self.index)
    }
}

impl Differing {
    /// What `diff-index -z --name-status` writes. A path of a conflict comes twice.
    fn parse(listed: &[u8]) -> Self {
        let mut differing = Self::default();
        let mut words = paths(listed);
        while let (Some(status), Some(path)) = (words.next(), words.next()) {
            match status {
                b"D" => differing.gone.insert(path.to_vec()),
                _ => differing.there.insert(path.to_vec()),
            };
        }
        let there = &differing.there;
        differing.gone.retain(|path| !there.contains(path));
        differing
    }
}

/// The words of a list that ends each with a zero.
fn paths(listed: &[u8]) -> impl Iterator<Item = &[u8]> {
    listed.split(|byte| *byte == 0).filter(|path| !path.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_there_or_gone() {
        let differing = Differing::parse(b"M\0a\0D\0b/c\0U\0x\0D\0x\0A\0\xff\0");
        let set = |paths: &[&[u8]]| paths.iter().map(|path| path.to_vec()).collect::<BTreeSet<_>>();
        assert_eq!(differing.there, set(&[b"a", b"x", b"\xff"]));
        assert_eq!(differing.gone, set(&[b"b/c"]));
        assert_eq!(Differing::parse(b""), Differing::default());
    }
}
