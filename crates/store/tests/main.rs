//! The store through its face, with real overlay mounts. Needs root.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails, in its helpers too")]

mod altering;
mod chain;
mod comparing;
mod damage;
mod editing;
mod hostile;
mod image_layers;
mod intake;
mod merging;
mod outlet;
mod persistence;
mod scratches;
mod space;
mod user_namespace;
mod visiting;

use std::collections::BTreeMap;
use std::fs;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use store::{Kind, Meta, Mount, Owner, Snapshot, Store, View, Walk};
use tempfile::TempDir;

/// Nobody's in particular.
const ROOT: Owner = Owner { uid: 0, gid: 0 };

/// A store in a folder of its own. Memory is preferred, because some disks remove files slowly.
fn new_store() -> (TempDir, Store) {
    let memory = Path::new("/dev/shm");
    let folder = match memory.is_dir() {
        true => tempfile::tempdir_in(memory).unwrap(),
        false => tempfile::tempdir().unwrap(),
    };
    let store = Store::open(folder.path()).unwrap();
    (folder, store)
}

/// Path by which a detached mount can be read and written.
fn path_of(mount: &Mount) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", mount.as_fd().as_raw_fd()))
}

fn meta(mode: u32) -> Meta {
    Meta { mode, ..Meta::default() }
}

/// A snapshot with these files, each with its own path as contents.
fn tree_of(store: &Store, files: &[&str]) -> Snapshot {
    let mut editor = store.edit(&Snapshot::empty()).unwrap();
    for file in files {
        editor.new_file(file, file.as_bytes(), 0o644, ROOT).unwrap();
    }
    editor.commit().unwrap()
}

/// Every path of a tree with what is there, in one line each.
type Listing = BTreeMap<String, String>;

fn listing(view: &View) -> Listing {
    let mut lines = Listing::new();
    let mut add = |path: &str, metadata: &store::Metadata| {
        let held = match metadata.kind {
            Kind::File => format!("file {}", read(view, path)),
            Kind::Symlink => format!("link {}", view.read_link(path).unwrap()),
            Kind::Directory => "directory".to_owned(),
            other => format!("{other:?}"),
        };
        let Owner { uid, gid } = metadata.owner();
        lines.insert(path.to_owned(), format!("{:o} {uid}:{gid} {held}", metadata.mode));
        Walk::Continue
    };
    add(".", &view.stat("").unwrap());
    view.walk("", &mut add).unwrap();
    lines
}

fn listing_of_mount(mount: &Mount) -> Listing {
    let mut lines = Listing::new();
    list_directory(&path_of(mount), "", &mut lines);
    lines
}

fn list_directory(path: &Path, relative: &str, lines: &mut Listing) {
    let metadata = fs::metadata(path).unwrap();
    let shown = if relative.is_empty() { "." } else { relative };
    lines.insert(shown.to_owned(), line(&metadata, "directory"));
    for entry in fs::read_dir(path).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let below = if relative.is_empty() { name } else { format!("{relative}/{name}") };
        let metadata = entry.path().symlink_metadata().unwrap();
        if metadata.is_dir() {
            list_directory(&entry.path(), &below, lines);
            continue;
        }
        let held = if metadata.is_symlink() {
            format!("link {}", fs::read_link(entry.path()).unwrap().display())
        } else if metadata.is_file() {
            format!("file {}", fs::read_to_string(entry.path()).unwrap())
        } else {
            format!("special {:o}", metadata.mode())
        };
        lines.insert(below, line(&metadata, &held));
    }
}

fn line(metadata: &fs::Metadata, held: &str) -> String {
    let mode = metadata.permissions().mode() & 0o7777;
    format!("{mode:o} {}:{} {held}", metadata.uid(), metadata.gid())
}

fn read(view: &View, path: &str) -> String {
    std::io::read_to_string(view.open(path).unwrap()).unwrap()
}

/// Names of everything in a snapshot.
fn paths(store: &Store, snapshot: &Snapshot) -> Vec<String> {
    listing(&store.view(snapshot)).into_keys().filter(|path| path != ".").collect()
}

/// A small generator of numbers that only depend on the seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

/// A result of no particular kind that needs nothing.
fn remembered(value: Vec<u8>) -> store::Remembered {
    store::Remembered { value, kind: "test", label: "a test".to_owned(), needs: vec![] }
}
