//! [`Stargz`]: layers that can be read file by file, as eStargz describes them.
//!
//! Such a layer is gzip to everybody: the contents of every file begin a gzip stream of their own, and
//! streams that follow each other are one. Who knows more finds an index at the end:
//!
//! ```text
//! streams with headers and contents of entries
//! a stream with the entry `stargz.index.json` and the end of the archive
//! an empty stream whose extra field says where that one begins (51 bytes)
//! ```
//!
//! The index is part of the plain archive, so the layer has another digest than without it.

use crate::layer::Archive;
use crate::tar::{END, Entry, Kind, head, padding};
use crate::{Digest, rfc3339};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use flate2::write::GzEncoder;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};

/// Most plain bytes of a file in one stream.
const CHUNK: u64 = 4 << 20;
/// Level of compression, that of other layers.
const LEVEL: u32 = 4;
/// Name of the index in the archive.
const INDEX: &str = "stargz.index.json";
/// Names that such layers keep for themselves.
const OWN_NAMES: [&[u8]; 3] =
    [b"stargz.index.json", b".prefetch.landmark", b".no.prefetch.landmark"];

/// Writes a layer. Equal entries give equal bytes.
pub struct Stargz<W> {
    writer: W,
    /// Bytes that were written.
    written: u64,
    /// Of the plain archive.
    plain: Sha256,
    plain_size: u64,
    /// The stream that is open.
    stream: Option<GzEncoder<Vec<u8>>>,
    index: Vec<Row>,
    piece: Vec<u8>,
}

/// What is known of a layer that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    /// Digest of the plain archive.
    pub diff_id: Digest,
    /// Digest of the index.
    pub index: Digest,
    /// Bytes of the plain archive.
    pub plain_size: u64,
}

/// The index.
#[derive(Serialize)]
struct Index<'a> {
    version: u32,
    entries: &'a [Row],
}

/// What the index says of an entry, or of a further piece of a file.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    name: String,
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "is_zero")]
    size: u64,
    #[serde(skip_serializing_if = "String::is_empty", rename = "modtime")]
    modified: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    link_name: String,
    #[serde(skip_serializing_if = "is_none")]
    mode: u32,
    #[serde(skip_serializing_if = "is_none")]
    uid: u32,
    #[serde(skip_serializing_if = "is_none")]
    gid: u32,
    #[serde(skip_serializing_if = "is_zero")]
    offset: u64,
    #[serde(skip_serializing_if = "is_none")]
    dev_major: u32,
    #[serde(skip_serializing_if = "is_none")]
    dev_minor: u32,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    xattrs: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    digest: String,
    #[serde(skip_serializing_if = "is_zero")]
    chunk_offset: u64,
    #[serde(skip_serializing_if = "is_zero")]
    chunk_size: u64,
    #[serde(skip_serializing_if = "String::is_empty")]
    chunk_digest: String,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn is_none(number: &u32) -> bool {
    *number == 0
}

impl<W: Write> Stargz<W> {
    /// Nothing is written yet.
    pub fn new(writer: W) -> Self {
        Self {
            writer,
            written: 0,
            plain: Sha256::new(),
            plain_size: 0,
            stream: None,
            index: vec![],
            piece: vec![0; 256 * 1024],
        }
    }

    /// Ends the layer and gives back what it was written to.
    pub fn finish(mut self) -> io::Result<(W, Finished)> {
        self.end_stream()?;
        let offset = self.written;
        let index = Index { version: 1, entries: &self.index };
        let index = serde_json::to_vec(&index).map_err(io::Error::other)?;
        let mut entry = Entry::new(INDEX, Kind::File, 0o444);
        entry.size = index.len() as u64;
        self.put(&head(&entry))?;
        self.put(&index)?;
        self.put(padding(entry.size))?;
        self.put(END)?;
        self.end_stream()?;
        self.writer.write_all(&footer(offset))?;
        let finished = Finished {
            diff_id: Digest::from_bytes(self.plain.finalize().into()),
            index: Digest::of(&index),
            plain_size: self.plain_size,
        };
        Ok((self.writer, finished))
    }

