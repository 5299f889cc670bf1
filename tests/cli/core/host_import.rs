//! Directories of the host come in as they are: by the directory itself where the client may hand it
//! over, else as a stream, with the same result.

use serde_json::json;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use testkit::{Cli, Random, Session, State, rounds};

/// What a directory's tree looks like from inside a container.
const LOOK: &str = "cd /t && find . | sort | while read -r p; do stat -c '%n %a %u:%g %F %s %Y' \
                    \"$p\"; done; find . -type f | sort | xargs sha256sum";

/// What an import of `path` looks like from inside a container.
fn look(session: &Session, path: &str) -> String {
    let tree = session.leaf(&format!(r#"{{ host {{ directory(path: "{path}") {{ id }} }} }}"#));
    let args = json!(["sh", "-c", LOOK]);
    session.container(&format!(
        r#"withDirectory(path: "/t", source: {tree}) {{ withExec(args: {args}) {{ stdout }} }}"#
    ))
}

/// All paths of an import of `tree`.
fn names(session: &Session, arguments: &str) -> String {
    let tree =
        session.leaf(&format!(r#"{{ host {{ directory(path: "tree"{arguments}) {{ id }} }} }}"#));
    let args = json!(["sh", "-c", "cd /t && find * | sort | tr '\\n' ' '"]);
    session.container(&format!(
        r#"withDirectory(path: "/t", source: {tree}) {{ withExec(args: {args}) {{ stdout }} }}"#
    ))
}

#[test]
fn ignore_files_apply_when_asked() {
    let state = State::new();
    for (path, text) in [
        ("tree/.gitignore", "*.log\n/out\n"),
        ("tree/a.log", ""),
        ("tree/keep", ""),
        ("tree/out/x", ""),
        ("tree/sub/.gitignore", "!b.log\n"),
        ("tree/sub/b.log", ""),
        ("tree/sub/out/x", ""),
    ] {
        state.file(path, text);
    }
    let on = ", gitignore: true, exclude: [\"**/.gitignore\", \".git\"]";
    let all = "a.log keep out out/x sub sub/b.log sub/out sub/out/x ";
    assert_eq!(names(&Session::start(&state), on), all, "there is no repository");
    state.file("tree/.git/HEAD", "");
    let session = Session::start(&state);
    let some = "keep sub sub/b.log sub/out sub/out/x ";
    assert_eq!(names(&session, on), some);
    assert_eq!(names(&session, &format!("{on}, noGitAutoIgnore: true")), all);
    assert_eq!(names(&session, ", exclude: [\"**/.gitignore\", \".git\"]"), all);
    let said =
        session.error(r#"{ host { directory(path: "tree/out", gitignore: true) { entries } } }"#);
    assert!(said.contains("tree/out: no such file or directory"), "{said}");
}

#[test]
fn without_a_cache_it_is_read_on_every_use_and_a_value_stays() {
    let state = State::new();
    state.file("tree/f", "first");
    let session = Session::start(&state);
    let document = |rest: &str| {
        format!(r#"{{ host {{ directory(path: "tree", noCache: true) {{ {rest} }} }} }}"#)
    };
    let contents = || session.leaf(&document(r#"file(path: "f") { contents }"#));
    let file = || session.leaf(r#"{ host { file(path: "tree/f", noCache: true) { contents } } }"#);
    let found = || session.leaf(r#"{ host { findUp(name: "late", noCache: true) } }"#);
    assert_eq!((contents(), file()), (json!("first"), json!("first")));
    assert_eq!(found(), json!(null));
    let fixed = session.leaf(&document("sync"));
    state.file("tree/f", "second");
    state.file("late", "");
    assert_eq!((contents(), file()), (json!("second"), json!("second")));
    assert_eq!(found(), json!("late"));
    let loaded =
        format!(r#"{{ loadDirectoryFromID(id: {fixed}) {{ file(path: "f") {{ contents }} }} }}"#);
    assert_eq!(session.leaf(&loaded), "first", "what was synced is a value");
}

#[test]
fn every_kind_of_entry_comes_through() {
    let state = State::new();
    let script = state.file("tree/run.sh", "#!/bin/sh\n");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o4755)).unwrap();
    symlink("run.sh", state.workdir().join("tree/link")).unwrap();
    std::fs::hard_link(&script, state.workdir().join("tree/same")).unwrap();
    std::fs::create_dir(state.workdir().join("tree/empty")).unwrap();
    let odd = std::ffi::OsStr::from_bytes(b"tree/\xff\xfe");
    std::fs::write(state.workdir().join(odd), "odd").unwrap();
    let sparse = std::fs::File::create(state.workdir().join("tree/sparse")).unwrap();
    sparse.set_len(256 << 20).unwrap();
    sparse.write_all_at(b"x", 200 << 20).unwrap();
    let owner = (Some(rustix::fs::Uid::from_raw(1234)), Some(rustix::fs::Gid::from_raw(99)));
    rustix::fs::chown(&script, owner.0, owner.1).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o4755)).unwrap();
    let session = Session::start(&state);
    let seen = look(&session, "tree");
    for expected in [
        "./run.sh 4755 0:0 regular file 10",
        "./link 777 0:0 symbolic link 6",
        "./empty 755 0:0 directory",
        "./sparse 644 0:0 regular file 268435456",
    ] {
        assert!(seen.contains(expected), "{expected}\n{seen}");
    }
    let modified = script.metadata().unwrap().mtime().to_string();
    assert!(seen.contains(&format!("run.sh 4755 0:0 regular file 10 {modified}")), "{seen}");
    let tree = session.leaf(r#"{ host { directory(path: "tree") { id } } }"#);
    let args = json!(["sh", "-c", "test /t/run.sh -ef /t/same && cat /t/??; du -k /t/sparse"]);
    let seen = session.container(&format!(
        r#"withDirectory(path: "/t", source: {tree}) {{ withExec(args: {args}) {{ stdout }} }}"#
    ));
    let disk: u64 = seen.strip_prefix("odd").unwrap().split('\t').next().unwrap().parse().unwrap();
    assert!(disk < 1024, "holes stay holes: {seen}");
}

/// Root without its powers hands nothing over: its files come as a stream. What it cannot read is an
/// error, though the engine could read it.
fn weakly<'a>(state: &'a State, words: &[&str]) -> Cli<'a> {
    let program = testkit::binary();
    let limits = ["--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all"];
    state
        .program(Path::new("/usr/bin/setpriv"))
        .args(limits)
        .args([program.to_str().unwrap()])
        .args(words.iter().copied())
}

#[test]
fn a_stream_gives_the_same_tree() {
    let state = State::new();
    let script = state.file("tree/deep/run.sh", "#!/bin/sh\n");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o4755)).unwrap();
    symlink("deep/run.sh", state.workdir().join("tree/link")).unwrap();
    std::fs::hard_link(&script, state.workdir().join("tree/same")).unwrap();
    state.file("tree/big", vec![7; 3 << 20]);
    let words = ["core", "host", "directory", "--path=tree", "entries"];
    let handed = state.cli(words).run().ok().to_owned();
    assert!(handed.contains("deep/"), "{handed}");
    assert_eq!(weakly(&state, &words).run().ok(), handed);
    let words = ["core", "host", "directory", "--path=tree", "file", "--path=same", "contents"];
    assert_eq!(weakly(&state, &words).run().ok(), "#!/bin/sh\n");
    let secret = state.file("tree/secret", "x");
    rustix::fs::chown(&secret, Some(rustix::fs::Uid::from_raw(1234)), None).unwrap();
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).unwrap();
    let said = weakly(&state, &words).run();
    assert!(said.fails(1).contains("tree/secret: Permission denied"), "{said:#?}");
}

/// The tree as a container sees it, and a random text that is the same if the tree is known already.
fn seen_once(session: &Session, path: &str) -> String {
    let tree = session.leaf(&format!(r#"{{ host {{ directory(path: "{path}") {{ id }} }} }}"#));
    let look = "cd /t && find . -type f | sort | xargs cat; cat /proc/sys/kernel/random/uuid";
    let args = json!(["sh", "-c", look]);
    session.container(&format!(
        r#"withDirectory(path: "/t", source: {tree}) {{ withExec(args: {args}) {{ stdout }} }}"#
    ))
}

/// A directory is changed at random between imports of different sessions; each sees what is there.
#[test]
fn each_session_sees_the_directory_as_it_is() {
    let state = State::new();
    let mut random = Random::new("each_session_sees_the_directory_as_it_is");
    state.file("tree/d0/f0", "0");
    for round in 0..rounds() {
        for _ in 0..=random.below(4) {
            let (directory, name) = (random.below(3), random.below(6));
            let path = format!("tree/d{directory}/f{name}");
            let folder = state.workdir().join(format!("tree/d{directory}"));
            match random.below(4) {
                0 => drop(std::fs::remove_file(state.workdir().join(&path))),
                1 => drop(std::fs::remove_dir_all(folder)),
                _ => drop(state.file(&path, format!("{round} {name}\n"))),
            }
        }
        let session = Session::start(&state);
        let seen = seen_once(&session, "tree");
        let copy = format!("copy{round}");
        let (from, to) = (state.workdir().join("tree"), state.workdir().join(&copy));
        let copied = std::process::Command::new("cp").arg("-a").args([from, to]).status();
        assert!(copied.unwrap().success());
        let fresh = seen_once(&session, &copy);
        assert_eq!(seen, fresh, "round {round}: a copy that was never seen is the same tree");
    }
}
