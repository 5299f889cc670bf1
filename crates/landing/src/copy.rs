//! [`Copying`]: bytes from one file to another, in the cheapest way that keeps holes.
//!
//! Where the file system can let two files share blocks, no byte is moved. Else a file is read and
//! written piece by piece: for the many small files of a tree that is faster than letting the kernel
//! copy, and who wants to verify the bytes sees them on their way.

use crate::unfinished::Unfinished;
use crate::{Error, Landing};
use rustix::fs::SeekFrom;
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering;

/// Bytes moved at once.
const PIECE: usize = 128 * 1024;
/// From this size on a file is searched for holes.
const WORTH_A_HOLE: u64 = 16 * 1024;

/// Moves bytes, with a buffer for many files.
pub struct Copying<'a> {
    landing: &'a Landing,
    /// Hears how many bytes were moved and says whether to go on.
    moved: &'a (dyn Fn(u64) -> bool + 'a),
    piece: Vec<u8>,
}

/// Who looks at bytes on their way.
pub type Seen<'a> = &'a mut dyn FnMut(&[u8]);

/// Why bytes could not be moved.
enum Failed {
    Reading(io::Error),
    Writing(io::Error),
    Stopped,
}

impl<'a> Copying<'a> {
    /// `moved` hears how many bytes were moved and says whether to go on.
    pub fn new(landing: &'a Landing, moved: &'a (dyn Fn(u64) -> bool + 'a)) -> Self {
        Self { landing, moved, piece: vec![0; PIECE] }
    }

    /// Moves a file of `size` bytes. One that has another size is an error: it is not what was
    /// meant. `seen` is shown all bytes in order, and says with the answer that it was: where blocks
    /// are shared no byte is seen.
    pub fn run(
        &mut self,
        source: &File,
        target: &Unfinished<'_>,
        size: u64,
        seen: Option<Seen<'_>>,
    ) -> Result<bool, Error> {
        let file = target.file();
        if self.share(source, file, size) {
            let go_on = (self.moved)(size);
            return if go_on { Ok(false) } else { Err(self.stopped()) };
        }
        let result = match size < WORTH_A_HOLE {
            true => self.small(source, file, size, seen),
            false => self.extents(source, file, size, seen),
        };
        match result {
            Ok(()) => Ok(true),
            Err(Failed::Stopped) => Err(self.stopped()),
            Err(Failed::Writing(error)) => Err(target.not_written(error)),
            Err(Failed::Reading(source)) => Err(Error::Source { path: target.path(), source }),
        }
    }

    fn stopped(&self) -> Error {
        Error::Stopped(self.landing.shown().to_owned())
    }

    /// Lets the target share the blocks of the source.
    fn share(&self, source: &File, target: &File, size: u64) -> bool {
        if size == 0 || !self.landing.clones.load(Ordering::Relaxed) {
            return false;
        }
        let shared = rustix::fs::ioctl_ficlone(target, source).is_ok()
            && target.metadata().is_ok_and(|metadata| metadata.len() == size);
        if !shared {
            self.landing.clones.store(false, Ordering::Relaxed);
        }
        shared
    }

    /// Moves a file that fits into the buffer.
    fn small(
        &mut self,
        source: &File,
        target: &File,
        size: u64,
        seen: Option<Seen<'_>>,
    ) -> Result<(), Failed> {
        let size = size as usize;
        let mut count = 0;
        loop {
            // One byte more than there should be, so that a file that is longer is noticed.
            let rest = &mut self.piece[count..=size];
            match source.read_at(rest, count as u64) {
                Ok(more) if count + more == size => break,
                Ok(more) if more == 0 || more == rest.len() => return Err(another_size()),
                Ok(more) => count += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Failed::Reading(error)),
            }
        }
        let bytes = &self.piece[..size];
        if let Some(seen) = seen {
            seen(bytes);
        }
        target.write_all_at(bytes, 0).map_err(Failed::Writing)?;
        (self.moved)(size as u64).then_some(()).ok_or(Failed::Stopped)
    }

    /// Moves what is not a hole.
    fn extents(
        &mut self,
        source: &File,
        target: &File,
        size: u64,
        mut seen: Option<Seen<'_>>,
    ) -> Result<(), Failed> {
        let reading = |errno: Errno| Failed::Reading(errno.into());
        let mut at = 0;
        while at < size {
            let data = match rustix::fs::seek(source, SeekFrom::Data(at)) {
                // Only a hole is left.
                Err(Errno::NXIO) => size,
                // The file system does not tell.
                Err(Errno::INVAL | Errno::OPNOTSUPP) => at,
                other => other.map_err(reading)?.min(size),
            };
            if let Some(seen) = &mut seen {
                self.zeros(data - at, seen);
            }
            let hole = rustix::fs::seek(source, SeekFrom::Hole(data)).unwrap_or(size).min(size);
            at = data;
            while at < hole {
                let wanted = self.piece.len().min((hole - at) as usize);
                let count = match source.read_at(&mut self.piece[..wanted], at) {
                    Ok(0) => return Err(another_size()),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    other => other.map_err(Failed::Reading)?,
                };
                if let Some(seen) = &mut seen {
                    seen(&self.piece[..count]);
                }
                target.write_all_at(&self.piece[..count], at).map_err(Failed::Writing)?;
                at += count as u64;
                if !(self.moved)(count as u64) {
                    return Err(Failed::Stopped);
                }
            }
        }
        if source.metadata().map_err(Failed::Reading)?.len() != size {
            return Err(another_size());
        }
        target.set_len(size).map_err(Failed::Writing)
    }

    fn zeros(&mut self, count: u64, seen: Seen<'_>) {
        let mut left = count;
        if left > 0 {
            self.piece.fill(0);
        }
        while left > 0 {
            let length = self.piece.len().min(left as usize);
            seen(&self.piece[..length]);
            left -= length as u64;
        }
    }
}

fn another_size() -> Failed {
    Failed::Reading(io::Error::new(io::ErrorKind::InvalidData, "it has not its size any more"))
}
