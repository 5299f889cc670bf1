//! A package archive in a directory, and a depot that uses it.

use crate::debian::Settings;
use crate::debian::depot::Depot;
use debian::deb::Hashing;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// An archive that the configuration in `apt/` names, and a state folder.
pub(super) struct Archive {
    folder: TempDir,
    packages: String,
}

/// One entry of a package: path, and contents or `-> target` for a link; a slash at the end makes a
/// directory.
pub(super) type Entry<'a> = (&'a str, &'a str);

impl Archive {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["mirror/pool", "mirror/dists/suite/main/binary-amd64", "apt/sources.list.d"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        let mirror = folder.path().join("mirror");
        let source = format!("deb [trusted=yes] file://{} suite main\n", mirror.display());
        fs::write(folder.path().join("apt/sources.list"), source).unwrap();
        Self { folder, packages: String::new() }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// With downloads in a folder that is not the store's.
    pub(super) fn depot(&self, refresh: Duration) -> Depot {
        self.depot_with(refresh, Some(self.path("cache")))
    }

    pub(super) fn depot_with(&self, refresh: Duration, cache: Option<PathBuf>) -> Depot {
        let settings =
            Settings { apt: self.path("apt"), mirror: None, keyring: None, refresh, cache };
        let store = store::Store::open(&self.path("state")).unwrap();
        let mut depot =
            Depot::new(store, fetch::Fetcher::new(fetch::Settings::default()), settings);
        depot.architecture = "amd64";
        depot
    }

    /// Adds a package to the index; `fields` are further lines of its control file.
    pub(super) fn add(
        &mut self,
        name: &str,
        fields: &str,
        control: &[Entry<'_>],
        data: &[Entry<'_>],
    ) {
        let fields = format!("Package: {name}\nVersion: 1\nArchitecture: amd64\n{fields}");
        let control_file = [("./control", fields.as_str())];
        let control = [&control_file, control].concat();
        let bytes = package(&control, data);
        let file = format!("pool/{name}.deb");
        fs::write(self.path("mirror").join(&file), &bytes).unwrap();
        let (size, digest) = (bytes.len(), sha256(&bytes));
        write!(self.packages, "{fields}Filename: {file}\nSize: {size}\nSHA256: {digest}\n\n")
            .unwrap();
    }

    /// Writes the index and the Release file over it.
    pub(super) fn publish(&self) {
        self.publish_at("Sat, 07 Jun 2025 09:13:06 UTC");
    }

    /// The same, signed at another time.
    pub(super) fn publish_at(&self, date: &str) {
        let suite = self.path("mirror/dists/suite");
        fs::write(suite.join("main/binary-amd64/Packages"), &self.packages).unwrap();
        let (size, digest) = (self.packages.len(), sha256(self.packages.as_bytes()));
        let release = format!(
            "Suite: suite\nDate: {date}\nSHA256:\n \
             {digest} {size} main/binary-amd64/Packages\n"
        );
        fs::write(suite.join("InRelease"), release).unwrap();
    }
}

/// A .deb.
fn package(control: &[Entry<'_>], data: &[Entry<'_>]) -> Vec<u8> {
    let mut archive = ar::Builder::new(vec![]);
    let members = [("control.tar", tar(control)), ("data.tar", tar(data))];
    for (name, bytes) in members {
        let header = ar::Header::new(name.as_bytes().to_vec(), bytes.len() as u64);
        archive.append(&header, &bytes[..]).unwrap();
    }
    archive.into_inner().unwrap()
}

fn tar(entries: &[Entry<'_>]) -> Vec<u8> {
    let mut archive = tar::Builder::new(vec![]);
    for (path, contents) in entries {
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o755);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(7);
        header.set_size(0);
        if let Some(target) = contents.strip_prefix("-> ") {
            header.set_entry_type(tar::EntryType::Symlink);
            archive.append_link(&mut header, path, target).unwrap();
        } else if path.ends_with('/') {
            header.set_entry_type(tar::EntryType::Directory);
            archive.append_data(&mut header, path, std::io::empty()).unwrap();
        } else {
            header.set_size(contents.len() as u64);
            archive.append_data(&mut header, path, contents.as_bytes()).unwrap();
        }
    }
    archive.into_inner().unwrap()
}

fn sha256(bytes: &[u8]) -> String {
    hex::encode(Hashing::new(bytes).finish().unwrap())
}

/// The text of a file of a tree.
pub(super) fn text(view: &store::View, path: &str) -> String {
    std::io::read_to_string(view.open(path).unwrap()).unwrap()
}

/// Replaces a file by something else of the same name.
pub(super) fn replace(path: &Path, contents: &str) {
    fs::remove_file(path).unwrap();
    fs::write(path, contents).unwrap();
}
