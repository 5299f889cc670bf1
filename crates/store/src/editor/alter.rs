//! Changing what entries are: owner, times, contents.
//!
//! An inode may have names in other layers, which never change, so an entry that changes becomes a new
//! inode in the draft. Links on the way to an entry are followed, links below it are not.

use super::Editor;
use crate::draft::{failed, finish_file};
use crate::duplicate::Duplicator;
use crate::metadata::{Kind, Meta, Metadata, Owner, Timestamp};
use crate::top::Top;
use crate::view::{Last, Node, failure, parent};
use crate::{Error, attributes};
use rustix::fs::{OFlags, fremovexattr};
use rustix::io::Errno;
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;

const SET_IDS: u32 = 0o6000;

/// `Editor::chown`.
pub(super) fn chown(editor: &mut Editor, path: &str, owner: Owner) -> Result<(), Error> {
    let node = editor.top.tree.find(path, Last::Follow)?;
    let wanted = |metadata: &Metadata| metadata.owner() != owner;
    editor.root_changed |= node.path.is_empty() && wanted(&node.metadata);
    let tree = editor.top.tree.clone();
    let mut copies = Duplicator::new(&tree);
    each(&mut editor.top, vec![node], &mut |top, node| {
        let metadata = &node.metadata;
        if !wanted(metadata) {
            return Ok(());
        }
        let Owner { uid, gid } = owner;
        if !metadata.is_file() {
            return replace(top, &mut copies, node, &Meta { uid, gid, ..metadata.meta() });
        }
        let mode = metadata.mode & !SET_IDS;
        replace(top, &mut copies, node, &Meta { uid, gid, mode, ..metadata.meta() })?;
        drop_capabilities(top, node)
    })
}

/// `Editor::set_times_below`.
pub(super) fn set_times_below(
    editor: &mut Editor,
    path: &str,
    time: Timestamp,
) -> Result<(), Error> {
    let tree = editor.top.tree.clone();
    let directory = tree.find_directory(path)?;
    let children = tree.children(&directory).map_err(|errno| failure(path, errno))?;
    let mut copies = Duplicator::new(&tree);
    each(&mut editor.top, children, &mut |top, node| set_times_of(top, &mut copies, node, time))
}

/// `Editor::set_times`.
pub(super) fn set_times(editor: &mut Editor, path: &str, time: Timestamp) -> Result<(), Error> {
    let tree = editor.top.tree.clone();
    let node = tree.find_file(path)?;
    set_times_of(&mut editor.top, &mut Duplicator::new(&tree), &node, time)
}

/// `Editor::open`.
pub(super) fn open(editor: &Editor, path: &str) -> Result<File, Error> {
    let tree = &editor.top.tree;
    let node = tree.find_file(path)?;
    let file = tree.open(&node, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY);
    Ok(file.map_err(|errno| failure(path, errno))?.into())
}

/// `Editor::rewrite`.
pub(super) fn rewrite(editor: &mut Editor, path: &str, contents: &[u8]) -> Result<(), Error> {
    let top = &mut editor.top;
    let node = top.tree.find_file(path)?;
    let before = top.tree.open(&node, OFlags::RDONLY | OFlags::NONBLOCK);
    let before = before.map_err(|errno| failure(path, errno))?;
    top.make_room(&node.path)?;
    let mut file = top.draft.make_file(&node.path)?;
    let shown = String::from_utf8_lossy(&node.path).into_owned();
    file.write_all(contents).map_err(Error::io("write", shown))?;
    let file = OwnedFd::from(file);
    let meta = Meta { mtime: Timestamp::now(), ..node.metadata.meta() };
    let finished =
        attributes::copy(&before, &file).and_then(|()| finish_file(&File::from(file), &meta));
    finished.map_err(|errno| failed("write", &node.path, errno))
}

/// Does something to these entries and to everything below them, each directory before what is in it.
fn each(
    top: &mut Top,
    mut ahead: Vec<Node>,
    alter: &mut dyn FnMut(&mut Top, &Node) -> Result<(), Error>,
) -> Result<(), Error> {
    while let Some(node) = ahead.pop() {
        if node.metadata.is_directory() {
            let children = top.tree.children(&node);
            ahead.extend(children.map_err(|errno| failed("read", &node.path, errno))?);
        }
        alter(top, &node)?;
    }
    Ok(())
}

fn set_times_of(
    top: &mut Top,
    copies: &mut Duplicator<'_>,
    node: &Node,
    time: Timestamp,
) -> Result<(), Error> {
    if node.metadata.mtime == time {
        return Ok(());
    }
    replace(top, copies, node, &Meta { mtime: time, ..node.metadata.meta() })?;
    top.draft.set_both_times(&node.path, time)
}

/// Puts an entry with other metadata in place of one that is there.
fn replace(
    top: &mut Top,
    copies: &mut Duplicator<'_>,
    node: &Node,
    meta: &Meta,
) -> Result<(), Error> {
    if node.metadata.kind == Kind::Directory {
        top.materialise(&node.path)?;
        return top.draft.set_directory(&node.path, meta);
    }
    top.materialise(parent(&node.path))?;
    copies.replace(&mut top.draft, node, meta)
}

/// Takes the capabilities of a program away.
fn drop_capabilities(top: &Top, node: &Node) -> Result<(), Error> {
    let unset = |errno| failed("write", &node.path, errno);
    let place = crate::view::join(top.draft.root(), &node.path);
    let file = top.state().open_at(&place, OFlags::RDONLY | OFlags::NONBLOCK).map_err(unset)?;
    match fremovexattr(&file, "security.capability") {
        Err(Errno::NODATA | Errno::OPNOTSUPP) | Ok(()) => Ok(()),
        Err(errno) => Err(unset(errno)),
    }
}
