//! Large files: streamed to disk, hashed on the way, resumed after a cut.
//!
//! The digest of what is on disk is carried along, so a resumed download never reads back what
//! this process wrote. A server that ignores the range, or whose file changed, starts from zero.

use crate::client::{Client, refine};
use crate::memory::validators;
use crate::{Error, Expected, Progress, Validators};
use reqwest::StatusCode;
use reqwest::header::{self, HeaderMap, HeaderValue};
use sha2::{Digest, Sha256};
use std::io;
use std::path::Path;
use tokio::fs::{File, OpenOptions};
use tokio::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};

pub(crate) async fn fetch(
    client: &Client,
    url: &str,
    destination: &Path,
    expected: &Expected,
    progress: &mut Progress<'_>,
) -> Result<(), Error> {
    let mut partial = Partial::open(url, destination, expected).await?;
    let mut attempt = 1;
    loop {
        let resumed = partial.length > 0;
        let result = match partial.is_whole() {
            true => Ok(()),
            false => partial.download(client, progress).await,
        };
        match result.and_then(|()| partial.check()) {
            Ok(()) => return partial.finish().await,
            // What was there from another time may have been damaged: once more from the start.
            Err(Error::Digest { .. } | Error::Size { .. }) if resumed => partial.restart().await?,
            Err(error) => client.pause_after(error, attempt).await?,
        }
        attempt += 1;
    }
}

/// A file on its way, and all that is known of what it holds so far.
struct Partial<'a> {
    url: &'a str,
    path: &'a Path,
    expected: &'a Expected,
    file: File,
    length: u64,
    state: Sha256,
    /// Of the version of which the bytes so far are.
    version: Validators,
}

impl<'a> Partial<'a> {
    async fn open(url: &'a str, path: &'a Path, expected: &'a Expected) -> Result<Self, Error> {
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false);
        let file = options.open(path).await.map_err(|source| io_error(url, path, source))?;
        let (state, version) = (Sha256::new(), Validators::default());
        let mut partial = Self { url, path, expected, file, length: 0, state, version };
        partial.read_existing().await?;
        Ok(partial)
    }

    async fn read_existing(&mut self) -> Result<(), Error> {
        let mut buffer = vec![0; 128 * 1024];
        loop {
            let count = self.file.read(&mut buffer).await.map_err(|error| self.io(error))?;
            if count == 0 {
                break;
            }
            self.state.update(&buffer[..count]);
            self.length += count as u64;
        }
        if self.length > self.expected.size {
            self.restart().await?;
        }
        Ok(())
    }

    fn is_whole(&self) -> bool {
        self.length == self.expected.size && self.length > 0
    }

    async fn restart(&mut self) -> Result<(), Error> {
        self.length = 0;
        self.state = Sha256::new();
        self.version = Validators::default();
        self.file.set_len(0).await.map_err(|error| self.io(error))?;
        self.file.rewind().await.map_err(|error| self.io(error))?;
        Ok(())
    }

    async fn download(
        &mut self,
        client: &Client,
        progress: &mut Progress<'_>,
    ) -> Result<(), Error> {
        let mut response = client.get(self.url, self.range()).await?;
        if self.length > 0 && response.status() != StatusCode::PARTIAL_CONTENT {
            self.restart().await?;
        }
        if response.status() == StatusCode::RANGE_NOT_SATISFIABLE {
            response = client.get(self.url, self.range()).await?;
        }
        self.version = validators(&response);
        while let Some(chunk) = response.chunk().await.map_err(|error| refine(self.url, &error))? {
            self.append(&chunk).await?;
            progress(self.length, Some(self.expected.size));
        }
        Ok(())
    }

    async fn append(&mut self, chunk: &[u8]) -> Result<(), Error> {
        let length = self.length + chunk.len() as u64;
        if length > self.expected.size {
            return Err(self.size_error(length));
        }
        self.file.write_all(chunk).await.map_err(|error| self.io(error))?;
        self.state.update(chunk);
        self.length = length;
        Ok(())
    }

    /// The headers that ask for the rest.
    fn range(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if self.length == 0 {
            return headers;
        }
        if let Ok(range) = HeaderValue::from_str(&format!("bytes={}-", self.length)) {
            headers.insert(header::RANGE, range);
        }
        // A weak tag may not be used for ranges.
        let strong = self.version.etag.as_ref().filter(|etag| !etag.starts_with("W/"));
        let version = strong.or(self.version.last_modified.as_ref());
        if let Some(version) = version.and_then(|text| HeaderValue::from_str(text).ok()) {
            headers.insert(header::IF_RANGE, version);
        }
        headers
    }

    fn check(&self) -> Result<(), Error> {
        if self.length < self.expected.size {
            let reason = format!("it ended after {} of {} bytes", self.length, self.expected.size);
            return Err(Error::Broken { url: self.url.to_owned(), reason });
        }
        let found = self.state.clone().finalize();
        if found[..] == self.expected.sha256 {
            return Ok(());
        }
        let (expected, found) = (hex::encode(self.expected.sha256), hex::encode(found));
        Err(Error::Digest { url: self.url.to_owned(), expected, found })
    }

    async fn finish(mut self) -> Result<(), Error> {
        self.file.flush().await.map_err(|error| self.io(error))
    }

    fn size_error(&self, found: u64) -> Error {
        Error::Size { url: self.url.to_owned(), expected: self.expected.size, found }
    }

    fn io(&self, source: io::Error) -> Error {
        io_error(self.url, self.path, source)
    }
}

fn io_error(url: &str, path: &Path, source: io::Error) -> Error {
    Error::Io { url: url.to_owned(), path: path.to_owned(), source }
}
