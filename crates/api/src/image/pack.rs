//! A layer of the store as a blob: entries sorted, times as they are, nothing else in it.

use super::error::of_image;
use image::layer::Packer;
use image::tar::{Entry, Kind};
use image::{Compression, Digest as Sha, Encoder, Hashed};
use protocol::Error;
use std::io::{self, Read, Write};
use store::{Change, LayerRef, Snapshot, Store, What};

/// A layer that was written down.
pub(super) struct Packed {
    pub(super) diff_id: Sha,
    pub(super) digest: Sha,
    pub(super) size: u64,
    /// Time of its newest entry.
    pub(super) newest: Option<i64>,
}

/// Writes what a layer changes in the tree below it.
pub(super) fn pack(
    store: &Store,
    layer: &LayerRef,
    below: &Snapshot,
    compression: Compression,
) -> Result<Packed, Error> {
    let blob = Counted { inner: store.blob_writer()?, count: 0 };
    let encoder = Encoder::new(blob, compression).map_err(unwritten)?;
    let mut packer = Packer::new(Hashed::new(encoder));
    let mut changes = store.changes(layer, below)?;
    let mut newest = None;
    while let Some(change) = changes.next_change()? {
        if !matches!(change.what, What::Whiteout) {
            newest = newest.max(Some(change.metadata.mtime.seconds));
        }
        write(&mut packer, change)?;
    }
    let (encoder, diff_id) = packer.finish().map_err(unwritten)?.finish();
    let blob = encoder.finish().map_err(unwritten)?;
    let size = blob.count;
    let digest = Sha::from_bytes(*blob.inner.finish()?.as_bytes());
    super::origin::keep_blob(store, &digest, size);
    Ok(Packed { diff_id, digest, size, newest })
}

/// The same plain layer in another compression.
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
    let mut encoder = Encoder::new(blob, compression).map_err(unwritten)?;
    let copied = io::copy(&mut plain, &mut encoder);
    copied.map_err(store::Error::from_read("a layer of an image"))?;
    let found = plain.finish().1;
    if found != *diff_id {
        return Err(wrong(super::unpack::mismatch("a stored layer", diff_id, &found)));
    }
    let blob = encoder.finish().map_err(unwritten)?;
    let size = blob.count;
    let digest = Sha::from_bytes(*blob.inner.finish()?.as_bytes());
    super::origin::keep_blob(store, &digest, size);
    Ok(Packed { diff_id: found, digest, size, newest: None })
}

fn write<W: Write>(packer: &mut Packer<W>, mut change: Change) -> Result<(), Error> {
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
