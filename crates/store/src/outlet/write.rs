//! A tree straight into a directory of the host, many files at a time.
//!
//! A job is a directory, or a part of one with very many files. Jobs open what they need by path and
//! keep nothing open for others: the limit of open files is lower than the number of directories.
//! Then come, in this order, second names of files, the removal of what the tree does not have, and
//! modes and times of directories, the deepest first. The first error stops all jobs after the file
//! they are at.

use super::{Destination, FirstNames, Outlet, Watch, meta, refused};
use crate::Error;
use crate::metadata::Kind;
use crate::view::{Node, parent};
use landing::{Copying, Landing, Made, Meta, Others, Place};
use rayon::Scope;
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use rustix::fs::{Mode, OFlags, openat};
use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Files that are one job, so that a directory with very many is written by several threads.
const FILES_A_JOB: usize = 256;
/// Threads that write. More than a machine has cores, because some wait for its disk.
const FEWEST_THREADS: usize = 4;
const MOST_THREADS: usize = 16;

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Files and links.
    pub files: u64,
    /// Bytes of files.
    pub bytes: u64,
}

impl Outlet {
    /// Writes the directory. With an error in the middle every file of the destination is as it was
    /// or as it is to be.
    pub fn write(&self, mut to: Destination, watch: &dyn Watch) -> Result<Written, Error> {
        let (made, removed) = (to.top(), std::mem::take(&mut to.removed));
        let (emptied, removed): (Vec<_>, Vec<_>) =
            removed.into_iter().partition(|path| path.ends_with(b"/"));
        let landing = to.landing();
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = (threads * 2).clamp(FEWEST_THREADS, MOST_THREADS);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.map_err(|error| {
            Error::io("start threads for", landing.shown())(std::io::Error::other(error))
        })?;
        let writer = Writer::new(self, &landing, watch);
        if made == Made::New {
            writer.note_directory(&[], meta(&self.top.metadata));
        }
        pool.install(|| {
            writer.remove_all(&removed);
            writer.remove_emptied(&emptied);
            rayon::scope(|scope| writer.directory(scope, self.top.clone(), made));
            writer.link_all();
            let others = std::mem::take(&mut *lock(&writer.others));
            writer.remove_all(&others);
            writer.finish_directories();
        });
        writer.result()
    }
}

/// A directory whose mode and time are not set yet.
type Unset = (Vec<u8>, Meta);

struct Writer<'a> {
    outlet: &'a Outlet,
    landing: &'a Landing,
    watch: &'a dyn Watch,
    first_names: Mutex<FirstNames>,
    /// Names to be linked, each with the first name of its file.
    links: Mutex<Vec<(Vec<u8>, Vec<u8>)>>,
    /// What the host has and the tree does not.
    others: Mutex<Vec<Vec<u8>>>,
    /// Directories to be finished, by how deep they are.
    directories: Mutex<BTreeMap<usize, Vec<Unset>>>,
    failure: Mutex<Option<Error>>,
    stopped: AtomicBool,
    files: AtomicU64,
    bytes: AtomicU64,
}

impl<'a> Writer<'a> {
    fn new(outlet: &'a Outlet, landing: &'a Landing, watch: &'a dyn Watch) -> Self {
        Self {
            outlet,
            landing,
            watch,
            first_names: Mutex::default(),
            links: Mutex::default(),
            others: Mutex::default(),
            directories: Mutex::default(),
            failure: Mutex::default(),
            stopped: AtomicBool::new(false),
            files: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        }
    }

