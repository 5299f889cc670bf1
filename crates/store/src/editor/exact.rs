//! Changes at exact paths: as bytes, with no link followed.
//!
//! For who knows from a comparison what is to be where. Whatever is in the way of a directory that
//! something is to be in, a link too, is replaced by it.

use super::{Editor, PARENT_MODE};
use crate::draft::{failed, finish_file};
use crate::duplicate::Duplicator;
use crate::metadata::{Meta, Metadata, Timestamp};
use crate::view::{Node, Tree, View, join, parent};
use crate::{Error, Owner};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::io::Write;

impl Editor {
    /// The exact path of a directory that is there, from one as it was typed.
    pub fn directory_at(&self, path: &str) -> Result<Vec<u8>, Error> {
        Ok(self.top.tree.find_directory(path)?.path)
    }

    /// What is at a path now; none if nothing is.
    pub fn entry_at(&self, path: &[u8]) -> Result<Option<Metadata>, Error> {
        Ok(self.top.node(path)?.map(|node| node.metadata))
    }

    /// The bytes of the file at a path now, or where the link there leads; nothing of anything else.
    pub fn contents_at(&self, path: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let Some(node) = self.top.node(path)? else { return Ok(None) };
        let contents = self.top.tree.contents_of(&node, u64::MAX);
        contents.map(Some).map_err(|errno| failed("read", path, errno))
    }

    /// Whether something is in the way of a path: a file or a link where a directory has to be.
    pub fn is_blocked(&self, path: &[u8]) -> Result<bool, Error> {
        let mut above = parent(path);
        while !above.is_empty() {
            if let Some(node) = self.top.node(above)? {
                return Ok(!node.metadata.is_directory());
            }
            above = parent(above);
        }
        Ok(false)
    }

    /// Gives this tree, below `base`, the entries that another tree has at these paths. Of a
    /// directory that means the directory itself, not what is in it. Paths come parents first.
    pub fn bring<'a>(
        &mut self,
        source: &View,
        base: &[u8],
        paths: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<(), Error> {
        let mut bringing =
            Bringing { source: &source.tree, entries: Duplicator::new(&source.tree) };
        paths.into_iter().try_for_each(|path| bringing.entry(self, base, path))
    }

    /// Removes what is at a path if it is no directory. What is missing is fine.
    pub fn remove_entry(&mut self, path: &[u8]) -> Result<(), Error> {
        match self.top.node(path)? {
            Some(node) if !node.metadata.is_directory() => self.top.remove(&node),
            _ => Ok(()),
        }
    }

    /// Removes the directory at a path if nothing is in it.
    pub fn remove_empty_directory(&mut self, path: &[u8]) -> Result<(), Error> {
        let Some(node) = self.top.node(path)? else { return Ok(()) };
        if path.is_empty() || !node.metadata.is_directory() {
            return Ok(());
        }
        let children = self.top.tree.children(&node);
        if !children.map_err(|errno| failed("read", path, errno))?.is_empty() {
            return Ok(());
        }
        self.top.remove(&node)
    }

    /// Writes a file, in the place of whatever is there. Missing parents are made.
    pub fn put_file(&mut self, path: &[u8], contents: &[u8], meta: &Meta) -> Result<(), Error> {
        self.make_way(path, meta)?;
        self.store.admit(contents.len() as u64)?;
        let mut file = self.top.draft.make_file(path)?;
        let shown = String::from_utf8_lossy(path).into_owned();
        file.write_all(contents).map_err(Error::io("write", shown))?;
        finish_file(&file, meta).map_err(|errno| failed("write", path, errno))
    }

    /// Makes a link, in the place of whatever is there. Missing parents are made.
    pub fn put_link(&mut self, path: &[u8], target: &[u8], meta: &Meta) -> Result<(), Error> {
        self.make_way(path, meta)?;
        self.top.draft.make_symlink(path, target, meta)
    }

    /// What a new file of this mode gets beside its bytes: the present as its time.
    pub fn new_meta(mode: u32, owner: Owner) -> Meta {
        Meta { mode, uid: owner.uid, gid: owner.gid, mtime: Timestamp::now() }
    }

    /// Sees to it that an entry which is no directory can be made at a path.
    fn make_way(&mut self, path: &[u8], meta: &Meta) -> Result<(), Error> {
        let parents = Meta { mode: PARENT_MODE, ..*meta };
        self.make_parents_at(path, |_| Ok(parents))?;
        self.clear_way(path)
    }

    fn clear_way(&mut self, path: &[u8]) -> Result<(), Error> {
        if let Some(node) = self.top.node(path)?
            && node.metadata.is_directory()
        {
            self.top.remove(&node)?;
        }
        self.top.make_room(path)
    }

    /// Makes the directories above a path that are missing, or that something else stands for.
    fn make_parents_at(
        &mut self,
        path: &[u8],
        mut meta: impl FnMut(&[u8]) -> Result<Meta, Error>,
    ) -> Result<(), Error> {
        let above = parent(path);
        let ends = above.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        for end in ends.chain([above.len()]) {
            let directory = &above[..end];
            if directory.is_empty() {
                continue;
            }
            match self.top.node(directory)? {
                Some(node) if node.metadata.is_directory() => continue,
                Some(node) => self.top.remove(&node)?,
                None => {}
            }
            let meta = meta(directory)?;
            self.top.materialise(parent(directory))?;
            self.top.make_directory(directory, &meta)?;
        }
        self.top.materialise(above)
    }
}

/// Brings entries of one tree into another.
struct Bringing<'a> {
    source: &'a Tree,
    entries: Duplicator<'a>,
}

impl Bringing<'_> {
    fn entry(&mut self, editor: &mut Editor, base: &[u8], path: &[u8]) -> Result<(), Error> {
        let Some(node) = self.node(path)? else {
            return Err(failed("read", path, Errno::NOENT));
        };
        let to = join(base, path);
        editor.make_parents_at(&to, |directory| {
            let below = directory.strip_prefix(base).unwrap_or_default();
            let below = below.strip_prefix(b"/").unwrap_or(below);
            let found = self.node(below)?;
            let found = found.filter(|node| node.metadata.is_directory() && !below.is_empty());
            let made = || Editor::new_meta(PARENT_MODE, Owner::default());
            Ok(found.map_or_else(made, |node| node.metadata.meta()))
        })?;
        if node.metadata.is_directory() {
            return self.directory(editor, &to, &node);
        }
        editor.clear_way(&to)?;
        self.entries.link(&mut editor.top.draft, &node, &to)
    }

    fn directory(&self, editor: &mut Editor, to: &[u8], node: &Node) -> Result<(), Error> {
        let top = &mut editor.top;
        let meta = node.metadata.meta();
        match top.node(to)? {
            Some(there) if there.metadata.is_directory() => {
                top.materialise(to)?;
                top.draft.set_directory(to, &meta)?;
            }
            there => {
                there.iter().try_for_each(|there| top.remove(there))?;
                top.make_directory(to, &meta)?;
            }
        }
        let open = self.source.open(node, OFlags::RDONLY | OFlags::DIRECTORY);
        let open = open.map_err(|errno| failed("read", &node.path, errno))?;
        top.draft.copy_attributes(&open, to)
    }

    fn node(&self, path: &[u8]) -> Result<Option<Node>, Error> {
        self.source.at(path).map_err(|errno| failed("read", path, errno))
    }
}
