//! [`Reader`]: entries of an archive, one after the other, with their contents.

use super::header::Header;
use super::pax::{self, Records};
use super::{BLOCK, Entry, Kind};
use crate::Error;
use std::io::{self, Read};

/// Longest path, as the kernel has it.
const MAX_PATH: u64 = 4096;
/// Most bytes of records before one entry: attributes may be 64 KiB each.
const MAX_RECORDS: u64 = 1 << 20;

/// Reads an archive as a stream.
pub struct Reader<R> {
    inner: R,
    /// Bytes of the present entry that were not read yet.
    left: u64,
    /// Zeros after them.
    padding: u64,
    ended: bool,
}

/// What came before an entry and is about it.
#[derive(Default)]
struct Ahead {
    records: Option<Records>,
    long_path: Option<Vec<u8>>,
    long_link: Option<Vec<u8>>,
}

impl<R: Read> Reader<R> {
    /// Nothing is read yet.
    pub fn new(inner: R) -> Self {
        Self { inner, left: 0, padding: 0, ended: false }
    }

    /// The next entry; what was not read of the one before is passed over.
    pub fn next_entry(&mut self) -> Result<Option<Entry>, Error> {
        let mut ahead = Ahead::default();
        loop {
            self.skip()?;
            let Some(block) = self.header()? else {
                return match ahead.is_empty() {
                    true => Ok(None),
                    false => Err(damaged("it ends after a record that is about an entry")),
                };
            };
            let header = Header::parse(&block)?;
            match header.kind {
                b'x' | b'g' | b'L' | b'K' => self.take_ahead(&header, &mut ahead)?,
                _ => return self.entry(header, ahead).map(Some),
            }
        }
    }

    /// The contents of the entry that came last.
    pub fn contents(&mut self) -> Contents<'_, R> {
        Contents(self)
    }

    /// Where the contents of the entry that came last begin is where this reader stands.
    pub fn get_ref(&self) -> &R {
        &self.inner
    }

    /// Reads to the end of the bytes, so that a digest of them covers all, and gives back what they
    /// came from.
    pub fn finish(mut self) -> Result<R, Error> {
        self.skip()?;
        io::copy(&mut self.inner, &mut io::sink())?;
        Ok(self.inner)
    }

    /// A record before an entry.
    fn take_ahead(&mut self, header: &Header, ahead: &mut Ahead) -> Result<(), Error> {
        let limit = if matches!(header.kind, b'L' | b'K') { MAX_PATH + 1 } else { MAX_RECORDS };
        if header.size > limit {
            return Err(Error::TooLarge { what: "a record of the layer".to_owned(), limit });
        }
        self.begin(header.size);
        let mut bytes = vec![];
        self.contents().read_to_end(&mut bytes)?;
        if bytes.len() as u64 != header.size {
            return Err(damaged("it ends in the middle of a record"));
        }
        let twice = match header.kind {
            b'g' => {
                pax::check_global(&bytes)?;
                false
            }
            b'x' => ahead.records.replace(Records::parse(&bytes)?).is_some(),
            b'L' => ahead.long_path.replace(long_name(bytes)?).is_some(),
            _ => ahead.long_link.replace(long_name(bytes)?).is_some(),
        };
        let mixed =
            ahead.records.is_some() && (ahead.long_path.is_some() || ahead.long_link.is_some());
        if twice || mixed {
            return Err(damaged("two records say different things about one entry"));
        }
        Ok(())
    }

    fn entry(&mut self, header: Header, ahead: Ahead) -> Result<Entry, Error> {
        let records = ahead.records.unwrap_or_default();
        let path = records.path.or(ahead.long_path).unwrap_or(header.path);
        let link = records.link.or(ahead.long_link).unwrap_or(header.link);
        if path.is_empty() || path.len() as u64 > MAX_PATH || link.len() as u64 > MAX_PATH {
            return Err(Error::entry(&path, "has no path, or one that is too long"));
        }
        let kind = kind(&header.kind, &path, link, (header.major, header.minor))?;
        let has_contents = kind == Kind::File;
        let size = if has_contents { records.size.unwrap_or(header.size) } else { 0 };
        if i64::try_from(size).is_err() {
            return Err(Error::entry(&path, "claims more bytes than there can be"));
        }
        let id = |value: u64| {
            let id = u32::try_from(value).ok().filter(|id| *id != u32::MAX);
            id.ok_or_else(|| Error::entry(&path, "belongs to nobody that there can be"))
        };
        let (mtime, mtime_nanoseconds) = records.mtime.unwrap_or((header.mtime, 0));
        let (uid, gid) =
            (id(records.uid.unwrap_or(header.uid))?, id(records.gid.unwrap_or(header.gid))?);
        self.begin(size);
        let (mode, xattrs) = (header.mode as u32 & 0o7777, records.xattrs);
        Ok(Entry { path, kind, mode, uid, gid, mtime, mtime_nanoseconds, size, xattrs })
    }

    fn begin(&mut self, size: u64) {
        self.left = size;
        self.padding = size.next_multiple_of(BLOCK as u64) - size;
    }

    /// Passes over what is left of the present entry.
    fn skip(&mut self) -> Result<(), Error> {
        let ahead = self.left + self.padding;
        (self.left, self.padding) = (0, 0);
        let passed = io::copy(&mut self.inner.by_ref().take(ahead), &mut io::sink())?;
        match passed == ahead {
            true => Ok(()),
            false => Err(damaged("it ends in the middle of an entry")),
        }
    }

    /// The next block that is not zero; none at the end.
    fn header(&mut self) -> Result<Option<[u8; BLOCK]>, Error> {
        if self.ended {
            return Ok(None);
        }
        let mut block = [0_u8; BLOCK];
        let mut filled = 0;
        while filled < BLOCK {
            match self.inner.read(&mut block[filled..]) {
                Ok(0) if filled == 0 => break,
                Ok(0) => return Err(damaged("it ends in the middle of a header")),
                Ok(length) => filled += length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        // A block of zeros ends it; what follows that is nobody's.
        if block.iter().all(|byte| *byte == 0) {
            self.ended = true;
            return Ok(None);
        }
        Ok(Some(block))
    }
}

impl Ahead {
    fn is_empty(&self) -> bool {
        self.records.is_none() && self.long_path.is_none() && self.long_link.is_none()
    }
}

/// The contents of one entry.
pub struct Contents<'a, R>(&'a mut Reader<R>);

