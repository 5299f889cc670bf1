//! Trees and files on their way to the host, both ways: into a directory that is handed over, and as
//! a stream to a client that does not hand anything over.

use crate::core::export_tree::{Way, listing, sample};
use rustix::process::Signal;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use testkit::process::wait_until;
use testkit::{Session, State};

const NOTE: [&str; 4] = ["directory", "with-new-file", "--path=a", "--contents=b"];

#[test]
fn a_directory_comes_out_as_it_went_in() {
    let state = State::new();
    let source = state.workdir().join("src");
    sample(&source);
    for (number, way) in Way::BOTH.into_iter().enumerate() {
        let name = format!("copy{number}");
        let output = way.core(&state, &["host", "directory", "--path=src", "-o", &name]).run();
        assert_eq!(output.ok(), "");
        let copy = state.workdir().join(&name);
        assert!(output.stderr.contains(&format!("Saved to \"{}\"", copy.display())), "{output:#?}");
        assert_eq!(listing(&copy), listing(&source), "{way:?}");
        let sparse = fs::metadata(copy.join("sparse")).unwrap();
        assert!(sparse.blocks() < 2048, "{way:?}: {} blocks", sparse.blocks());
    }
}

#[test]
fn files_belong_to_the_caller() {
    let state = State::new();
    let rootfs = format!("--directory={}", testkit::busybox().display());
    let script = "--args=sh,-c,mkdir /o; cd /o; echo x > f; ln -s f l; chown -hR 5:6 .; chmod 6755 f; echo y > own; chmod 4755 own";
    let chain =
        ["container", "with-rootfs", &rootfs, "with-exec", script, "directory", "--path=/o"];
    for (number, way) in Way::BOTH.into_iter().enumerate() {
        let name = format!("out{number}");
        way.core(&state, &[&chain[..], &["-o", &name]].concat()).run().ok();
        let out = state.workdir().join(&name);
        for path in ["f", "l", "own"] {
            let metadata = out.join(path).symlink_metadata().unwrap();
            assert_eq!((metadata.uid(), metadata.gid()), (0, 0), "{way:?} {path}");
        }
        let mode = |path: &str| fs::metadata(out.join(path)).unwrap().mode() & 0o7777;
        assert_eq!(mode("f"), 0o755, "who it belonged to lends nothing to the caller");
        assert_eq!(mode("own"), 0o4755);
    }
}

#[test]
fn what_is_there_stays_unless_it_is_wiped() {
    for way in Way::BOTH {
        let state = State::new();
        for path in ["out/a", "out/own", "out/d/own", "out/d/deep/own"] {
            state.file(path, "old");
        }
        let tree = [&NOTE[..], &["with-new-file", "--path=d/f", "--contents=x"]].concat();
        let export = |flags: &[&str]| {
            let words = [&tree[..], &["export", "--path=./out"], flags].concat();
            let output = way.core(&state, &words).run();
            assert_eq!(output.ok().trim_end(), state.workdir().join("out").to_str().unwrap());
        };
        let names = || listing(&state.workdir().join("out")).into_keys().collect::<Vec<_>>();
        export(&[]);
        assert_eq!(names(), ["", "a", "d", "d/deep", "d/deep/own", "d/f", "d/own", "own"]);
        assert_eq!(fs::read_to_string(state.workdir().join("out/a")).unwrap(), "b");
        export(&["--wipe"]);
        assert_eq!(names(), ["", "a", "d", "d/f"]);
    }
}

#[test]
fn nothing_is_written_through_a_link() {
    for way in Way::BOTH {
        let state = State::new();
        state.file("outside/f", "untouched");
        fs::create_dir(state.workdir().join("out")).unwrap();
        symlink("../outside", state.workdir().join("out/d")).unwrap();
        symlink("../outside/f", state.workdir().join("out/a")).unwrap();
        let tree = [&NOTE[..], &["with-new-file", "--path=d/f", "--contents=x"]].concat();
        way.core(&state, &[&tree[..], &["-o", "out"]].concat()).run().ok();
        let read = |path: &str| fs::read_to_string(state.workdir().join(path)).unwrap();
        assert_eq!(read("outside/f"), "untouched", "{way:?}");
        assert_eq!((read("out/d/f"), read("out/a")), ("x".into(), "b".into()));
        assert!(!state.workdir().join("out/d").is_symlink());
        // The path itself is the caller's own.
        symlink("out", state.workdir().join("way")).unwrap();
        let output = way.core(&state, &[&NOTE[..], &["export", "--path=way/x"]].concat()).run();
        assert_eq!(output.ok().trim_end(), state.workdir().join("out/x").to_str().unwrap());
    }
}

#[test]
fn a_directory_that_holds_something_is_not_lost_to_a_file() {
    for way in Way::BOTH {
        let state = State::new();
        state.file("out/a/own", "mine");
        let words = [&NOTE[..], &["-o", "out"]].concat();
        let output = way.core(&state, &words).run();
        let said = output.fails(1).to_owned() + &output.stderr;
        assert!(said.contains("cannot replace directory") && said.contains("out/a"), "{said}");
        assert!(said.contains("wipe"), "{said}");
        assert_eq!(fs::read_dir(state.workdir().join("out")).unwrap().count(), 1);
        let words = [&NOTE[..], &["export", "--path=out", "--wipe"]].concat();
        way.core(&state, &words).run().ok();
        assert_eq!(fs::read_to_string(state.workdir().join("out/a")).unwrap(), "b");
    }
}

