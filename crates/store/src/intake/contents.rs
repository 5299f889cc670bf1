//! Taking one file or link of the host: read, hashed and written in one pass.
//!
//! A file is looked at before and after it is read. One that changed meanwhile is read again, a few
//! times. Times of files move in ticks, and a write sets them when it begins: so a file that changed
//! just now is left alone for a moment, or half a write could pass for a whole. Where an older import had a file of the same size, it is hashed before anything is
//! written: most files that look changed were only touched.

use super::error::{IntakeError, Problem};
use super::host::{self, Seen};
use super::index::Stamp;
use super::layer::Layer;
use crate::digest::plain_contents;
use crate::draft::failed;
use crate::metadata::{Kind, Meta};
use crate::view::join;
use protocol::Digest;
use rustix::fs::{SeekFrom, ftruncate, readlinkat, seek};
use rustix::io::{Errno, pread, pwrite};
use std::fs::File;
use std::ops::Range;
use std::os::fd::OwnedFd;

/// Files up to this size are read at once, and longer ones in pieces of it.
pub(super) const PIECE: usize = 1 << 20;
/// How often a file is read that changes while it is read.
const TRIES: usize = 8;

/// An entry that is to be taken.
pub(super) struct Wanted<'a> {
    /// The directory it is in, on the host.
    pub(super) source: &'a OwnedFd,
    /// Path of that directory.
    pub(super) directory: &'a [u8],
    pub(super) name: &'a [u8],
    /// How it looked when it was listed.
    pub(super) seen: Seen,
    /// What an older import has under its name.
    pub(super) old: Option<Old>,
}

/// What an older import has.
#[derive(Clone, Copy)]
pub(super) struct Old {
    pub(super) kind: Kind,
    pub(super) mode: u32,
    pub(super) stamp: Stamp,
    pub(super) digest: Digest,
}

/// What became of an entry.
pub(super) enum Taken {
    /// It is not there any more.
    Gone,
    /// It is in the tree, as it was seen last.
    Here {
        seen: Seen,
        digest: Digest,
        /// Whether it was written, because no older import has the same.
        written: bool,
    },
}

/// Where taken entries go. The directory is made when the first of them is written.
pub(super) trait Target {
    /// The layer and the open directory in it.
    fn place(&self) -> Result<(&Layer, &OwnedFd), IntakeError>;
}