impl<R: Read> Read for Contents<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.0.left).unwrap_or(usize::MAX).min(buffer.len());
        if most == 0 {
            return Ok(0);
        }
        let length = self.0.inner.read(&mut buffer[..most])?;
        if length == 0 {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the archive ends in the middle of a file",
            ));
        }
        self.0.left -= length as u64;
        Ok(length)
    }
}

fn kind(flag: &u8, path: &[u8], link: Vec<u8>, device: (u64, u64)) -> Result<Kind, Error> {
    let link_of = |kind: fn(Vec<u8>) -> Kind| match link.is_empty() {
        true => Err(Error::entry(path, "is a link to nothing")),
        false => Ok(kind(link)),
    };
    let number = |value: u64| {
        u32::try_from(value).map_err(|_| Error::entry(path, "has no valid device number"))
    };
    match flag {
        // The oldest archives have no kind for directories.
        b'\0' if path.ends_with(b"/") => Ok(Kind::Directory),
        b'0' | b'\0' | b'7' => Ok(Kind::File),
        b'1' => link_of(Kind::HardLink),
        b'2' => link_of(Kind::Symlink),
        b'3' => Ok(Kind::Character { major: number(device.0)?, minor: number(device.1)? }),
        b'4' => Ok(Kind::Block { major: number(device.0)?, minor: number(device.1)? }),
        b'5' => Ok(Kind::Directory),
        b'6' => Ok(Kind::Fifo),
        b'S' => Err(Error::entry(path, "is a sparse file, which is not supported")),
        other => {
            let shown = other.escape_ascii();
            Err(Error::entry(path, format!("is of the unknown kind `{shown}`")))
        }
    }
}

/// The name in a record of GNU's: it ends with its first NUL.
fn long_name(mut bytes: Vec<u8>) -> Result<Vec<u8>, Error> {
    let length = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    if bytes[length..].iter().any(|byte| *byte != 0) {
        return Err(damaged("a record holds a path with a NUL byte"));
    }
    bytes.truncate(length);
    Ok(bytes)
}

fn damaged(reason: &str) -> Error {
    Error::Tar(reason.to_owned())
}
