//! Deletion in the background.
//!
//! Removing a tree can take seconds, so it never happens where somebody waits: a tree is renamed
//! into `trash/` and a few threads take it apart there. Threads see each directory on its own: a
//! directory inside one that is not empty is itself renamed to the top of `trash/` and queued. So
//! no depth of nesting costs stack or descriptors, and all threads share the work of one big tree.
//! What is left when the process ends is queued again at the next start.
//!
//! The threads have the lowest priority and begin a little late, because an exec leaves a few
//! directories behind at the very moment at which somebody waits for its result.

use crate::Error;
use crate::idle_thread::IdleThread;
use crate::snapshot::LayerId;
use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, chmodat, openat, renameat, unlinkat};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Some file systems make every removal wait for a timer, and several threads hide that.
const THREADS: usize = 4;
/// Nothing recurses in a thread.
const STACK: usize = 128 * 1024;
/// How long what is queued first waits, and gathers more.
const GATHER: Duration = Duration::from_millis(100);
/// A directory of at most so many entries is emptied where it is, so many levels deep.
const FEW_ENTRIES: usize = 8;
const FEW_LEVELS: usize = 4;

/// The trash folder and the threads that empty it.
pub(crate) struct Trash {
    path: PathBuf,
    shared: Arc<Shared>,
    threads: Vec<IdleThread>,
}

struct Shared {
    folder: OwnedFd,
    queue: Mutex<Queue>,
    /// There is something to do, or it is time to end.
    more: Condvar,
    /// Something was done.
    less: Condvar,
}

#[derive(Default)]
struct Queue {
    names: VecDeque<CString>,
    busy: usize,
    phase: Phase,
    stop: bool,
}

/// What the threads are at.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Phase {
    /// All wait for something to do.
    #[default]
    Resting,
    /// One gives more the time to come.
    Gathering,
    /// Whoever finds something removes it.
    Emptying,
}

impl Trash {
    /// Queues everything that is in the folder and starts the threads.
    pub(crate) fn start(path: PathBuf) -> Result<Self, Error> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = openat(CWD, &path, flags, Mode::empty())
            .map_err(|errno| Error::io("open", &path)(errno.into()))?;
        let names = names_in(&folder).map_err(|errno| Error::io("read", &path)(errno.into()))?;
        let queue = Queue { names: names.into(), ..Queue::default() };
        let shared =
            Shared { folder, queue: Mutex::new(queue), more: Condvar::new(), less: Condvar::new() };
        let shared = Arc::new(shared);
        let mut trash = Self { path, shared, threads: vec![] };
        for _ in 0..THREADS {
            let shared = Arc::clone(&trash.shared);
            let thread = std::thread::Builder::new().name("trash".to_owned()).stack_size(STACK);
            let thread = IdleThread::spawn(thread, move || shared.work())
                .map_err(Error::io("start the threads for", &trash.path))?;
            trash.threads.push(thread);
        }
        Ok(trash)
    }

    /// Moves a file or a tree of the same file system into the trash. What is not there is fine.
    pub(crate) fn discard(&self, path: &Path) {
        let name = new_name();
        match renameat(CWD, path, &self.shared.folder, name.as_c_str()) {
            Ok(()) => self.shared.push(name),
            Err(Errno::NOENT) => {}
            Err(errno) => tracing::warn!("cannot move `{}` to the trash: {errno}", path.display()),
        }
    }

    /// Removes what is queued on this very thread, for who needs the room now.
    pub(crate) fn empty_now(&self) {
        loop {
            let mut queue = self.shared.lock();
            let Some(name) = queue.names.pop_front() else { break };
            queue.busy += 1;
            drop(queue);
            self.shared.remove_one(&name);
        }
        let mut queue = self.shared.lock();
        while queue.busy > 0 && !queue.stop {
            queue = self.shared.less.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits until everything queued so far has been removed.
    #[cfg(test)]
    pub(crate) fn wait(&self) {
        let mut queue = self.shared.lock();
        while !queue.names.is_empty() || queue.busy > 0 {
            queue = self.shared.less.wait(queue).unwrap();
        }
    }
}

impl Drop for Trash {
    fn drop(&mut self) {
        self.shared.lock().stop = true;
        self.shared.more.notify_all();
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::warn!("a thread that empties `{}` panicked", self.path.display());
            }
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, name: CString) {
        let mut queue = self.lock();
        queue.names.push_back(name);
        let gathering = queue.phase == Phase::Gathering;
        drop(queue);
        if !gathering {
            self.more.notify_one();
        }
    }

    fn stopping(&self) -> bool {
        self.lock().stop
    }

    fn work(&self) {
        while let Some(name) = self.next() {
            self.remove_one(&name);
        }
    }

    fn remove_one(&self, name: &CString) {
        if let Err(errno) = self.remove(name) {
            tracing::warn!("cannot empty the trash of {}: {errno}", name.to_string_lossy());
        }
        self.lock().busy -= 1;
        self.less.notify_all();
    }

    fn next(&self) -> Option<CString> {
        let mut queue = self.lock();
        while !queue.stop {
            match queue.phase {
                Phase::Emptying => {
                    if let Some(name) = queue.names.pop_front() {
                        queue.busy += 1;
                        if !queue.names.is_empty() {
                            self.more.notify_one();
                        }
                        return Some(name);
                    }
                    if queue.busy == 0 {
                        queue.phase = Phase::Resting;
                    }
                }
                Phase::Resting if !queue.names.is_empty() => {
                    queue.phase = Phase::Gathering;
                    let waited = self.more.wait_timeout_while(queue, GATHER, |queue| !queue.stop);
                    queue = waited.unwrap_or_else(PoisonError::into_inner).0;
                    queue.phase = Phase::Emptying;
                    continue;
                }
                Phase::Resting | Phase::Gathering => {}
            }
            queue = self.more.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        None
    }

    fn remove(&self, name: &CString) -> Result<(), Errno> {
        match unlinkat(&self.folder, name.as_c_str(), AtFlags::empty()) {
            Err(Errno::ISDIR | Errno::PERM) => {}
            Err(Errno::NOENT) => return Ok(()),
            other => return other,
        }
        let directory = self.open(name)?;
        for entry in names_in(&directory)? {
            if self.stopping() {
                return Ok(());
            }
            self.remove_entry(&directory, &entry)?;
        }
        unlinkat(&self.folder, name.as_c_str(), AtFlags::REMOVEDIR)
    }

    fn open(&self, name: &CString) -> Result<OwnedFd, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat(&self.folder, name.as_c_str(), flags, Mode::empty()) {
            // The kernel makes the inner directory of an overlay's work directory with mode 000.
            Err(Errno::ACCESS) => {
                chmodat(&self.folder, name.as_c_str(), Mode::RWXU, AtFlags::empty())?;
                openat(&self.folder, name.as_c_str(), flags, Mode::empty())
            }
            other => other,
        }
    }

    fn remove_entry(&self, directory: &OwnedFd, entry: &CString) -> Result<(), Errno> {
        match unlinkat(directory, entry.as_c_str(), AtFlags::empty()) {
            Err(Errno::ISDIR | Errno::PERM) => {}
            other => return other,
        }
        if empty_in_place(directory, entry, FEW_LEVELS)? {
            return Ok(());
        }
        let name = new_name();
        match renameat(directory, entry.as_c_str(), &self.folder, name.as_c_str()) {
            Err(Errno::ACCESS) => {
                chmodat(directory, entry.as_c_str(), Mode::RWXU, AtFlags::empty())?;
                renameat(directory, entry.as_c_str(), &self.folder, name.as_c_str())?;
            }
            other => other?,
        }
        self.push(name);
        Ok(())
    }
}