impl Wanted<'_> {
    /// Takes a file or a link.
    pub(super) fn take(
        mut self,
        target: &dyn Target,
        piece: &mut [u8],
    ) -> Result<Taken, IntakeError> {
        for _ in 0..TRIES {
            let taken = match self.seen.kind {
                Kind::Symlink => self.link(target),
                _ => self.file(target, piece),
            };
            match taken? {
                Try::Done(taken) => return Ok(taken),
                Try::Again => {}
            }
            // It may have become something else meanwhile.
            match host::look(self.source, self.name) {
                Ok(seen) if seen.special().is_some() || seen.kind == Kind::Directory => break,
                Ok(seen) => self.seen = seen,
                Err(Errno::NOENT) => return Ok(Taken::Gone),
                Err(errno) => return Err(self.unreadable(errno)),
            }
        }
        Err(IntakeError::Entry { path: self.path(), problem: Problem::Changing })
    }

    fn link(&self, target: &dyn Target) -> Result<Try, IntakeError> {
        let link = match readlinkat(self.source, self.name, vec![]) {
            Ok(link) => link.into_bytes(),
            Err(Errno::NOENT) => return Ok(Try::Done(Taken::Gone)),
            Err(Errno::INVAL) => return Ok(Try::Again),
            Err(errno) => return Err(self.unreadable(errno)),
        };
        let digest = Digest::of(&link);
        let written = !self.is_known(&digest);
        if written {
            let (layer, directory) = target.place()?;
            let made = layer.make_symlink(directory, self.name, &link, self.seen.mtime());
            made.map_err(|errno| self.unwritable(errno))?;
        }
        Ok(Try::Done(Taken::Here { seen: self.seen, digest, written }))
    }

    fn file(&self, target: &dyn Target, piece: &mut [u8]) -> Result<Try, IntakeError> {
        let source = match host::open_file(self.source, self.name) {
            Ok(source) => File::from(source),
            Err(Errno::NOENT) => return Ok(Try::Done(Taken::Gone)),
            // It has become a link, or a pipe or socket that nobody has open.
            Err(Errno::LOOP | Errno::NXIO) => return Ok(Try::Again),
            Err(errno) => return Err(self.unreadable(errno)),
        };
        if let Some(left) = host::too_young(&self.seen) {
            std::thread::sleep(left);
            return Ok(Try::Again);
        }
        let size = self.seen.stamp.size;
        if size < piece.len() as u64 && size > 0 && !self.seen.sparse {
            return self.short_file(&source, target, &mut piece[..=size as usize]);
        }
        let same_size =
            self.old.is_some_and(|old| old.kind == Kind::File && old.stamp.size == size);
        if same_size && self.may_stay() {
            let digest = self.copy(&source, None, piece)?;
            if self.is_known(&digest) {
                return self.settle(&source, digest, false);
            }
        }
        let (layer, directory) = target.place()?;
        let made = layer.make_file(directory, self.name);
        let made = made.map_err(|errno| self.unwritable(errno))?;
        let taken = self.copy(&source, Some((layer, &made)), piece).and_then(|digest| {
            layer.finish_file(&made, &self.meta()).map_err(|errno| self.unwritable(errno))?;
            self.settle(&source, digest, true)
        });
        if !matches!(taken, Ok(Try::Done(_))) {
            let removed = layer.remove_file(directory, self.name);
            removed.map_err(|errno| self.unwritable(errno))?;
        }
        taken
    }

    /// Takes a file that fits into the buffer, with one byte of it left to notice that it has grown.
    fn short_file(
        &self,
        source: &File,
        target: &dyn Target,
        buffer: &mut [u8],
    ) -> Result<Try, IntakeError> {
        let mut length = 0;
        while length < buffer.len() {
            match rustix::io::read(source, &mut buffer[length..]) {
                Ok(0) => break,
                Ok(count) => length += count,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(self.unreadable(errno)),
            }
            // The kernel gives all there is, so this saves asking once more.
            if length as u64 == self.seen.stamp.size {
                break;
            }
        }
        let bytes = &buffer[..length];
        let digest = plain_contents(&Digest::of(bytes));
        let written = !(self.may_stay() && self.is_known(&digest));
        let settled = self.settle(source, digest, written)?;
        if !written || matches!(settled, Try::Again) {
            return Ok(settled);
        }
        let (layer, directory) = target.place()?;
        layer.admit(bytes.len())?;
        let made = self.write_short(layer, directory, bytes);
        made.map_err(|errno| self.unwritable(errno))?;
        Ok(settled)
    }

    fn write_short(&self, layer: &Layer, directory: &OwnedFd, bytes: &[u8]) -> Result<(), Errno> {
        let file = layer.make_file(directory, self.name)?;
        write_at(&file, bytes, 0)?;
        layer.finish_file(&file, &self.meta())
    }

    /// Hashes a file, and writes it into another one if that is given. Holes stay holes.
    fn copy(
        &self,
        source: &File,
        target: Option<(&Layer, &File)>,
        piece: &mut [u8],
    ) -> Result<Digest, IntakeError> {
        let mut hasher = blake3::Hasher::new();
        let mut place = 0;
        loop {
            let mut length = piece.len();
            if self.seen.sparse {
                let data = self.pass_hole(source, place, &mut hasher)?;
                place = data.start;
                length = length.min(usize::try_from(data.end - place).unwrap_or(length)).max(1);
            }
            let count = match pread(source, &mut piece[..length], place) {
                Ok(0) => break,
                Ok(count) => count,
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(self.unreadable(errno)),
            };
            hasher.update(&piece[..count]);
            if let Some((layer, target)) = target {
                layer.admit(count)?;
                let written = write_at(target, &piece[..count], place);
                written.map_err(|errno| self.unwritable(errno))?;
            }
            place += count as u64;
        }
        if let Some((_, target)) = target.filter(|_| self.seen.sparse) {
            ftruncate(target, place).map_err(|errno| self.unwritable(errno))?;
        }
        Ok(plain_contents(&Digest::from_bytes(*hasher.finalize().as_bytes())))
    }

    /// The next bytes from `place` on that are no hole. The zeros of a hole before them are hashed.
    fn pass_hole(
        &self,
        source: &File,
        place: u64,
        hasher: &mut blake3::Hasher,
    ) -> Result<Range<u64>, IntakeError> {
        static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
        let size = self.seen.stamp.size.max(place);
        let start = match seek(source, SeekFrom::Data(place)) {
            Ok(data) => data,
            // Nothing but hole is left.
            Err(Errno::NXIO) => size,
            Err(errno) => return Err(self.unreadable(errno)),
        };
        let mut left = start - place;
        while left > 0 {
            let count = left.min(ZEROS.len() as u64);
            hasher.update(&ZEROS[..count as usize]);
            left -= count;
        }
        let end = match seek(source, SeekFrom::Hole(start)) {
            Ok(end) => end,
            Err(Errno::NXIO) => size.max(start),
            Err(errno) => return Err(self.unreadable(errno)),
        };
        Ok(start..end)
    }

    /// What was read counts if the file still looks as it did.
    fn settle(&self, source: &File, digest: Digest, written: bool) -> Result<Try, IntakeError> {
        let after = host::look_at(source).map_err(|errno| self.unreadable(errno))?;
        let same = after.kind == Kind::File
            && after.mode == self.seen.mode
            && after.stamp == self.seen.stamp;
        Ok(match same {
            true => Try::Done(Taken::Here { seen: self.seen, digest, written }),
            false => Try::Again,
        })
    }

    /// Whether the file of an older import can stay in its place if it is the same. One of several
    /// names is written with the others, so that they share an inode again.
    fn may_stay(&self) -> bool {
        self.seen.links == 1
    }

    fn is_known(&self, digest: &Digest) -> bool {
        let Seen { kind, mode, .. } = self.seen;
        self.old.is_some_and(|old| (old.kind, old.mode, &old.digest) == (kind, mode, digest))
    }

    fn meta(&self) -> Meta {
        Meta { mode: self.seen.mode, uid: 0, gid: 0, mtime: self.seen.mtime() }
    }

    fn path(&self) -> Vec<u8> {
        join(self.directory, self.name)
    }

    fn unreadable(&self, errno: Errno) -> IntakeError {
        super::walk::unreadable(&self.path(), errno)
    }

    fn unwritable(&self, errno: Errno) -> IntakeError {
        failed("write", &self.path(), errno).into()
    }
}

/// Whether an attempt has led to something.
enum Try {
    Done(Taken),
    Again,
}

fn write_at(file: &File, mut bytes: &[u8], mut place: u64) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match pwrite(file, bytes, place) {
            Ok(0) => return Err(Errno::IO),
            Ok(count) => {
                bytes = &bytes[count..];
                place += count as u64;
            }
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}
