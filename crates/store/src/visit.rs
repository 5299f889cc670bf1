//! [`View::visit_files`]: the files of a tree that a search looks at, by many threads.
//!
//! A job is a directory, or a part of one with very many files. Most directories are in one layer only:
//! then their names are read as they are, without a look at each entry. Links are not followed, but for
//! those in paths that were asked for.

use crate::Error;
use crate::metadata::{Kind, Metadata};
use crate::snapshot::LayerRef;
use crate::view::{Last, Node, View, failure, join, parent, shorten};
use rayon::Scope;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, openat, statat};
use rustix::io::Errno;
use selection::{Globs, Ignores};
use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};

/// Files that are one job.
const FILES_A_JOB: usize = 256;
/// Bytes of a file with rules that are read; more is not meant to be read by anybody.
const LONGEST_RULES: u64 = 1024 * 1024;
/// Files with rules, the one that decides first.
const RULE_FILES: [&[u8]; 3] = [b".rgignore", b".ignore", b".gitignore"];

/// Which files of a tree are visited.
#[derive(Clone, Debug, Default)]
pub struct Visit {
    /// Files and directories to look at; none looks at the whole tree. What is named here is looked at
    /// whatever else is said.
    pub paths: Vec<String>,
    /// Globs that choose files, as users of ripgrep write them.
    pub globs: Vec<String>,
    /// Whether names that begin with a dot are passed over.
    pub skip_hidden: bool,
    /// Whether what `.gitignore`, `.ignore` and `.rgignore` files name is passed over.
    pub skip_ignored: bool,
}

/// Looks at files, on several threads at once.
pub trait FileVisitor: Sync {
    /// Whether a look at this path, or at anything below it, is still of use.
    fn wants(&self, path: &[u8]) -> bool;

    /// Looks at some files of one directory.
    fn look(&self, files: &mut dyn Iterator<Item = VisitedFile>) -> Result<(), Error>;
}

/// A file with its path in the tree, or why it cannot be read.
pub type VisitedFile = Result<(Vec<u8>, File), Error>;

impl View {
    /// Visits files. Which comes when is not said.
    pub fn visit_files(&self, visit: &Visit, visitor: &dyn FileVisitor) -> Result<(), Error> {
        let globs = Globs::new(&visit.globs)?;
        let (mut jobs, mut files) = (vec![], vec![]);
        let whole = [String::new()];
        for path in if visit.paths.is_empty() { &whole[..] } else { &visit.paths } {
            let node = self.tree.find(path, Last::Follow)?;
            match node.metadata.kind {
                Kind::Directory => jobs.push(Job::new(node.path, node.parts)),
                Kind::File => files.push(node),
                _ => return Err(crate::ViewError::NotRegular(shorten(path)).into()),
            }
        }
        let visiting = Visiting { view: self, visit, globs, visitor, failure: Mutex::default() };
        for node in files {
            let found = [Found { path: node.path.clone(), part: first(&node.parts) }];
            let above = parent(&node.path).to_vec();
            visiting.check(visiting.look(&above, &found, None));
        }
        rayon::scope(|scope| {
            for mut job in jobs {
                if visit.skip_ignored {
                    visiting.check(visiting.rules_above(&mut job));
                }
                scope.spawn(|scope| visiting.directory(scope, job));
            }
        });
        let failure = visiting.failure.into_inner().unwrap_or_else(PoisonError::into_inner);
        failure.map_or(Ok(()), Err)
    }
}

/// A directory that is to be looked through.
struct Job {
    path: Vec<u8>,
    /// Places that add to it, newest first.
    parts: Vec<usize>,
    /// What holds in the directory above it, in the order of [`RULE_FILES`].
    rules: [Ignores; 3],
}

/// A file that is to be looked at.
struct Found {
    path: Vec<u8>,
    part: usize,
}

/// A directory as one place has it, open.
type Opened = (usize, OwnedFd);

