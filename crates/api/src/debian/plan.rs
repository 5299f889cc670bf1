//! Which packages an image is made of, exactly. A plan is remembered by the package indexes it was made
//! from, so an index is loaded only when something new is asked of it.

use super::address::Address;
use super::cache::read;
use super::depot::Depot;
use super::error::Error;
use super::release::{IndexFile, Suite};
use super::report::Report;
use debian::index::Index;
use debian::release::Rank;
use debian::resolve::{self, Archives, Selection};
use protocol::{Digest, Unit};
use serde::{Deserialize, Serialize};
use std::io::Read as _;
use std::sync::Arc;
use store::Remembered;

/// Raised when equal indexes may give another plan.
const FORMAT: u64 = 3;

/// The packages of an image.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Plan {
    /// What every image of the suite has.
    pub(super) base: Vec<Package>,
    /// How many packages of the base, from the first on, are to be configured before the rest.
    pub(super) essential: usize,
    /// What the named packages add to it.
    pub(super) added: Vec<Package>,
}

/// One package of an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// `all` or the architecture it is for.
    pub architecture: String,
    /// Where it comes from.
    pub url: String,
    /// Bytes of the .deb.
    pub size: u64,
    /// Digest of the .deb.
    pub sha256: [u8; 32],
    /// Whether it is there only because another package needs it.
    pub automatic: bool,
    /// Whether others must be configured before it is unpacked.
    pub(super) pre_depends: bool,
}

impl Depot {
    /// The plan for an address.
    pub(super) async fn plan(
        &self,
        address: &Address,
        suites: &[Suite],
        report: &dyn Report,
    ) -> Result<Plan, Error> {
        let key = plan_key(address, suites);
        if let Some(plan) = self.remembered_plan(&key) {
            return Ok(plan);
        }
        let _only_one = self.locks.hold(key).await;
        if let Some(plan) = self.remembered_plan(&key) {
            return Ok(plan);
        }
        let indexes = self.indexes(suites, report).await?;
        let step = report.step("resolve packages");
        let (architecture, names) = (self.architecture, address.packages().to_vec());
        let suites = suites.to_vec();
        let plan = super::blocking(move || make(architecture, &suites, indexes, &names)).await?;
        step.done();
        let (value, label) = (super::encode(&plan)?, format!("plan of {address}"));
        let remembered = Remembered { value, kind: "debian", label, needs: vec![] };
        self.store.put_action(key, remembered);
        Ok(plan)
    }

    fn remembered_plan(&self, key: &Digest) -> Option<Plan> {
        postcard::from_bytes(&self.store.action(key)?).ok()
    }

    /// The package indexes of all suites, in order; what the cache lacks is downloaded.
    async fn indexes(&self, suites: &[Suite], report: &dyn Report) -> Result<Vec<Index>, Error> {
        let files: Vec<(&Suite, &IndexFile)> = suites
            .iter()
            .flat_map(|suite| suite.indexes.iter().map(move |file| (suite, file)))
            .collect();
        let missing: u64 = files
            .iter()
            .filter(|(_, file)| !self.cache.index(&file.sha256).exists())
            .map(|(_, file)| file.size)
            .sum();
        let step = (missing > 0).then(|| report.step("download package lists"));
        let done = Arc::new(std::sync::atomic::AtomicU64::new(0));
        let load = |(suite, file): (&Suite, &IndexFile)| {
            let (url, file) = (format!("{}/{}", suite.uri, file.path), file.clone());
            let (step, done) = (step.clone(), done.clone());
            async move {
                let mut before = 0;
                let mut progress = |now: u64, _| {
                    use std::sync::atomic::Ordering::Relaxed;
                    let sum = done.fetch_add(now.saturating_sub(before), Relaxed) + now - before;
                    before = now.max(before);
                    if let Some(step) = &step {
                        step.progress(sum, missing, Unit::Bytes);
                    }
                };
                self.index(&url, &file, &mut progress).await
            }
        };
        let indexes = futures::future::try_join_all(files.into_iter().map(load)).await?;
        if let Some(step) = step {
            step.done();
        }
        Ok(indexes)
    }

