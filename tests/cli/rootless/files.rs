//! Whose files are whose: in, out, and in the store.

use super::{core, rootfs, state};
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use testkit::{Session, State, User};

/// All entries of the host below a path, and who has them.
fn owners(top: &Path) -> Vec<(u32, u32)> {
    let mut found = vec![];
    let mut ahead = vec![top.to_owned()];
    while let Some(path) = ahead.pop() {
        let metadata = path.symlink_metadata().unwrap();
        found.push((metadata.uid(), metadata.gid()));
        if metadata.is_dir() {
            ahead.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
    found
}

#[test]
fn what_goes_in_is_roots_and_what_comes_out_is_the_callers() {
    let state = state();
    let source = state.file("src/run.sh", "#!/bin/sh\necho ran\n");
    fs::set_permissions(&source, fs::Permissions::from_mode(0o755)).unwrap();
    state.file("src/private", "p");
    fs::set_permissions(state.workdir().join("src/private"), fs::Permissions::from_mode(0o600))
        .unwrap();
    let session = Session::start(&state);
    let tree = session.leaf(r#"{ host { directory(path: "src") { id } } }"#);
    let seen = session.container(&format!(
        r#"withDirectory(path: "/t", source: {tree}) {{ withExec(args: ["sh", "-c",
            "stat -c '%u:%g %a' /t/run.sh /t/private; /t/run.sh"]) {{ stdout }} }}"#
    ));
    assert_eq!(seen, "0:0 755\n0:0 600\nran\n");
    drop(session);
    let user = state.user().unwrap();
    let root = rootfs();
    let script = "--args=sh,-c,mkdir -p /o/d; cd /o; echo x > f; ln -s f l; echo y > d/g; chown -hR 5:6 .; chmod 750 d";
    let words = core(&root, &["with-exec", script, "directory", "--path=/o", "-o", "out"]);
    state.cli(words).run().ok();
    let out = state.workdir().join("out");
    assert_eq!(owners(&out), vec![(user.uid, user.gid); 5]);
    assert_eq!(fs::metadata(out.join("d")).unwrap().mode() & 0o777, 0o750);
    assert_eq!(fs::read_to_string(out.join("d/g")).unwrap(), "y\n");
}

#[test]
fn the_user_reads_no_more_than_it_may() {
    let state = state();
    let secret = state.file("src/secret", "s");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    std::os::unix::fs::chown(&secret, Some(0), Some(0)).unwrap();
    let session = Session::start(&state);
    let said = session.error(r#"{ host { directory(path: "src") { entries } } }"#);
    assert!(said.contains("ermission denied"), "{said}");
    let out = state.workdir().join("out");
    fs::create_dir(&out).unwrap();
    let said = session.error(
        r#"{ directory { withNewFile(path: "f", contents: "x") { export(path: "out") } } }"#,
    );
    assert!(said.contains("ermission denied"), "a folder of root's: {said}");
    assert_eq!(fs::read_dir(&out).unwrap().count(), 0);
}

#[test]
fn owners_that_a_user_does_not_have_are_named() {
    let state = state();
    let root = rootfs();
    let file = ["with-new-file", "--path=/f", "--contents=x", "--owner=70000", "sync"];
    let output = state.cli(core(&root, &file)).run();
    let said = output.fails(1);
    assert!(said.contains("hint: an engine without root has no owners beyond 65535"), "{said}");
}

#[test]
fn directories_that_go_and_come_back_hide_what_was_there() {
    let state = state();
    let session = Session::start(&state);
    let step = |script: &str, rest: &str| {
        format!(r#"withExec(args: ["sh", "-c", "{script}"]) {{ {rest} }}"#)
    };
    let chain = step(
        "mkdir -p /d/sub /e; echo 1 > /d/a; echo 1 > /d/sub/b; echo 1 > /e/f; chown -R 7:8 /d",
        &step(
            "rm -rf /d /e/f; mkdir -p /d/sub; echo 2 > /d/c",
            &step(
                "ls -R /d /e; mv /d /moved; rm -r /e",
                &step("find /d /e /moved 2>/dev/null | sort", "stdout"),
            ),
        ),
    );
    assert_eq!(session.container(&chain), "/moved\n/moved/c\n/moved/sub\n");
    // By the API, which writes layers without a mount, and in the other order.
    let edited = r#"withNewFile(path: "/d/x", contents: "x") { withoutDirectory(path: "/d") {
        withNewFile(path: "/d/y", contents: "y") { withExec(args: ["ls", "/d"]) { stdout } } } }"#;
    assert_eq!(session.container(edited), "y\n");
    let entries = r#"withNewFile(path: "/d/x", contents: "x") { withExec(args: ["sh", "-c", "rm -r /d; mkdir /d; touch /d/z"]) {
        directory(path: "/d") { entries } } }"#;
    assert_eq!(session.leaf(&session.on_container(entries)), serde_json::json!(["z"]));
}