#[test]
fn targets_that_cannot_be_written_are_named() {
    for way in Way::BOTH {
        let state = State::new();
        state.file("file", "old");
        let export = |words: &[&str], to: &str| {
            let output = way.core(&state, &[words, &["-o", to]].concat()).run();
            output.fails(1);
            output.stderr
        };
        let said = export(&NOTE, "file");
        assert!(said.contains("is a file, not a directory"), "{said}");
        let said = export(&NOTE, "file/below");
        assert!(said.contains("ot a directory"), "{said}");
        let said = export(&NOTE, "/proc/none");
        assert!(said.contains("/proc/none"), "{said}");
        let words = [&NOTE[..], &["export", "--path=/", "--wipe"]].concat();
        let said = way.core(&state, &words).run().stderr;
        assert!(said.contains("the root is not wiped"), "{said}");
        let said = export(&["directory", "directory", "--path=none"], "x");
        assert!(said.contains("none: no such file or directory"), "{said}");
        assert!(!state.workdir().join("x").exists());
    }
}

#[test]
fn a_file_goes_to_a_path_or_into_a_directory() {
    let state = State::new();
    let session = Session::start(&state);
    let export = |arguments: &str| {
        format!(
            r#"{{ directory {{ withNewFile(path: "d/f", contents: "x", permissions: 416) {{
                file(path: "d/f") {{ export({arguments}) }} }} }} }}"#
        )
    };
    let work = state.workdir();
    let path = |name: &str| serde_json::json!(work.join(name).to_str().unwrap());
    assert_eq!(session.leaf(&export(r#"path: "new/dir/name""#)), path("new/dir/name"));
    let metadata = fs::metadata(work.join("new/dir/name")).unwrap();
    assert_eq!(metadata.permissions().mode() & 0o7777, 0o640);
    assert_eq!(metadata.len(), 1);
    let said = session.error(&export(r#"path: "new/dir""#));
    assert!(said.contains("path new/dir is a directory, not a file"), "{said}");
    let into = session.leaf(&export(r#"path: "new/dir", allowParentDirPath: true"#));
    assert_eq!(into, path("new/dir/f"));
    fs::create_dir(work.join("sub")).unwrap();
    let above = session.leaf(&export(r#"path: "sub/../above""#));
    assert_eq!(above, path("above"));
    assert_eq!(fs::read_dir(work.join("new/dir")).unwrap().count(), 2);
}

/// How many files the tree of the tests has that are stopped in the middle.
const MANY: usize = 4000;

fn many(state: &State) {
    let source = state.workdir().join("many");
    for number in 0..MANY {
        let folder = source.join((number % 40).to_string());
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(number.to_string()), number.to_string().repeat(1000)).unwrap();
    }
}

/// Every file is as it was or as it is to be, and nothing else is there.
fn check_whole(out: &Path, old: &str) {
    for (path, held) in listing(out) {
        assert!(!path.contains(".ci-tool-"), "{path} is left");
        let name = path.rsplit('/').next().unwrap();
        let text = fs::read_to_string(out.join(&path)).unwrap_or_default();
        let whole = text == name.repeat(1000) || text == old;
        assert!(held.contains("directory") || whole, "{path}: {held}");
    }
}

fn is_tidy(out: &Path) -> bool {
    !listing(out).keys().any(|path| path.contains(".ci-tool-"))
}

#[test]
fn an_interrupt_leaves_whole_files_only() {
    for way in Way::BOTH {
        let state = State::new();
        many(&state);
        let out = state.workdir().join("out");
        for number in (0..MANY).step_by(3) {
            state.file(&format!("out/{}/{number}", number % 40), "old");
        }
        let words = ["host", "directory", "--path=many", "-o", "out"];
        let running = way.core(&state, &words).spawn();
        // Something that was not there before has come.
        let begun = || (0..40).any(|n| out.join(format!("{n}/{}", n + 40)).exists());
        assert!(wait_until(state.remaining(), begun), "{}", running.stderr_so_far());
        running.signal_group(Signal::INT);
        running.wait();
        // The engine stops after the files it is at.
        assert!(wait_until(state.remaining(), || is_tidy(&out)), "{way:?}");
        check_whole(&out, "old");
        way.core(&state, &words).run().ok();
        check_whole(&out, "");
        let files = listing(&out).values().filter(|held| held.contains("file")).count();
        assert_eq!(files, MANY);
    }
}

#[test]
fn an_engine_that_is_killed_leaves_no_half_file() {
    let state = State::new();
    many(&state);
    let out = state.workdir().join("out");
    let running = state.cli(["core", "host", "directory", "--path=many", "-o", "out"]).spawn();
    let begun = || out.join("39").exists();
    assert!(wait_until(state.remaining(), begun), "{}", running.stderr_so_far());
    state.kill_engine();
    running.wait();
    check_whole(&out, "");
}

#[test]
fn progress_tells_files_and_bytes() {
    let state = State::new();
    many(&state);
    let words = ["core", "--progress=plain", "host", "directory", "--path=many", "-o", "out"];
    let output = state.cli(words).run();
    output.ok();
    assert!(output.stderr.contains("export "), "{output:#?}");
    let bytes: usize = (0..MANY).map(|number| number.to_string().len() * 1000).sum();
    let told = format!("{:.1} MB", bytes as f64 / 1e6);
    assert!(output.stderr.contains(&told), "{told}: {output:#?}");
}
