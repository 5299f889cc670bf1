//! [`Editor`]: changes of one tree that become one layer, written without mounting anything.
//!
//! Paths are resolved in the merged tree of the base and of what was written so far, inside its
//! root: links on the way are followed, the last name too unless an operation says otherwise. The
//! base is never touched. Nothing is in the store before `commit`, and an editor that is dropped
//! leaves nothing.

mod alter;
mod copy;
mod exact;
mod filter;
mod remove;

pub(crate) use copy::copy_all;

use crate::draft::{Draft, failed, finish_file};
use crate::metadata::{Meta, Owner, Timestamp};
use crate::snapshot::Snapshot;
use crate::store::Store;
use crate::top::Top;
use crate::view::{Last, Located, ViewError, join, shorten};
use crate::{Error, View};
use std::fs::File;
use std::io::Write;

/// Mode of directories that are made on the way to something.
const PARENT_MODE: u32 = 0o755;

/// Changes of one tree that become one layer.
pub struct Editor {
    store: Store,
    base: Snapshot,
    top: Top,
    /// Whether the root itself was changed, which no entry of the layer shows.
    root_changed: bool,
}

/// How a copy is made. The default takes everything and keeps mode and owner.
#[derive(Clone, Debug, Default)]
pub struct CopyOptions {
    /// Only what matches one of these, with all below it; empty takes everything.
    pub include: Vec<String>,
    /// Not what matches these; a pattern with `!` takes back, the last match wins.
    pub exclude: Vec<String>,
    /// Leaves out what the tree's own `.gitignore` files name.
    pub gitignore: bool,
    /// Permission bits for every file and directory that is copied.
    pub mode: Option<u32>,
    /// Owner of everything that is copied.
    pub owner: Option<Owner>,
    /// Name a file takes when the destination is a directory; its own name if none is given.
    pub name: Option<String>,
}

/// What `Editor::remove` is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remove {
    /// A file. The root of the tree is refused.
    File,
    /// A directory. The root of the tree is emptied.
    Directory,
}

impl Editor {
    pub(crate) fn new(store: Store, base: &Snapshot) -> Result<Self, Error> {
        store.0.require(base.layers())?;
        let draft = Draft::new(&store.0.state)?;
        let top = Top::new(store.0.tree(base), draft)?;
        Ok(Self { store, base: base.clone(), top, root_changed: false })
    }

    /// Writes a file. Missing parents are made with mode 0755 and the same owner; a file that is
    /// there is replaced.
    pub fn new_file(
        &mut self,
        path: &str,
        contents: &[u8],
        mode: u32,
        owner: Owner,
    ) -> Result<(), Error> {
        let place = self.place_for_file(path, owner)?;
        self.store.admit(contents.len() as u64)?;
        let mut file = self.top.draft.make_file(&place)?;
        file.write_all(contents).map_err(Error::io("write", shorten(path)))?;
        let meta = Meta { mode, uid: owner.uid, gid: owner.gid, mtime: Timestamp::now() };
        finish_file(&file, &meta).map_err(|errno| failed("write", &place, errno))
    }

    /// Makes a directory and its missing parents, all with this mode and owner. One that is there
    /// already is left as it is.
    pub fn new_directory(&mut self, path: &str, mode: u32, owner: Owner) -> Result<(), Error> {
        match self.top.tree.locate(path, Last::Follow)? {
            Located::Found(node) if node.metadata.is_directory() => Ok(()),
            Located::Found(_) => Err(ViewError::NotADirectory(shorten(path)).into()),
            Located::Missing { parent, names } => {
                self.top.make_directories(&parent, &names, mode, owner)?;
                Ok(())
            }
        }
    }

    /// Makes a symbolic link, and missing parents with mode 0755. The last name of `path` is not
    /// followed and must be free.
    pub fn symlink(&mut self, target: &str, path: &str) -> Result<(), Error> {
        if target.contains('\0') {
            return Err(ViewError::Nul(shorten(&target.replace('\0', "\\0"))).into());
        }
        let Located::Missing { parent, names } = self.top.tree.locate(path, Last::Keep)? else {
            return Err(Error::Exists(shorten(path)));
        };
        let owner = Owner::default();
        let place = self.make_parents(&parent, &names, owner)?;
        let meta = Meta { mode: 0o777, uid: 0, gid: 0, mtime: Timestamp::now() };
        self.top.make_room(&place)?;
        self.top.draft.make_symlink(&place, target.as_bytes(), &meta)
    }

