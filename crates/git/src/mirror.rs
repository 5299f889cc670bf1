//! [`Mirror`]: bare repositories on disk that commits of one remote are fetched into.
//!
//! ```text
//! <folder>/shallow.git   commits with few or none of their ancestors, as trees need them
//!          words.git     commits alone, with few or none of their ancestors
//!          recent.git    the same with the names of files
//!          commits.git   whole histories, of commits alone
//!          names.git     whole histories without what is in files
//!          full.git      whole histories
//! ```
//!
//! Questions about histories need no files, and most need no trees: a server that can leave them out sends a small part of
//! all. One that cannot sends all.
//!
//! The newest commits of a history are fetched alone; what two histories have in common may lie anywhere, so it needs all of
//! both. What is read of [`Depth::Last`] is read through a second repository (`uncut`) that has the same objects and does not know
//! where they were cut off: who comes to an end of what was fetched gets an error, never an answer that lacks something, whatever
//! others fetch meanwhile.
//!
//! They are apart because a repository that was fetched into with a depth forgets what is deeper, although it may have
//! it. What was fetched is kept by a reference of its own name. Whoever writes holds the mirror's lock (the caller's), so
//! a lock file that is there when work begins is of a process that was killed.

use crate::run::text;
use crate::{Access, Error, Git, Heard, Output, Refs, Url};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// More packs than this are made one.
const MOST_PACKS: usize = 48;

/// The greatest depth that git tells from all.
const DEEPEST: u32 = i32::MAX as u32 - 1;
/// Where a repository that is cut off somewhere can be read as if it were not.
const UNCUT: &str = "uncut";

/// How much of the history is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// The commit itself, without files and ancestors.
    Words,
    /// So many commits, one after the other.
    Commits(u32),
    /// What a walk to so many commits comes by, without files and their names.
    Last(u32),
    /// The same without what is in files.
    LastNames(u32),
    /// All commits, without files and their names.
    History,
    /// All, without what is in files.
    Names,
    /// All.
    Full,
}

impl Depth {
    /// What has more than is wanted, and serves as well.
    fn satisfied_by(self) -> &'static [Self] {
        match self {
            Self::Words => &[Self::Full, Self::History, Self::Names, Self::Commits(1)],
            Self::Last(_) => &[Self::Full, Self::History, Self::Names],
            Self::History | Self::LastNames(_) => &[Self::Full, Self::Names],
            Self::Commits(_) | Self::Names => &[Self::Full],
            Self::Full => &[],
        }
    }

    /// What a server is asked to leave out.
    fn filter(self) -> Option<&'static str> {
        match self {
            Self::Words | Self::Last(_) | Self::History => Some("--filter=tree:0"),
            Self::LastNames(_) | Self::Names => Some("--filter=blob:none"),
            Self::Commits(_) | Self::Full => None,
        }
    }

    /// How far from a commit a server is asked to go.
    fn limit(self) -> Option<String> {
        let commits = match self {
            Self::Words => 1,
            Self::Commits(count) => count.max(1),
            // A walk looks at the parents of the last one too.
            Self::Last(count) | Self::LastNames(count) => count.saturating_add(1),
            Self::History | Self::Names | Self::Full => return None,
        };
        Some(format!("--depth={}", commits.min(DEEPEST)))
    }
}

/// The mirror of one remote.
#[derive(Clone, Debug)]
pub struct Mirror {
    folder: PathBuf,
}