    /// Adds plain bytes to the open stream, or to a new one.
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.plain.update(bytes);
        self.plain_size += bytes.len() as u64;
        let new = || GzEncoder::new(vec![], flate2::Compression::new(LEVEL));
        self.stream.get_or_insert_with(new).write_all(bytes)
    }

    fn end_stream(&mut self) -> io::Result<()> {
        let Some(stream) = self.stream.take() else { return Ok(()) };
        let bytes = stream.finish()?;
        self.written += bytes.len() as u64;
        self.writer.write_all(&bytes)
    }

    /// Writes the contents of a file, and notes where they are in its row and in further ones.
    fn contents(&mut self, row: Row, contents: &mut dyn Read) -> io::Result<()> {
        let (name, size) = (row.name.clone(), row.size);
        let first = self.index.len();
        let mut row = Some(row);
        let mut whole = Sha256::new();
        let mut done = 0;
        while done < size {
            self.end_stream()?;
            let length = CHUNK.min(size - done);
            let rest = || Row { name: name.clone(), kind: "chunk", ..Row::default() };
            let mut piece = row.take().unwrap_or_else(rest);
            piece.offset = self.written;
            piece.chunk_offset = done;
            // The last piece goes to the end.
            piece.chunk_size = if done + length < size { length } else { 0 };
            piece.chunk_digest = self.chunk(length, &mut whole, contents)?;
            self.index.push(piece);
            done += length;
        }
        self.index[first].digest = Digest::from_bytes(whole.finalize().into()).to_string();
        self.put(padding(size))
    }

    /// Writes one piece of a file and gives its digest.
    fn chunk(
        &mut self,
        length: u64,
        whole: &mut Sha256,
        contents: &mut dyn Read,
    ) -> io::Result<String> {
        let mut sum = Sha256::new();
        let mut left = length;
        let mut piece = std::mem::take(&mut self.piece);
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(usize::MAX).min(piece.len());
            let count = match contents.read(&mut piece[..most]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            sum.update(&piece[..count]);
            whole.update(&piece[..count]);
            self.put(&piece[..count])?;
            left -= count as u64;
        }
        self.piece = piece;
        Ok(Digest::from_bytes(sum.finalize().into()).to_string())
    }
}

impl<W: Write> Archive for Stargz<W> {
    /// What a layer of this kind brought with it is left out: it is written anew.
    fn entry(&mut self, entry: &Entry, contents: &mut dyn Read) -> io::Result<()> {
        let tidy = entry.path.strip_prefix(b"./").unwrap_or(&entry.path);
        if OWN_NAMES.contains(&tidy) {
            return Ok(());
        }
        self.put(&head(entry))?;
        let row = row(entry);
        if entry.kind == Kind::File && entry.size > 0 {
            return self.contents(row, contents);
        }
        self.index.push(row);
        Ok(())
    }
}

/// What the index says of an entry, without its contents.
fn row(entry: &Entry) -> Row {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (kind, link_name, (dev_major, dev_minor)) = match &entry.kind {
        Kind::File => ("reg", String::new(), (0, 0)),
        Kind::Directory => ("dir", String::new(), (0, 0)),
        Kind::Symlink(target) => ("symlink", text(target), (0, 0)),
        Kind::HardLink(target) => ("hardlink", text(target), (0, 0)),
        Kind::Fifo => ("fifo", String::new(), (0, 0)),
        Kind::Character { major, minor } => ("char", String::new(), (*major, *minor)),
        Kind::Block { major, minor } => ("block", String::new(), (*major, *minor)),
    };
    let attribute =
        |(name, value): &(Vec<u8>, Vec<u8>)| (text(name), BASE64_STANDARD.encode(value));
    Row {
        name: text(&entry.path),
        kind,
        size: if entry.kind == Kind::File { entry.size } else { 0 },
        modified: rfc3339(entry.mtime),
        link_name,
        mode: entry.mode,
        uid: entry.uid,
        gid: entry.gid,
        dev_major,
        dev_minor,
        xattrs: entry.xattrs.iter().map(attribute).collect(),
        ..Row::default()
    }
}