#[test]
fn a_long_chain_with_removals_is_merged_as_for_root() {
    let state = state();
    let session = Session::start(&state);
    let steps = 70;
    let mut chain = String::from(
        r#"withExec(args: ["sh", "-c", "ls /n | wc -l; ls /d; stat -c %u /n/k0"]) { stdout }"#,
    );
    for step in (0..steps).rev() {
        let script = format!(
            "mkdir -p /n; rm -rf /d; mkdir /d; touch /d/{step} /n/k{step}; chown {step} /n/k{step}; rm -f /n/k{}",
            step + 1000 - 1
        );
        chain = format!(r#"withExec(args: ["sh", "-c", "{script}"]) {{ {chain} }}"#);
    }
    assert_eq!(session.container(&chain), format!("{steps}\n{}\n0\n", steps - 1));
}

#[test]
fn a_cache_volume_keeps_its_owners() {
    let state = state();
    let run = |script: &str| {
        let session = Session::start(&state);
        let volume = session.leaf(r#"{ cacheVolume(key: "k") { id } }"#);
        let script = serde_json::Value::from(script);
        session.container(&format!(
            r#"withMountedCache(path: "/c", cache: {volume}) {{ withExec(args: ["sh", "-c", {script}]) {{ stdout }} }}"#
        ))
    };
    run("echo x > /c/f; chown 33:44 /c/f; chmod 640 /c/f; mkdir /c/d");
    state.stop();
    assert_eq!(run("stat -c '%u:%g %a' /c/f; rm -r /c/d; ls /c"), "33:44 640\nf\n");
}

#[test]
fn results_stay_and_what_goes_is_gone() {
    let state = state();
    let root = rootfs();
    let script =
        "--args=sh,-c,head -c 9 /dev/urandom | base64; mkdir /w; chown 9:9 /w; chmod 000 /w";
    let words = core(&root, &["with-exec", script, "stdout"]);
    let first = state.cli(&words).run().ok().to_owned();
    state.stop();
    assert_eq!(state.cli(&words).run().ok(), first, "kept over a restart");
    let session = Session::start(&state);
    session.query("{ engine { localCache { prune } } }");
    drop(session);
    let left = || fs::read_dir(state.store().join("trash")).unwrap().count();
    assert!(testkit::process::wait_until(state.remaining(), || left() == 0), "{}", state.log());
    assert!(!state.log().contains("cannot empty the trash"), "{}", state.log());
}

#[test]
fn a_full_disk_is_named_and_can_be_cleared() {
    let config = format!("{}max-used-space = \"100%\"\n", super::ALONE);
    let state = State::on_disk(96, "").given_to(User::with_ids(), &config);
    let session = Session::start(&state);
    let writes = |bytes: u64| {
        let script = format!("head -c {bytes} /dev/zero > /big && chown 7:7 /big && echo done");
        session.on_container(&format!(r#"withExec(args: ["sh", "-c", "{script}"]) {{ stdout }}"#))
    };
    let error = session.send(&writes(200 << 20)).json()["errors"].to_string();
    assert!(error.contains("is full") || error.contains("No space left"), "{error}");
    session.query("{ engine { localCache { prune } } }");
    assert_eq!(session.leaf(&writes(20 << 20)), "done\n");
}

#[test]
fn roots_store_and_a_users_stay_apart() {
    let state = state();
    let root = rootfs();
    let words =
        core(&root, &["with-exec", "--args=sh,-c,cat /proc/sys/kernel/random/uuid", "stdout"]);
    let first = state.cli(&words).run().ok().to_owned();
    let socket = fs::metadata(state.dir().join("engine.sock")).unwrap();
    assert_eq!(socket.mode() & 0o777, 0o600);
    assert_eq!(socket.uid(), state.user().unwrap().uid);
    // Root reaches the socket and is told whose it is; without that engine the store says so.
    let roots = state.another();
    let on =
        |state: &State| roots.cli(["core", "version"]).env("CITOOL_STATE_DIR", state.dir()).run();
    let output = on(&state);
    assert!(output.fails(1).contains("neither you nor root"), "{output:#?}");
    state.stop();
    let output = on(&state);
    let said = output.fails(1);
    assert!(said.contains("made by an engine that ran without root's rights"), "{said}");
    assert!(said.contains("hint: choose another folder with CITOOL_STATE_DIR"), "{said}");
    assert_eq!(state.cli(&words).run().ok(), first, "nothing of the user's was touched");
    roots.cli(["core", "version"]).run().ok();
    let output = state.cli(["core", "version"]).env("CITOOL_STATE_DIR", roots.dir()).run();
    assert!(!output.status.success(), "{output:#?}");
}
