//! A layer of the store as a blob: entries sorted, times as they are, nothing else in it.

use super::error::of_image;
use image::layer::{Archive, Packer};
use image::tar::{Entry, Kind, Reader, Writer};
use image::{Compression, Digest as Sha, Encoder, Finished, Hashed, Stargz};
use protocol::Error;
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};
use store::{BlobWriter, Change, Changes, LayerRef, Snapshot, Store, What};

/// A layer that was written down.
#[derive(Serialize, Deserialize)]
pub(super) struct Packed {
    pub(super) diff_id: Sha,
    pub(super) digest: Sha,
    pub(super) size: u64,
    /// Time of its newest entry.
    pub(super) newest: Option<i64>,
    /// The index that it has, if it can be read file by file.
    pub(super) index: Option<Index>,
}

/// What a manifest says of a layer that can be read file by file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Index {
    digest: Sha,
    plain_size: u64,
}

impl Index {
    /// As the programs that read such layers look for it.
    pub(super) fn annotations(&self) -> [(String, String); 2] {
        [
            ("containerd.io/snapshot/stargz/toc.digest".to_owned(), self.digest.to_string()),
            ("io.containers.estargz.uncompressed-size".to_owned(), self.plain_size.to_string()),
        ]
    }
}

/// Writes what a layer changes in the tree below it.
pub(super) fn pack(
    store: &Store,
    layer: &LayerRef,
    below: &Snapshot,
    compression: Compression,
) -> Result<Packed, Error> {
    let blob = Counted { inner: store.blob_writer()?, count: 0 };
    let changes = store.changes(layer, below)?;
    if compression == Compression::EStarGz {
        let mut packer = Packer::over(Stargz::new(blob));
        let newest = write_all(&mut packer, changes)?;
        let (blob, finished) = packer.into_archive().finish().map_err(unwritten)?;
        return kept(store, blob, finished.diff_id, newest, Some(index(&finished)));
    }
    let encoder = Encoder::new(blob, compression).map_err(unwritten)?;
    let mut packer = Packer::over(Writer::new(Hashed::new(encoder)));
    let newest = write_all(&mut packer, changes)?;
    let (encoder, diff_id) = packer.into_archive().finish().map_err(unwritten)?.finish();
    kept(store, encoder.finish().map_err(unwritten)?, diff_id, newest, None)
}

/// The same layer in another compression. What it holds stays the same to the byte, unless it gets an
/// index, which is in it.
pub(super) fn recode(
    store: &Store,
    source: impl Read + Send,
    diff_id: &Sha,
    compression: Compression,
) -> Result<Packed, Error> {
    let wrong = of_image("a layer");
    let (plain, _) = image::decoder(source).map_err(&wrong)?;
    let mut plain = Hashed::new(plain);
    let blob = Counted { inner: store.blob_writer()?, count: 0 };
    let check = |found: Sha| match found == *diff_id {
        true => Ok(()),
        false => Err(wrong(super::unpack::mismatch("a stored layer", diff_id, &found))),
    };
    if compression == Compression::EStarGz {
        let mut stargz = Stargz::new(blob);
        let mut reader = Reader::new(plain);
        while let Some(entry) = reader.next_entry().map_err(&wrong)? {
            stargz.entry(&entry, &mut reader.contents()).map_err(unwritten)?;
        }
        check(reader.finish().map_err(&wrong)?.finish().1)?;
        let (blob, finished) = stargz.finish().map_err(unwritten)?;
        return kept(store, blob, finished.diff_id, None, Some(index(&finished)));
    }
    let mut encoder = Encoder::new(blob, compression).map_err(unwritten)?;
    let copied = io::copy(&mut plain, &mut encoder);
    copied.map_err(store::Error::from_read("a layer of an image"))?;
    check(plain.finish().1)?;
    kept(store, encoder.finish().map_err(unwritten)?, *diff_id, None, None)
}

fn index(finished: &Finished) -> Index {
    Index { digest: finished.index, plain_size: finished.plain_size }
}

/// Keeps a blob that is whole.
fn kept(
    store: &Store,
    blob: Counted<BlobWriter>,
    diff_id: Sha,
    newest: Option<i64>,
    index: Option<Index>,
) -> Result<Packed, Error> {
    let size = blob.count;
    let digest = Sha::from_bytes(*blob.inner.finish()?.as_bytes());
    super::origin::keep_blob(store, &digest, size);
    Ok(Packed { diff_id, digest, size, newest, index })
}

/// Writes all changes of a layer, and gives the time of the newest entry.
fn write_all<A: Archive>(
    packer: &mut Packer<A>,
    mut changes: Changes,
) -> Result<Option<i64>, Error> {
    let mut newest = None;
    while let Some(change) = changes.next_change()? {
        if !matches!(change.what, What::Whiteout) {
            newest = newest.max(Some(change.metadata.mtime.seconds));
        }
        write(packer, change)?;
    }
    Ok(newest)
}

fn write<A: Archive>(packer: &mut Packer<A>, mut change: Change) -> Result<(), Error> {
    let kind = match &change.what {
        What::Whiteout => return packer.hide(&change.path).map_err(unwritten),
        What::File(_) => Kind::File,
        What::Directory { .. } => Kind::Directory,
        What::Symlink(target) => Kind::Symlink(target.clone()),
        What::HardLink(first) => Kind::HardLink(first.clone()),
        What::Fifo => Kind::Fifo,
        What::Character { major, minor } => Kind::Character { major: *major, minor: *minor },
        What::Block { major, minor } => Kind::Block { major: *major, minor: *minor },
    };
    let metadata = change.metadata;
    let entry = Entry {
        path: change.path.clone(),
        size: if kind == Kind::File { metadata.size } else { 0 },
        kind,
        mode: metadata.mode,
        uid: metadata.uid,
        gid: metadata.gid,
        mtime: metadata.mtime.seconds,
        mtime_nanoseconds: 0,
        xattrs: std::mem::take(&mut change.attributes),
    };
    let written = match &mut change.what {
        // Reading on to the end is what verifies the bytes.
        What::File(contents) => packer
            .made(&entry, contents)
            .and_then(|()| Ok(io::copy(contents, &mut io::sink()).map(drop)?)),
        _ => packer.made(&entry, &mut io::empty()),
    };
    written.map_err(|error| match error {
        image::Error::Io(error) => change.unread(error).into(),
        other => Error::user(format!("this container cannot be an image: {other}")),
    })?;
    match change.what {
        What::Directory { opaque: true } => packer.opaque(&change.path).map_err(unwritten),
        _ => Ok(()),
    }
}

fn unwritten(error: io::Error) -> Error {
    Error::environment(format!("cannot write a layer: {error}"))
}

/// Counts what passes.
struct Counted<W> {
    inner: W,
    count: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = self.inner.write(bytes)?;
        self.count += length as u64;
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
