//! One layer of an image into the store: verified, decompressed and written while its bytes arrive.
//!
//! Nothing in a layer is trusted. Paths cannot climb when they get here, and links on the way are
//! resolved inside the layer alone. Devices are not made: no container could have made them either;
//! what they would have replaced is hidden.

use super::error::of_image;
use image::layer::{Change, Layer};
use image::tar::{Entry, Kind};
use image::{Compression, Digest as Sha, Hashed};
use protocol::Error;
use std::io::{self, Read, Write};
use std::sync::mpsc;
use store::{BlobWriter, LayerBuilder, Meta, Store, Timestamp};

/// Plain bytes handed over at once, and how many such pieces may wait.
const PIECE: usize = 256 * 1024;
const PIECES_AHEAD: usize = 8;

/// What a layer must be.
#[derive(Clone, Debug)]
pub(super) struct Expected {
    /// The image it belongs to, for messages.
    pub(super) image: String,
    /// Digest of the plain bytes.
    pub(super) diff_id: Sha,
    /// Digest of the blob, where it was promised.
    pub(super) blob: Option<Sha>,
}

/// A layer that is written and not yet fitted onto what lies below it.
pub(super) struct Unpacked {
    pub(super) builder: LayerBuilder,
    pub(super) blob: Sha,
    pub(super) size: u64,
    pub(super) compression: Compression,
}

/// Unpacks the bytes of a blob, and keeps the blob. Two threads work: one decompresses, which takes
/// as long as all the rest.
pub(super) fn unpack(
    store: &Store,
    source: &mut (dyn Read + Send),
    expected: &Expected,
) -> Result<Unpacked, Error> {
    let wrong = of_image(&expected.image);
    let mut blob = Tee { source, copy: store.blob_writer()?, count: 0 };
    let (sender, receiver) = mpsc::sync_channel(PIECES_AHEAD);
    let (decoded, written) = std::thread::scope(|scope| {
        let decoding = scope.spawn(|| decode(&mut blob, sender));
        let plain = Plain { receiver, piece: vec![], at: 0, ended: false };
        let written = write(store, plain, expected);
        let gone = || image::Error::Io(io::Error::other("a worker thread failed"));
        (decoding.join().unwrap_or_else(|_| Err(gone())), written)
    });
    let written = match (written, decoded) {
        // Without a decoder there was nothing to write.
        (_, Err(error)) => Err(Failure::Image(error)),
        (Ok(builder), Ok(compression)) => Ok((builder, compression)),
        (Err(failure), Ok(_)) => Err(failure),
    };
    if let Err(Failure::Other(error)) = written {
        return Err(error);
    }
    // The rest too, so that the digest is of all.
    io::copy(&mut blob, &mut io::sink()).map_err(|error| wrong(error.into()))?;
    let size = blob.count;
    let found = Sha::from_bytes(*blob.copy.finish()?.as_bytes());
    // Bytes that are not the promised ones explain every other fault.
    if let Some(promised) = expected.blob
        && promised != found
    {
        return Err(wrong(mismatch("a layer", &promised, &found)));
    }
    match written {
        Ok((builder, compression)) => Ok(Unpacked { builder, blob: found, size, compression }),
        Err(Failure::Image(error)) => Err(wrong(error)),
        Err(Failure::Other(error)) => Err(error),
    }
}

/// Decompresses until nobody takes the bytes any more.
fn decode(
    blob: &mut Tee<'_>,
    sender: mpsc::SyncSender<io::Result<Vec<u8>>>,
) -> Result<Compression, image::Error> {
    let (mut plain, compression) = image::decoder(blob)?;
    loop {
        let mut piece = Vec::with_capacity(PIECE);
        let read = plain.by_ref().take(PIECE as u64).read_to_end(&mut piece);
        let last = piece.is_empty() || read.is_err();
        let sent = sender.send(read.map(|_| piece));
        if last || sent.is_err() {
            return Ok(compression);
        }
    }
}