    async fn index(
        &self,
        url: &str,
        file: &IndexFile,
        progress: &mut fetch::Progress<'_>,
    ) -> Result<Index, Error> {
        let path = self.cache.index(&file.sha256);
        let stored = path.clone();
        if let Some(index) = super::blocking(move || stored_index(&stored)).await? {
            return Ok(index);
        }
        self.make_room(file.size).await?;
        let temporary = self.cache.temporary();
        let expected = fetch::Expected { sha256: file.sha256, size: file.size };
        self.fetcher.fetch_to_file(url, temporary.path(), &expected, progress).await?;
        let (cache, url, name) = (self.cache.clone(), url.to_owned(), file.name.clone());
        super::blocking(move || {
            let text = decode(temporary.path(), &name)?;
            let index =
                Index::parse(&text).map_err(|source| Error::Index { url: url.clone(), source })?;
            let sum = Digest::of(index.as_bytes());
            cache.write(&path, &[sum.as_bytes(), index.as_bytes()].concat())?;
            Ok(index)
        })
        .await
    }
}

/// A stored index begins with its own digest; what does not match it is made again.
fn stored_index(path: &std::path::Path) -> Result<Option<Index>, Error> {
    let Some(mut bytes) = read(path)? else { return Ok(None) };
    let index = bytes.split_off(bytes.len().min(32));
    if bytes[..] != Digest::of(&index).as_bytes()[..] {
        return Ok(None);
    }
    Ok(Index::from_bytes(index).ok())
}

fn decode(path: &std::path::Path, name: &str) -> Result<String, Error> {
    let file = std::fs::File::open(path).map_err(Error::io("read", path))?;
    let mut text = vec![];
    let mut reader = debian::codec::decoder(name, file)
        .map_err(|error| Error::Internal(format!("a package index: {error}")))?;
    reader.read_to_end(&mut text).map_err(Error::io("read", path))?;
    Ok(String::from_utf8(text)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

fn plan_key(address: &Address, suites: &[Suite]) -> Digest {
    let mut digest = Digest::builder("debian:plan");
    digest.number(FORMAT).number(suites.len() as u64);
    for suite in suites {
        digest.text(&suite.uri).number(u64::from(suite.rank)).number(suite.indexes.len() as u64);
        for file in &suite.indexes {
            digest.bytes(&file.sha256);
        }
    }
    for name in address.packages() {
        digest.text(name);
    }
    digest.finish()
}

fn make(
    architecture: &str,
    suites: &[Suite],
    indexes: Vec<Index>,
    names: &[String],
) -> Result<Plan, Error> {
    let mut archives = Archives::new(architecture);
    let mut uris = vec![];
    let origins = suites.iter().flat_map(|suite| suite.indexes.iter().map(move |_| suite));
    for (index, suite) in indexes.into_iter().zip(origins) {
        let rank: Rank = suite.rank();
        archives.push(index, rank);
        uris.push(suite.uri.as_str());
    }
    let base = resolve::base(&archives)?;
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let added = resolve::extend(&archives, &base, &names)?;
    let list = |selection: &Selection| packages(&archives, &uris, selection);
    Ok(Plan { base: list(&base), essential: base.essential, added: list(&added) })
}

fn packages(archives: &Archives, uris: &[&str], selection: &Selection) -> Vec<Package> {
    let describe = |chosen: &resolve::Chosen| {
        let package = archives.package(chosen.id);
        let uri = uris.get(chosen.id.archive as usize).copied().unwrap_or_default();
        Package {
            name: package.name().to_owned(),
            version: package.version().to_owned(),
            architecture: package.architecture().to_owned(),
            url: format!("{uri}/{}", package.filename()),
            size: package.size(),
            sha256: package.sha256(),
            automatic: chosen.automatic,
            pre_depends: !package.pre_depends().is_empty(),
        }
    };
    selection.packages.iter().map(describe).collect()
}