impl Mirror {
    /// The mirror in this folder, which may be empty.
    pub fn at(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// The repository for a depth.
    fn repository(&self, depth: Depth) -> PathBuf {
        self.folder.join(match depth {
            Depth::Commits(_) => "shallow.git",
            Depth::Words | Depth::Last(_) => "words.git",
            Depth::LastNames(_) => "recent.git",
            Depth::History => "commits.git",
            Depth::Names => "names.git",
            Depth::Full => "full.git",
        })
    }

    /// A repository of this mirror that has all these commits with so much of their history, if there is one. Nothing is
    /// fetched.
    pub async fn find(
        &self,
        git: &Git,
        commits: &[&str],
        depth: Depth,
    ) -> Result<Option<PathBuf>, Error> {
        for able in depth.satisfied_by() {
            let repository = self.repository(*able);
            if lacking(git, &repository, commits, *able).await?.is_empty() {
                return Ok(Some(repository));
            }
        }
        let repository = self.repository(depth);
        match lacking(git, &repository, commits, depth).await?.is_empty() {
            true => Ok(Some(reader(&repository, depth))),
            false => Ok(None),
        }
    }

    /// A repository that has all these commits, fetched if need be. The caller holds the mirror's lock.
    pub async fn fetch(
        &self,
        (git, url, access): (&Git, &Url, &Access),
        (refs, commits): (&Refs, &[&str]),
        depth: Depth,
        heard: Option<Heard>,
    ) -> Result<PathBuf, Error> {
        if let Some(found) = self.find(git, commits, depth).await? {
            return Ok(found);
        }
        let repository = self.repository(depth);
        prepare(&repository, commits)?;
        let reader = reader(&repository, depth);
        if !reader.join("HEAD").exists() {
            make_uncut(&reader, format_of(commits))?;
        }
        let remote = Remote { git, url, access, repository: &repository };
        let lacking = lacking(git, &repository, commits, depth).await?;
        let keepers: Vec<String> =
            lacking.iter().map(|commit| format!("+{commit}:{}", keeper(commit))).collect();
        let limit = depth.limit();
        let limits: Vec<&str> = limit.as_deref().into_iter().chain(depth.filter()).collect();
        let output = remote.fetch(&limits, &keepers, heard).await?;
        if output.code == 0 {
            remote.tidy().await?;
            return Ok(reader);
        }
        if !wants_all(&output) {
            return Err(remote.failed(&output));
        }
        self.fetch_all((git, url, access), (refs, commits)).await
    }

    /// For servers that give neither single commits nor parts of histories: everything, and then a look.
    async fn fetch_all(
        &self,
        (git, url, access): (&Git, &Url, &Access),
        (refs, commits): (&Refs, &[&str]),
    ) -> Result<PathBuf, Error> {
        let repository = self.repository(Depth::Full);
        prepare(&repository, commits)?;
        let remote = Remote { git, url, access, repository: &repository };
        let all = ["+refs/heads/*:refs/remote/heads/*", "+refs/tags/*:refs/remote/tags/*"];
        let output = remote.fetch(&[], &all.map(str::to_owned), None).await?;
        if output.code != 0 {
            return Err(remote.failed(&output));
        }
        if let Some(commit) = lacking(git, &repository, commits, Depth::Full).await?.first() {
            let what = if refs.has_tip(commit) { "the whole of commit" } else { "commit" };
            return Err(Error::NotThere(format!("{what} `{commit}`")));
        }
        remote.tidy().await?;
        Ok(repository)
    }
}

/// A remote and the repository that is fetched into.
struct Remote<'a> {
    git: &'a Git,
    url: &'a Url,
    access: &'a Access,
    repository: &'a Path,
}

impl Remote<'_> {
    async fn fetch(
        &self,
        limits: &[&str],
        what: &[String],
        heard: Option<Heard>,
    ) -> Result<Output, Error> {
        let url = self.url.to_string();
        let mut words = vec![
            "fetch",
            "--no-tags",
            "--no-write-fetch-head",
            "--no-auto-maintenance",
            "--progress",
        ];
        words.extend(["--no-recurse-submodules", "--no-show-forced-updates", "--update-shallow"]);
        words.extend(limits);
        words.extend(["--", &url]);
        words.extend(what.iter().map(String::as_str));
        let asked = self.git.ask_remote(&words, self.url, self.access);
        asked.on(self.repository).heard_by(heard).run().await
    }

    fn failed(&self, output: &Output) -> Error {
        let url = self.url.to_string();
        let said = String::from_utf8_lossy(&output.stderr);
        if said.contains("not our ref") || said.contains("couldn't find remote ref") {
            let commit = said.split_whitespace().find(|word| crate::refs::is_commit_id(word));
            return Error::NotThere(format!("commit `{}`", commit.unwrap_or_default()));
        }
        Error::of_remote(&url, &format!("cannot fetch from `{url}`"), output)
    }

    /// Makes one pack of many, which every look would go through.
    async fn tidy(&self) -> Result<(), Error> {
        let packs = self.repository.join("objects/pack");
        let names = fs::read_dir(&packs).map_err(Error::file("read", &packs))?;
        let is_pack =
            |entry: &fs::DirEntry| entry.path().extension().is_some_and(|end| end == "pack");
        if names.flatten().filter(is_pack).count() <= MOST_PACKS {
            return Ok(());
        }
        let asked = self.git.ask(&["repack", "-a", "-d", "-q"]).on(self.repository);
        asked.success("cannot tidy a mirror").await.map(drop)
    }
}

/// Whether a server said that it does not give what was asked for in this way, though it may have it.
fn wants_all(output: &Output) -> bool {
    let said = String::from_utf8_lossy(&output.stderr);
    [
        "does not allow request for unadvertised object",
        "dumb http transport does not support shallow",
        "Server does not support shallow",
    ]
    .iter()
    .any(|words| said.contains(words))
}

/// The reference that keeps a commit.
fn keeper(commit: &str) -> String {
    format!("refs/kept/{commit}")
}

/// Those of some commits that a repository does not have with so much of their history. No process is needed for
/// commits that were fetched by their names.
async fn lacking<'a>(
    git: &Git,
    repository: &Path,
    commits: &[&'a str],
    depth: Depth,
) -> Result<Vec<&'a str>, Error> {
    if !repository.join("HEAD").exists() {
        return Ok(commits.to_vec());
    }
    let mut lacking = vec![];
    for commit in commits {
        let kept = repository.join(keeper(commit)).exists();
        let there = match depth {
            Depth::Full | Depth::History | Depth::Names => {
                kept || is_in(git, repository, commit).await?
            }
            Depth::Words => kept || is_in(git, repository, commit).await?,
            Depth::Last(count) | Depth::LastNames(count) => {
                walks(git, &reader(repository, depth), commit, count).await?
            }
            Depth::Commits(0 | 1) => kept,
            Depth::Commits(count) => kept && reaches(git, repository, commit, count).await?,
        };
        if !there && !lacking.contains(commit) {
            lacking.push(*commit);
        }
    }
    Ok(lacking)
}

