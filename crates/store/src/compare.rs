//! Where two trees differ.
//!
//! Two snapshots of one history share most of their layers, so hardly anything of them is looked at:
//! in a directory to which both add the same older layers, only names that the other layers have can
//! differ, and where no other layer has it, nothing can. Layers that were merged share inodes with
//! what they were merged from, and one inode is one content. Bytes are compared only where neither
//! tells, in parallel. Times do not count.

use crate::metadata::{Kind, Metadata};
use crate::snapshot::Snapshot;
use crate::store::Store;
use crate::view::{Node, Tree, failure};
use crate::{Error, attributes};
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use rustix::fs::{Dir, OFlags};
use rustix::io::Errno;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;

/// Bytes that are compared at once.
const PIECE: usize = 128 * 1024;

/// A path at which two trees differ.
#[derive(Clone, Debug)]
pub struct Difference {
    /// Where; never empty, since roots are not compared.
    pub path: Vec<u8>,
    /// What is there in the first; none if nothing is.
    pub before: Option<Metadata>,
    /// What is there in the second; none if nothing is.
    pub after: Option<Metadata>,
    /// Whether both hold the same bytes, or lead to the same place, and only mode, owner or
    /// attributes differ.
    pub same_contents: bool,
}

/// An entry of one tree and what the other has at the same path.
type Pair = (Option<Node>, Option<Node>);

impl Store {
    /// Where two trees differ, sorted by path; all that is in a directory which only one of them has
    /// is listed too. Ends early with an error when `goes_on` says so.
    pub fn compare(
        &self,
        before: &Snapshot,
        after: &Snapshot,
        goes_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<Difference>, Error> {
        if before == after {
            return Ok(vec![]);
        }
        self.0.require(before.layers())?;
        self.0.require(after.layers())?;
        let trees = Trees { before: self.0.tree(before), after: self.0.tree(after) };
        let mut comparing = Comparing { trees, found: vec![], alike: vec![], ahead: vec![] };
        comparing.walk(goes_on)?;
        comparing.look_into_files(goes_on)?;
        let mut found = comparing.found;
        found.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        Ok(found)
    }
}

struct Trees {
    before: Tree,
    after: Tree,
}

struct Comparing {
    trees: Trees,
    found: Vec<Difference>,
    /// Files of the same length whose bytes are not compared yet.
    alike: Vec<(Node, Node)>,
    ahead: Vec<Pair>,
}

impl Comparing {
    fn walk(&mut self, goes_on: &dyn Fn() -> bool) -> Result<(), Error> {
        let unread = |errno| failure("/", errno);
        let roots = (self.trees.before.root(), self.trees.after.root());
        self.ahead = self.trees.children(&roots.0.map_err(unread)?, &roots.1.map_err(unread)?)?;
        // Nesting has no bound that a stack would be safe with.
        while let Some((before, after)) = self.ahead.pop() {
            if !goes_on() {
                return Err(stopped());
            }
            match (before, after) {
                (Some(before), Some(after)) => self.both(before, after)?,
                (before, after) => self.one(before, after)?,
            }
        }
        Ok(())
    }

    /// An entry that only one of the trees has, or that is something else in the other.
    fn one(&mut self, before: Option<Node>, after: Option<Node>) -> Result<(), Error> {
        let is_directory = |node: &&Node| node.metadata.is_directory();
        if let Some(directory) = before.as_ref().filter(is_directory) {
            let children = known(self.trees.before.children(directory), directory)?;
            self.ahead.extend(children.into_iter().map(|child| (Some(child), None)));
        }
        if let Some(directory) = after.as_ref().filter(is_directory) {
            let children = known(self.trees.after.children(directory), directory)?;
            self.ahead.extend(children.into_iter().map(|child| (None, Some(child))));
        }
        self.note(before, after, false);
        Ok(())
    }

    fn both(&mut self, before: Node, after: Node) -> Result<(), Error> {
        let (one, other) = (before.metadata, after.metadata);
        if one.kind != other.kind {
            return self.one(Some(before), Some(after));
        }
        if one.kind == Kind::Directory {
            self.ahead.extend(self.trees.children(&before, &after)?);
            if !known(self.trees.looks_same(&before, &after), &after)? {
                self.note(Some(before), Some(after), true);
            }
            return Ok(());
        }
        // Layers do not change, so neither does what an inode holds.
        if one.inode == other.inode {
            return Ok(());
        }
        let same = match one.kind {
            Kind::File if one.size == other.size => {
                self.alike.push((before, after));
                return Ok(());
            }
            Kind::Symlink => {
                let before = known(self.trees.before.read_link(&before), &before)?;
                before == known(self.trees.after.read_link(&after), &after)?
            }
            Kind::File => false,
            _ => one.rdev == other.rdev,
        };
        if !same || !is_dressed_alike(&one, &other) {
            self.note(Some(before), Some(after), same);
        }
        Ok(())
    }

    fn look_into_files(&mut self, goes_on: &(dyn Fn() -> bool + Sync)) -> Result<(), Error> {
        let trees = &self.trees;
        let judged: Result<Vec<(bool, bool)>, Error> = self
            .alike
            .par_iter()
            .map(|(before, after)| {
                if !goes_on() {
                    return Err(stopped());
                }
                let same = known(trees.holds_same(before, after), after)?;
                Ok((same, same && known(trees.looks_same(before, after), after)?))
            })
            .collect();
        let alike = std::mem::take(&mut self.alike);
        for ((before, after), (same, equal)) in alike.into_iter().zip(judged?) {
            if !equal {
                self.note(Some(before), Some(after), same);
            }
        }
        Ok(())
    }