/// One entry of a directory.
struct Listed {
    name: Vec<u8>,
    kind: Kind,
    parts: Vec<usize>,
}

struct Visiting<'a> {
    view: &'a View,
    visit: &'a Visit,
    globs: Globs,
    visitor: &'a dyn FileVisitor,
    failure: Mutex<Option<Error>>,
}

impl Job {
    fn new(path: Vec<u8>, parts: Vec<usize>) -> Self {
        Self { path, parts, rules: Default::default() }
    }
}

impl Visiting<'_> {
    /// Remembers the first error.
    fn check(&self, result: Result<(), Error>) {
        if let Err(error) = result {
            self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        }
    }

    fn is_wanted(&self, path: &[u8]) -> bool {
        let failed = self.failure.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        !failed && self.visitor.wants(path)
    }

    /// The job of one directory.
    fn directory<'s>(&'s self, scope: &Scope<'s>, job: Job) {
        if self.is_wanted(&job.path) {
            self.check(self.try_directory(scope, job));
        }
    }

    fn try_directory<'s>(&'s self, scope: &Scope<'s>, mut job: Job) -> Result<(), Error> {
        let (entries, open) = self.list(&job)?;
        if self.visit.skip_ignored {
            self.add_rules(&mut job, &entries)?;
        }
        let mut files = vec![];
        for entry in entries {
            let path = join(&job.path, &entry.name);
            let directory = entry.kind == Kind::Directory;
            if self.skips(&path, &entry.name, directory, &job.rules) {
                continue;
            }
            if directory {
                let below = Job { path, parts: entry.parts, rules: job.rules.clone() };
                scope.spawn(move |scope| self.directory(scope, below));
            } else {
                files.push(Found { path, part: first(&entry.parts) });
            }
        }
        while files.len() > FILES_A_JOB {
            let some = files.split_off(files.len() - FILES_A_JOB);
            let above = job.path.clone();
            scope.spawn(move |_| self.check(self.look(&above, &some, None)));
        }
        self.look(&job.path, &files, open)
    }

    /// Whether an entry is passed over.
    fn skips(&self, path: &[u8], name: &[u8], directory: bool, rules: &[Ignores; 3]) -> bool {
        match self.globs.says(path, directory) {
            Some(skipped) => skipped,
            None if self.visit.skip_hidden && name.starts_with(b".") => true,
            None => {
                let mut said = rules.iter().filter_map(|rules| rules.says(path, directory));
                said.next().unwrap_or(false)
            }
        }
    }

    /// Lets the visitor look at files of one directory.
    fn look(&self, directory: &[u8], files: &[Found], open: Option<Opened>) -> Result<(), Error> {
        let mut sources: HashMap<usize, OwnedFd> = open.into_iter().collect();
        let wanted = files.iter().filter(|file| self.is_wanted(&file.path));
        let mut opened = wanted.map(|file| {
            let source = match sources.entry(file.part) {
                std::collections::hash_map::Entry::Occupied(slot) => Ok(slot.into_mut()),
                std::collections::hash_map::Entry::Vacant(slot) => {
                    let source = self.view.tree.open_in(file.part, directory);
                    source.map(|source| slot.insert(source))
                }
            };
            // The kind is known: opening a pipe or a device could block or act.
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let name = file.path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
            let file_there = source.and_then(|source| openat(source, name, flags, Mode::empty()));
            let file_there = file_there.map_err(|errno| self.unread(&file.path, errno))?;
            Ok((file.path.clone(), File::from(file_there)))
        });
        self.visitor.look(&mut opened)
    }

    /// Files and directories of a directory, and the directory itself, open, if it is in one layer.
    fn list(&self, job: &Job) -> Result<(Vec<Listed>, Option<Opened>), Error> {
        let unread = |errno| self.unread(&job.path, errno);
        if let [part] = job.parts[..] {
            let open = self.view.tree.open_in(part, &job.path).map_err(unread)?;
            return Ok((list_one(&open, part).map_err(unread)?, Some((part, open))));
        }
        let (path, parts) = (job.path.clone(), job.parts.clone());
        let node = Node { path, metadata: Metadata::empty_root(), parts, covers: false };
        let children = self.view.tree.children(&node).map_err(unread)?;
        let children = children
            .into_iter()
            .filter(|child| matches!(child.metadata.kind, Kind::File | Kind::Directory));
        let listed = |child: Node| Listed {
            name: child.name().to_vec(),
            kind: child.metadata.kind,
            parts: child.parts,
        };
        Ok((children.map(listed).collect(), None))
    }

    /// Adds what the files with rules in a directory say.
    fn add_rules(&self, job: &mut Job, entries: &[Listed]) -> Result<(), Error> {
        for (rules, name) in job.rules.iter_mut().zip(RULE_FILES) {
            let file = entries.iter().find(|entry| entry.name == name && entry.kind == Kind::File);
            if let Some(file) = file {
                let text = self.read_rules(&join(&job.path, name), first(&file.parts))?;
                *rules = rules.with_file_in(&job.path, &text);
            }
        }
        Ok(())
    }

    /// The rules that hold above a directory which was asked for.
    fn rules_above(&self, job: &mut Job) -> Result<(), Error> {
        let tree = &self.view.tree;
        let unread = |errno| self.unread(&job.path, errno);
        let mut node = tree.root().map_err(unread)?;
        let mut rules = job.rules.clone();
        for name in job.path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
            let mut above = Job { path: node.path.clone(), parts: node.parts.clone(), rules };
            let (entries, _) = self.list(&above)?;
            self.add_rules(&mut above, &entries)?;
            rules = above.rules;
            let below = tree.lookup(&node, name).map_err(unread)?;
            node = below.ok_or_else(|| unread(Errno::NOENT))?;
        }
        job.rules = rules;
        Ok(())
    }

    fn read_rules(&self, path: &[u8], part: usize) -> Result<String, Error> {
        let tree = &self.view.tree;
        let node = Node {
            path: path.to_vec(),
            metadata: Metadata::empty_root(),
            parts: vec![part],
            covers: true,
        };
        let open = tree.open(&node, OFlags::RDONLY | OFlags::NONBLOCK);
        let open = open.map_err(|errno| self.unread(path, errno))?;
        let mut bytes = vec![];
        let read = File::from(open).take(LONGEST_RULES).read_to_end(&mut bytes);
        read.map_err(Error::io("read", String::from_utf8_lossy(path).into_owned()))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// What a failed look into the tree means: perhaps that a layer is damaged.
    fn unread(&self, path: &[u8], errno: Errno) -> Error {
        let places = self.view.tree.places.iter();
        let layers: Vec<LayerRef> = places.filter_map(|place| place.layer.clone()).collect();
        let lost = self.view.inspector().and_then(|known| known.require_again(&layers).err());
        lost.unwrap_or_else(|| failure(&String::from_utf8_lossy(path), errno).into())
    }
}

/// Files and directories of a directory that only one layer has. Devices, whiteouts among them, are
/// no files, so what hides something need not be looked at.
fn list_one(open: &OwnedFd, part: usize) -> Result<Vec<Listed>, Errno> {
    let mut listed = vec![];
    for entry in Dir::read_from(open)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if matches!(name, b"." | b"..") {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::RegularFile => Kind::File,
            FileType::Directory => Kind::Directory,
            FileType::Unknown => {
                Metadata::from(&statat(open, name, AtFlags::SYMLINK_NOFOLLOW)?).kind
            }
            _ => continue,
        };
        if matches!(kind, Kind::File | Kind::Directory) {
            listed.push(Listed { name: name.to_vec(), kind, parts: vec![part] });
        }
    }
    Ok(listed)
}

/// The newest place of an entry.
fn first(parts: &[usize]) -> usize {
    parts.first().copied().unwrap_or_default()
}