/// The plain bytes, from the thread that decompresses. They end with an empty piece.
struct Plain {
    receiver: mpsc::Receiver<io::Result<Vec<u8>>>,
    piece: Vec<u8>,
    at: usize,
    ended: bool,
}

impl Read for Plain {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.piece.len() && !self.ended {
            let next = self.receiver.recv();
            (self.piece, self.at) = (next.map_err(|_| io::ErrorKind::UnexpectedEof)??, 0);
            self.ended = self.piece.is_empty();
        }
        let count = buffer.len().min(self.piece.len() - self.at);
        buffer[..count].copy_from_slice(&self.piece[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

/// What stops an unpack: the layer, or what becomes of it.
enum Failure {
    Image(image::Error),
    Other(Error),
}

impl From<image::Error> for Failure {
    fn from(error: image::Error) -> Self {
        Self::Image(error)
    }
}

impl From<store::Error> for Failure {
    fn from(error: store::Error) -> Self {
        Self::Other(error.into())
    }
}

fn write(store: &Store, plain: Plain, expected: &Expected) -> Result<LayerBuilder, Failure> {
    let mut layer = Layer::new(Hashed::new(plain));
    let mut builder = store.new_layer()?;
    builder.keep_apart()?;
    while let Some(change) = layer.next_change()? {
        match change {
            Change::Made(path, entry) => make(&mut builder, &path, &entry, &mut layer.contents())
                .map_err(|error| about(error, &path, expected))?,
            Change::Hidden(path) => builder.hide(&path)?,
            Change::Opaque(path) => builder.hide_contents(&path)?,
        }
    }
    let (_, found) = layer.finish()?.finish();
    if found != expected.diff_id {
        return Err(Failure::Image(mismatch("an uncompressed layer", &expected.diff_id, &found)));
    }
    Ok(builder)
}

fn make(
    builder: &mut LayerBuilder,
    path: &str,
    entry: &Entry,
    contents: &mut dyn Read,
) -> Result<(), store::Error> {
    let mtime = Timestamp { seconds: entry.mtime, nanoseconds: entry.mtime_nanoseconds };
    let meta = Meta { mode: entry.mode, uid: entry.uid, gid: entry.gid, mtime };
    match &entry.kind {
        Kind::Directory => builder.directory(path, &meta)?,
        Kind::File => {
            builder.file(path, &meta, contents)?;
        }
        Kind::Symlink(target) => {
            builder.symlink(path, &String::from_utf8_lossy(target), &meta)?;
        }
        Kind::HardLink(target) => {
            builder.hard_link_from_anywhere(&String::from_utf8_lossy(target), path)?;
        }
        Kind::Fifo => builder.fifo(path, &meta)?,
        Kind::Character { .. } | Kind::Block { .. } => builder.whiteout(path)?,
    }
    if !entry.xattrs.is_empty() && matches!(entry.kind, Kind::Directory | Kind::File) {
        builder.attributes(path, &entry.xattrs)?;
    }
    Ok(())
}

/// An error of the store about an entry: the layer's fault where it is about paths, else the disk's.
fn about(error: store::Error, path: &str, expected: &Expected) -> Failure {
    if error.kind() != protocol::ErrorKind::User {
        return Failure::Other(error.into());
    }
    let shown: String = path.chars().take(200).collect();
    let message = format!("image `{}`: entry `{shown}` of a layer: {error}", expected.image);
    Failure::Other(Error::user(message))
}

pub(super) fn mismatch(what: &str, expected: &Sha, found: &Sha) -> image::Error {
    let (expected, found) = (expected.to_string(), found.to_string());
    image::Error::Mismatch { what: what.to_owned(), expected, found }
}

/// Keeps what is read.
struct Tee<'a> {
    source: &'a mut (dyn Read + Send),
    copy: BlobWriter,
    count: u64,
}

impl Read for Tee<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.source.read(buffer)?;
        self.copy.write_all(&buffer[..length])?;
        self.count += length as u64;
        Ok(length)
    }
}
