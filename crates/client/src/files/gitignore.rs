//! `.gitignore` files, from the top of the repository down to the directory that is read.
//!
//! They apply only inside a repository.

use protocol::Error;
use protocol::attach::IgnoreFile;
use rustix::io::Errno;
use selection::Ignores;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Bytes of a file that are read; more is not meant to be read by anybody.
const LONGEST: u64 = 1 << 20;

/// The files above `root`, which must be a path without links, from the top of its repository down.
/// None when it is in no repository; an error, as if `typed` were not there, when it is ignored.
pub(super) fn files_above(typed: &str, root: &Path) -> Result<Option<Vec<IgnoreFile>>, Error> {
    let is_top = |dir: &&Path| dir.join(".git").symlink_metadata().is_ok();
    let Some(top) = root.ancestors().find(is_top) else { return Ok(None) };
    let mut chain: Vec<&Path> = root.ancestors().take_while(|dir| *dir != top).collect();
    chain.push(top);
    chain.reverse();
    let from_top = |path: &Path| path.strip_prefix(top).unwrap_or(path).as_os_str().to_owned();
    let mut ignores = Ignores::default();
    let mut files = vec![];
    for pair in chain.windows(2) {
        let text = read(pair[0])?;
        ignores = ignores.with_file_in(from_top(pair[0]).as_bytes(), &text);
        if ignores.ignores(from_top(pair[1]).as_bytes(), true) {
            return Err(Error::user(format!("{typed}: no such file or directory")));
        }
        if !text.is_empty() {
            let below = super::text(root.strip_prefix(pair[0]).unwrap_or(root))?;
            files.push(IgnoreFile { below, text });
        }
    }
    Ok(Some(files))
}

/// The text of a directory's own file; empty when it has none. Like git we follow no link to it.
pub(super) fn read(directory: &Path) -> Result<String, Error> {
    let path = directory.join(".gitignore");
    let failed = |error: io::Error| super::named(&path.display().to_string(), &error);
    let file = match super::read::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
        Err(error) if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {
            return Ok(String::new());
        }
        Err(error) => return Err(failed(error)),
    };
    if !file.metadata().map_err(failed)?.is_file() {
        return Ok(String::new());
    }
    let mut text = vec![];
    file.take(LONGEST).read_to_end(&mut text).map_err(failed)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}
