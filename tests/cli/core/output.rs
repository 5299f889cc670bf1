//! What is printed for each sort of result, and where `-o` puts it.

use testkit::{State, busybox};

const NOTE: [&str; 5] =
    ["core", "directory", "with-new-file", "--path=note.txt", "--contents=text"];

#[test]
fn texts_numbers_and_lists_are_printed_plainly() {
    let state = State::new();
    let run = |rest: &[&str]| state.cli(NOTE.iter().chain(rest).copied()).run();
    let output = run(&["file", "--path=note.txt", "contents"]);
    assert_eq!(output.ok(), "text", "bytes stay exact when piped");
    assert_eq!(run(&["file", "--path=note.txt", "size"]).ok().trim_end(), "4");
    let output = run(&["with-new-file", "--path=b", "--contents=", "entries"]);
    assert_eq!(output.ok(), "b\nnote.txt\n");
}

#[test]
fn objects_are_evaluated_and_named() {
    let state = State::new();
    let output = state.cli(NOTE).run();
    let line = output.ok().trim_end();
    let (name, digest) = line.split_once('@').expect("Type@digest");
    assert_eq!(name, "Directory");
    assert!(digest.contains(':') && digest.len() > 16, "{line}");
    let rootfs = format!("--directory={}", busybox().display());
    let chain = ["core", "container", "with-rootfs", &rootfs, "with-exec", "--args=sh,-c,exit 9"];
    state.cli(chain).run().fails(9);
}

#[test]
fn json_is_indented_by_four() {
    let state = State::new();
    let output = state.cli(["core", "-j"].iter().chain(&NOTE[1..]).chain(&["entries"])).run();
    assert_eq!(output.ok(), "[\n    \"note.txt\"\n]\n");
    let output =
        state.cli(NOTE.iter().chain(&["--json", "file", "--path=note.txt", "contents"])).run();
    assert_eq!(output.ok(), "\"text\"\n");
}

#[test]
fn output_goes_to_a_file_and_is_still_printed() {
    let state = State::new();
    let args = NOTE.iter().chain(&["file", "--path=note.txt", "contents", "-o", "deep/out.txt"]);
    let output = state.cli(args).run();
    assert_eq!(output.ok(), "text");
    let path = state.workdir().join("deep/out.txt");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "text");
    assert!(output.stderr.contains(path.to_str().unwrap()), "{output:#?}");
}

#[test]
fn a_file_is_saved_as_a_file() {
    let state = State::new();
    let args = NOTE.iter().chain(&["file", "--path=note.txt", "-o", "saved.txt"]);
    let output = state.cli(args).run();
    output.ok();
    let path = state.workdir().join("saved.txt");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "text");
    assert!(output.stderr.contains("Saved to"), "{output:#?}");
    std::fs::create_dir(state.workdir().join("folder")).unwrap();
    let args = NOTE.iter().chain(&["file", "--path=note.txt", "-o", "folder"]);
    state.cli(args).run().ok();
    let inside = state.workdir().join("folder/note.txt");
    assert_eq!(std::fs::read_to_string(inside).unwrap(), "text");
}

#[test]
fn flags_may_be_written_in_any_case() {
    let state = State::new();
    let rootfs = format!("--directory={}", busybox().display());
    let start =
        ["core", "container", "with-rootfs", &rootfs, "with-exec", "--args=sh,-c,echo x; exit 3"];
    for flag in ["--expect=ANY", "--expect=any"] {
        let output = state.cli(start.iter().chain(&[flag, "stdout"])).run();
        assert_eq!(output.ok(), "x\n");
    }
    let output = state
        .cli(start.iter().chain(&[
            "--expect=ANY",
            "--redirectStdout=/o",
            "file",
            "--path=/o",
            "contents",
        ]))
        .run();
    assert_eq!(output.ok(), "x\n");
}

#[test]
fn lists_are_separated_by_commas_or_repeated() {
    let state = State::new();
    let rootfs = format!("--directory={}", busybox().display());
    let start = ["core", "container", "with-rootfs", &rootfs, "with-exec"];
    for args in [&["--args=echo,a b,c"][..], &["--args=echo", "--args=a b", "--args=c"]] {
        let output = state.cli(start.iter().chain(args).chain(&["stdout"])).run();
        assert_eq!(output.ok(), "a b c\n");
    }
}