    fn note(&mut self, before: Option<Node>, after: Option<Node>, same_contents: bool) {
        let metadata = |node: &Option<Node>| node.as_ref().map(|node| node.metadata);
        let (old, new) = (metadata(&before), metadata(&after));
        if let Some(Node { path, .. }) = after.or(before) {
            self.found.push(Difference { path, before: old, after: new, same_contents });
        }
    }
}

impl Trees {
    /// What is in two directories and may differ.
    fn children(&self, before: &Node, after: &Node) -> Result<Vec<Pair>, Error> {
        let common = self.common_layers(before, after);
        let (fresh_before, fresh_after) = (before.parts.len() - common, after.parts.len() - common);
        if fresh_before == 0 && fresh_after == 0 {
            return Ok(vec![]);
        }
        if common == 0 {
            let before = known(self.before.children(before), before)?;
            return Ok(join(before, known(self.after.children(after), after)?));
        }
        let mut names = BTreeSet::new();
        for (tree, directory, fresh) in
            [(&self.before, before, fresh_before), (&self.after, after, fresh_after)]
        {
            for part in &directory.parts[..fresh] {
                known(read_names(tree, *part, directory, &mut names), directory)?;
            }
        }
        let pair = |name: &Vec<u8>| -> Result<Pair, Errno> {
            Ok((self.before.lookup(before, name)?, self.after.lookup(after, name)?))
        };
        let pairs: Result<Vec<Pair>, Errno> = names.iter().map(pair).collect();
        let there = |(before, after): &Pair| before.is_some() || after.is_some();
        Ok(known(pairs, after)?.into_iter().filter(there).collect())
    }

    /// How many of the oldest layers that have a directory are the same.
    fn common_layers(&self, before: &Node, after: &Node) -> usize {
        let layer = |tree: &'_ Tree, part: &usize| tree.places[*part].layer.clone();
        let (older, newer) = (before.parts.iter().rev(), after.parts.iter().rev());
        older
            .zip(newer)
            .take_while(|(one, other)| layer(&self.before, one) == layer(&self.after, other))
            .count()
    }

    /// Whether two files hold the same bytes; they have the same length.
    fn holds_same(&self, before: &Node, after: &Node) -> Result<bool, Errno> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let mut before = File::from(self.before.open(before, flags)?);
        let mut after = File::from(self.after.open(after, flags)?);
        let (mut one, mut other) = (vec![0; PIECE], vec![0; PIECE]);
        loop {
            let count = fill(&mut before, &mut one)?;
            if count != fill(&mut after, &mut other)? || one[..count] != other[..count] {
                return Ok(false);
            }
            if count < PIECE {
                return Ok(true);
            }
        }
    }

    /// Whether two entries of one kind have the same mode, owner and attributes.
    fn looks_same(&self, before: &Node, after: &Node) -> Result<bool, Errno> {
        if !is_dressed_alike(&before.metadata, &after.metadata) {
            return Ok(false);
        }
        let read = |tree: &Tree, node: &Node| {
            if node.parts.is_empty() {
                return Ok(vec![]);
            }
            let open: OwnedFd = tree.open(node, OFlags::RDONLY | OFlags::NONBLOCK)?;
            attributes::read(&open)
        };
        Ok(read(&self.before, before)? == read(&self.after, after)?)
    }
}

fn is_dressed_alike(one: &Metadata, other: &Metadata) -> bool {
    // A link has no mode of its own.
    let mode = |metadata: &Metadata| match metadata.kind {
        Kind::Symlink => 0,
        _ => metadata.mode,
    };
    (mode(one), one.uid, one.gid) == (mode(other), other.uid, other.gid)
}

/// Brings entries of two directories together by name; both are sorted.
fn join(before: Vec<Node>, after: Vec<Node>) -> Vec<Pair> {
    let mut pairs = Vec::with_capacity(before.len().max(after.len()));
    let (mut before, mut after) = (before.into_iter().peekable(), after.into_iter().peekable());
    loop {
        let order = match (before.peek(), after.peek()) {
            (None, None) => return pairs,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(one), Some(other)) => one.name().cmp(other.name()),
        };
        let one = if order == Ordering::Greater { None } else { before.next() };
        let other = if order == Ordering::Less { None } else { after.next() };
        pairs.push((one, other));
    }
}

/// Adds the names that one layer has in a directory.
fn read_names(
    tree: &Tree,
    part: usize,
    directory: &Node,
    names: &mut BTreeSet<Vec<u8>>,
) -> Result<(), Errno> {
    for entry in Dir::read_from(tree.open_in(part, &directory.path)?)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if !matches!(name, b"." | b"..") {
            names.insert(name.to_vec());
        }
    }
    Ok(())
}

/// Reads until the buffer is full or the file ends.
fn fill(file: &mut File, buffer: &mut [u8]) -> Result<usize, Errno> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Errno::from_io_error(&error).unwrap_or(Errno::IO)),
        }
    }
    Ok(filled)
}

fn known<T>(result: Result<T, Errno>, node: &Node) -> Result<T, Error> {
    result.map_err(|errno| failure(&String::from_utf8_lossy(&node.path), errno).into())
}

fn stopped() -> Error {
    Error::io("compare", "trees")(std::io::ErrorKind::Interrupted.into())
}
