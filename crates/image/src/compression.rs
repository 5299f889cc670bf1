//! How layers are compressed. What a layer is compressed with is read from its first bytes: the
//! names that documents give are often wrong, and a wrong one does no harm.

use crate::Error;
use crate::gzip::Gzip;
use flate2::bufread::MultiGzDecoder;
use serde::{Deserialize, Serialize};
use std::io::{self, BufReader, Read, Write};

/// Bytes read at once.
const PIECE: usize = 256 * 1024;
/// Level of zstd, the one its authors chose.
const ZSTD_LEVEL: i32 = 3;
/// The largest window of zstd that is read, as the power of two: what that program itself takes.
const ZSTD_WINDOW: u32 = 27;

/// How a layer is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Compression {
    /// Not at all.
    None,
    /// Gzip.
    Gzip,
    /// Zstandard.
    Zstd,
    /// Gzip that can be read file by file; see [`crate::Stargz`], which writes it.
    EStarGz,
}

/// A reader of plain bytes.
pub type Decoder<'a> = Box<dyn Read + Send + 'a>;

/// A reader of the plain bytes behind `reader`, and how they were compressed.
pub fn decoder<'a>(mut reader: impl Read + Send + 'a) -> Result<(Decoder<'a>, Compression), Error> {
    let mut first = vec![];
    reader.by_ref().take(4).read_to_end(&mut first)?;
    let magic = [0, 1, 2, 3].map(|index| first.get(index).copied().unwrap_or_default());
    let reader = io::Cursor::new(first).chain(BufReader::with_capacity(PIECE, reader));
    Ok(match magic {
        [0x1f, 0x8b, ..] => (Box::new(MultiGzDecoder::new(reader)), Compression::Gzip),
        [0x28, 0xb5, 0x2f, 0xfd] | [0x50..=0x5f, 0x2a, 0x4d, 0x18] => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(reader)?;
            decoder.window_log_max(ZSTD_WINDOW)?;
            (Box::new(decoder), Compression::Zstd)
        }
        [0xfd, b'7', b'z', b'X'] => return Err(Error::Compression("compression by xz")),
        [b'B', b'Z', b'h', _] => return Err(Error::Compression("compression by bzip2")),
        _ => (Box::new(reader), Compression::None),
    })
}

/// A writer that compresses. Equal bytes give equal output.
pub enum Encoder<W: Write> {
    /// Not at all.
    Plain(W),
    /// Gzip, without a time or a system in its head.
    Gzip(Box<Gzip<W>>),
    /// Zstandard.
    Zstd(Box<zstd::stream::write::Encoder<'static, W>>),
}

impl<W: Write> Encoder<W> {
    /// Writes to `writer`.
    pub fn new(writer: W, compression: Compression) -> io::Result<Self> {
        Ok(match compression {
            Compression::None => Self::Plain(writer),
            Compression::Gzip => Self::Gzip(Box::new(Gzip::new(writer))),
            Compression::Zstd => {
                Self::Zstd(Box::new(zstd::stream::write::Encoder::new(writer, ZSTD_LEVEL)?))
            }
            Compression::EStarGz => {
                return Err(io::Error::other("an index needs entries, not bytes"));
            }
        })
    }

    /// Writes what is left and gives the writer back.
    pub fn finish(self) -> io::Result<W> {
        match self {
            Self::Plain(writer) => Ok(writer),
            Self::Gzip(encoder) => encoder.finish(),
            Self::Zstd(encoder) => encoder.finish(),
        }
    }
}

impl<W: Write> Write for Encoder<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(writer) => writer.write(bytes),
            Self::Gzip(encoder) => encoder.write(bytes),
            Self::Zstd(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(writer) => writer.flush(),
            Self::Gzip(encoder) => encoder.flush(),
            Self::Zstd(encoder) => encoder.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(compression: Compression) -> Vec<u8> {
        let mut encoder = Encoder::new(vec![], compression).unwrap();
        encoder.write_all(&b"layer ".repeat(1000)).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn what_is_written_reads_back_and_is_the_same_every_time() {
        for compression in [Compression::None, Compression::Gzip, Compression::Zstd] {
            let bytes = encoded(compression);
            assert_eq!(bytes, encoded(compression));
            let (mut reader, found) = decoder(&bytes[..]).unwrap();
            assert_eq!(found, compression);
            let mut plain = vec![];
            reader.read_to_end(&mut plain).unwrap();
            assert_eq!(plain, b"layer ".repeat(1000));
        }
        assert_eq!(encoded(Compression::Gzip)[4..10], [0, 0, 0, 0, 0, 255]);
    }

    #[test]
    fn other_compressions_are_named() {
        for (bytes, name) in [(&b"\xfd7zXZ\0"[..], "xz"), (b"BZh91AY", "bzip2")] {
            let said = decoder(bytes).err().unwrap().to_string();
            assert!(said.contains(name), "{said}");
        }
    }

    #[test]
    fn damage_is_an_error_and_never_an_early_end() {
        for compression in [Compression::Gzip, Compression::Zstd] {
            let bytes = encoded(compression);
            let cut = &bytes[..bytes.len() - 5];
            let (mut reader, _) = decoder(cut).unwrap();
            assert!(io::copy(&mut reader, &mut io::sink()).is_err(), "{compression:?}");
        }
        assert!(decoder(&b""[..]).is_ok());
    }
}
