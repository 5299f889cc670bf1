//! Files and trees that the engine writes.

use super::*;
use std::os::unix::fs::MetadataExt;

/// The frame of an entry.
pub(super) fn sent(entry: &Entry) -> Vec<u8> {
    frame(FrameKind::Entry, &serde_json::to_vec(entry).unwrap())
}

pub(super) fn file_entry(path: &str) -> Entry {
    let (path, target) = (path.into(), "".into());
    Entry { path, kind: EntryKind::File, mode: 0o640, modified: 5_000_000_007, size: 0, target }
}

fn file_frames(path: &str, contents: &str) -> Vec<u8> {
    let mut bytes = sent(&Entry { size: contents.len() as u64, ..file_entry(path) });
    bytes.extend(frame(FrameKind::Data, contents.as_bytes()));
    bytes.extend(frame(FrameKind::EndOfFile, &[]));
    bytes
}

fn other(path: &str, kind: EntryKind, target: &str) -> Vec<u8> {
    sent(&Entry { kind, target: target.into(), mode: 0o750, ..file_entry(path) })
}

fn end() -> Vec<u8> {
    frame(FrameKind::End, &[])
}

const MERGE: Writing = Writing::Directory { wipe: false };
const WIPE: Writing = Writing::Directory { wipe: true };

#[tokio::test]
async fn a_file_is_written_with_its_mode_and_nothing_is_left_beside_it() {
    let mut served = Served::new().await;
    let reply = served.put("new/dir/\u{e4}.txt", "", frames(b"hello")).await.unwrap();
    let path = served.work().join("new/dir/\u{e4}.txt");
    assert_eq!(reply.path, path.to_str().unwrap());
    assert_eq!(fs::read(&path).unwrap(), b"hello");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o640);
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
}

#[tokio::test]
async fn an_existing_file_is_replaced_through_its_link() {
    let mut served = Served::new().await;
    served.write("real", "old");
    symlink("real", served.work().join("link")).unwrap();
    served.put("link", "", frames(b"new")).await.unwrap();
    assert_eq!(fs::read(served.work().join("real")).unwrap(), b"new");
    assert!(served.work().join("link").is_symlink());
}

#[tokio::test]
async fn a_directory_takes_a_file_only_under_a_given_name() {
    let mut served = Served::new().await;
    fs::create_dir(served.work().join("dir")).unwrap();
    let error = served.put("dir", "", frames(b"x")).await.unwrap_err();
    assert_eq!(error.message, "path dir is a directory, not a file");
    served.put("dir", "name", frames(b"x")).await.unwrap();
    assert_eq!(fs::read(served.work().join("dir/name")).unwrap(), b"x");
    served.put("~/", "name", frames(b"y")).await.unwrap();
    assert_eq!(fs::read(served.dir.path().join("home/name")).unwrap(), b"y");
}

#[tokio::test]
async fn a_write_that_breaks_off_changes_nothing() {
    let mut served = Served::new().await;
    served.write("file", "old");
    let head = || sent(&Entry { size: 4, ..file_entry("") });
    let cut = [head(), frame(FrameKind::Data, b"half")].concat();
    let wrong = [head(), frame(FrameKind::Failed, b"{}")].concat();
    for bytes in [cut, wrong, vec![9; 9]] {
        served.put("file", "", bytes).await.unwrap_err();
        assert_eq!(fs::read(served.work().join("file")).unwrap(), b"old");
        assert_eq!(fs::read_dir(served.work()).unwrap().count(), 1);
    }
}

#[tokio::test]
async fn a_tree_is_merged_into_what_is_there() {
    let mut served = Served::new().await;
    served.write("out/own", "stays");
    served.write("out/d/f", "old");
    let tree = [
        other("", EntryKind::Directory, ""),
        other("d", EntryKind::Directory, ""),
        file_frames("d/f", "new"),
        other("d/hard", EntryKind::HardLink, "d/f"),
        other("d/soft", EntryKind::Symlink, "../nowhere"),
        end(),
    ];
    let reply = served.send("out", MERGE, tree.concat()).await.unwrap();
    let out = served.work().join("out");
    assert_eq!(reply.path, out.to_str().unwrap());
    assert_eq!(fs::read_to_string(out.join("own")).unwrap(), "stays");
    assert_eq!(fs::read_to_string(out.join("d/f")).unwrap(), "new");
    assert_eq!(fs::read_link(out.join("d/soft")).unwrap(), Path::new("../nowhere"));
    let metadata = |path: &str| fs::metadata(out.join(path)).unwrap();
    assert_eq!(metadata("d/f").ino(), metadata("d/hard").ino());
    assert_eq!((metadata("d").mode() & 0o7777, metadata("d").mtime()), (0o750, 5));
    assert_eq!((metadata("d/f").mtime(), metadata("d/f").mtime_nsec()), (5, 7));
    assert_ne!(metadata("").mtime(), 5, "a directory that was there keeps its own");
    let reply = served.send("new", MERGE, [other("", EntryKind::Directory, ""), end()].concat());
    let made = fs::metadata(reply.await.unwrap().path).unwrap();
    assert_eq!((made.mode() & 0o7777, made.mtime()), (0o750, 5));
}

