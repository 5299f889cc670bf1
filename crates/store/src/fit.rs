//! Fitting a layer that was written alone onto the tree it will lie on.
//!
//! A layer of an image is a list of changes to a tree, and three of them cannot be understood without
//! that tree: a directory that is only named as part of a path keeps the mode and owner it has there;
//! a path through what is a link there goes where the link leads; and a hard link may be to a file
//! that is there. All else is the same whatever lies below, so that layers can be written in any
//! order, all at once.

use crate::Error;
use crate::attributes;
use crate::builder::LayerBuilder;
use crate::draft::failed;
use crate::duplicate::Duplicator;
use crate::metadata::{Kind, Metadata};
use crate::snapshot::Snapshot;
use crate::view::{Last, Located, Node, Tree, ViewError, join, parent, shorten};
use rustix::fs::{Dir, OFlags};
use rustix::io::Errno;
use std::collections::BTreeSet;

impl LayerBuilder {
    /// Fits the layer onto a tree and says whether anything of that tree mattered: if not, the layer
    /// would be the same over any other whose root looks like this one's.
    pub fn fit(&mut self, below: &Snapshot) -> Result<bool, Error> {
        let tree = self.store.view(below).tree;
        let mut mattered = self.fit_root(&tree)?;
        let mut implied = std::mem::take(&mut self.implied);
        while let Some(path) = implied.pop_first() {
            mattered = true;
            if self.is_covered(&path)? {
                continue;
            }
            let Some(node) = node_at(&tree, &path)? else { continue };
            match node.metadata.kind {
                Kind::Directory => self.take_after(&tree, &node, &path)?,
                Kind::Symlink => self.follow(&tree, &path, &mut implied)?,
                _ => {}
            }
        }
        for (existing, path) in std::mem::take(&mut self.waiting) {
            mattered = true;
            self.link_below(&tree, &existing, &path)?;
        }
        Ok(mattered)
    }

    /// Whether the layer says itself what its root looks like.
    pub fn describes_root(&self) -> bool {
        self.root_described
    }

    fn fit_root(&mut self, tree: &Tree) -> Result<bool, Error> {
        if self.root_described || tree.places.is_empty() {
            return Ok(false);
        }
        let root = tree.root().map_err(|errno| failed("read", b"", errno))?;
        if is_usual_root(tree, &root)? {
            return Ok(false);
        }
        self.take_after(tree, &root, b"")?;
        Ok(true)
    }

    /// Whether a directory above hides all that is below.
    fn is_covered(&self, path: &[u8]) -> Result<bool, Error> {
        let mut above = parent(path);
        while !above.is_empty() {
            let place = join(self.top.draft.root(), above);
            let opaque = self.top.state().is_opaque(&place);
            if opaque.map_err(|errno| failed("read", above, errno))? {
                return Ok(true);
            }
            above = parent(above);
        }
        Ok(false)
    }

    /// Gives a directory of the layer the looks of one below.
    fn take_after(&mut self, tree: &Tree, node: &Node, path: &[u8]) -> Result<(), Error> {
        let from = tree.open(node, OFlags::RDONLY | OFlags::DIRECTORY);
        let from = from.map_err(|errno| failed("read", path, errno))?;
        self.top.draft.set_directory(path, &node.metadata.meta())?;
        self.top.draft.copy_attributes(&from, path)
    }

    /// Moves what was written below a name to where the link of that name leads. A link that leads to
    /// no directory is replaced.
    fn follow(
        &mut self,
        tree: &Tree,
        path: &[u8],
        implied: &mut BTreeSet<Vec<u8>>,
    ) -> Result<(), Error> {
        let Ok(text) = std::str::from_utf8(path) else { return Ok(()) };
        let target = match tree.locate(text, Last::Follow) {
            Ok(Located::Found(node)) if node.metadata.is_directory() => node.path,
            _ => return Ok(()),
        };
        if !self.make_like_below(tree, &target)? {
            return Ok(());
        }
        self.move_entries(path, &target)?;
        self.top.draft.clear(path)?;
        let prefix = [path, b"/"].concat();
        let moved: Vec<Vec<u8>> =
            implied.iter().filter(|other| other.starts_with(&prefix)).cloned().collect();
        for other in moved {
            implied.remove(&other);
            implied.insert(join(&target, &other[prefix.len()..]));
        }
        Ok(())
    }

