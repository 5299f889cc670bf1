//! [`OutletFile`]: one file on its way out of the store.

use super::{Destination, Outlet, Watch, Written, meta};
use crate::durable::{Inspector, Sum};
use crate::snapshot::LayerRef;
use crate::store::Store;
use crate::{Error, Snapshot};
use landing::{Copying, Meta, Place};
use rustix::fs::{OFlags, SeekFrom, seek};
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;

/// Bytes read at once.
const PIECE: usize = 256 * 1024;

/// One file on its way out of the store. Its bytes are compared with what they were, where that is
/// known and where they pass through us.
pub struct OutletFile {
    pub(super) file: File,
    pub(super) size: u64,
    pub(super) meta: Meta,
    pub(super) origin: Option<Origin>,
}

/// Where a file of a tree comes from. Keeps the layer.
pub(super) struct Origin {
    pub(super) layer: LayerRef,
    pub(super) inspector: Arc<Inspector>,
    pub(super) expected: Option<Sum>,
}

/// A piece of a file.
pub enum Piece<'a> {
    /// The next bytes.
    Data(&'a [u8]),
    /// So many zeros that take no room.
    Hole(u64),
}

impl OutletFile {
    /// A file that is open and complete, e.g. a blob, with the mode it is to get.
    pub fn of(file: File, mode: u32) -> Result<Self, Error> {
        let metadata = file.metadata().map_err(unread)?;
        let modified = (metadata.mtime(), metadata.mtime_nsec() as u32);
        Ok(Self { file, size: metadata.len(), meta: Meta { mode, modified }, origin: None })
    }

    /// How many bytes it has.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Mode and time that it is to get.
    pub fn meta(&self) -> Meta {
        self.meta
    }

    /// Visits all of the file, piece by piece, until `visit` says that it is enough. A file that is
    /// not what it was is an error at its end.
    pub fn pieces(&self, visit: &mut dyn FnMut(Piece<'_>) -> bool) -> Result<(), Error> {
        let mut check = self.check();
        let visited = self.try_pieces(&mut |piece| {
            if let Some(check) = &mut check {
                match &piece {
                    Piece::Data(bytes) => check.update(bytes),
                    Piece::Hole(length) => zeros(*length, check),
                }
            }
            visit(piece)
        });
        match visited.map_err(|error| self.doubted(unread(error)))? {
            true => self.compare(check),
            false => Ok(()),
        }
    }

    /// Says whether all was visited.
    fn try_pieces(&self, visit: &mut dyn FnMut(Piece<'_>) -> bool) -> io::Result<bool> {
        let mut buffer = vec![0; PIECE.min(self.size as usize)];
        let mut at = 0;
        while at < self.size {
            let data = match seek(&self.file, SeekFrom::Data(at)) {
                Err(Errno::NXIO) => self.size,
                // The file system does not tell.
                Err(Errno::INVAL | Errno::OPNOTSUPP) => at,
                other => other?.min(self.size),
            };
            if data > at && !visit(Piece::Hole(data - at)) {
                return Ok(false);
            }
            at = data;
            let end = seek(&self.file, SeekFrom::Hole(at)).unwrap_or(self.size).min(self.size);
            while at < end {
                let wanted = buffer.len().min((end - at) as usize);
                let count = self.file.read_at(&mut buffer[..wanted], at)?;
                if count == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                if !visit(Piece::Data(&buffer[..count])) {
                    return Ok(false);
                }
                at += count as u64;
            }
        }
        match self.file.metadata()?.len() == self.size {
            true => Ok(true),
            false => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Writes it under a name of the destination, whole or not at all.
    pub fn write(&self, to: Destination, name: &[u8], watch: &dyn Watch) -> Result<Written, Error> {
        let landing = to.landing();
        let place = landing.place(b"")?;
        let moved = |bytes| watch.passed(0, bytes);
        self.land(&place, name, &mut Copying::new(&landing, &moved))?;
        watch.passed(1, 0);
        Ok(Written { files: 1, bytes: self.size })
    }

    /// Writes it under a name of a directory.
    pub(super) fn land(
        &self,
        place: &Place<'_>,
        name: &[u8],
        copying: &mut Copying<'_>,
    ) -> Result<(), Error> {
        let unfinished = place.begin(name)?;
        let mut check = self.check();
        let mut update = check.as_mut().map(|check| |bytes: &[u8]| check.update(bytes));
        let seen = update.as_mut().map(|update| update as &mut dyn FnMut(&[u8]));
        match copying.run(&self.file, &unfinished, self.size, seen) {
            Ok(true) => self.compare(check)?,
            Ok(false) => {}
            Err(error @ landing::Error::Source { .. }) => return Err(self.doubted(error.into())),
            Err(error) => return Err(error.into()),
        }
        Ok(unfinished.finish(&self.meta)?)
    }

    fn check(&self) -> Option<Sha256> {
        self.origin.as_ref()?.expected.map(|_| Sha256::new())
    }

    /// Gives the layer up whose file is not what it was, to be made again.
    fn compare(&self, check: Option<Sha256>) -> Result<(), Error> {
        let (Some(check), Some(origin)) = (check, &self.origin) else { return Ok(()) };
        if origin.expected.is_none_or(|expected| check.finalize()[..] == expected[..]) {
            return Ok(());
        }
        let id = origin.layer.id;
        origin.inspector.lose_layer(id, "its bytes have changed");
        Err(Error::MissingLayer(id))
    }

    /// What a failed read means: perhaps that the layer is damaged.
    fn doubted(&self, error: Error) -> Error {
        let Some(origin) = &self.origin else { return error };
        let layer = std::slice::from_ref(&origin.layer);
        origin.inspector.require_again(layer).err().unwrap_or(error)
    }
}

impl Store {
    /// The file at a path of a snapshot, to be written somewhere else.
    pub fn outlet_file(&self, snapshot: &Snapshot, path: &str) -> Result<OutletFile, Error> {
        self.0.require(snapshot.layers())?;
        let tree = self.0.tree(snapshot);
        let node = tree.find_file(path)?;
        let outlet = Outlet::new(tree, node, Arc::clone(&self.0.inspector));
        let node = &outlet.top;
        let file = outlet.tree.open(node, OFlags::RDONLY | OFlags::NONBLOCK);
        let file = file.map_err(|errno| outlet.unread(&node.path, errno))?;
        Ok(outlet.file(node, file.into()))
    }
}

impl Outlet {
    /// A file of the tree, open.
    pub(super) fn file(&self, node: &crate::view::Node, file: File) -> OutletFile {
        let part = node.parts.first().copied().unwrap_or_default();
        let layer = self.tree.places.get(part).and_then(|place| place.layer.clone());
        let origin = layer.map(|layer| {
            let expected = self.sum(part, &layer, &node.path);
            Origin { layer, inspector: Arc::clone(&self.inspector), expected }
        });
        OutletFile { file, size: node.metadata.size, meta: meta(&node.metadata), origin }
    }
}

fn zeros(count: u64, check: &mut Sha256) {
    let piece = [0; 4096];
    let mut left = count;
    while left > 0 {
        let length = left.min(piece.len() as u64);
        check.update(&piece[..length as usize]);
        left -= length;
    }
}

fn unread(error: io::Error) -> Error {
    Error::io("read", "a file of the store")(error)
}
