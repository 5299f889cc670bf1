//! Programs that cannot be run: a clear error each.

use std::os::unix::fs::PermissionsExt as _;
use testkit::{Session, State, busybox};

/// A root file system with one static program and no shell.
fn bare(state: &State) -> std::path::PathBuf {
    let root = state.workdir().join("bare");
    std::fs::create_dir_all(root.join("opt")).unwrap();
    std::fs::copy(busybox().join("bin/busybox"), root.join("opt/true")).unwrap();
    std::fs::write(root.join("opt/text"), "no program").unwrap();
    std::fs::set_permissions(root.join("opt/text"), std::fs::Permissions::from_mode(0o755))
        .unwrap();
    std::fs::write(root.join("opt/plain"), "#!/opt/true\n").unwrap();
    root
}

#[test]
fn a_root_without_a_shell_runs_what_it_has() {
    let state = State::new();
    let root = bare(&state);
    let session = Session::start(&state);
    let id = session.host_directory(&root);
    let run = |args: &str| {
        format!(
            r#"{{ container {{ withRootfs(directory: "{id}") {{ withExec(args: {args}) {{ exitCode }} }} }} }}"#
        )
    };
    assert_eq!(session.leaf(&run(r#"["/opt/true"]"#)), 0);
    for (args, code, name) in [
        (r#"["sh", "-c", "true"]"#, 127, "sh"),
        (r#"["/bin/sh"]"#, 127, "/bin/sh"),
        (r#"["/opt/none"]"#, 127, "/opt/none"),
        (r#"["/opt"]"#, 126, "/opt"),
        (r#"["/opt/plain"]"#, 126, "/opt/plain"),
        (r#"["/opt/text"]"#, 126, "/opt/text"),
    ] {
        let error = session.exec_error(&run(args));
        assert_eq!(error.code, code, "{args}: {error:?}");
        assert!(error.message.contains(&format!("exit code: {code}")), "{args}: {error:?}");
        let text = format!("{} {}", error.message, error.stderr);
        assert!(text.contains(name), "{args}: {error:?}");
    }
    assert_eq!(session.leaf(&run(r#"["/opt/true"]"#)), 0, "the engine is healthy");
}

#[test]
fn an_empty_root_has_nothing_to_run() {
    let state = State::new();
    let session = Session::start(&state);
    let error = session.exec_error(r#"{ container { withExec(args: ["true"]) { stdout } } }"#);
    assert_eq!(error.code, 127, "{error:?}");
}

#[test]
fn programs_are_found_on_the_containers_own_path() {
    let state = State::new();
    let session = Session::start(&state);
    let document = session.on_container(
        r##"withNewFile(path: "/my/tool", contents: "#!/bin/sh\necho mine", permissions: 493) {
            withEnvVariable(name: "PATH", value: "/my:/bin") { withExec(args: ["tool"]) { stdout } } }"##,
    );
    assert_eq!(session.leaf(&document), "mine\n");
    let document = session.on_container(
        r##"withNewFile(path: "/w/tool", contents: "#!/bin/sh\necho here", permissions: 493) {
            withWorkdir(path: "/w") { withExec(args: ["./tool"]) { stdout } } }"##,
    );
    assert_eq!(session.leaf(&document), "here\n");
}

#[test]
fn a_working_directory_that_is_a_file_is_an_error() {
    let state = State::new();
    let session = Session::start(&state);
    let document = session.on_container(
        r#"withNewFile(path: "/f", contents: "") { withWorkdir(path: "/f") { withExec(args: ["true"]) { stdout } } }"#,
    );
    let said = session.error(&document);
    assert!(said.contains("/f"), "{said}");
}

#[test]
fn files_that_are_not_what_they_seem_do_not_hang_the_engine() {
    let state = State::new();
    let session = Session::start(&state);
    let script =
        "rm /etc/passwd /etc/group; mknod /etc/passwd p; ln -s /dev/zero /etc/group; mknod /fifo p";
    let broken =
        session.container(&format!(r#"withExec(args: ["sh", "-c", "{script}"]) {{ sync }}"#));
    for chain in [
        r#"withUser(name: "guest") { withExec(args: ["true"]) { exitCode } }"#,
        r#"withUser(name: "0:guest") { withExec(args: ["true"]) { exitCode } }"#,
        r#"withNewFile(path: "/x", contents: "", owner: "guest") { rootfs { entries } }"#,
        r#"file(path: "/fifo") { contents }"#,
        r#"file(path: "/etc/group") { contents }"#,
        r#"withExec(args: ["true"], redirectStdin: "/fifo") { exitCode }"#,
        r#"rootfs { file(path: "fifo") { size } }"#,
    ] {
        // One that hangs is not answered.
        let reply =
            session.send(&format!(r#"{{ loadContainerFromID(id: "{broken}") {{ {chain} }} }}"#));
        assert_eq!(reply.status, 200, "{chain}");
    }
    assert_eq!(session.shell("echo healthy"), "healthy\n");
}
