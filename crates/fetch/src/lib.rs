//! Downloads: one URL in, bytes or a verified file out.
//!
//! Start with [`Fetcher`]. It keeps trying for as long as trying makes sense: a cut connection is
//! resumed where it stopped, a server in trouble is asked again after a pause, a stalled one is
//! given up. What is written to a file is checked against a digest on the way and never read
//! again. `file:` and `copy:` addresses are served by the same functions, so that a mirror may be
//! a directory. Nothing here reads the environment: a proxy is a setting.

mod client;
mod error;
mod file;
mod local;
mod memory;
mod stream;

pub use error::Error;
pub use stream::{Piece, Request, Stream};

use client::Client;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How downloads behave.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Proxy for all HTTP and HTTPS addresses.
    pub proxy: Option<String>,
    /// Authorities to trust besides the machine's, in PEM.
    pub authorities: Option<Arc<[u8]>>,
    /// How long a connection may take to come about.
    pub connect_timeout: Duration,
    /// How long a server may send nothing. There is no limit on the whole.
    pub stall_timeout: Duration,
    /// How often one address is tried.
    pub attempts: u32,
    /// Pause before the second try; it doubles from try to try.
    pub pause: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            proxy: None,
            authorities: None,
            connect_timeout: Duration::from_secs(15),
            stall_timeout: Duration::from_secs(30),
            attempts: 5,
            pause: Duration::from_millis(250),
        }
    }
}

/// Told how many bytes are there, and of how many once that is known.
pub type Progress<'a> = dyn FnMut(u64, Option<u64>) + Send + 'a;

/// What a file must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Its digest.
    pub sha256: [u8; 32],
    /// Its size in bytes.
    pub size: u64,
}

/// What a server said about a version of a document, to be asked for a newer one only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Validators {
    /// `ETag`.
    pub etag: Option<String>,
    /// `Last-Modified`, as the server wrote it.
    pub last_modified: Option<String>,
}

/// A document and what the server said about this version of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Document {
    /// The contents.
    pub bytes: Vec<u8>,
    /// For the next time.
    pub validators: Validators,
}

/// Downloads. Cheap to clone; clones share connections.
#[derive(Clone, Debug)]
pub struct Fetcher {
    client: Arc<Client>,
}

impl Fetcher {
    /// Does nothing yet: the HTTP client is built when an address first needs it.
    pub fn new(settings: Settings) -> Self {
        Self { client: Arc::new(Client::new(settings)) }
    }

    /// The contents of a small document.
    pub async fn fetch(&self, url: &str, progress: &mut Progress<'_>) -> Result<Vec<u8>, Error> {
        let document = self.fetch_newer(url, &Validators::default(), progress).await?;
        Ok(document.map(|document| document.bytes).unwrap_or_default())
    }

    /// The contents of a small document, or none where it is still the version that the validators
    /// are of.
    pub async fn fetch_newer(
        &self,
        url: &str,
        known: &Validators,
        progress: &mut Progress<'_>,
    ) -> Result<Option<Document>, Error> {
        match local::path(url) {
            Some(path) => local::read(url, &path, known, progress).await,
            None => memory::fetch(&self.client, url, known, progress).await,
        }
    }

    /// A file of unknown length and content, piece by piece; none where it is still the version that
    /// is known.
    pub async fn stream(&self, request: Request) -> Result<Option<Stream>, Error> {
        stream::open(self.client.clone(), request).await
    }

    /// Downloads into a file, which afterwards is exactly what was expected. A file that is there
    /// already is taken as the beginning of it. On an error the file is left for a next try.
    pub async fn fetch_to_file(
        &self,
        url: &str,
        destination: &Path,
        expected: &Expected,
        progress: &mut Progress<'_>,
    ) -> Result<(), Error> {
        match local::path(url) {
            Some(path) => local::copy(url, &path, destination, expected, progress).await,
            None => file::fetch(&self.client, url, destination, expected, progress).await,
        }
    }
}
