//! Addresses of the local file system, for mirrors that are directories.

use crate::memory::LIMIT;
use crate::{Document, Error, Expected, Progress, Validators};
use sha2::{Digest, Sha256};
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// The path that a `file:` or `copy:` address names.
pub(crate) fn path(url: &str) -> Option<PathBuf> {
    let rest = url.strip_prefix("file:").or_else(|| url.strip_prefix("copy:"))?;
    let rest = rest.strip_prefix("//localhost").or_else(|| rest.strip_prefix("//")).unwrap_or(rest);
    Some(PathBuf::from(decode(rest)))
}

/// `%2b` and the like as the characters they stand for.
fn decode(text: &str) -> String {
    let mut bytes = vec![];
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let code = tail.get(..2).and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) if first == b'%' => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            _ => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

pub(crate) async fn read(
    url: &str,
    path: &Path,
    known: &Validators,
    progress: &mut Progress<'_>,
) -> Result<Option<Document>, Error> {
    let fail = |source| failure(url, path, source);
    let metadata = tokio::fs::metadata(path).await.map_err(fail)?;
    if metadata.len() > LIMIT {
        return Err(Error::TooLarge { url: url.to_owned(), limit: LIMIT });
    }
    let modified = metadata.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    let etag = modified.map(|at| format!("{}-{}", at.as_nanos(), metadata.len()));
    if etag.is_some() && etag == known.etag {
        return Ok(None);
    }
    let bytes = tokio::fs::read(path).await.map_err(fail)?;
    progress(bytes.len() as u64, Some(bytes.len() as u64));
    Ok(Some(Document { bytes, validators: Validators { etag, last_modified: None } }))
}

pub(crate) async fn copy(
    url: &str,
    source: &Path,
    destination: &Path,
    expected: &Expected,
    progress: &mut Progress<'_>,
) -> Result<(), Error> {
    let mut reader = File::open(source).await.map_err(|error| failure(url, source, error))?;
    let write_error = |source| Error::Io { url: url.into(), path: destination.into(), source };
    let mut writer = File::create(destination).await.map_err(write_error)?;
    let (mut state, mut length) = (Sha256::new(), 0);
    let mut buffer = vec![0; 256 * 1024];
    loop {
        let count = reader.read(&mut buffer).await.map_err(|error| failure(url, source, error))?;
        if count == 0 {
            break;
        }
        state.update(&buffer[..count]);
        length += count as u64;
        writer.write_all(&buffer[..count]).await.map_err(write_error)?;
        progress(length, Some(expected.size));
    }
    writer.flush().await.map_err(write_error)?;
    if length != expected.size {
        return Err(Error::Size { url: url.to_owned(), expected: expected.size, found: length });
    }
    let found = state.finalize();
    if found[..] != expected.sha256 {
        let (expected, found) = (hex::encode(expected.sha256), hex::encode(found));
        return Err(Error::Digest { url: url.to_owned(), expected, found });
    }
    Ok(())
}

fn failure(url: &str, path: &Path, source: io::Error) -> Error {
    match source.kind() {
        io::ErrorKind::NotFound => Error::NotFound { url: url.to_owned() },
        _ => Error::Io { url: url.to_owned(), path: path.to_owned(), source },
    }
}

#[cfg(test)]
mod tests {
    use super::path;
    use std::path::Path;

    #[test]
    fn local_addresses() {
        let table = [
            ("file:///srv/x", Some("/srv/x")),
            ("file:/srv/x", Some("/srv/x")),
            ("copy:/srv/a%2bb", Some("/srv/a+b")),
            ("file://localhost/srv", Some("/srv")),
            ("file:/100%", Some("/100%")),
            ("http://archive.example/x", None),
        ];
        for (url, expect) in table {
            assert_eq!(path(url).as_deref(), expect.map(Path::new), "{url}");
        }
    }
}
