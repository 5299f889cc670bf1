//! A closed state folder with Debian images in it, made once and copied by hard links.
//!
//! Assembling an image takes seconds. Tests that only need one start from a copy of this folder;
//! layers are immutable, so their files are shared and only the database is copied.

use crate::state::State;
use crate::surroundings::root;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Images that the seed holds.
const IMAGES: &[&str] = &["deb://bookworm", "deb://bookworm+python3"];

/// Folders of immutable files in the store: these are linked, everything else is copied.
const IMMUTABLE: &[&str] = &["layers", "blobs"];

fn folder() -> PathBuf {
    root().join("seed")
}

/// Makes the seed if there is none. Needs the network when packages are not in the cache.
pub fn make() {
    let lock = std::fs::File::create(root().join("seed.lock")).expect("a lock can be made");
    lock.lock().expect("the lock can be waited for");
    if folder().exists() {
        return;
    }
    let state = State::new();
    for image in IMAGES {
        let address = format!("--address={image}");
        let args = ["core", "container", "from", &address, "with-exec", "--args=true", "stdout"];
        let output = state.cli(args).run();
        assert!(output.status.success(), "{output:#?}\n{}", state.log());
    }
    state.stop();
    let half = root().join("seed.half");
    let _ = std::fs::remove_dir_all(&half);
    std::fs::rename(state.dir(), &half).expect("a closed state folder can be moved");
    std::fs::rename(&half, folder()).expect("a folder can be renamed");
}

/// Copies the seed, which must have been made, into an empty state folder.
pub(crate) fn copy_into(state: &Path) {
    let store = state.join("store");
    std::fs::create_dir_all(&store).expect("a folder can be made");
    for entry in std::fs::read_dir(folder().join("store")).expect("the seed was made") {
        let entry = entry.expect("the seed can be listed");
        let immutable = IMMUTABLE.iter().any(|name| entry.file_name() == *name);
        let mode = if immutable { "-al" } else { "-a" };
        let status = Command::new("cp").arg(mode).arg(entry.path()).arg(&store).status();
        assert!(status.is_ok_and(|status| status.success()), "cannot copy {:?}", entry.path());
    }
}