    /// Copies one file. A destination that is a directory, is empty, or ends with a slash takes the
    /// file under its own name; anything else is the name of the copy, which replaces what is there.
    pub fn copy_file(
        &mut self,
        source: (&View, &str),
        destination: &str,
        options: &CopyOptions,
    ) -> Result<(), Error> {
        copy::file(self, source, destination, options)
    }

    /// Copies what is in a directory into another one, which is made if it is missing. Entries that
    /// are in both are replaced; directories are merged and take the source's mode and owner.
    pub fn copy_tree(
        &mut self,
        source: (&View, &str),
        destination: &str,
        options: &CopyOptions,
    ) -> Result<(), Error> {
        copy::tree(self, source, destination, options)
    }

    /// Makes the tree, which must be empty, that of a directory: what of it the options choose, and what
    /// the directory itself is.
    pub fn take(&mut self, source: (&View, &str), options: &CopyOptions) -> Result<(), Error> {
        self.root_changed = true;
        copy::root(self, source, options)
    }

    /// Gives what is at a path, and everything below, to an owner. As ever when a file changes hands, it
    /// loses its set-user and set-group bits and its capabilities.
    pub fn chown(&mut self, path: &str, owner: Owner) -> Result<(), Error> {
        alter::chown(self, path, owner)
    }

    /// Sets the time of the last change, and of the last access, of everything below a directory.
    pub fn set_times_below(&mut self, path: &str, time: Timestamp) -> Result<(), Error> {
        alter::set_times_below(self, path, time)
    }

    /// The same of one file.
    pub fn set_times(&mut self, path: &str, time: Timestamp) -> Result<(), Error> {
        alter::set_times(self, path, time)
    }

    /// Opens a regular file as it is now.
    pub fn open(&self, path: &str) -> Result<File, Error> {
        alter::open(self, path)
    }

    /// Replaces the contents of a file; its mode, owner and attributes stay.
    pub fn rewrite(&mut self, path: &str, contents: &[u8]) -> Result<(), Error> {
        self.store.admit(contents.len() as u64)?;
        alter::rewrite(self, path, contents)
    }

    /// Removes what is at a path, or everything that a glob matches. The last name is not followed;
    /// what is missing is fine.
    pub fn remove(&mut self, path_or_glob: &str, kind: Remove) -> Result<(), Error> {
        remove::remove(self, path_or_glob, kind)
    }

    /// The edited tree as a snapshot; the base itself if nothing was changed.
    pub fn commit(self) -> Result<Snapshot, Error> {
        let entries = self.top.draft.entries();
        if entries == 0 && !self.root_changed {
            return Ok(self.base);
        }
        let layer = self.top.draft.finish()?;
        Ok(self.store.0.commit(&self.base, layer, Some(entries)))
    }

    /// Makes room for a file at a path as typed, links followed, and gives its place in the tree.
    fn place_for_file(&mut self, path: &str, owner: Owner) -> Result<Vec<u8>, Error> {
        let place = match self.top.tree.locate(path, Last::Follow)? {
            Located::Found(node) if node.metadata.is_directory() => {
                return Err(ViewError::NotAFile(shorten(path)).into());
            }
            Located::Found(node) => node.path,
            Located::Missing { parent, names } => self.make_parents(&parent, &names, owner)?,
        };
        self.top.make_room(&place)?;
        Ok(place)
    }

    /// Makes all but the last of these directories, and gives the path of the last name.
    fn make_parents(
        &mut self,
        below: &crate::view::Node,
        names: &[Vec<u8>],
        owner: Owner,
    ) -> Result<Vec<u8>, Error> {
        let (last, parents) = names.split_last().map_or((&[][..], &[][..]), |(l, p)| (&l[..], p));
        let above = self.top.make_directories(below, parents, PARENT_MODE, owner)?;
        Ok(join(&above, last))
    }
}
