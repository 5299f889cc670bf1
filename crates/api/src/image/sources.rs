//! Where the bytes of a layer come from: a registry or a file, read from a thread that may block.

use super::error::of_registry;
use protocol::Error;
use registry::{Descriptor, Progress, Reference, Registries};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Pieces of a blob that may wait to be unpacked.
const PIECES_IN_FLIGHT: usize = 128;

/// Where a blob is.
#[derive(Clone)]
pub(super) enum Source {
    Registry { registries: Registries, reference: Reference, descriptor: Descriptor },
    File { file: Arc<File>, offset: u64, size: u64 },
}

impl Source {
    /// Hands the bytes to work that blocks, while they arrive. Dropped, it stops both.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        progress: Progress,
        work: impl FnOnce(&mut (dyn Read + Send)) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        match self {
            Self::File { file, offset, size } => {
                let mut range = Range {
                    file: file.clone(),
                    at: *offset,
                    end: offset + size,
                    start: *offset,
                    progress,
                };
                blocking(move || work(&mut range)).await
            }
            Self::Registry { registries, reference, descriptor } => {
                let (sender, receiver) = mpsc::channel(PIECES_IN_FLIGHT);
                let mut pieces = Pieces { receiver, rest: bytes::Bytes::new(), ended: false };
                let working = blocking(move || work(&mut pieces));
                let sending = send(registries, (reference, descriptor), progress, sender);
                let (sent, worked) = futures::join!(sending, working);
                // What became of the bytes is the consequence when they did not arrive.
                sent?;
                worked
            }
        }
    }
}

/// Sends a blob piece by piece. Who reads may stop: that is no failure of this side.
async fn send(
    registries: &Registries,
    (reference, descriptor): (&Reference, &Descriptor),
    progress: Progress,
    sender: mpsc::Sender<Option<bytes::Bytes>>,
) -> Result<(), Error> {
    let mut blob = registries.blob(reference, descriptor, progress).await.map_err(of_registry)?;
    while let Some(piece) = blob.chunk().await.map_err(of_registry)? {
        if sender.send(Some(piece)).await.is_err() {
            return Ok(());
        }
    }
    // Only now it is known that the bytes are right.
    let _ = sender.send(None).await;
    Ok(())
}

/// A blob as its pieces arrive.
struct Pieces {
    receiver: mpsc::Receiver<Option<bytes::Bytes>>,
    rest: bytes::Bytes,
    ended: bool,
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.rest.is_empty() && !self.ended {
            match self.receiver.blocking_recv() {
                Some(Some(piece)) => self.rest = piece,
                Some(None) => self.ended = true,
                None => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
        let count = buffer.len().min(self.rest.len());
        buffer[..count].copy_from_slice(&self.rest.split_to(count));
        Ok(count)
    }
}

/// A part of a file, without moving the file's own position.
struct Range {
    file: Arc<File>,
    start: u64,
    at: u64,
    end: u64,
    progress: Progress,
}

impl Read for Range {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.end - self.at).unwrap_or(usize::MAX).min(buffer.len());
        if most == 0 {
            return Ok(0);
        }
        let length = self.file.read_at(&mut buffer[..most], self.at)?;
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.at += length as u64;
        (self.progress)(self.at - self.start, Some(self.end - self.start));
        Ok(length)
    }
}

/// Runs blocking work off the async threads.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(failed) => Err(Error::internal(format!("a worker thread failed: {failed}"))),
    }
}
