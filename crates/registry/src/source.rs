//! Bytes that are to be pushed, and can be read again when a push breaks.

use bytes::Bytes;
use futures::future::BoxFuture;
use std::io::{self, SeekFrom};
use std::path::PathBuf;
use tokio::fs::File;
use tokio::io::{AsyncRead, AsyncSeekExt};

/// What reads the bytes of one try.
pub type Reader = Box<dyn AsyncRead + Send + Unpin>;

/// Bytes that can be read more than once.
pub trait Source: Send + Sync {
    /// Begins to read after that many bytes.
    fn open(&self, from: u64) -> BoxFuture<'_, io::Result<Reader>>;
}

/// A file.
#[derive(Clone, Debug)]
pub struct FileSource {
    path: PathBuf,
}

impl FileSource {
    /// By its path. It must not change while it is pushed.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }
}

impl Source for FileSource {
    fn open(&self, from: u64) -> BoxFuture<'_, io::Result<Reader>> {
        Box::pin(async move {
            let mut file = File::open(&self.path).await?;
            file.seek(SeekFrom::Start(from)).await?;
            file.set_max_buf_size(1 << 20);
            Ok(Box::new(file) as Reader)
        })
    }
}

/// Bytes in memory.
#[derive(Clone, Debug)]
pub struct MemorySource {
    bytes: Bytes,
}

impl MemorySource {
    /// Of these bytes.
    pub fn new(bytes: impl Into<Bytes>) -> Self {
        Self { bytes: bytes.into() }
    }
}

impl Source for MemorySource {
    fn open(&self, from: u64) -> BoxFuture<'_, io::Result<Reader>> {
        let start = usize::try_from(from).unwrap_or(usize::MAX).min(self.bytes.len());
        let rest = io::Cursor::new(self.bytes.slice(start..));
        Box::pin(async move { Ok(Box::new(rest) as Reader) })
    }
}
