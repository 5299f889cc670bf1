//! Listing one directory: what in it is wanted, and how it looks.

use super::error::{IntakeError, Problem};
use super::host;
use super::node::{Entries, Node, State};
use super::walk::{Walk, unreadable};
use crate::metadata::Kind;
use crate::view::join;
use rustix::fs::{FileType, RawDir};
use rustix::io::Errno;
use selection::{Ignores, Matched, Verdict};
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex};

/// Room for names that the kernel fills at once.
const NAMES: usize = 32 << 10;
/// Bytes of a `.gitignore` that are read; more is not meant to be read by anybody.
const LONGEST_GITIGNORE: u64 = 1 << 20;

/// What a directory holds.
pub(super) struct Listed {
    /// Sorted by name.
    pub(super) entries: Entries,
    /// What is known of the directories among them, sorted by name too.
    below: Vec<Below>,
    ignores: Ignores,
}

/// What a directory inherits.
struct Below {
    name: Vec<u8>,
    wanted: bool,
    matched: Matched,
}

/// Lists a directory.
pub(super) fn list(walk: &Walk<'_>, node: &Node, source: &OwnedFd) -> Result<Listed, IntakeError> {
    let ignores = match walk.gitignore {
        true => node.ignores.with_file_in(&node.path, &read_rules(node, source)?),
        false => Ignores::default(),
    };
    let mut listed = Listed { entries: Entries::default(), below: vec![], ignores };
    let mut room = Vec::with_capacity(NAMES);
    let mut names = RawDir::new(source, room.spare_capacity_mut());
    while let Some(entry) = names.next() {
        let entry = entry.map_err(|errno| unreadable(&node.path, errno))?;
        let name = entry.file_name().to_bytes();
        if !matches!(name, b"." | b"..") {
            add(walk, node, source, &mut listed, (name, entry.file_type()))?;
        }
    }
    listed.entries.sort();
    listed.below.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    Ok(listed)
}

fn add(
    walk: &Walk<'_>,
    node: &Node,
    source: &OwnedFd,
    listed: &mut Listed,
    (name, listed_as): (&[u8], FileType),
) -> Result<(), IntakeError> {
    let look = || match host::look(source, name) {
        Ok(seen) => Ok(Some(seen)),
        // It vanished after it was listed.
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(unreadable(&join(&node.path, name), errno)),
    };
    let directory = match listed_as {
        FileType::Unknown => match look()? {
            Some(seen) => seen.kind == Kind::Directory,
            None => return Ok(()),
        },
        known => known == FileType::Directory,
    };
    let (verdict, matched) = judge(walk, node, &listed.ignores, (name, directory));
    if verdict == Verdict::Skip {
        return Ok(());
    }
    let Some(seen) = look()? else { return Ok(()) };
    if let Some(what) = seen.special() {
        let problem = Problem::Special(what);
        return Err(IntakeError::Entry { path: join(&node.path, name), problem });
    }
    if seen.kind == Kind::Directory {
        if (seen.device, seen.stamp.inode) == walk.own {
            let problem = Problem::OwnStore;
            return Err(IntakeError::Entry { path: join(&node.path, name), problem });
        }
        let wanted = verdict == Verdict::Take;
        listed.below.push(Below { name: name.to_vec(), wanted, matched });
    }
    listed.entries.add(name, seen);
    Ok(())
}

/// What the patterns and the `.gitignore` files say.
fn judge(
    walk: &Walk<'_>,
    node: &Node,
    ignores: &Ignores,
    (name, directory): (&[u8], bool),
) -> (Verdict, Matched) {
    if walk.selection.takes_all() && !walk.gitignore {
        return (Verdict::Take, Matched::default());
    }
    let path = join(&node.path, name);
    if ignores.ignores(&path, directory) {
        return (Verdict::Skip, Matched::default());
    }
    walk.selection.check(&path, directory, &node.matched)
}

/// The directories that were listed, to be walked.
pub(super) fn below(node: &Arc<Node>, listed: &Listed) -> Vec<Arc<Node>> {
    let items = listed.entries.items.iter().enumerate();
    let directories = items.filter_map(|(place, item)| match item.state {
        State::Directory { old, .. } => Some((place, item, old)),
        _ => None,
    });
    let nodes = directories.zip(&listed.below).map(|((place, item, old), below)| {
        Arc::new(Node {
            path: join(&node.path, &below.name),
            parent: Some((node.clone(), place)),
            seen: item.seen,
            wanted: below.wanted,
            matched: below.matched.clone(),
            ignores: listed.ignores.clone(),
            old,
            pending: AtomicUsize::new(1),
            made: AtomicBool::new(false),
            entries: Mutex::default(),
        })
    });
    nodes.collect()
}

/// The text of the directory's own `.gitignore`; empty when it has none. Like git we follow no link
/// to it.
fn read_rules(node: &Node, source: &OwnedFd) -> Result<String, IntakeError> {
    let failed = |errno| unreadable(&join(&node.path, b".gitignore"), errno);
    let file = match host::open_file(source, b".gitignore") {
        Ok(file) => file,
        Err(Errno::NOENT | Errno::LOOP | Errno::NXIO) => return Ok(String::new()),
        Err(errno) => return Err(failed(errno)),
    };
    if host::look_at(&file).map_err(failed)?.kind != Kind::File {
        return Ok(String::new());
    }
    let mut text = vec![];
    let read = File::from(file).take(LONGEST_GITIGNORE).read_to_end(&mut text);
    read.map_err(|error| failed(Errno::from_io_error(&error).unwrap_or(Errno::IO)))?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}
