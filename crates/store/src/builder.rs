//! [`LayerBuilder`]: a layer that is written entry by entry, for imports and unpackers.
//!
//! Paths come from archives and are not trusted: they are resolved inside the layer, links on the
//! way too, and `..` stops at its root. A later entry of a name replaces an earlier one.

use crate::draft::{Draft, failed, finish_file};
use crate::metadata::{Kind, Meta, Timestamp};
use crate::store::Store;
use crate::top::Top;
use crate::view::{Last, Located, ViewError, join, parent, shorten};
use crate::{Error, LayerRef, attributes};
use rustix::fs::{FileType, OFlags};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeSet, HashSet};
use std::io::{Read, Write};

/// Bytes moved at once.
const PIECE: usize = 128 * 1024;

/// A layer that is written entry by entry. Dropped without a commit, it leaves nothing.
pub struct LayerBuilder {
    pub(crate) store: Store,
    pub(crate) top: Top,
    /// Directories that are known to be there under exactly this path.
    known: HashSet<Vec<u8>>,
    piece: Vec<u8>,
    /// Directories that were made because something is in them and that nobody described.
    pub(crate) implied: BTreeSet<Vec<u8>>,
    /// Hard links to what this layer does not have, with the names they are to get.
    pub(crate) waiting: Vec<(String, String)>,
    pub(crate) root_described: bool,
    apart: bool,
}

impl LayerBuilder {
    pub(crate) fn new(store: Store) -> Result<Self, Error> {
        let draft = Draft::new(&store.0.state)?;
        let empty = store.0.tree(&crate::Snapshot::empty());
        let top = Top::new(empty, draft)?;
        Ok(Self {
            store,
            top,
            known: HashSet::from([vec![]]),
            piece: vec![0; PIECE],
            implied: BTreeSet::new(),
            waiting: vec![],
            root_described: false,
            apart: false,
        })
    }

    /// Makes a directory, or sets the metadata of one that is there. Missing parents are made with
    /// mode 0755.
    pub fn directory(&mut self, path: &str, meta: &Meta) -> Result<(), Error> {
        let place = self.place(path)?;
        match self.top.draft.stat(&place) {
            Some(found) if found.is_directory() => self.top.draft.set_directory(&place, meta)?,
            _ => self.top.make_directory(&place, meta)?,
        }
        self.root_described |= place.is_empty();
        self.implied.remove(&place);
        self.known.insert(place);
        Ok(())
    }

    /// Writes a file and gives the sha256 of its bytes.
    pub fn file(
        &mut self,
        path: &str,
        meta: &Meta,
        contents: &mut dyn Read,
    ) -> Result<[u8; 32], Error> {
        let place = self.free_place(path)?;
        let mut file = self.top.draft.make_file(&place)?;
        let mut hasher = Sha256::new();
        loop {
            let length = match contents.read(&mut self.piece) {
                Ok(0) => break,
                Ok(length) => length,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(Error::from_read(shorten(path))(error)),
            };
            self.store.admit(length as u64)?;
            hasher.update(&self.piece[..length]);
            let written = file.write_all(&self.piece[..length]);
            written.map_err(Error::io("write", shorten(path)))?;
        }
        finish_file(&file, meta).map_err(|errno| failed("write", &place, errno))?;
        let sum = hasher.finalize().into();
        self.top.draft.note_sum(&place, sum);
        Ok(sum)
    }

    /// Makes a symbolic link; the mode means nothing for it.
    pub fn symlink(&mut self, path: &str, target: &str, meta: &Meta) -> Result<(), Error> {
        let place = self.free_place(path)?;
        self.top.draft.make_symlink(&place, target.as_bytes(), meta)
    }

    /// Gives an entry of this layer a second name.
    pub fn hard_link(&mut self, existing: &str, path: &str) -> Result<(), Error> {
        let node = self.top.tree.find(existing, Last::Keep)?;
        if node.metadata.is_directory() {
            return Err(ViewError::NotAFile(shorten(existing)).into());
        }
        let place = self.place(path)?;
        if place == node.path {
            return Ok(());
        }
        self.clear(&place)?;
        let linked = self.top.draft.link_own(&node.path, &place)?;
        linked.map_err(|errno| failed("link", &place, errno))
    }

    /// Gives an entry of this layer, or of the tree that it will be fitted onto, a second name.
    pub fn hard_link_from_anywhere(&mut self, existing: &str, path: &str) -> Result<(), Error> {
        match self.hard_link(existing, path) {
            Err(Error::View(ViewError::NotFound(_) | ViewError::NotADirectory(_))) => {
                self.free_place(path)?;
                self.waiting.push((existing.to_owned(), path.to_owned()));
                Ok(())
            }
            other => other,
        }
    }

    /// Sets extended attributes of a file or directory of this layer. What only the kernel or the
    /// host's security module may say is left out.
    pub fn attributes(
        &mut self,
        path: &str,
        attributes: &[(Vec<u8>, Vec<u8>)],
    ) -> Result<(), Error> {
        let node = self.top.tree.find(path, Last::Keep)?;
        if !matches!(node.metadata.kind, Kind::File | Kind::Directory) {
            return Ok(());
        }
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        let open = self.top.tree.open(&node, flags);
        let set = open.and_then(|open| attributes::write(&open, attributes));
        set.map_err(|errno| failed("set the attributes of", &node.path, errno))
    }

