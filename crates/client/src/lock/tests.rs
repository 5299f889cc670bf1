//! The file of a project on a disk.

use super::*;
use tempfile::TempDir;

fn project(files: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for file in files {
        let path = folder.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
    folder
}

fn request(name: &str) -> LockRequest {
    LockRequest { operation: "container.from".into(), inputs: vec![name.into(), "p".into()] }
}

fn note(name: &str, value: &str) -> LockRecord {
    LockRecord { request: request(name), value: value.into(), policy: LockPolicy::Pin }
}

#[test]
fn the_file_is_the_nearest_or_beside_the_configuration_or_at_the_top() {
    for (files, expected) in [
        (&["sub/deep/file"][..], None),
        (&[".git/HEAD", "sub/deep/file"], Some("ci-tool.lock")),
        (&[".git", "sub/deep/file"], Some("ci-tool.lock")),
        (&[".git/HEAD", "sub/ci-tool.toml", "sub/deep/file"], Some("sub/ci-tool.lock")),
        (&[".git/HEAD", "sub/.ci-tool/lock", "sub/deep/file"], Some("sub/ci-tool.lock")),
        (&[".git/HEAD", "ci-tool.lock", "sub/ci-tool.toml", "sub/deep/file"], Some("ci-tool.lock")),
        (&["ci-tool.lock", "sub/.git/HEAD", "sub/deep/file"], Some("sub/ci-tool.lock")),
    ] {
        let folder = project(files);
        let found = place(&folder.path().join("sub/deep"));
        assert_eq!(found, expected.map(|name| folder.path().join(name)), "{files:?}");
    }
}

#[test]
fn what_is_recorded_is_found_and_nothing_else_changes() {
    let folder = project(&[".git/HEAD"]);
    let nothing = find(folder.path(), &request("a")).unwrap();
    assert_eq!(nothing, LockReply { kept: true, entry: None });
    assert!(!folder.path().join("ci-tool.lock").exists(), "looking makes no file");
    record(folder.path(), note("a", "one")).unwrap();
    record(folder.path(), note("b", "two")).unwrap();
    let found = find(folder.path(), &request("a")).unwrap();
    assert_eq!(found.entry, Some(("one".into(), LockPolicy::Pin)));
    let left: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "nothing unfinished is left: {left:?}");
    let outside = tempfile::tempdir().unwrap();
    assert_eq!(find(outside.path(), &request("a")).unwrap(), LockReply::default());
    record(outside.path(), note("a", "one")).unwrap_err();
}

#[test]
fn many_who_record_at_once_lose_nothing() {
    let folder = project(&[".git/HEAD"]);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let folder = folder.path();
            scope.spawn(move || {
                for number in 0..20 {
                    record(folder, note(&format!("{thread}-{number}"), "v")).unwrap();
                }
            });
        }
    });
    let text = fs::read_to_string(folder.path().join("ci-tool.lock")).unwrap();
    assert_eq!(text.lines().count(), 161);
}

#[test]
fn a_file_that_cannot_be_read_is_an_error_that_names_it() {
    let folder = project(&[".git/HEAD"]);
    fs::write(folder.path().join("ci-tool.lock"), "what").unwrap();
    for error in [
        find(folder.path(), &request("a")).unwrap_err(),
        record(folder.path(), note("a", "b")).unwrap_err(),
    ] {
        assert!(error.message.contains("ci-tool.lock`: line 1"), "{}", error.message);
    }
    assert_eq!(fs::read_to_string(folder.path().join("ci-tool.lock")).unwrap(), "what");
}