/// An empty gzip stream that says where the index is.
fn footer(offset: u64) -> Vec<u8> {
    let said = format!("{offset:016x}STARGZ");
    let mut footer = vec![0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 255];
    footer.extend_from_slice(&(said.len() as u16 + 4).to_le_bytes());
    footer.extend_from_slice(b"SG");
    footer.extend_from_slice(&(said.len() as u16).to_le_bytes());
    footer.extend_from_slice(said.as_bytes());
    // One stored block without a byte, then its sum and its length.
    footer.extend_from_slice(&[1, 0, 0, 255, 255]);
    footer.extend_from_slice(&[0; 8]);
    footer
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layer::Packer;
    use crate::tar::Reader;
    use serde_json::Value;

    fn layer(large: u64) -> (Vec<u8>, Finished) {
        let mut packer = Packer::over(Stargz::new(vec![]));
        packer.made(&Entry::new("etc", Kind::Directory, 0o755), &mut io::empty()).unwrap();
        let mut file = Entry::new("etc/conf", Kind::File, 0o640);
        (file.size, file.uid, file.mtime) = (5, 7, 86_400);
        file.xattrs = vec![(b"user.a".to_vec(), b"b".to_vec())];
        packer.made(&file, &mut &b"hello"[..]).unwrap();
        let mut file = Entry::new("large", Kind::File, 0o644);
        file.size = large;
        packer.made(&file, &mut io::repeat(b'x')).unwrap();
        let link = Entry::new("link", Kind::Symlink(b"large".to_vec()), 0o777);
        packer.made(&link, &mut io::empty()).unwrap();
        packer.hide(b"gone").unwrap();
        packer.into_archive().finish().unwrap()
    }

    fn plain(bytes: &[u8]) -> Vec<u8> {
        let mut plain = vec![];
        flate2::bufread::MultiGzDecoder::new(bytes).read_to_end(&mut plain).unwrap();
        plain
    }

    /// One stream from an offset on.
    fn stream(bytes: &[u8], offset: &Value) -> Vec<u8> {
        let offset = offset.as_u64().unwrap() as usize;
        let mut plain = vec![];
        flate2::bufread::GzDecoder::new(&bytes[offset..]).read_to_end(&mut plain).unwrap();
        plain
    }

    #[test]
    fn it_is_gzip_of_a_plain_archive() {
        let (bytes, finished) = layer(1000);
        assert_eq!(layer(1000).0, bytes, "equal entries give equal bytes");
        let plain = plain(&bytes);
        assert_eq!(
            (Digest::of(&plain), plain.len() as u64),
            (finished.diff_id, finished.plain_size)
        );
        let mut reader = Reader::new(&plain[..]);
        let mut names = vec![];
        while let Some(entry) = reader.next_entry().unwrap() {
            names.push(String::from_utf8(entry.path).unwrap());
        }
        assert_eq!(names, ["etc/", "etc/conf", "large", "link", ".wh.gone", INDEX]);
    }

    #[test]
    fn files_are_found_by_the_index() {
        let (bytes, finished) = layer(CHUNK + 10);
        let footer = &bytes[bytes.len() - 51..];
        assert_eq!(footer[..4], [0x1f, 0x8b, 8, 4]);
        let digits = std::str::from_utf8(&footer[16..32]).unwrap();
        assert_eq!((&footer[12..14], &footer[32..38]), (&b"SG"[..], &b"STARGZ"[..]));
        let offset = u64::from_str_radix(digits, 16).unwrap();
        let archive = stream(&bytes, &offset.into());
        let mut reader = Reader::new(&archive[..]);
        let entry = reader.next_entry().unwrap().unwrap();
        assert_eq!(entry.path, INDEX.as_bytes());
        let mut index = vec![];
        reader.contents().read_to_end(&mut index).unwrap();
        assert_eq!(Digest::of(&index), finished.index);
        let index: Value = serde_json::from_slice(&index).unwrap();
        let rows = index["entries"].as_array().unwrap();
        let kinds: Vec<&str> = rows.iter().map(|row| row["type"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["dir", "reg", "reg", "chunk", "symlink", "reg"]);
        assert_eq!(stream(&bytes, &rows[1]["offset"])[..5], *b"hello");
        assert_eq!(rows[1]["digest"], Digest::of(b"hello").to_string());
        assert_eq!(
            (&rows[1]["modtime"], &rows[1]["uid"]),
            (&"1970-01-02T00:00:00Z".into(), &7.into())
        );
        assert_eq!(rows[1]["xattrs"]["user.a"], "Yg==");
        assert_eq!(
            (&rows[2]["chunkSize"], &rows[3]["chunkOffset"]),
            (&CHUNK.into(), &CHUNK.into())
        );
        assert_eq!(stream(&bytes, &rows[3]["offset"])[..10], *b"xxxxxxxxxx");
        assert_eq!(rows[4]["linkName"], "large");
    }

    #[test]
    fn an_index_that_was_there_is_left_out() {
        let mut stargz = Stargz::new(vec![]);
        let mut old = Entry::new(INDEX, Kind::File, 0o444);
        old.size = 3;
        stargz.entry(&old, &mut &b"old"[..]).unwrap();
        let (bytes, _) = stargz.finish().unwrap();
        let archive = plain(&bytes);
        let mut reader = Reader::new(&archive[..]);
        assert!(reader.next_entry().unwrap().is_some());
        assert!(reader.next_entry().unwrap().is_none());
    }
}
