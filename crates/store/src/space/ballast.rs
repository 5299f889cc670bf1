//! A file that is only there to be removed.
//!
//! On a disk that is full to the last byte not even a directory can be made, so the engine could
//! neither start nor write down what it collects. Giving up the ballast makes room for that.

use super::disk::Disk;
use rustix::fs::{FallocateFlags, Mode, OFlags, fallocate, open};
use std::path::{Path, PathBuf};

const MIB: u64 = 1 << 20;

fn file(state: &Path) -> PathBuf {
    state.join("ballast")
}

fn size(disk: &Disk) -> u64 {
    (disk.size / 500).clamp(MIB, 64 * MIB).min(disk.size / 50)
}

/// Removes the ballast if hardly anything is free.
pub(crate) fn give_up_if_full(state: &Path) {
    let disk = Disk::of(state);
    if disk.free < size(&disk) && std::fs::remove_file(file(state)).is_ok() {
        tracing::warn!("the disk of `{}` is full; the ballast was given up", state.display());
    }
}

/// Makes the ballast where there is plenty of room for it.
pub(super) fn restore_if_room(state: &Path) {
    let disk = Disk::of(state);
    let (path, size) = (file(state), size(&disk));
    if path.exists() || disk.size == u64::MAX || disk.free < size * 8 {
        return;
    }
    let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let made = open(&path, flags, Mode::RUSR | Mode::WUSR)
        .and_then(|file| fallocate(file, FallocateFlags::empty(), 0, size));
    if made.is_err() {
        // A file system that cannot do it, or others were quicker.
        let _ = std::fs::remove_file(&path);
    }
}
