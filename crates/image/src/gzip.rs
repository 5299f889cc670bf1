//! [`Gzip`]: gzip on all processors.
//!
//! The input is cut into blocks of one size, each is compressed by itself and the results are joined into one
//! stream, as `pigz` does. Where a block ends depends on nothing but how many bytes came before, so
//! equal input gives equal output whatever the machine. By hand, because it is little: the crates made for it bring
//! compressors of their own.

use flate2::{Compress, Compression, Crc, FlushCompress, Status};
use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, sync_channel};

/// Plain bytes of a block. Larger ones pack better, smaller ones let more processors begin early.
const BLOCK: usize = 256 * 1024;
/// Level of compression: three times as fast as the usual one and a few percent larger.
const LEVEL: u32 = 4;
/// The head of a stream: no name, no time, and "no particular system", so that every machine writes
/// the same.
const HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];

/// A writer that compresses.
pub struct Gzip<W> {
    writer: W,
    /// What is still to become a block.
    plain: Vec<u8>,
    /// Blocks on their way, in order.
    ahead: VecDeque<Receiver<io::Result<Block>>>,
    /// Of all that was written.
    sum: Crc,
}

/// A compressed block.
struct Block {
    packed: Vec<u8>,
    sum: Crc,
}

impl<W: Write> Gzip<W> {
    pub(crate) fn new(mut writer: W) -> io::Result<Self> {
        writer.write_all(&HEAD)?;
        let plain = Vec::with_capacity(BLOCK);
        Ok(Self { writer, plain, ahead: VecDeque::new(), sum: Crc::new() })
    }

    /// Writes what is left and gives the writer back.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.begin(FlushCompress::Finish);
        self.wait(0)?;
        self.writer.write_all(&self.sum.sum().to_le_bytes())?;
        self.writer.write_all(&self.sum.amount().to_le_bytes())?;
        Ok(self.writer)
    }

    /// Has the next block compressed.
    fn begin(&mut self, end: FlushCompress) {
        let plain = std::mem::replace(&mut self.plain, Vec::with_capacity(BLOCK));
        let (give, take) = sync_channel(1);
        // Who waits may have given up.
        rayon::spawn(move || drop(give.send(compress(&plain, end))));
        self.ahead.push_back(take);
    }

    /// Writes blocks until no more than so many are on their way.
    fn wait(&mut self, left: usize) -> io::Result<()> {
        while self.ahead.len() > left {
            let Some(next) = self.ahead.pop_front() else { break };
            let block = next.recv().map_err(io::Error::other)??;
            self.writer.write_all(&block.packed)?;
            self.sum.combine(&block.sum);
        }
        Ok(())
    }
}

impl<W: Write> Write for Gzip<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(BLOCK - self.plain.len());
        self.plain.extend_from_slice(&bytes[..taken]);
        if self.plain.len() == BLOCK {
            self.begin(FlushCompress::Sync);
            self.wait(2 * rayon::current_num_threads())?;
        }
        Ok(taken)
    }

    /// Nothing: a block that ends early would make other bytes.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn compress(plain: &[u8], end: FlushCompress) -> io::Result<Block> {
    let mut sum = Crc::new();
    sum.update(plain);
    let mut compress = Compress::new(Compression::new(LEVEL), false);
    // Bytes that cannot be packed are stored, with a few more of head.
    let mut packed = Vec::with_capacity(plain.len() + plain.len() / 256 + 1024);
    loop {
        let from = compress.total_in() as usize;
        let status = compress.compress_vec(&plain[from..], &mut packed, end)?;
        let whole = compress.total_in() as usize == plain.len();
        match status {
            Status::StreamEnd => break,
            // Room that is left means that there was nothing more to write.
            Status::Ok | Status::BufError
                if whole
                    && !matches!(end, FlushCompress::Finish)
                    && packed.len() < packed.capacity() =>
            {
                break;
            }
            Status::Ok | Status::BufError => packed.reserve(1024 + plain.len() / 8),
        }
    }
    Ok(Block { packed, sum })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn packed(plain: &[u8], piece: usize) -> Vec<u8> {
        let mut gzip = Gzip::new(vec![]).unwrap();
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
    fn any_length_reads_back_as_one_stream_and_pieces_do_not_matter() {
        let text = b"some text that packs well, ".repeat(40_000);
        for length in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 17] {
            for plain in [&noise(length)[..], &text[..length]] {
                let bytes = packed(plain, 100_000);
                assert_eq!(bytes, packed(plain, 7_777), "{length}");
                let mut found = vec![];
                // This reader knows no second stream.
                flate2::read::GzDecoder::new(&bytes[..]).read_to_end(&mut found).unwrap();
                assert!(found == plain, "{length}");
            }
        }
    }

    #[test]
    fn a_writer_that_fails_is_an_error() {
        let mut room = [0_u8; 100];
        let mut gzip = Gzip::new(&mut room[..]).unwrap();
        let all = gzip.write_all(&noise(8 * BLOCK)).and_then(|()| gzip.finish().map(drop));
        assert!(all.is_err());
    }
}
