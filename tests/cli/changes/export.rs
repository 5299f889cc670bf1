//! Changesets on their way to the host, both ways.

use crate::core::export_tree::Way;
use std::fs;
use std::os::unix::fs::symlink;
use testkit::State;

/// The words of a changeset from the directory `old` to the directory `new`, both in the working directory.
const CHANGES: [&str; 5] = ["host", "directory", "--path=new", "changes", "--from=old"];

fn sample(state: &State) {
    for path in ["same", "changed", "gone", "dir/gone", "dir/deep/gone", "keeps/gone", "swap/in"] {
        state.file(&format!("old/{path}"), "old");
        state.file(&format!("work/{path}"), "old");
    }
    for (path, contents) in
        [("same", "old"), ("changed", "new"), ("added/here", "new"), ("swap", "a file")]
    {
        state.file(&format!("new/{path}"), contents);
    }
    fs::create_dir(state.workdir().join("new/empty")).unwrap();
    state.file("work/keeps/own", "own");
    state.file("work/own", "own");
}

#[test]
fn changes_are_applied_with_what_goes() {
    for way in Way::BOTH {
        for words in [&["export", "--path=work"][..], &["-o", "work"]] {
            let state = State::new();
            sample(&state);
            let output = way.core(&state, &[&CHANGES[..], words].concat()).run();
            output.ok();
            let work = state.workdir().join("work");
            let read = |path: &str| fs::read_to_string(work.join(path)).unwrap();
            assert_eq!(
                (read("same"), read("changed"), read("added/here")),
                ("old".into(), "new".into(), "new".into())
            );
            assert_eq!(
                (read("swap"), read("own"), read("keeps/own")),
                ("a file".into(), "own".into(), "own".into())
            );
            let mut names: Vec<_> = fs::read_dir(&work)
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            let expected = ["added", "changed", "empty", "keeps", "own", "same", "swap"];
            assert_eq!(names, expected, "{way:?}: {output:#?}");
            assert!(!work.join("keeps/gone").exists());
        }
    }
}

#[test]
fn nothing_is_written_or_removed_through_a_link() {
    for way in Way::BOTH {
        let state = State::new();
        for path in ["old/d/gone", "old/e/changed", "victim/gone", "victim/changed"] {
            state.file(path, "old");
        }
        state.file("new/e/changed", "new");
        fs::create_dir(state.workdir().join("work")).unwrap();
        symlink("../victim", state.workdir().join("work/d")).unwrap();
        symlink("../victim", state.workdir().join("work/e")).unwrap();
        way.core(&state, &[&CHANGES[..], &["export", "--path=work"]].concat()).run().ok();
        let read = |path: &str| fs::read_to_string(state.workdir().join(path)).unwrap();
        assert_eq!(
            (read("victim/gone"), read("victim/changed")),
            ("old".into(), "old".into()),
            "{way:?}"
        );
        assert_eq!(read("work/e/changed"), "new");
    }
}

#[test]
fn nothing_to_apply_is_said() {
    let state = State::new();
    state.file("old/f", "x");
    state.file("new/f", "x");
    for words in [&["export", "--path=work"][..], &["-o", "work"]] {
        let output = state.cli(["core"]).args(CHANGES).args(words).run();
        output.ok();
        assert!(output.stderr.contains("no changes to apply"), "{output:#?}");
    }
}