    /// Makes directories on the way to a path as they are below. False when the layer has something
    /// else in the way.
    fn make_like_below(&mut self, tree: &Tree, path: &[u8]) -> Result<bool, Error> {
        let ends = (0..path.len()).filter(|at| path[*at] == b'/').chain([path.len()]);
        for end in ends.filter(|end| *end > 0) {
            let part = &path[..end];
            match self.top.draft.stat(part) {
                Some(found) if found.is_directory() => {}
                Some(_) => return Ok(false),
                None => {
                    let Some(node) = node_at(tree, part)? else { return Ok(false) };
                    self.top.draft.make_directory(part, &node.metadata.meta())?;
                    self.take_after(tree, &node, part)?;
                }
            }
        }
        Ok(true)
    }

    fn move_entries(&mut self, from: &[u8], to: &[u8]) -> Result<(), Error> {
        let mut ahead = vec![(from.to_vec(), to.to_vec())];
        while let Some((from, to)) = ahead.pop() {
            let place = join(self.top.draft.root(), &from);
            let open = self.top.state().open_directory(&place);
            let names = open.and_then(names).map_err(|errno| failed("read", &from, errno))?;
            if self.top.state().is_opaque(&place).unwrap_or(false) {
                self.top.draft.set_opaque(&to)?;
            }
            for name in names {
                let (source, target) = (join(&from, &name), join(&to, &name));
                let is_directory =
                    |found: Option<Metadata>| found.is_some_and(|found| found.is_directory());
                let both = is_directory(self.top.draft.stat(&source))
                    && is_directory(self.top.draft.stat(&target));
                if both {
                    ahead.push((source, target));
                    continue;
                }
                self.top.draft.clear(&target)?;
                self.top.draft.rename(&source, &target)?;
            }
        }
        Ok(())
    }

    /// Gives a file of the tree below a name in this layer.
    fn link_below(&mut self, tree: &Tree, existing: &str, path: &str) -> Result<(), Error> {
        let node = tree.find(existing, Last::Keep)?;
        if node.metadata.is_directory() {
            return Err(ViewError::NotAFile(shorten(existing)).into());
        }
        let place = self.place(path)?;
        if self.top.draft.stat(&place).is_some() {
            // A later entry of the same name.
            return Ok(());
        }
        Duplicator::new(tree).name_again(&mut self.top.draft, &node, &place)
    }
}

/// Whether the root of a tree is as a layer that does not describe it has it.
fn is_usual_root(tree: &Tree, root: &Node) -> Result<bool, Error> {
    let usual = Metadata::empty_root();
    let metadata = &root.metadata;
    if (metadata.mode, metadata.owner()) != (usual.mode, usual.owner()) {
        return Ok(false);
    }
    let open = tree.open(root, OFlags::RDONLY | OFlags::DIRECTORY);
    let attributes = open.and_then(|open| attributes::read(&open));
    Ok(attributes.map_err(|errno| failed("read", b"", errno))?.is_empty())
}

impl crate::Store {
    /// Whether the root of a tree is as a layer that does not describe it has it.
    pub fn has_usual_root(&self, snapshot: &Snapshot) -> Result<bool, Error> {
        let tree = self.view(snapshot).tree;
        if tree.places.is_empty() {
            return Ok(true);
        }
        let root = tree.root().map_err(|errno| failed("read", b"", errno))?;
        is_usual_root(&tree, &root)
    }
}

/// The entry at a path that passes through no link.
fn node_at(tree: &Tree, path: &[u8]) -> Result<Option<Node>, Error> {
    let unread = |errno| failed("read", path, errno);
    let mut node = tree.root().map_err(unread)?;
    for name in path.split(|byte| *byte == b'/') {
        if !node.metadata.is_directory() {
            return Ok(None);
        }
        match tree.lookup(&node, name).map_err(unread)? {
            Some(child) => node = child,
            None => return Ok(None),
        }
    }
    Ok(Some(node))
}

fn names(directory: std::os::fd::OwnedFd) -> Result<Vec<Vec<u8>>, Errno> {
    let mut names = vec![];
    for entry in Dir::read_from(&directory)? {
        let name = entry?.file_name().to_bytes().to_vec();
        if !matches!(&name[..], b"." | b"..") {
            names.push(name);
        }
    }
    Ok(names)
}
