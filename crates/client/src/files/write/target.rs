//! Where something is to be written: from the path that a user typed to an open directory.
//!
//! The path itself is the user's own, so links in it are followed. What lies below the directory is
//! not: see `landing`.

use crate::files::{HostPaths, named, text};
use protocol::Error;
use protocol::attach::Writing;
use rustix::fs::{CWD, Mode, OFlags, openat};
use std::fs::DirBuilder;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// A directory that is about to be written into.
pub(in crate::files) struct Target {
    /// The directory, open.
    pub(in crate::files) directory: OwnedFd,
    /// Absolute path of what is written, without links: of the directory, or of a file in it.
    pub(in crate::files) path: String,
    /// Whether the directory that is written was made for this.
    pub(in crate::files) made: bool,
}

impl Target {
    /// Finds and opens the directory. One that is missing is made, with its parents.
    pub(in crate::files) fn open(
        host: &HostPaths,
        typed: &str,
        what: &Writing,
    ) -> Result<Self, Error> {
        let path = host.resolve(typed)?;
        if typed.contains('\0') {
            let shown = typed.replace('\0', "\\0");
            return Err(Error::user(format!("{shown}: path contains a NUL byte")));
        }
        match what {
            Writing::Directory { wipe } => directory(typed, &path, *wipe),
            Writing::File { name_in_directory } => file(typed, &path, name_in_directory),
        }
    }
}

fn directory(typed: &str, path: &Path, wipe: bool) -> Result<Target, Error> {
    let failed = |error: io::Error| named(typed, &error);
    let made = match path.metadata() {
        Ok(metadata) if metadata.is_dir() => false,
        Ok(_) => return Err(Error::user(format!("path {typed} is a file, not a directory"))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            make_directories(path).map_err(failed)?;
            true
        }
        Err(error) => return Err(failed(error)),
    };
    let path = path.canonicalize().map_err(failed)?;
    if wipe && path.parent().is_none() {
        let hint = "name a directory in it, or export without `wipe`";
        return Err(Error::user(format!("{typed}: the root is not wiped")).with_hint(hint));
    }
    let directory = open(&path).map_err(failed)?;
    Ok(Target { directory, path: text(&path)?, made })
}

fn file(typed: &str, path: &Path, name_in_directory: &str) -> Result<Target, Error> {
    let failed = |error: io::Error| named(typed, &error);
    let path = file_path(typed, path, name_in_directory)?;
    let above = path.parent().unwrap_or(Path::new("/"));
    let Some(name) = path.file_name() else {
        return Err(Error::user(format!("{typed}: is no name for a file")));
    };
    make_directories(above).map_err(failed)?;
    let above = above.canonicalize().map_err(failed)?;
    let directory = open(&above).map_err(failed)?;
    Ok(Target { directory, path: text(&above.join(name))?, made: false })
}

/// Where a file goes: through links, and into a directory under its own name if one was given.
fn file_path(typed: &str, path: &Path, name_in_directory: &str) -> Result<PathBuf, Error> {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let kind = path.metadata().map(|metadata| metadata.file_type());
    match kind {
        Ok(kind) if kind.is_dir() && name_in_directory.is_empty() => {
            let message = format!("path {typed} is a directory, not a file");
            Err(Error::user(message).with_hint("name the file to write inside it"))
        }
        Ok(kind) if kind.is_dir() => Ok(path.join(name_in_directory)),
        Ok(kind) if !kind.is_file() => {
            Err(Error::user(format!("{typed}: is not a regular file and is not replaced")))
        }
        Err(_) if typed.ends_with('/') && !name_in_directory.is_empty() => {
            Ok(path.join(name_in_directory))
        }
        _ => Ok(path),
    }
}

fn make_directories(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o755).create(path)
}

fn open(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(CWD, path, flags, Mode::empty())?)
}