#[tokio::test]
async fn a_wipe_leaves_only_what_came() {
    let mut served = Served::new().await;
    for path in ["out/own/deep/file", "out/d/other", "out/d/f", "out/e"] {
        served.write(path, "old");
    }
    let tree = || {
        [
            other("d", EntryKind::Directory, ""),
            file_frames("d/f", "new"),
            other("new", EntryKind::Directory, ""),
        ]
    };
    // Before the end nothing goes.
    served.send("out", WIPE, tree().concat()).await.unwrap_err();
    assert!(served.work().join("out/own/deep/file").exists());
    served.send("out", WIPE, [tree().concat(), end()].concat()).await.unwrap();
    let listed = served.listed(&[], &[], false).await;
    assert_eq!(listed, ["out", "out/d", "out/d/f", "out/new"]);
    let error = served.send("/", WIPE, end()).await.unwrap_err();
    assert_eq!(error.message, "/: the root is not wiped");
}

#[tokio::test]
async fn paths_are_removed_and_holes_stay() {
    let mut served = Served::new().await;
    served.write("out/gone/deep", "");
    served.write("out/stays", "");
    let size = 8 << 20;
    let tree = [
        frame(FrameKind::Remove, b"gone"),
        frame(FrameKind::Remove, b"missing/too"),
        sent(&Entry { size, ..file_entry("sparse") }),
        frame(FrameKind::Hole, &(size - 3).to_le_bytes()),
        frame(FrameKind::Data, b"end"),
        frame(FrameKind::EndOfFile, &[]),
        end(),
    ];
    served.send("out", MERGE, tree.concat()).await.unwrap();
    assert_eq!(served.listed(&[], &[], false).await, ["out", "out/sparse", "out/stays"]);
    let sparse = fs::metadata(served.work().join("out/sparse")).unwrap();
    assert_eq!(sparse.len(), size);
    assert!(sparse.blocks() < 100, "{} blocks", sparse.blocks());
}

#[tokio::test]
async fn nothing_is_written_outside() {
    let mut served = Served::new().await;
    served.write("outside/victim", "untouched");
    fs::create_dir(served.work().join("out")).unwrap();
    symlink("../outside", served.work().join("out/link")).unwrap();
    for path in ["../outside/victim", "/etc/x", "link/victim", "a/../../x", "a\0b"] {
        let tree = [file_frames(path, "x"), end()].concat();
        served.send("out", MERGE, tree).await.unwrap_err();
        let tree = [file_frames("f", "x"), other("h", EntryKind::HardLink, path), end()].concat();
        served.send("out", MERGE, tree).await.unwrap_err();
    }
    let remove = frame(FrameKind::Remove, b"../outside/victim");
    served.send("out", MERGE, [remove, end()].concat()).await.unwrap_err();
    let through = [frame(FrameKind::Remove, b"link/victim"), end()].concat();
    served.send("out", MERGE, through).await.unwrap();
    let victim = fs::read_to_string(served.work().join("outside/victim")).unwrap();
    assert_eq!(victim, "untouched");
}

#[tokio::test]
async fn a_tree_that_breaks_off_leaves_whole_files() {
    let mut served = Served::new().await;
    served.write("out/b", "old");
    let half = [sent(&Entry { size: 9, ..file_entry("b") }), frame(FrameKind::Data, b"half")];
    let tree = [other("d", EntryKind::Directory, ""), file_frames("a", "whole"), half.concat()];
    let lie = [half.concat(), frame(FrameKind::EndOfFile, &[]), end()].concat();
    served.send("out", MERGE, tree.concat()).await.unwrap_err();
    served.send("out", MERGE, lie).await.unwrap_err();
    assert_eq!(served.listed(&[], &[], false).await, ["out", "out/a", "out/b", "out/d"]);
    assert_eq!(fs::read_to_string(served.work().join("out/b")).unwrap(), "old");
    let mode = fs::metadata(served.work().join("out/d")).unwrap().mode() & 0o7777;
    assert_eq!(mode, 0o750, "directories are finished after a failure too");
}

#[tokio::test]
async fn a_file_is_no_place_for_a_tree() {
    let mut served = Served::new().await;
    served.write("file", "old");
    let error = served.send("file", MERGE, end()).await.unwrap_err();
    assert_eq!(error.message, "path file is a file, not a directory");
}
