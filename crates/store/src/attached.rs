//! Mounts for kernels that cannot make them detached: attached for a moment, then taken off.
//!
//! Overlays take their layers one by one since Linux 6.8, and a detached mount can be cloned since
//! 6.15. Before that both need a place in the mount table. The place is a folder of our own in the
//! state folder, in use for microseconds; should the engine die within them, [`sweep`] finds the
//! mount at the next start.

use crate::marks::Marks;
use crate::mount::{Lower, Writable, by_descriptor, plain_options};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, open, openat2};
use rustix::io::{Errno, Result};
use rustix::mount::{
    MountFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, mount, move_mount, open_tree, unmount,
};
use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

/// An overlay, told of its layers in one string. The kernel cuts the string at the size of a page, so
/// every layer is named by a descriptor: that is the shortest name, and some 200 fit.
pub(crate) fn overlay(
    lowers: &[Lower],
    writable: Option<&Writable<'_>>,
    (point, marks): (&Path, Marks),
) -> Result<OwnedFd> {
    const PAGE: usize = 4096;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let open_lower = |lower: &Lower| open(lower.option(), flags, Mode::empty());
    let directories = lowers.iter().map(open_lower).collect::<Result<Vec<_>>>()?;
    let names: Vec<String> = directories.iter().map(|fd| by_descriptor(fd.as_fd())).collect();
    let mut options = format!("lowerdir={}", names.join(":"));
    let mut flags = MountFlags::empty();
    if marks == Marks::User {
        options.push_str(",userxattr");
    }
    match writable {
        Some(Writable { upper, work }) => {
            let (upper, work) = (by_descriptor(*upper), by_descriptor(*work));
            options.push_str(&format!(",upperdir={upper},workdir={work},volatile"));
            for (option, value) in plain_options(marks) {
                options.push_str(&format!(",{option}={value}"));
            }
        }
        None => flags |= MountFlags::RDONLY,
    }
    if options.len() >= PAGE {
        return Err(Errno::TOOBIG);
    }
    let options = CString::new(options).map_err(|_| Errno::INVAL)?;
    mount("overlay", point, "overlay", flags, Some(options.as_c_str()))?;
    take_off(point, |root| open_tree(root, "", clone() | OpenTreeFlags::AT_EMPTY_PATH))
}

/// A mount of one file or directory inside a detached mount; links are resolved inside it. This uses
/// the whole up: it can be read on, but attached nowhere else.
pub(crate) fn part(whole: BorrowedFd<'_>, path: &str, point: &Path) -> Result<OwnedFd> {
    move_mount(whole, "", CWD, point, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
    take_off(point, |root| {
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let place = openat2(root, path, flags, Mode::empty(), resolve)?;
        open_tree(&place, "", clone() | OpenTreeFlags::AT_EMPTY_PATH)
    })
}

/// Takes off whatever a dead engine left attached below its state folder.
pub(crate) fn sweep(state: &Path) {
    let Ok(table) = std::fs::read_to_string("/proc/self/mountinfo") else { return };
    let points = table.lines().filter_map(|line| line.split(' ').nth(4));
    for point in points.filter(|point| Path::new(point).starts_with(state.join("work"))) {
        if let Err(errno) = unmount(point, UnmountFlags::DETACH) {
            tracing::warn!(point, %errno, "a mount of an earlier engine stays");
        }
    }
}

fn clone() -> OpenTreeFlags {
    OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC
}

/// Lets `copy` clone what is attached at `point`, then takes it off, whether that went well or not.
fn take_off(point: &Path, copy: impl FnOnce(BorrowedFd<'_>) -> Result<OwnedFd>) -> Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let copied = open(point, flags, Mode::empty()).and_then(|root| copy(root.as_fd()));
    unmount(point, UnmountFlags::DETACH)?;
    copied
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    fn read(mount: &OwnedFd, path: &str) -> String {
        let file = rustix::fs::openat(mount, path, OFlags::RDONLY, Mode::empty()).unwrap();
        let mut text = String::new();
        std::fs::File::from(file).read_to_string(&mut text).unwrap();
        text
    }

    fn attached(point: &Path) -> bool {
        let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        table.contains(&format!(" {} ", point.display()))
    }

    #[test]
    fn an_overlay_by_string_shows_the_newest_and_stays_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["old", "new", "upper", "work", "point"] {
            std::fs::create_dir(path(name)).unwrap();
        }
        std::fs::write(path("old/a"), "old").unwrap();
        std::fs::write(path("old/b"), "b").unwrap();
        std::fs::write(path("new/a"), "new").unwrap();
        let lowers = [Lower::at(&path("new")), Lower::at(&path("old"))];
        let directory = |name: &str| std::fs::File::open(path(name)).unwrap();
        let (upper, work) = (directory("upper"), directory("work"));
        let writable = Writable { upper: upper.as_fd(), work: work.as_fd() };
        let marks = Marks::here(upper.as_fd());
        let mount = overlay(&lowers, Some(&writable), (&path("point"), marks)).unwrap();
        assert_eq!((read(&mount, "a"), read(&mount, "b")), ("new".into(), "b".into()));
        assert!(!attached(&path("point")));

        let read_only = overlay(&lowers, None, (&path("point"), marks)).unwrap();
        assert_eq!(read(&read_only, "a"), "new");
        let file = part(read_only.as_fd(), "a", &path("point")).unwrap();
        assert_eq!(std::fs::read_to_string(by_descriptor(file.as_fd())).unwrap(), "new");
        assert!(!attached(&path("point")));
    }

    #[test]
    fn too_many_layers_for_one_string_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let lowers: Vec<Lower> = (0..400).map(|_| Lower::at(folder.path())).collect();
        assert_eq!(
            overlay(&lowers, None, (folder.path(), Marks::Trusted)).unwrap_err(),
            Errno::TOOBIG
        );
    }
}
