//! [`Writer`]: archives whose bytes depend on nothing but their entries.

use super::header::{Header, LARGE, SHORT, SMALL};
use super::{BLOCK, Entry, Kind, pax};
use std::io::{self, Read, Write};

/// Bytes moved at once.
const PIECE: usize = 256 * 1024;

/// Writes an archive as a stream.
pub struct Writer<W> {
    inner: W,
    piece: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Nothing is written yet.
    pub fn new(inner: W) -> Self {
        Self { inner, piece: vec![0; PIECE] }
    }

    /// Writes an entry and, of a file, exactly as many bytes as it says.
    pub fn entry(&mut self, entry: &Entry, contents: &mut dyn Read) -> io::Result<()> {
        self.inner.write_all(&head(entry))?;
        if entry.kind != Kind::File {
            return Ok(());
        }
        let mut left = entry.size;
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
            let length = match contents.read(&mut self.piece[..most]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            self.inner.write_all(&self.piece[..length])?;
            left -= length as u64;
        }
        self.inner.write_all(padding(entry.size))
    }

    /// Ends the archive and gives back what it was written to.
    pub fn finish(mut self) -> io::Result<W> {
        self.inner.write_all(END)?;
        Ok(self.inner)
    }
}

/// What ends an archive.
pub(crate) const END: &[u8] = &[0; 2 * BLOCK];

/// The zeros after contents of this length.
pub(crate) fn padding(size: u64) -> &'static [u8] {
    const ZEROS: &[u8] = &[0; BLOCK];
    let rest = (size % BLOCK as u64) as usize;
    if rest == 0 { &[] } else { &ZEROS[rest..] }
}

/// All that goes before the contents of an entry.
pub(crate) fn head(entry: &Entry) -> Vec<u8> {
    let (kind, link, (major, minor)) = match &entry.kind {
        Kind::File => (b'0', &[][..], (0, 0)),
        Kind::HardLink(target) => (b'1', &target[..], (0, 0)),
        Kind::Symlink(target) => (b'2', &target[..], (0, 0)),
        Kind::Character { major, minor } => (b'3', &[][..], (*major, *minor)),
        Kind::Block { major, minor } => (b'4', &[][..], (*major, *minor)),
        Kind::Directory => (b'5', &[][..], (0, 0)),
        Kind::Fifo => (b'6', &[][..], (0, 0)),
    };
    let mut records = vec![];
    let mut name = |key: &[u8], value: &[u8]| {
        if value.len() > SHORT || !value.is_ascii() {
            pax::push(&mut records, key, value);
        }
    };
    name(b"path", &entry.path);
    name(b"linkpath", link);
    let mut number = |key: &[u8], value: u64, limit: u64| {
        if value >= limit {
            pax::push(&mut records, key, value.to_string().as_bytes());
        }
    };
    let size = if entry.kind == Kind::File { entry.size } else { 0 };
    number(b"size", size, LARGE);
    number(b"uid", entry.uid.into(), SMALL);
    number(b"gid", entry.gid.into(), SMALL);
    // A fraction would cost a record for nearly every entry, so times are cut to whole seconds.
    if !u64::try_from(entry.mtime).is_ok_and(|seconds| seconds < LARGE) {
        pax::push(&mut records, b"mtime", entry.mtime.to_string().as_bytes());
    }
    for (name, value) in &entry.xattrs {
        pax::push_xattr(&mut records, name, value);
    }
    let header = |kind: u8, path: &[u8], size: u64| Header {
        path: path.to_vec(),
        link: link.to_vec(),
        kind,
        mode: entry.mode.into(),
        uid: entry.uid.into(),
        gid: entry.gid.into(),
        size,
        mtime: entry.mtime,
        major: major.into(),
        minor: minor.into(),
    };
    let mut head = vec![];
    if !records.is_empty() {
        let mut about = header(b'x', b"PaxHeaders/entry", records.len() as u64);
        (about.link, about.uid, about.gid, about.mode, about.mtime) = (vec![], 0, 0, 0o644, 0);
        head.extend_from_slice(&about.to_block());
        head.extend_from_slice(&records);
        head.extend_from_slice(padding(records.len() as u64));
    }
    head.extend_from_slice(&header(kind, &entry.path, size).to_block());
    head
}