/// Removes a directory that is small and flat; false if it is neither and still there.
fn empty_in_place(parent: &OwnedFd, name: &CString, levels: usize) -> Result<bool, Errno> {
    match unlinkat(parent, name.as_c_str(), AtFlags::REMOVEDIR) {
        Err(Errno::NOTEMPTY | Errno::EXIST) if levels > 0 => {}
        Err(Errno::NOTEMPTY | Errno::EXIST) => return Ok(false),
        other => return other.map(|()| true),
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(directory) = openat(parent, name.as_c_str(), flags, Mode::empty()) else {
        return Ok(false);
    };
    let entries = names_in(&directory)?;
    if entries.len() > FEW_ENTRIES {
        return Ok(false);
    }
    for entry in &entries {
        match unlinkat(&directory, entry.as_c_str(), AtFlags::empty()) {
            Err(Errno::ISDIR | Errno::PERM) => {}
            other => {
                other?;
                continue;
            }
        }
        if !empty_in_place(&directory, entry, levels - 1)? {
            return Ok(false);
        }
    }
    unlinkat(parent, name.as_c_str(), AtFlags::REMOVEDIR).map(|()| true)
}

fn new_name() -> CString {
    CString::new(LayerId::random().to_string()).expect("hex digits hold no NUL byte")
}

fn names_in(directory: &OwnedFd) -> Result<Vec<CString>, Errno> {
    let mut names = vec![];
    for entry in Dir::read_from(directory)? {
        let name = entry?.file_name().to_owned();
        if !matches!(name.as_bytes(), b"." | b"..") {
            names.push(name);
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let trash = folder.path().join("trash");
        fs::create_dir(&trash).unwrap();
        (folder, trash)
    }

    #[test]
    fn trees_files_and_closed_directories_go() {
        let (folder, path) = folder();
        let trash = Trash::start(path.clone()).unwrap();
        let tree = folder.path().join("tree");
        fs::create_dir_all(tree.join("a/b")).unwrap();
        fs::write(tree.join("a/b/file"), "x").unwrap();
        fs::set_permissions(tree.join("a"), fs::Permissions::from_mode(0o000)).unwrap();
        std::os::unix::fs::symlink("/", tree.join("link")).unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "x").unwrap();
        trash.discard(&tree);
        trash.discard(&file);
        trash.discard(&folder.path().join("never there"));
        trash.wait();
        assert!(!tree.exists() && !file.exists());
        assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
    }

    #[test]
    fn leftovers_go_at_the_next_start_and_depth_does_not_matter() {
        let (_folder, path) = folder();
        let mut deepest =
            openat(CWD, &path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap();
        for _ in 0..300 {
            rustix::fs::mkdirat(&deepest, "twenty-letters-in-it", Mode::RWXU).unwrap();
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            deepest = openat(&deepest, "twenty-letters-in-it", flags, Mode::empty()).unwrap();
        }
        let trash = Trash::start(path.clone()).unwrap();
        trash.wait();
        assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
    }
}
