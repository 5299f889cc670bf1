//! The signed state of a suite: fetched when there is none or when it is old, verified once, and
//! kept as the few facts that are needed of it.

use super::cache::read;
use super::depot::Depot;
use super::error::Error;
use super::host::Origin;
use debian::release::{self, Rank, Release};
use fetch::{Document, Validators};
use protocol::Digest;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Raised when the meaning of a stored record changes.
const FORMAT: u64 = 2;

/// What a suite of an archive offers at the moment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Suite {
    /// Root of the archive.
    pub(super) uri: String,
    /// When the archive was last asked, in seconds since the Unix epoch.
    asked: i64,
    /// Until when the signed file may be used.
    valid_until: Option<i64>,
    /// How willingly its packages are chosen: 2 as usual, 1 later, 0 last.
    pub(super) rank: u8,
    /// The package indexes, one a component.
    pub(super) indexes: Vec<IndexFile>,
    etag: Option<String>,
    last_modified: Option<String>,
}

/// A package index as the signed file describes it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct IndexFile {
    /// Name with its compression.
    pub(super) name: String,
    /// Path below the root of the archive.
    pub(super) path: String,
    pub(super) sha256: [u8; 32],
    pub(super) size: u64,
}

impl Suite {
    fn expired(&self, now: i64) -> bool {
        self.valid_until.is_some_and(|until| until < now)
    }

    pub(super) fn rank(&self) -> Rank {
        match self.rank {
            0 => Rank::Last,
            1 => Rank::Later,
            _ => Rank::Usual,
        }
    }
}

impl Depot {
    /// The state of a suite, from the cache while it is fresh.
    pub(super) async fn suite(&self, origin: &Origin) -> Result<Suite, Error> {
        let key = self.suite_key(origin);
        let _only_one = self.locks.hold(key).await;
        let path = self.cache.release(&key);
        let known = load(&path)?;
        let now = now();
        let refresh = i64::try_from(self.settings.refresh.as_secs()).unwrap_or(i64::MAX);
        let fresh = |suite: &Suite| {
            suite.asked <= now && now - suite.asked < refresh && !suite.expired(now)
        };
        if let Some(suite) = known.as_ref().filter(|suite| fresh(suite)) {
            return Ok(suite.clone());
        }
        let suite = self.ask(origin, known, now).await?;
        let bytes = postcard::to_stdvec(&suite)
            .map_err(|error| Error::Internal(format!("cannot encode a release: {error}")))?;
        self.cache.write(&path, &bytes)?;
        Ok(suite)
    }

    fn suite_key(&self, origin: &Origin) -> Digest {
        let mut digest = Digest::builder("debian:suite");
        digest.number(FORMAT).text(self.architecture);
        origin.digest_into(&mut digest);
        digest.finish()
    }

    async fn ask(&self, origin: &Origin, known: Option<Suite>, now: i64) -> Result<Suite, Error> {
        let archive = &origin.archive;
        let url = format!("{}/dists/{}/InRelease", archive.uri, archive.suite);
        let validators = known.as_ref().map(|suite| Validators {
            etag: suite.etag.clone(),
            last_modified: suite.last_modified.clone(),
        });
        let validators = validators.unwrap_or_default();
        let usable = known.filter(|suite| !suite.expired(now));
        match (self.fetcher.fetch_newer(&url, &validators, &mut |_, _| ()).await, usable) {
            (Ok(Some(document)), _) => self.verify(origin, &url, document, now),
            (Ok(None), Some(suite)) => Ok(Suite { asked: now, ..suite }),
            (Ok(None), None) => {
                // Still the old file, and that expired: the reason is in the file itself.
                let bytes = self.fetcher.fetch(&url, &mut |_, _| ()).await?;
                self.verify(origin, &url, Document { bytes, ..Document::default() }, now)
            }
            (Err(fetch::Error::NotFound { .. }), _) => {
                Err(Error::NoSuite { archive: archive.uri.clone(), suite: archive.suite.clone() })
            }
            (Err(error), Some(suite)) => {
                tracing::warn!(%error, "the archive cannot be asked; going on with what is known");
                Ok(suite)
            }
            (Err(error), None) => Err(error.into()),
        }
    }

    fn verify(
        &self,
        origin: &Origin,
        url: &str,
        document: Document,
        now: i64,
    ) -> Result<Suite, Error> {
        let release = match origin.archive.trusted {
            true => release::read_unverified(&document.bytes, now),
            false => release::verify(&document.bytes, &origin.keyring()?, now),
        };
        let release = release.map_err(|source| Error::Release { url: url.to_owned(), source })?;
        let indexes = indexes(&release, origin, self.architecture);
        if indexes.is_empty() {
            return Err(Error::NoIndex {
                archive: origin.archive.uri.clone(),
                suite: origin.archive.suite.clone(),
                architecture: self.architecture.to_owned(),
            });
        }
        Ok(Suite {
            uri: origin.archive.uri.clone(),
            asked: now,
            valid_until: release.valid_until,
            rank: release.rank as u8,
            indexes,
            etag: document.validators.etag,
            last_modified: document.validators.last_modified,
        })
    }
}

fn indexes(release: &Release, origin: &Origin, architecture: &str) -> Vec<IndexFile> {
    let archive = &origin.archive;
    let described = archive.components.iter().filter_map(|component| {
        let (name, file) = release.packages(component, architecture)?;
        let path = release::path(release, &archive.suite, &name, &file);
        Some(IndexFile { name, path, sha256: file.sha256, size: file.size })
    });
    described.collect()
}

/// A record that cannot be read is as good as none.
fn load(path: &Path) -> Result<Option<Suite>, Error> {
    Ok(read(path)?.and_then(|bytes| postcard::from_bytes(&bytes).ok()))
}

pub(super) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}
