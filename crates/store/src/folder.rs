//! [`Folder`]: a layer that another program writes, such as git.
//!
//! ```text
//! work/<id>/upper    the layer, which the program is told to write to
//! work/<id>/<name>   what the program needs beside it, gone with the rest
//! ```
//!
//! Nobody but that program and we know the place. What it wrote is taken as it is: whoever starts it answers for what
//! it can be made to write.

use crate::Error;
use crate::draft::{Draft, failed, timestamps};
use crate::duplicate::Duplicator;
use crate::metadata::{Kind, Timestamp};
use crate::snapshot::Snapshot;
use crate::store::Store;
use crate::view::{Node, View, join};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, utimensat};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// A layer that another program writes. Dropped without a commit, it leaves nothing.
pub struct Folder {
    store: Store,
    draft: Draft,
    path: PathBuf,
}

impl Folder {
    pub(crate) fn new(store: Store) -> Result<Self, Error> {
        let draft = Draft::new(&store.0.state)?;
        let path = store.0.state.path().join(String::from_utf8_lossy(draft.root()).as_ref());
        Ok(Self { store, draft, path })
    }

    /// Where the layer is written, on the host.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A place beside the layer that is no part of it.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.path.with_file_name(name)
    }

    /// Gives all regular files below a directory of a tree second names here, without copying bytes. Whoever reads
    /// them here must not change them. Links and devices are left out.
    pub fn lend_tree(&mut self, from: (&View, &str), to: &str) -> Result<(), Error> {
        self.lend(from, to, |node| matches!(node.metadata.kind, Kind::Directory | Kind::File))
    }

    /// The same for a work tree of version control: links too, and nothing that is called `name`.
    pub fn lend_work_tree(
        &mut self,
        from: (&View, &str),
        to: &str,
        name: &str,
    ) -> Result<(), Error> {
        let tracked = |kind| matches!(kind, Kind::Directory | Kind::File | Kind::Symlink);
        self.lend(from, to, |node| tracked(node.metadata.kind) && node.name() != name.as_bytes())
    }

    fn lend(
        &mut self,
        (view, path): (&View, &str),
        to: &str,
        wanted: impl Fn(&Node) -> bool,
    ) -> Result<(), Error> {
        let top = view.tree.find_directory(path)?;
        let mut entries = Duplicator::new(&view.tree);
        let mut ahead = vec![(top, to.as_bytes().to_vec())];
        while let Some((directory, place)) = ahead.pop() {
            self.draft.make_directory(&place, &directory.metadata.meta())?;
            let unread = |errno| failed("read", &directory.path, errno);
            for child in view.tree.children(&directory).map_err(unread)? {
                let place = join(&place, child.name());
                match child.metadata.kind {
                    _ if !wanted(&child) => {}
                    Kind::Directory => ahead.push((child, place)),
                    _ => entries.link(&mut self.draft, &child, &place)?,
                }
            }
        }
        Ok(())
    }

    /// The same for one file, if it is there.
    pub fn lend_file(&mut self, (view, path): (&View, &str), to: &str) -> Result<(), Error> {
        let Ok(node) = view.tree.find_file(path) else { return Ok(()) };
        Duplicator::new(&view.tree).link(&mut self.draft, &node, to.as_bytes())
    }

    /// Writes a small file.
    pub fn write(&self, name: &str, text: &str) -> Result<(), Error> {
        let path = self.path.join(name);
        std::fs::write(&path, text).map_err(Error::io("write", &path))
    }

    /// Sets the time of everything that is there now.
    pub fn set_times(&self, time: Timestamp) -> Result<(), Error> {
        let path = &self.path;
        set_times_below(path, time).map_err(|errno| Error::io("write", path)(errno.into()))
    }

    /// The tree, from now on immutable.
    pub fn commit(self) -> Result<Snapshot, Error> {
        let layer = self.draft.finish()?;
        Ok(self.store.0.commit(&Snapshot::empty(), layer, None))
    }
}

/// Sets the time of all below a directory and of the directory itself, without following any link.
fn set_times_below(path: &Path, time: Timestamp) -> Result<(), Errno> {
    let times = timestamps(time);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = |at: &OwnedFd, name: &[u8]| openat(at, name, flags, Mode::empty());
    let root = openat(CWD, path, flags, Mode::empty())?;
    let mut ahead: Vec<Vec<u8>> = vec![b".".to_vec()];
    while let Some(path) = ahead.pop() {
        let directory = open(&root, &path)?;
        for entry in Dir::read_from(&directory)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b"..") {
                continue;
            }
            utimensat(&directory, name, &times, AtFlags::SYMLINK_NOFOLLOW)?;
            if entry.file_type() == FileType::Directory {
                ahead.push(join(&path, name));
            }
        }
    }
    // Nothing above was made meanwhile: setting the time of an entry is no change of its directory.
    utimensat(&root, ".", &times, AtFlags::empty())
}
