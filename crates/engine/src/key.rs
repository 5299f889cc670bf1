//! The engine's own secret: 32 random bytes in a private file of the state folder.
//!
//! Sensitive arguments are sealed under it, so losing it costs cache hits and nothing else.

use crate::Error;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Reads the key of a state folder, or makes it. The caller holds the lock of the folder.
pub(crate) fn load(dir: &Path) -> Result<[u8; 32], Error> {
    let path = dir.join("key");
    match std::fs::read(&path) {
        Ok(bytes) => match bytes.try_into() {
            Ok(key) => return Ok(key),
            // Cut short by a crash of the machine; whatever was sealed under it is lost already.
            Err(_) => tracing::warn!(path = %path.display(), "the key is damaged and made anew"),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(Error::file(path)(error)),
    }
    create(&path).map_err(Error::file(path))
}

fn create(path: &Path) -> io::Result<[u8; 32]> {
    let mut key = [0; 32];
    getrandom::fill(&mut key).map_err(io::Error::other)?;
    let new = path.with_extension("new");
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    file.write_all(&key)?;
    file.sync_all()?;
    std::fs::rename(&new, path)?;
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_key_is_made_once_and_is_private() {
        let dir = tempfile::tempdir().unwrap();
        let key = load(dir.path()).unwrap();
        assert_eq!(load(dir.path()).unwrap(), key);
        let mode = std::fs::metadata(dir.path().join("key")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_ne!(load(tempfile::tempdir().unwrap().path()).unwrap(), key);
    }

    #[test]
    fn a_damaged_key_is_made_anew() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("key"), b"short").unwrap();
        let key = load(dir.path()).unwrap();
        assert_eq!(load(dir.path()).unwrap(), key);
    }
}