    fn result(self) -> Result<Written, Error> {
        match self.failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error),
            None if self.stopped.into_inner() => {
                Err(landing::Error::Stopped(self.landing.shown().to_owned()).into())
            }
            None => {
                let (files, bytes) = (self.files.into_inner(), self.bytes.into_inner());
                Ok(Written { files, bytes })
            }
        }
    }

    /// Remembers the first error and stops all jobs.
    fn check(&self, result: Result<(), Error>) {
        if let Err(error) = result {
            self.stopped.store(true, Ordering::Relaxed);
            lock(&self.failure).get_or_insert(error);
        }
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Counts what has passed, and says whether to go on.
    fn passed(&self, files: u64, bytes: u64) -> bool {
        self.files.fetch_add(files, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        if !self.watch.passed(files, bytes) {
            self.stopped.store(true, Ordering::Relaxed);
        }
        !self.is_stopped()
    }

    fn note_directory(&self, path: &[u8], meta: Meta) {
        let depth =
            path.iter().filter(|byte| **byte == b'/').count() + usize::from(!path.is_empty());
        lock(&self.directories).entry(depth).or_default().push((path.to_vec(), meta));
    }

    /// The job of one directory.
    fn directory<'s>(&'s self, scope: &Scope<'s>, node: Node, made: Made) {
        if !self.is_stopped() {
            self.check(self.try_directory(scope, &node, made));
        }
    }

    fn try_directory<'s>(
        &'s self,
        scope: &Scope<'s>,
        node: &Node,
        made: Made,
    ) -> Result<(), Error> {
        let children = self.outlet.tree.children(node);
        let children = children.map_err(|errno| self.outlet.unread(&node.path, errno))?;
        let path = self.outlet.below(node);
        let place = self.landing.place(path)?;
        if made == Made::Before && self.landing.others() == Others::Remove {
            self.note_others(&place, path, &children)?;
        }
        let (directories, mut files): (Vec<Node>, Vec<Node>) =
            children.into_iter().partition(|child| child.metadata.is_directory());
        for child in directories {
            let made = place.directory(child.name())?;
            self.note_directory(self.outlet.below(&child), meta(&child.metadata));
            scope.spawn(move |scope| self.directory(scope, child, made));
        }
        while files.len() > FILES_A_JOB {
            let part = files.split_off(files.len() - FILES_A_JOB);
            scope.spawn(move |_| {
                let placed = self.landing.place(parent(self.outlet.below(&part[0])));
                let written = placed.map_err(Error::from);
                self.check(written.and_then(|place| self.write_files(&place, &part)));
            });
        }
        self.write_files(&place, &files)
    }

    /// Finds what the host's directory has and the tree's does not.
    fn note_others(&self, place: &Place<'_>, path: &[u8], children: &[Node]) -> Result<(), Error> {
        let ours: HashSet<&[u8]> = children.iter().map(Node::name).collect();
        let names = place.names()?;
        let others = names.iter().filter(|name| !ours.contains(name.as_slice()));
        lock(&self.others).extend(others.map(|name| crate::view::join(path, name)));
        Ok(())
    }

    /// Writes files and links of one directory.
    fn write_files(&self, place: &Place<'_>, nodes: &[Node]) -> Result<(), Error> {
        let moved = |bytes| self.passed(0, bytes);
        let mut copying = Copying::new(self.landing, &moved);
        let mut sources = Sources { outlet: self.outlet, open: vec![] };
        for node in nodes {
            if self.is_stopped() {
                return Ok(());
            }
            let (path, meta) = (self.outlet.below(node), meta(&node.metadata));
            match node.metadata.kind {
                Kind::File => {
                    if let Some(first) = lock(&self.first_names).of(node, path) {
                        lock(&self.links).push((path.to_vec(), first.to_vec()));
                        continue;
                    }
                    let file = self.outlet.file(node, sources.open(node)?);
                    file.land(place, node.name(), &mut copying)?;
                }
                Kind::Symlink => {
                    let target = self.outlet.tree.read_link(node);
                    let target = target.map_err(|errno| self.outlet.unread(&node.path, errno))?;
                    place.symlink(node.name(), &target, &meta)?;
                }
                kind => return Err(refused(path, kind)),
            }
            self.passed(1, 0);
        }
        Ok(())
    }

    fn link_all(&self) {
        let links = std::mem::take(&mut *lock(&self.links));
        self.each(&links, |(path, first)| {
            let (to, from) =
                (self.landing.place(parent(path))?, self.landing.place(parent(first))?);
            to.hard_link(name(path), &from, name(first))?;
            self.passed(1, 0);
            Ok(())
        });
    }

    fn remove_all(&self, paths: &[Vec<u8>]) {
        self.each(paths, |path| {
            self.landing.remove(path)?;
            self.passed(0, 0);
            Ok(())
        });
    }

    /// Removes directories that are empty by now, one after the other: they come the deepest first.
    fn remove_emptied(&self, paths: &[Vec<u8>]) {
        for path in paths {
            if self.is_stopped() {
                return;
            }
            self.check(self.landing.remove(path).map_err(Error::from));
        }
    }

    /// Finishes directories, the deepest first: a finished one may not be entered any more. After a
    /// failure too, so that none is left that only we can use.
    fn finish_directories(&self) {
        let stopped = self.is_stopped();
        let levels = std::mem::take(&mut *lock(&self.directories));
        for level in levels.into_values().rev() {
            level.par_iter().for_each(|(path, meta)| {
                let finished = self.landing.finish_directory(path, meta);
                if !stopped {
                    self.check(finished.map_err(Error::from));
                }
            });
        }
    }

    /// Does something for each, unless all is stopped.
    fn each<T: Sync>(&self, items: &[T], work: impl Fn(&T) -> Result<(), Error> + Sync) {
        items.par_iter().for_each(|item| {
            if !self.is_stopped() {
                self.check(work(item));
            }
        });
    }
}

/// The directories of layers that files of one directory come from, open.
struct Sources<'a> {
    outlet: &'a Outlet,
    open: Vec<(usize, OwnedFd)>,
}

impl Sources<'_> {
    fn open(&mut self, node: &Node) -> Result<File, Error> {
        let failed = |errno| self.outlet.unread(&node.path, errno);
        let part = node.parts.first().copied().unwrap_or_default();
        let index = match self.open.iter().position(|(open, _)| *open == part) {
            Some(index) => index,
            None => {
                let directory = self.outlet.tree.open_in(part, parent(&node.path));
                self.open.push((part, directory.map_err(failed)?));
                self.open.len() - 1
            }
        };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(&self.open[index].1, node.name(), flags, Mode::empty());
        file.map(File::from).map_err(failed)
    }
}

fn name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
