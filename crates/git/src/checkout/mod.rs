//! Writes the files of a commit, with or without a repository around them.
//!
//! Files are written straight to where they belong, by git itself, which knows line ends, links and what must not be
//! written. The repository beside them is made like that of `git clone`, of what a repository on disk has.

use crate::mirror::write;
use crate::{Depth, Error, Git, Module};
use std::fs;
use std::path::{Path, PathBuf};

/// What is written.
pub struct Checkout<'a> {
    /// A repository on disk that has the commit.
    pub repository: &'a Path,
    /// The commit.
    pub commit: &'a str,
    /// Where to; there must be nothing.
    pub folder: &'a Path,
}

/// The repository beside the files.
pub struct Beside<'a> {
    /// Where to: `.git` of the folder, or where a repository around has those of its submodules.
    pub at: PathBuf,
    /// Full name of the branch; none leaves HEAD at the commit.
    pub branch: Option<&'a str>,
    /// Where it comes from; none for a repository of the caller's own.
    pub origin: Option<&'a str>,
    /// Path of the files from the repository, where they are not around it.
    pub work_tree: Option<String>,
    /// How much of the history.
    pub depth: Depth,
    /// Tags with their commits, which the repository on disk has.
    pub tags: Vec<(&'a str, &'a str)>,
}

impl Checkout<'_> {
    /// Writes the files; the index that belongs to them goes to a file.
    pub async fn files(&self, git: &Git, index: &Path) -> Result<(), Error> {
        let words = ["read-tree", "-m", "-u", self.commit];
        let asked = git.ask(&words).on(self.repository).within(self.folder);
        let asked = asked.with("GIT_WORK_TREE", self.folder).with("GIT_INDEX_FILE", index);
        asked.success("cannot write the files").await.map(drop)
    }

    /// Makes the repository, but for its index.
    pub async fn repository(&self, git: &Git, beside: &Beside<'_>) -> Result<(), Error> {
        let at = &beside.at;
        for folder in ["objects/pack", "objects/info", "refs/heads", "refs/tags", "info"] {
            let path = at.join(folder);
            fs::create_dir_all(&path).map_err(Error::file("create", &path))?;
        }
        write(&at.join("config"), &self.config(beside))?;
        match beside.branch {
            Some(branch) => write(&at.join("HEAD"), &format!("ref: {branch}\n"))?,
            None => write(&at.join("HEAD"), &format!("{}\n", self.commit))?,
        }
        match beside.depth {
            Depth::Commits(0 | 1) => self.one_commit(git, beside).await?,
            Depth::Full if !self.repository.join("shallow").exists() => {
                self.history(git, beside).await?;
            }
            depth => self.part_of_history(git, beside, depth).await?,
        }
        // Last: until now they would have named what is not there.
        self.references(beside)
    }

    fn config(&self, beside: &Beside<'_>) -> String {
        let version = i32::from(self.commit.len() == 64);
        // Trees are copied and mounted elsewhere: of what files are, their size and time stay.
        let mut config = format!(
            "[core]\n\trepositoryformatversion = {version}\n\tfilemode = true\n\tbare = false\n\
             \tlogallrefupdates = true\n\tcheckStat = minimal\n"
        );
        if let Some(folder) = &beside.work_tree {
            config += &format!("\tworktree = {}\n", quoted(folder));
        }
        if version == 1 {
            config += "[extensions]\n\tobjectFormat = sha256\n";
        }
        if let Some(origin) = beside.origin {
            config += &format!(
                "[remote \"origin\"]\n\turl = {}\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n",
                quoted(origin)
            );
            if let Some(short) = beside.branch.and_then(|name| name.strip_prefix("refs/heads/")) {
                config += &format!(
                    "[branch {}]\n\tremote = origin\n\tmerge = {}\n",
                    quoted(short),
                    quoted(&format!("refs/heads/{short}"))
                );
            }
        }
        config
    }

    /// References as one file: names may nest in each other's way as files do not.
    fn references(&self, beside: &Beside<'_>) -> Result<(), Error> {
        let mut names: Vec<(String, &str)> = vec![];
        if let Some(branch) = beside.branch {
            names.push((branch.to_owned(), self.commit));
            let short = branch.strip_prefix("refs/heads/");
            if let (Some(short), Some(_)) = (short, beside.origin) {
                names.push((format!("refs/remotes/origin/{short}"), self.commit));
            }
        }
        names.extend(beside.tags.iter().map(|(name, commit)| ((*name).to_owned(), *commit)));
        names.sort();
        let mut packed = "# pack-refs with: sorted \n".to_owned();
        for (name, commit) in names {
            packed += &format!("{commit} {name}\n");
        }
        write(&beside.at.join("packed-refs"), &packed)
    }

    /// Commits and tags without their ancestors.
    async fn one_commit(&self, git: &Git, beside: &Beside<'_>) -> Result<(), Error> {
        let mut commits: Vec<&str> = beside.tags.iter().map(|(_, commit)| *commit).collect();
        commits.push(self.commit);
        commits.sort_unstable();
        commits.dedup();
        let input = commits.iter().map(|commit| format!("{commit}\n")).collect::<String>();
        let words = ["rev-list", "--objects", "--no-walk", "--no-object-names", "--stdin"];
        let asked = git.ask(&words).on(self.repository).reading(input.clone());
        let objects = asked.success("cannot list a commit").await?;
        self.pack(git, beside, &[], objects).await?;
        let asked = git.ask(&["cat-file", "--batch"]).on(self.repository).reading(input);
        let cut = with_parents(&asked.success("cannot read a commit").await?);
        match cut.is_empty() {
            true => Ok(()),
            false => write(&beside.at.join("shallow"), &cut),
        }
    }

    /// Commits with all their ancestors.
    async fn history(&self, git: &Git, beside: &Beside<'_>) -> Result<(), Error> {
        let tags = beside.tags.iter().map(|(_, commit)| *commit);
        let input: String = tags.chain([self.commit]).map(|commit| format!("{commit}\n")).collect();
        self.pack(git, beside, &["--revs"], input.into_bytes()).await
    }

    async fn pack(
        &self,
        git: &Git,
        beside: &Beside<'_>,
        more: &[&str],
        input: Vec<u8>,
    ) -> Result<(), Error> {
        let name = beside.at.join("objects/pack/pack").display().to_string();
        let mut words = vec!["pack-objects", "-q", "--delta-base-offset"];
        words.extend(more);
        words.push(&name);
        // Half of a pack in the repository on disk would be taken for that of a process that was killed.
        let asked = git.ask(&words).on(&beside.at).knowing(self.repository).reading(input);
        asked.success("cannot pack a commit").await.map(drop)
    }

    /// Some commits of a history, by git's own rules of what is near.
    async fn part_of_history(
        &self,
        git: &Git,
        beside: &Beside<'_>,
        depth: Depth,
    ) -> Result<(), Error> {
        let url = format!("file://{}", self.repository.display());
        let limit = match depth {
            Depth::Commits(count) => format!("--depth={count}"),
            _ => "--update-shallow".to_owned(),
        };
        let mut words =
            vec!["fetch", "-q", "--no-tags", "--no-write-fetch-head", &limit, "--", &url];
        words.push(self.commit);
        words.extend(beside.tags.iter().map(|(_, commit)| *commit));
        let asked = git.ask(&words).on(&beside.at).within(self.folder);
        asked.success("cannot copy a history").await.map(drop)
    }

    /// Notes in an index what the files are now, after their times were set.
    pub async fn refresh(&self, git: &Git, repository: &Path) -> Result<(), Error> {
        let asked = git.ask(&["update-index", "-q", "--refresh"]).on(repository);
        let asked = asked.within(self.folder).with("GIT_WORK_TREE", self.folder);
        asked.success("cannot note the files").await.map(drop)
    }
}

