//! Packages as layers: each .deb is downloaded once, unpacked once, and from then on is a layer that
//! any image can have by hard links.
//!
//! A layer holds the package's files and its files of dpkg's `info`. Top-level directories that are
//! links into `/usr` on a Debian system are rewritten, because a layer with a real `/lib` would hide
//! the link; `info/*.list` keeps the names that dpkg knows.

use super::cache::remove;
use super::depot::Depot;
use super::error::Error;
use super::plan::Package;
use super::report::{Report, Step};
use debian::database;
use debian::deb::{Control, Deb, Entry, Hashing, Kind};
use futures::{StreamExt as _, TryStreamExt as _};
use protocol::{Digest, Unit};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use store::{LayerBuilder, LayerRef, Meta, Needs, Remembered, Snapshot, Store, Timestamp};

/// Raised when the same .deb gives another layer or another record.
const FORMAT: u64 = 3;
/// Connections to archives at once.
const DOWNLOADS: usize = 6;
/// Directories of the root that are links to their namesakes in `/usr`.
pub(super) const MERGED: [&str; 6] = ["bin", "sbin", "lib", "lib32", "lib64", "libx32"];

/// A package that is a layer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Unpacked {
    layer: LayerRef,
    pub(super) facts: Facts,
}

/// What is to be known of a package that is unpacked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Facts {
    pub(super) name: String,
    pub(super) architecture: String,
    /// Stem of its files in dpkg's `info`.
    pub(super) info: String,
    /// Its paragraph in dpkg's `status`, as unpacked.
    pub(super) stanza: String,
    /// The text of its `triggers` file.
    pub(super) triggers: String,
    /// Whether it has a script to be run before it is unpacked.
    pub(super) preinst: bool,
    /// Paths of all it has except directories, as dpkg knows them.
    pub(super) files: Vec<String>,
    /// Whether it brings the links into `/usr` itself.
    pub(super) brings_links: bool,
    /// Time of its newest entry, in seconds since the Unix epoch.
    pub(super) newest: u64,
}

/// Time of the newest entry of packages: a present for their scripts that depends on nothing else.
/// The date of an archive would not do, since archives are made anew when no package changed.
pub(super) fn newest(packages: &[Unpacked]) -> u64 {
    packages.iter().map(|unpacked| unpacked.facts.newest).max().unwrap_or(0)
}

impl Unpacked {
    pub(super) fn layer(&self) -> LayerRef {
        self.layer.clone()
    }
}

/// What happened so far to a set of packages.
struct Tally {
    download: Option<Arc<dyn Step>>,
    unpack: Option<Arc<dyn Step>>,
    bytes: AtomicU64,
    all_bytes: u64,
    unpacked: AtomicU64,
    all: u64,
}

impl Depot {
    /// The layers of packages, in their order. What is missing is downloaded and unpacked, both at
    /// the same time and the largest first, so that no long one is left for the end.
    pub(super) async fn unpacked(
        &self,
        packages: &[Package],
        report: &dyn Report,
    ) -> Result<Vec<Unpacked>, Error> {
        let mut found: Vec<Option<Unpacked>> =
            packages.iter().map(|package| self.remembered_layer(package)).collect();
        let mut missing: Vec<usize> =
            (0..packages.len()).filter(|number| found[*number].is_none()).collect();
        if !missing.is_empty() {
            missing.sort_by_key(|number| std::cmp::Reverse(packages[*number].size));
            let mut tally = self.tally(packages, &missing, report);
            tally.unpack = Some(report.step("unpack packages"));
            let tally = tally;
            let work = missing.into_iter().map(|number| {
                let (tally, package) = (&tally, &packages[number]);
                async move { Ok::<_, Error>((number, self.unpack(package, tally).await?)) }
            });
            let mut work = futures::stream::iter(work).buffer_unordered(DOWNLOADS);
            while let Some((number, unpacked)) = work.try_next().await? {
                found[number] = Some(unpacked);
            }
            tally.finish();
        }
        let whole: Option<Vec<Unpacked>> = found.into_iter().collect();
        whole.ok_or_else(|| Error::Internal("a package was neither found nor unpacked".to_owned()))
    }

    /// Downloads packages that are not in the cache.
    pub(super) async fn downloaded(
        &self,
        packages: &[Package],
        report: &dyn Report,
    ) -> Result<(), Error> {
        let numbers: Vec<usize> = (0..packages.len()).collect();
        let tally = self.tally(packages, &numbers, report);
        let work = numbers.into_iter().map(|number| self.download(&packages[number], &tally));
        futures::stream::iter(work).buffer_unordered(DOWNLOADS).try_collect::<()>().await?;
        tally.finish();
        Ok(())
    }