    /// Makes a named pipe.
    pub fn fifo(&mut self, path: &str, meta: &Meta) -> Result<(), Error> {
        let place = self.free_place(path)?;
        self.top.draft.make_special(&place, FileType::Fifo, 0, meta)
    }

    /// Hides the entry of this name in older layers.
    pub fn whiteout(&mut self, path: &str) -> Result<(), Error> {
        let place = self.free_place(path)?;
        self.top.draft.make_whiteout(&place)
    }

    /// Hides what older layers have at a path; what this layer has there stays.
    pub fn hide(&mut self, path: &str) -> Result<(), Error> {
        let place = self.place(path)?;
        match self.top.draft.stat(&place) {
            None => self.top.draft.make_whiteout(&place),
            Some(found) if found.is_directory() => self.top.draft.set_opaque(&place),
            Some(_) => Ok(()),
        }
    }

    /// Hides everything that older layers have in a directory, which this layer need not have yet.
    pub fn hide_contents(&mut self, path: &str) -> Result<(), Error> {
        let place = self.place(path)?;
        if place.is_empty() {
            // The mark means nothing on a root: overlay takes all roots together.
            return Err(Error::OpaqueRoot);
        }
        if !self.top.draft.stat(&place).is_some_and(|found| found.is_directory()) {
            self.clear(&place)?;
            self.imply(&place)?;
        }
        self.top.draft.set_opaque(&place)
    }

    /// Says that this layer is never merged with others, because it is known by itself.
    pub fn keep_apart(&mut self) -> Result<(), Error> {
        self.apart = true;
        self.top.draft.set_apart()
    }

    /// Makes the directory hide everything that older layers have in it.
    pub fn set_opaque(&mut self, path: &str) -> Result<(), Error> {
        let node = self.top.tree.find_directory(path)?;
        self.top.draft.set_opaque(&node.path)
    }

    /// Whether this layer has an entry at the path; a link is not followed.
    pub fn exists(&self, path: &str) -> bool {
        self.top.tree.find(path, Last::Keep).is_ok()
    }

    /// Number of entries written.
    pub fn entries(&self) -> u64 {
        self.top.draft.entries()
    }

    /// The layer, from now on immutable.
    pub fn commit(self) -> Result<LayerRef, Error> {
        let entries = if self.apart { u64::MAX } else { self.top.draft.entries() };
        let layer = self.top.draft.finish()?;
        self.store.0.layers.note(layer.id, 0, Some(entries));
        Ok(layer)
    }

    /// Where an entry goes, with nothing there.
    fn free_place(&mut self, path: &str) -> Result<Vec<u8>, Error> {
        let place = self.place(path)?;
        self.clear(&place)?;
        Ok(place)
    }

    fn clear(&mut self, place: &[u8]) -> Result<(), Error> {
        if place.is_empty() {
            return Err(ViewError::NotAFile("/".to_owned()).into());
        }
        if self.top.draft.stat(place).is_some_and(|found| found.is_directory()) {
            self.known.clear();
            self.known.insert(vec![]);
            let inside =
                |path: &[u8]| path.starts_with(place) && path.get(place.len()) == Some(&b'/');
            self.implied.retain(|path| path != place && !inside(path));
        }
        self.top.draft.clear(place)?;
        Ok(())
    }

    /// Where an entry goes, its parents made. The last name is not followed.
    pub(crate) fn place(&mut self, path: &str) -> Result<Vec<u8>, Error> {
        if let Some(place) = self.known_place(path) {
            return Ok(place);
        }
        let place = match self.top.tree.locate(path, Last::Keep)? {
            Located::Found(node) => node.path,
            Located::Missing { parent, names } => {
                let (last, above) =
                    names.split_last().map_or((&[][..], &[][..]), |(l, a)| (&l[..], a));
                let mut place = parent.path;
                for name in above {
                    place = join(&place, name);
                    self.imply(&place)?;
                }
                join(&place, last)
            }
        };
        self.known.insert(parent(&place).to_vec());
        Ok(place)
    }

    /// Makes a directory that something will be in.
    fn imply(&mut self, place: &[u8]) -> Result<(), Error> {
        let meta = Meta { mode: 0o755, mtime: Timestamp::now(), ..Meta::default() };
        self.top.make_directory(place, &meta)?;
        self.implied.insert(place.to_vec());
        Ok(())
    }

    /// The place of a plain path whose directory is known: archives list entries of one directory
    /// one after the other.
    fn known_place(&self, path: &str) -> Option<Vec<u8>> {
        let plain = path.trim_start_matches("./").trim_matches('/');
        let name = plain.rsplit('/').next().unwrap_or(plain);
        let usable = !matches!(name, "" | "." | "..") && name.len() <= 255;
        let place = plain.as_bytes();
        let known =
            plain.len() <= 4096 && !plain.contains('\0') && self.known.contains(parent(place));
        (usable && known).then(|| place.to_vec())
    }
}
