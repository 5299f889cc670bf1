//! What tests of exports work with: a tree of all sorts, how to look at one, and the two ways out.

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::time::{Duration, SystemTime};
use testkit::{Cli, State};

/// How a tree gets to the host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Way {
    /// The client hands its directory over.
    Handed,
    /// The client writes what it is sent: it has fewer rights than the engine.
    Stream,
}

impl Way {
    pub(crate) const BOTH: [Self; 2] = [Self::Handed, Self::Stream];

    /// A run of `core`.
    pub(crate) fn core<'a>(self, state: &'a State, words: &[&str]) -> Cli<'a> {
        if self == Self::Handed {
            return state.cli(["core"]).args(words);
        }
        // The engine is started with all rights, before.
        state.cli(["core", "version"]).run().ok();
        let binary = testkit::binary();
        let start = ["--bounding-set=-fowner", "--", binary.to_str().unwrap(), "core"];
        state.program(Path::new("/usr/bin/setpriv")).args(start).args(words)
    }
}

/// Makes a tree with all sorts of entries.
pub(crate) fn sample(path: &Path) {
    fs::create_dir_all(path.join("d/empty")).unwrap();
    fs::create_dir(path.join("d/locked")).unwrap();
    fs::write(path.join("run.sh"), "#!/bin/sh\n").unwrap();
    fs::write(path.join("d/locked/secret"), "s").unwrap();
    fs::write(path.join("d/nothing"), "").unwrap();
    fs::write(path.join("d/long"), vec![7; 3 << 20]).unwrap();
    fs::write(path.join(std::ffi::OsStr::from_bytes(b"odd \xff name")), "odd").unwrap();
    fs::hard_link(path.join("run.sh"), path.join("d/same.sh")).unwrap();
    symlink("run.sh", path.join("link")).unwrap();
    symlink("/etc/passwd", path.join("d/out")).unwrap();
    symlink("nowhere", path.join("d/dangling")).unwrap();
    let sparse = File::create(path.join("sparse")).unwrap();
    sparse.set_len(64 << 20).unwrap();
    sparse.write_all_at(b"middle", 32 << 20).unwrap();
    drop(sparse);
    for (name, mode) in [("run.sh", 0o4755), ("d/nothing", 0o600), ("d/locked/secret", 0o400)] {
        fs::set_permissions(path.join(name), Permissions::from_mode(mode)).unwrap();
    }
    let time = SystemTime::UNIX_EPOCH + Duration::new(1_234_567_890, 123_456_789);
    for name in ["run.sh", "d/empty", "d/locked", "d", "sparse", ""] {
        File::open(path.join(name)).unwrap().set_modified(time).unwrap();
    }
    fs::set_permissions(path.join("d/locked"), Permissions::from_mode(0o500)).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o750)).unwrap();
}

/// A directory and everything in it: what it is, its mode, its time and what it holds. Names that share a
/// file say so.
pub(crate) fn listing(top: &Path) -> BTreeMap<String, String> {
    let mut entries = BTreeMap::new();
    let mut first_names = BTreeMap::new();
    let mut ahead = vec![top.to_owned()];
    while let Some(path) = ahead.pop() {
        let Ok(metadata) = path.symlink_metadata() else { continue };
        let name = path.strip_prefix(top).unwrap().to_string_lossy().into_owned();
        let facts = format!("{:o} {}", metadata.mode() & 0o7777, metadata.mtime_nsec());
        let held = if metadata.is_dir() {
            let mut below: Vec<_> =
                fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()).collect();
            below.sort_by(|one, other| other.cmp(one));
            ahead.extend(below);
            format!("directory {facts} {}", metadata.mtime())
        } else if metadata.is_symlink() {
            format!("link {facts} {}", fs::read_link(&path).unwrap().display())
        } else {
            let first = first_names.entry(metadata.ino()).or_insert_with(|| name.clone());
            let digest = fs::read(&path).map_or(0, |bytes| sum(&bytes));
            format!("file {facts} {} {digest:x} like {first}", metadata.mtime())
        };
        entries.insert(name, held);
    }
    entries
}

/// Enough to tell contents apart.
fn sum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(bytes.len() as u64, |sum, byte| {
        sum.wrapping_mul(1_099_511_628_211) ^ u64::from(*byte)
    })
}