    fn tally(&self, packages: &[Package], numbers: &[usize], report: &dyn Report) -> Tally {
        let absent = numbers.iter().map(|number| &packages[*number]);
        let absent = absent.filter(|package| !self.cache.package(&package.sha256).exists());
        let all_bytes = absent.map(|package| package.size).sum();
        Tally {
            download: (all_bytes > 0).then(|| report.step("download packages")),
            unpack: None,
            bytes: AtomicU64::new(0),
            all_bytes,
            unpacked: AtomicU64::new(0),
            all: numbers.len() as u64,
        }
    }

    fn remembered_layer(&self, package: &Package) -> Option<Unpacked> {
        let bytes = self.store.action(&layer_key(package))?;
        let mut unpacked: Unpacked = postcard::from_bytes(&bytes).ok()?;
        unpacked.layer = self.store.pin_layer(&unpacked.layer)?;
        Some(unpacked)
    }

    async fn unpack(&self, package: &Package, tally: &Tally) -> Result<Unpacked, Error> {
        let key = layer_key(package);
        let _only_one = self.locks.hold(key).await;
        if let Some(unpacked) = self.remembered_layer(package) {
            tally.unpacked();
            return Ok(unpacked);
        }
        self.download(package, tally).await?;
        let closed = |_| Error::Internal("the unpackers are gone".to_owned());
        let _turn = self.unpackers.acquire().await.map_err(closed)?;
        let (store, path) = (self.store.clone(), self.cache.package(&package.sha256));
        let (package, label) = (package.clone(), format!("{} {}", package.name, package.version));
        let unpacked = super::blocking(move || unpack_file(&store, &path, &package)).await?;
        let needs = Needs::new().snapshot(&Snapshot::empty().push(unpacked.layer())).encode();
        let (value, label) = (super::encode(&unpacked)?, format!("unpacked {label}"));
        self.store.put_action(key, Remembered { value, kind: "debian", label, needs });
        tally.unpacked();
        Ok(unpacked)
    }

    async fn download(&self, package: &Package, tally: &Tally) -> Result<(), Error> {
        let path = self.cache.package(&package.sha256);
        if path.exists() {
            return Ok(());
        }
        self.make_room(package.size).await?;
        let temporary = self.cache.temporary();
        let expected = fetch::Expected { sha256: package.sha256, size: package.size };
        let mut before = 0;
        let mut progress = |now: u64, _| {
            tally.downloaded(now.saturating_sub(before));
            before = now.max(before);
        };
        self.fetcher
            .fetch_to_file(&package.url, temporary.path(), &expected, &mut progress)
            .await?;
        temporary.persist(&path)
    }
}

impl Tally {
    fn downloaded(&self, bytes: u64) {
        let sum = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if let Some(step) = &self.download {
            step.progress(sum, self.all_bytes, Unit::Bytes);
        }
    }

    fn unpacked(&self) {
        let count = self.unpacked.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some(step) = &self.unpack {
            step.progress(count, self.all, Unit::Items);
        }
    }

    fn finish(&self) {
        self.download.iter().chain(&self.unpack).for_each(|step| step.done());
    }
}

fn layer_key(package: &Package) -> Digest {
    Digest::builder("debian:unpack").number(FORMAT).bytes(&package.sha256).finish()
}

/// Unpacks a file of the cache, which is checked on the way: what is damaged is removed from there.
fn unpack_file(store: &Store, path: &Path, package: &Package) -> Result<Unpacked, Error> {
    let file = File::open(path).map_err(Error::io("read", path))?;
    let mut reader = Hashing::new(file);
    let result = write_layer(store, &mut reader, package);
    let sha256 = reader.finish().map_err(Error::io("read", path))?;
    if sha256 != package.sha256 {
        remove(path);
        return Err(Error::Damaged { package: package.name.clone() });
    }
    let (builder, facts) = result?;
    Ok(Unpacked { layer: builder.commit()?, facts })
}

/// The layer of a package, not committed yet, and what is to be known of it.
fn write_layer(
    store: &Store,
    reader: &mut Hashing<File>,
    package: &Package,
) -> Result<(LayerBuilder, Facts), Error> {
    let broken = |source| Error::Deb { package: package.name.clone(), source };
    let deb = Deb::open(reader).map_err(broken)?;
    let conffiles = database::conffiles(&deb.control().file_text("conffiles"));
    let mut writer = Writer {
        builder: store.new_layer()?,
        package: package.name.clone(),
        conffiles: conffiles.into_iter().collect(),
        paths: vec![],
        files: vec![],
        sums: deb.control().file("md5sums").is_none().then(String::new),
        shipped: vec![],
        brings_links: false,
        newest: 0,
    };
    let unpacked =
        deb.unpack(&mut |entry, contents| writer.add(entry, contents).map_err(Failure::Other));
    let control = unpacked.map_err(|failure| match failure {
        Failure::Package(source) => broken(source),
        Failure::Other(error) => error,
    })?;
    writer.finish(&control, package)
}

