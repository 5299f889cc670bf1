//! Removing an entry of the host with all that is in it, links never followed.
//!
//! Nesting has no bound that a stack or the limit of open files would be safe with: two directories
//! are open at a time, and each is reached from the top again.

use crate::place::list;
use crate::{join, names, open_directory};
use rustix::fs::{AtFlags, unlinkat};
use rustix::io::Errno;
use std::os::fd::OwnedFd;

/// Removes an entry. An error comes with the path that it is about.
pub(crate) fn entry(directory: &OwnedFd, name: &[u8]) -> Result<(), (Vec<u8>, Errno)> {
    match unlinkat(directory, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        Err(Errno::ISDIR) => {}
        Err(errno) => return Err((name.to_vec(), errno)),
    }
    let mut ahead = vec![name.to_vec()];
    while let Some(path) = ahead.last() {
        let below = empty(directory, path).map_err(|errno| (path.clone(), errno))?;
        if !below.is_empty() {
            ahead.extend(below);
            continue;
        }
        let path = ahead.pop().unwrap_or_default();
        let removed = unlink(directory, &path, AtFlags::REMOVEDIR);
        removed.map_err(|errno| (path, errno))?;
    }
    Ok(())
}

/// Removes all but the directories in a directory, and gives those.
fn empty(top: &OwnedFd, path: &[u8]) -> Result<Vec<Vec<u8>>, Errno> {
    let open = match reach(top, path) {
        // Somebody else removes it too.
        Err(Errno::NOENT) => return Ok(vec![]),
        other => other?,
    };
    let mut directories = vec![];
    for name in list(&open)? {
        match unlinkat(&open, &name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(Errno::ISDIR) => directories.push(join(path, &name)),
            Err(errno) => return Err(errno),
        }
    }
    Ok(directories)
}

fn unlink(top: &OwnedFd, path: &[u8], flags: AtFlags) -> Result<(), Errno> {
    let cut = path.iter().rposition(|byte| *byte == b'/');
    let removed = match cut {
        None => unlinkat(top, path, flags),
        Some(cut) => {
            reach(top, &path[..cut]).and_then(|parent| unlinkat(&parent, &path[cut + 1..], flags))
        }
    };
    match removed {
        Err(Errno::NOENT) => Ok(()),
        other => other,
    }
}

fn reach(top: &OwnedFd, path: &[u8]) -> Result<OwnedFd, Errno> {
    let mut open = rustix::io::fcntl_dupfd_cloexec(top, 0)?;
    for name in names(path) {
        open = open_directory(&open, name)?;
    }
    Ok(open)
}
