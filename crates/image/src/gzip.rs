//! [`Gzip`]: gzip on all processors.
//!
//! The input is cut into blocks of one size and each becomes a gzip stream of its own; a file of several such
//! streams is gzip as much as one is, and every reader of layers takes it. Where a block ends depends on nothing but
//! how many bytes came before, so equal input gives equal output whatever the machine. Whole blocks let `libdeflate` do the
//! work, which takes half the time of compressors that must be able to go on in the middle.

use libdeflater::{CompressionLvl, Compressor};
use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, sync_channel};

/// Plain bytes of a block. Larger ones pack better, smaller ones let more processors begin early.
const BLOCK: usize = 256 * 1024;
/// Level of compression: as small as the usual one of other programs within some percent, in a fifth of the time. To change
/// it changes the bytes of every layer.
const LEVEL: i32 = 2;

/// A writer that compresses.
pub struct Gzip<W> {
    writer: W,
    /// What is still to become a block.
    plain: Vec<u8>,
    /// Blocks on their way, in order.
    ahead: VecDeque<Receiver<io::Result<Vec<u8>>>>,
    /// Whether there was a block: no bytes at all are one, too.
    begun: bool,
}

impl<W: Write> Gzip<W> {
    pub(crate) fn new(writer: W) -> Self {
        Self { writer, plain: Vec::with_capacity(BLOCK), ahead: VecDeque::new(), begun: false }
    }

    /// Writes what is left and gives the writer back.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        if !self.plain.is_empty() || !self.begun {
            self.begin();
        }
        self.wait(0)?;
        Ok(self.writer)
    }

    /// Has the next block compressed.
    fn begin(&mut self) {
        self.begun = true;
        let plain = std::mem::replace(&mut self.plain, Vec::with_capacity(BLOCK));
        let (give, take) = sync_channel(1);
        // Who waits may have given up.
        rayon::spawn(move || drop(give.send(compress(&plain))));
        self.ahead.push_back(take);
    }

    /// Writes blocks until no more than so many are on their way.
    fn wait(&mut self, left: usize) -> io::Result<()> {
        while self.ahead.len() > left {
            let Some(next) = self.ahead.pop_front() else { break };
            let packed = next.recv().map_err(io::Error::other)??;
            self.writer.write_all(&packed)?;
        }
        Ok(())
    }
}

impl<W: Write> Write for Gzip<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(BLOCK - self.plain.len());
        self.plain.extend_from_slice(&bytes[..taken]);
        if self.plain.len() == BLOCK {
            self.begin();
            self.wait(2 * rayon::current_num_threads())?;
        }
        Ok(taken)
    }

    /// Nothing: a block that ends early would make other bytes.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// One stream, with no name, no time and "no particular system" in its head, so that every machine writes the same.
fn compress(plain: &[u8]) -> io::Result<Vec<u8>> {
    let level =
        CompressionLvl::new(LEVEL).map_err(|error| io::Error::other(format!("{error:?}")))?;
    let mut compressor = Compressor::new(level);
    let mut packed = vec![0; compressor.gzip_compress_bound(plain.len())];
    let length = compressor.gzip_compress(plain, &mut packed).map_err(io::Error::other)?;
    packed.truncate(length);
    Ok(packed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn packed(plain: &[u8], piece: usize) -> Vec<u8> {
        let mut gzip = Gzip::new(vec![]);
        plain.chunks(piece).for_each(|piece| gzip.write_all(piece).unwrap());
        gzip.finish().unwrap()
    }

    fn noise(length: usize) -> Vec<u8> {
        let mut state = 88_172_645_463_325_252_u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        };
        (0..length).map(|_| next()).collect()
    }

    #[test]
    fn any_length_reads_back_and_pieces_do_not_matter() {
        let text = b"some text that packs well, ".repeat(40_000);
        for length in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 17] {
            for plain in [&noise(length)[..], &text[..length]] {
                let bytes = packed(plain, 100_000);
                assert_eq!(bytes, packed(plain, 7_777), "{length}");
                let mut found = vec![];
                flate2::read::MultiGzDecoder::new(&bytes[..]).read_to_end(&mut found).unwrap();
                assert!(found == plain, "{length}");
            }
        }
    }

    #[test]
    fn there_are_as_many_streams_as_blocks_and_never_none() {
        for (length, streams) in [(0, 1), (1, 1), (BLOCK, 1), (BLOCK + 1, 2), (2 * BLOCK, 2)] {
            let bytes = packed(&vec![b'x'; length], 100_000);
            let (mut rest, mut found) = (&bytes[..], 0);
            while !rest.is_empty() {
                io::copy(&mut flate2::bufread::GzDecoder::new(&mut rest), &mut io::sink()).unwrap();
                found += 1;
            }
            assert_eq!(found, streams, "{length}");
        }
    }

    #[test]
    fn a_writer_that_fails_is_an_error() {
        let mut room = [0_u8; 100];
        let mut gzip = Gzip::new(&mut room[..]);
        let all = gzip.write_all(&noise(8 * BLOCK)).and_then(|()| gzip.finish().map(drop));
        assert!(all.is_err());
    }
}
