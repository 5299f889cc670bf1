//! Copying files and trees into an edited tree.
//!
//! An entry whose mode and owner stay the same is a hard link to the inode in the source's layer:
//! no bytes move. Otherwise bytes are copied, and names of one file are names of one copy.

use super::filter::Filter;
use super::{CopyOptions, Editor, PARENT_MODE};
use crate::Error;
use crate::draft::failed;
use crate::duplicate::Duplicator;
use crate::metadata::{Kind, Meta, Owner};
use crate::top::Top;
use crate::view::{Last, Located, Node, Tree, View, ViewError, join, parent, shorten};
use rustix::fs::OFlags;
use selection::Verdict;
use std::vec;

/// Whether a copy may share inodes with its source.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sharing {
    /// Source and copy are both immutable.
    Links,
    /// The copy will be written to.
    Bytes,
}

/// `Editor::copy_file`.
pub(super) fn file(
    editor: &mut Editor,
    (view, path): (&View, &str),
    destination: &str,
    options: &CopyOptions,
) -> Result<(), Error> {
    let node = view.tree.find_file(path)?;
    let own_name = || path.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned();
    let name = options.name.clone().unwrap_or_else(own_name);
    let into_directory = match editor.top.tree.locate(destination, Last::Follow)? {
        Located::Found(found) if found.metadata.is_directory() => true,
        Located::Found(_) if destination.ends_with('/') => {
            return Err(ViewError::NotADirectory(shorten(destination)).into());
        }
        Located::Found(_) => false,
        Located::Missing { .. } => destination.ends_with('/'),
    };
    let destination = match into_directory {
        true => format!("{destination}/{name}"),
        false => destination.to_owned(),
    };
    let place = match editor.place_for_file(&destination, options.owner.unwrap_or_default()) {
        Err(Error::View(ViewError::NotAFile(path))) => return Err(Error::OverDirectory(path)),
        other => other?,
    };
    let mut copier = Copier::new(&view.tree, options, Sharing::Links);
    copier.add(&mut editor.top, &node, &place)
}

/// `Editor::copy_tree`.
pub(super) fn tree(
    editor: &mut Editor,
    (view, path): (&View, &str),
    destination: &str,
    options: &CopyOptions,
) -> Result<(), Error> {
    let source = view.tree.find_directory(path)?;
    let top = &mut editor.top;
    let copier = Copier::new(&view.tree, options, Sharing::Links);
    let target = match top.tree.locate(destination, Last::Follow)? {
        Located::Found(node) if node.metadata.is_directory() => Target::Merged(node),
        Located::Found(_) => return Err(ViewError::NotADirectory(shorten(destination)).into()),
        Located::Missing { parent, names } => {
            let (last, parents) = names.split_last().map_or((&[][..], &[][..]), |(l, p)| (l, p));
            let owner = options.owner.unwrap_or_default();
            let above = top.make_directories(&parent, parents, PARENT_MODE, owner)?;
            let place = join(&above, last);
            top.make_directory(&place, &copier.meta(&source))?;
            Target::Fresh(place)
        }
    };
    copier.run(top, &source, target, Filter::new(options)?)
}

/// `Editor::take`.
pub(super) fn root(
    editor: &mut Editor,
    (view, path): (&View, &str),
    options: &CopyOptions,
) -> Result<(), Error> {
    let source = view.tree.find_directory(path)?;
    let top = &mut editor.top;
    let copier = Copier::new(&view.tree, options, Sharing::Links);
    top.draft.set_directory(b"", &copier.meta(&source))?;
    if !source.parts.is_empty() {
        let open = view.tree.open(&source, OFlags::RDONLY | OFlags::DIRECTORY);
        let open = open.map_err(|errno| failed("read", &source.path, errno))?;
        top.draft.copy_attributes(&open, b"")?;
    }
    copier.run(top, &source, Target::Fresh(vec![]), Filter::new(options)?)
}

/// Copies the whole of a tree into an empty draft, sharing nothing with it.
pub(crate) fn copy_all(top: &mut Top, source: &Tree, owner: Option<Owner>) -> Result<(), Error> {
    let options = CopyOptions { owner, ..CopyOptions::default() };
    let root = source.root().map_err(|errno| failed("read", b"", errno))?;
    let copier = Copier::new(source, &options, Sharing::Bytes);
    top.draft.set_directory(b"", &copier.meta(&root))?;
    copier.run(top, &root, Target::Fresh(vec![]), Filter::new(&options)?)
}

/// A directory of the destination.
enum Target {
    /// Nothing was there before, so nothing can be in the way.
    Fresh(Vec<u8>),
    /// The tree has it; entries in it may be replaced.
    Merged(Node),
}

/// A directory of the source whose entries are being copied.
struct Frame {
    source: Node,
    entries: vec::IntoIter<Node>,
    /// None as long as nothing in it was taken.
    target: Option<Target>,
}

