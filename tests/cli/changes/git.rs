//! Patches and merges beside those of the real git.

use super::{changes, of_changes};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Output};
use testkit::{Random, Session, State, rounds};

fn git(folder: &Path, words: &[&str]) -> Output {
    let mut command = Command::new("git");
    command.current_dir(folder).env("HOME", folder).env("GIT_CONFIG_NOSYSTEM", "1");
    command.env("GIT_CEILING_DIRECTORIES", folder.parent().unwrap());
    command.args(["-c", "user.name=x", "-c", "user.email=x@example.org"]);
    command.args(words).output().unwrap()
}

/// Makes a random change of a tree on the host.
fn change(folder: &Path, side: &str, random: &mut Random) {
    let names = ["a", "b", "c/d", "c/e", "f/g/h", "odd \u{e4}\" name"];
    let path = folder.join(random.pick(&names));
    match random.below(7) {
        0 => {
            let _ = fs::remove_file(&path);
        }
        1 => {
            let _ = fs::remove_file(&path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            symlink(random.pick(&["a", "nowhere"]), &path).unwrap();
        }
        2 if path.symlink_metadata().is_ok_and(|found| found.is_file()) => {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        3 => write(&path, &[&[0_u8, 1, 2][..], side.as_bytes(), &[random.below(3) as u8]].concat()),
        _ => {
            let old = fs::read(&path).unwrap_or_default();
            let mut lines: Vec<String> =
                String::from_utf8_lossy(&old).split_inclusive('\n').map(str::to_owned).collect();
            if lines.is_empty() || path.is_symlink() {
                lines = (0..12).map(|line| format!("line {line}\n")).collect();
            }
            let at = random.below(lines.len() as u64) as usize;
            // No line is there twice, so that there is one way only to see what changed.
            lines[at] = format!("{side} {at} {}\n", random.below(9));
            write(&path, lines.concat().as_bytes());
        }
    }
    // What git does not know must not differ.
    remove_empty(folder);
}

fn write(path: &Path, contents: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    if path.is_symlink() {
        fs::remove_file(path).unwrap();
    }
    fs::write(path, contents).unwrap();
}

fn remove_empty(folder: &Path) {
    for path in ["c", "f/g", "f"] {
        let _ = fs::remove_dir(folder.join(path));
    }
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").args([from, to]).status().unwrap();
    assert!(copied.success());
}

/// A tree on the host as git sees it.
fn look(folder: &Path) -> BTreeMap<String, String> {
    let mut entries = BTreeMap::new();
    let mut ahead = vec![folder.to_owned()];
    while let Some(path) = ahead.pop() {
        let metadata = path.symlink_metadata().unwrap();
        let held = if metadata.is_dir() {
            ahead.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        } else if metadata.is_symlink() {
            format!("link {}", fs::read_link(&path).unwrap().display())
        } else {
            let kind = if metadata.permissions().mode() & 0o100 == 0 { "file" } else { "program" };
            format!("{kind} {:?}", String::from_utf8_lossy(&fs::read(&path).unwrap()))
        };
        let name = path.strip_prefix(folder).unwrap().to_string_lossy().into_owned();
        entries.insert(name, held);
    }
    entries
}

fn export(session: &Session, id: &str, what: &str, to: &Path) {
    let to = Value::from(to.to_str().unwrap());
    of_changes(session, id, &format!("{what} {{ export(path: {to}) }}"));
}

#[test]
fn git_applies_the_patches_and_so_do_we() {
    let state = State::new();
    let session = Session::start(&state);
    let mut random = Random::new("git_applies_the_patches_and_so_do_we");
    for round in 0..rounds() {
        let folder = state.workdir().join(format!("round{round}"));
        let (before, after, with_git) =
            (folder.join("before"), folder.join("after"), folder.join("git"));
        fs::create_dir_all(&before).unwrap();
        (0..8).for_each(|_| change(&before, "base", &mut random));
        copy(&before, &after);
        (0..6).for_each(|_| change(&after, "new", &mut random));
        copy(&before, &with_git);
        let old = Value::from(session.host_directory(&before)).to_string();
        let new = Value::from(session.host_directory(&after)).to_string();
        let changeset = changes(&session, &old, &new);
        let patch = folder.join("the.patch");
        export(&session, &changeset, "asPatch", &patch);
        if fs::metadata(&patch).unwrap().len() > 0 {
            let patch = patch.to_str().unwrap();
            let said = git(&with_git, &["apply", "--whitespace=nowarn", patch]);
            let error = String::from_utf8_lossy(&said.stderr);
            let text = fs::read(patch).unwrap();
            assert!(said.status.success(), "{round}: {error}\n{}", String::from_utf8_lossy(&text));
        }
        assert_eq!(look(&with_git), look(&after), "round {round}");
        let patch = of_changes(&session, &changeset, "asPatch { id }");
        let ours = session.leaf(&format!(
            "{{ loadDirectoryFromID(id: {old}) {{ withPatchFile(patch: {patch}) {{ id }} }} }}"
        ));
        let left = changes(&session, &new, &ours.to_string());
        let left = of_changes(&session, &left, "diffStats { path kind }");
        assert_eq!(left, serde_json::json!([]), "round {round}");
        // And what git itself writes.
        let from_git = git(
            &folder,
            &["diff", "--no-index", "--binary", "--no-prefix", "--no-renames", "before", "after"],
        );
        let file = folder.join("git.patch");
        fs::write(&file, from_git.stdout).unwrap();
        let path = Value::from(file.to_str().unwrap());
        let file = session.leaf(&format!("{{ host {{ file(path: {path}) {{ id }} }} }}"));
        let ours = session.leaf(&format!(
            "{{ loadDirectoryFromID(id: {old}) {{ withPatchFile(patch: {file}) {{ id }} }} }}"
        ));
        let left = changes(&session, &new, &ours.to_string());
        let left = of_changes(&session, &left, "diffStats { path kind }");
        assert_eq!(left, serde_json::json!([]), "round {round}");
    }
}

#[test]
fn merges_agree_with_gits() {
    let state = State::new();
    let session = Session::start(&state);
    let mut random = Random::new("merges_agree_with_gits");
    let mut clean = 0;
    for round in 0..rounds() {
        let folder = state.workdir().join(format!("round{round}"));
        let base = folder.join("base");
        fs::create_dir_all(&base).unwrap();
        fs::write(base.join("always"), "there\n").unwrap();
        (0..8).for_each(|_| change(&base, "base", &mut random));
        let repository = folder.join("repository");
        copy(&base, &repository);
        for words in
            [&["init", "-q", "-b", "base"][..], &["add", "-A"], &["commit", "-q", "-m", "x"]]
        {
            assert!(git(&repository, words).status.success());
        }
        let mut ids = BTreeMap::new();
        for side in ["ours", "theirs"] {
            let tree = folder.join(side);
            copy(&base, &tree);
            (0..3).for_each(|_| change(&tree, side, &mut random));
            assert!(
                git(&repository, &["checkout", "-q", "-f", "-b", side, "base"]).status.success()
            );
            assert!(git(&repository, &["rm", "-r", "-q", "."]).status.success());
            copy(&tree.join("."), &repository);
            for words in [&["add", "-A"][..], &["commit", "-q", "--allow-empty", "-m", side]] {
                assert!(git(&repository, words).status.success(), "round {round}: {words:?}");
            }
            ids.insert(side, Value::from(session.host_directory(&tree)).to_string());
        }
        assert!(git(&repository, &["checkout", "-q", "-f", "ours"]).status.success());
        // A changeset knows no renames, and git's newer strategy looks for them whatever it is told.
        let words = ["-s", "recursive", "-X", "no-renames", "-X", "diff-algorithm=histogram"];
        let said = git(&repository, &[&["merge", "-m", "x"][..], &words, &["theirs"]].concat());
        let base_id = Value::from(session.host_directory(&base)).to_string();
        let ours = changes(&session, &base_id, &ids["ours"]);
        let theirs = changes(&session, &base_id, &ids["theirs"]);
        let document = format!(
            "{{ loadChangesetFromID(id: {ours}) {{ withChangeset(changes: {theirs}) {{ sync }} }} }}"
        );
        let listing = String::from_utf8_lossy(&said.stdout).into_owned();
        if !said.status.success() {
            let error = session.error(&document);
            assert!(error.contains("conflict at"), "round {round}: {error}\n{listing}");
            continue;
        }
        clean += 1;
        let merged = session.leaf(&document).to_string();
        let out = folder.join("merged");
        export(&session, &merged, "after", &out);
        let expected = folder.join("expected");
        fs::create_dir(&expected).unwrap();
        let archive = "git archive HEAD | tar -x -C ../expected";
        let unpacked = Command::new("sh").args(["-c", archive]).current_dir(&repository).status();
        assert!(unpacked.unwrap().success());
        assert_eq!(look(&out), look(&expected), "round {round}");
    }
    assert!(clean > 0, "no round was without a conflict");
}