/// Whether a repository has a commit.
async fn is_in(git: &Git, repository: &Path, commit: &str) -> Result<bool, Error> {
    let name = format!("{commit}^{{commit}}");
    Ok(git.ask(&["cat-file", "-e", &name]).on(repository).run().await?.code == 0)
}

/// Whether a walk to so many commits comes to no end of what a repository has.
async fn walks(git: &Git, repository: &Path, commit: &str, count: u32) -> Result<bool, Error> {
    let limit = format!("--max-count={count}");
    let asked = git.ask(&["rev-list", "--quiet", &limit, commit, "--"]).on(repository);
    Ok(asked.run().await?.code == 0)
}

/// Whether a repository has all commits that are so near, over all parents of merges: none of them but the farthest is cut off
/// from its own.
async fn reaches(git: &Git, repository: &Path, commit: &str, count: u32) -> Result<bool, Error> {
    let shallow = repository.join("shallow");
    let cut = match fs::read_to_string(&shallow) {
        Ok(cut) => cut,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(Error::file("read", &shallow)(error)),
    };
    let asked = git.ask(&["rev-list", "--parents", commit, "--"]).on(repository);
    let listed = text(asked.success("cannot read a history").await?);
    let nearer = nearest(&listed, commit, count.saturating_sub(1));
    Ok(!cut.lines().any(|line| nearer.contains(line)))
}

/// Commits that are so near to one, itself the first, of what `rev-list --parents` writes.
fn nearest<'a>(listed: &'a str, commit: &'a str, count: u32) -> HashSet<&'a str> {
    let lines = listed.lines().filter_map(|line| line.split_once(' '));
    let parents: HashMap<&str, &str> = lines.collect();
    let (mut found, mut edge) = (HashSet::new(), vec![commit]);
    for _ in 0..count {
        edge.retain(|commit| found.insert(*commit));
        if edge.is_empty() {
            break;
        }
        let further = edge.iter().filter_map(|commit| parents.get(commit));
        edge = further.flat_map(|parents| parents.split(' ')).collect();
    }
    found
}

/// Where a repository is read for a depth.
fn reader(repository: &Path, depth: Depth) -> PathBuf {
    match depth {
        Depth::Last(_) | Depth::LastNames(_) => repository.join(UNCUT),
        _ => repository.to_owned(),
    }
}

/// Makes a repository of the objects of the one that it is in.
fn make_uncut(uncut: &Path, format: &str) -> Result<(), Error> {
    let objects = uncut.join("objects/info");
    fs::create_dir_all(&objects).map_err(Error::file("create", &objects))?;
    write(&objects.join("alternates"), "../../objects\n")?;
    make_bare(uncut, format)
}

/// The kind of names that commits have.
fn format_of(commits: &[&str]) -> &'static str {
    if commits.iter().any(|commit| commit.len() == 64) { "sha256" } else { "sha1" }
}

/// Makes a bare repository if there is none, and clears what a killed process left in it.
fn prepare(repository: &Path, commits: &[&str]) -> Result<(), Error> {
    if !repository.join("HEAD").exists() {
        return make_bare(repository, format_of(commits));
    }
    for name in ["shallow.lock", "packed-refs.lock", "config.lock", "HEAD.lock"] {
        remove(&repository.join(name))?;
    }
    let packs = repository.join("objects/pack");
    for entry in fs::read_dir(&packs).map_err(Error::file("read", &packs))?.flatten() {
        if entry.file_name().to_string_lossy().starts_with("tmp_") {
            remove(&entry.path())?;
        }
    }
    for commit in commits {
        remove(&repository.join(keeper(commit)).with_extension("lock"))?;
    }
    Ok(())
}

fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Error::file("remove", path)(error))
        }
        _ => Ok(()),
    }
}

/// Makes a bare repository: what `git init --bare` makes, without a process.
pub(crate) fn make_bare(repository: &Path, format: &str) -> Result<(), Error> {
    for folder in ["objects/pack", "objects/info", "refs/heads", "refs/tags", "refs/kept"] {
        let path = repository.join(folder);
        fs::create_dir_all(&path).map_err(Error::file("create", &path))?;
    }
    let config = match format {
        "sha1" => "[core]\n\trepositoryformatversion = 0\n\tbare = true\n".to_owned(),
        other => format!(
            "[core]\n\trepositoryformatversion = 1\n\tbare = true\n[extensions]\n\tobjectFormat = {other}\n"
        ),
    };
    write(&repository.join("config"), &config)?;
    // Last, because it is what makes it a repository.
    write(&repository.join("HEAD"), "ref: refs/heads/main\n")
}

pub(crate) fn write(path: &Path, text: &str) -> Result<(), Error> {
    fs::write(path, text).map_err(Error::file("write", path))
}