struct Copier<'a> {
    source: &'a Tree,
    options: &'a CopyOptions,
    sharing: Sharing,
    entries: Duplicator<'a>,
    /// Length of what comes before paths relative to the top of the copy.
    skipped: usize,
}

impl<'a> Copier<'a> {
    fn new(source: &'a Tree, options: &'a CopyOptions, sharing: Sharing) -> Self {
        let entries = Duplicator::new(source);
        Self { source, options, sharing, entries, skipped: 0 }
    }

    fn run(
        mut self,
        top: &mut Top,
        source: &Node,
        target: Target,
        mut filter: Filter,
    ) -> Result<(), Error> {
        self.skipped = if source.path.is_empty() { 0 } else { source.path.len() + 1 };
        let mut frames = vec![self.enter(source.clone(), Some(target), &mut filter)?];
        while let Some(frame) = frames.last_mut() {
            let Some(entry) = frame.entries.next() else {
                frames.pop();
                filter.leave();
                continue;
            };
            let verdict = filter.judge(&entry.path[self.skipped..], entry.metadata.is_directory());
            if verdict == Verdict::Skip {
                continue;
            }
            if !entry.metadata.is_directory() {
                self.make_targets(top, &mut frames)?;
                self.add_to_last(top, &frames, &entry)?;
                continue;
            }
            frames.push(self.enter(entry, None, &mut filter)?);
            if verdict == Verdict::Take {
                self.make_targets(top, &mut frames)?;
            }
        }
        Ok(())
    }

    fn enter(
        &self,
        source: Node,
        target: Option<Target>,
        filter: &mut Filter,
    ) -> Result<Frame, Error> {
        let unread = |errno| failed("read", &source.path, errno);
        let entries = self.source.children(&source).map_err(unread)?;
        let relative = source.path.get(self.skipped..).unwrap_or_default();
        filter.enter(self.source, relative, &entries)?;
        Ok(Frame { source, entries: entries.into_iter(), target })
    }

    /// Makes the directories of the destination that lead to the last frame.
    fn make_targets(&self, top: &mut Top, frames: &mut [Frame]) -> Result<(), Error> {
        for index in 1..frames.len() {
            let (above, below) = frames.split_at_mut(index);
            if below[0].target.is_none()
                && let Some(target) = above.last().and_then(|frame| frame.target.as_ref())
            {
                below[0].target = Some(self.make_target(top, target, &below[0].source)?);
            }
        }
        Ok(())
    }

    fn make_target(&self, top: &mut Top, above: &Target, source: &Node) -> Result<Target, Error> {
        let place = above.place(source.name());
        let meta = self.meta(source);
        let there = match above {
            Target::Fresh(_) => None,
            Target::Merged(_) => top.node(&place)?,
        };
        match there {
            None => {
                top.materialise(parent(&place))?;
                top.make_directory(&place, &meta)?;
                Ok(Target::Fresh(place))
            }
            Some(node) if node.metadata.is_directory() => {
                top.materialise(&place)?;
                top.draft.set_directory(&place, &meta)?;
                Ok(Target::Merged(node))
            }
            Some(_) => Err(Error::OverNonDirectory(shown(&place))),
        }
    }

    fn add_to_last(&mut self, top: &mut Top, frames: &[Frame], entry: &Node) -> Result<(), Error> {
        let Some(target) = frames.last().and_then(|frame| frame.target.as_ref()) else {
            return Ok(());
        };
        let place = target.place(entry.name());
        if let Target::Merged(_) = target {
            if top.node(&place)?.is_some_and(|node| node.metadata.is_directory()) {
                return Err(Error::OverDirectory(shown(&place)));
            }
            top.make_room(&place)?;
        }
        self.add(top, entry, &place)
    }

    /// Brings one entry that is not a directory to a place where nothing is.
    fn add(&mut self, top: &mut Top, entry: &Node, place: &[u8]) -> Result<(), Error> {
        let meta = self.meta(entry);
        if self.sharing == Sharing::Links && meta == entry.metadata.meta() {
            return self.entries.link(&mut top.draft, entry, place);
        }
        self.entries.copy(&mut top.draft, entry, place, &meta)
    }

    /// What a copy gets in place of the source's metadata. A link has no mode of its own.
    fn meta(&self, source: &Node) -> Meta {
        let metadata = &source.metadata;
        let owner = self.options.owner.unwrap_or(metadata.owner());
        let mode = self.options.mode.filter(|_| metadata.kind != Kind::Symlink);
        Meta {
            mode: mode.unwrap_or(metadata.mode),
            uid: owner.uid,
            gid: owner.gid,
            mtime: metadata.mtime,
        }
    }
}

impl Target {
    fn place(&self, name: &[u8]) -> Vec<u8> {
        match self {
            Self::Fresh(path) => join(path, name),
            Self::Merged(node) => join(&node.path, name),
        }
    }
}

fn shown(path: &[u8]) -> String {
    shorten(&format!("/{}", String::from_utf8_lossy(path)))
}