/// Tells the repository around that a submodule is in use.
pub fn activate(repository: &Path, module: &Module, url: Option<&str>) -> Result<(), Error> {
    let path = repository.join("config");
    let mut config = fs::read_to_string(&path).map_err(Error::file("read", &path))?;
    config += &format!("[submodule {}]\n\tactive = true\n", quoted(&module.name));
    if let Some(url) = url {
        config += &format!("\turl = {}\n", quoted(url));
    }
    write(&path, &config)
}

/// Those commits that have parents, a line each, of what `cat-file --batch` writes.
fn with_parents(mut listed: &[u8]) -> String {
    let mut cut = String::new();
    while let Some(end) = listed.iter().position(|byte| *byte == b'\n') {
        let head = String::from_utf8_lossy(&listed[..end]);
        let mut words = head.split(' ');
        let (Some(commit), Some(_), Some(size)) = (words.next(), words.next(), words.next()) else {
            break;
        };
        let size: usize = size.parse().unwrap_or(0);
        let rest = &listed[end + 1..];
        let object = &rest[..size.min(rest.len())];
        let lines = object.split(|byte| *byte == b'\n').take_while(|line| !line.is_empty());
        if lines.into_iter().any(|line| line.starts_with(b"parent ")) {
            cut += &format!("{commit}\n");
        }
        listed = rest.get(size + 1..).unwrap_or_default();
    }
    cut
}

/// A value in a file of configuration.
fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("\"{escaped}\"")
}

#[cfg(test)]
mod tests;