/// Writes the entries of one package.
struct Writer {
    builder: LayerBuilder,
    package: String,
    conffiles: HashSet<String>,
    paths: Vec<String>,
    files: Vec<String>,
    /// Checksums, for a package that brings none.
    sums: Option<String>,
    /// Configuration files that are really there.
    shipped: Vec<String>,
    brings_links: bool,
    newest: u64,
}

/// What stops an unpack: the package, or what becomes of it.
enum Failure {
    Package(debian::deb::Error),
    Other(Error),
}

impl From<debian::deb::Error> for Failure {
    fn from(source: debian::deb::Error) -> Self {
        Self::Package(source)
    }
}

impl Writer {
    fn add(&mut self, entry: &Entry, contents: &mut dyn Read) -> Result<(), Error> {
        let path = self.place(entry);
        self.paths.push(entry.path.clone());
        self.newest = self.newest.max(entry.mtime);
        let meta = Meta {
            mode: entry.mode,
            uid: entry.uid,
            gid: entry.gid,
            mtime: Timestamp { seconds: entry.mtime.cast_signed(), nanoseconds: 0 },
        };
        if entry.kind == Kind::Directory {
            return Ok(self.builder.directory(&path, &meta)?);
        }
        let conffile = format!("/{}", entry.path);
        let path = match self.conffiles.contains(&conffile) {
            true => {
                self.shipped.push(conffile);
                format!("{path}{}", database::NEW_CONFFILE)
            }
            false => path,
        };
        self.files.push(entry.path.clone());
        self.write(entry, &path, &meta, contents)
    }

    fn write(
        &mut self,
        entry: &Entry,
        path: &str,
        meta: &Meta,
        contents: &mut dyn Read,
    ) -> Result<(), Error> {
        match &entry.kind {
            Kind::File => self.write_file(entry, path, meta, contents)?,
            Kind::Symlink(target) => self.builder.symlink(path, target, meta)?,
            Kind::HardLink(target) => self.builder.hard_link(&merged(target), path)?,
            Kind::Pipe => self.builder.fifo(path, meta)?,
            Kind::Directory => {}
            Kind::Character(..) | Kind::Block(..) => {
                let source = debian::deb::Error::Kind(entry.path.clone());
                return Err(Error::Deb { package: self.package.clone(), source });
            }
        }
        Ok(())
    }

    fn write_file(
        &mut self,
        entry: &Entry,
        path: &str,
        meta: &Meta,
        contents: &mut dyn Read,
    ) -> Result<(), Error> {
        let Some(sums) = &mut self.sums else {
            self.builder.file(path, meta, contents)?;
            return Ok(());
        };
        let mut reader = database::Summing::new(contents);
        self.builder.file(path, meta, &mut reader)?;
        let line = reader.line(&entry.path);
        if !path.ends_with(database::NEW_CONFFILE) {
            sums.push_str(&line);
        }
        Ok(())
    }

    /// Where an entry goes. The links into `/usr` themselves, which newer suites ship, stay.
    fn place(&mut self, entry: &Entry) -> String {
        let is_link = matches!(entry.kind, Kind::Symlink(_));
        if is_link && MERGED.contains(&entry.path.as_str()) {
            self.brings_links = true;
            return entry.path.clone();
        }
        merged(&entry.path)
    }

    /// Writes the package's part of dpkg's `info`.
    fn finish(
        mut self,
        control: &Control,
        package: &Package,
    ) -> Result<(LayerBuilder, Facts), Error> {
        let missing = || Error::Deb {
            package: package.name.clone(),
            source: debian::deb::Error::Missing("Package"),
        };
        let info = database::info_name(&control.fields).ok_or_else(missing)?;
        let list = database::file_list(self.paths.iter().map(String::as_str));
        self.info(&info, "list", 0o644, list.as_bytes())?;
        for file in control.files.iter().filter(|file| file.name != "list") {
            self.info(&info, &file.name, file.mode, &file.contents)?;
        }
        if let Some(sums) = self.sums.take() {
            self.info(&info, "md5sums", 0o644, sums.as_bytes())?;
        }
        let facts = Facts {
            name: package.name.clone(),
            architecture: package.architecture.clone(),
            stanza: database::unpacked(&control.text, &self.shipped),
            triggers: control.file_text("triggers"),
            preinst: control.file("preinst").is_some(),
            files: self.files,
            brings_links: self.brings_links,
            newest: self.newest,
            info,
        };
        Ok((self.builder, facts))
    }

    fn info(&mut self, stem: &str, ending: &str, mode: u32, text: &[u8]) -> Result<(), Error> {
        let path = format!("{}/info/{stem}.{ending}", database::DIRECTORY);
        let meta = Meta { mode, ..Meta::default() };
        self.builder.file(&path, &meta, &mut &text[..])?;
        Ok(())
    }
}

/// A path with a first name that is a link into `/usr` rewritten.
pub(super) fn merged(path: &str) -> String {
    let first = path.split('/').next().unwrap_or(path);
    match MERGED.contains(&first) {
        true => format!("usr/{path}"),
        false => path.to_owned(),
    }
}
