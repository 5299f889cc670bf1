//! What commands see and may do.

use super::{ALONE, core, rootfs, state};
use testkit::process::tree;
use testkit::{Session, State, User};

#[test]
fn a_command_is_root_inside_and_the_user_outside() {
    let state = state();
    let root = rootfs();
    let output = state.cli(core(&root, &["with-exec", "--args=id", "stdout"])).run();
    assert!(output.ok().starts_with("uid=0(root) gid=0(root)"), "{output:#?}");
    let engine = state.engine();
    let status = std::fs::read_to_string(format!("/proc/{}/status", engine.pid)).unwrap();
    let uid = state.user().unwrap().uid.to_string();
    let line = status.lines().find(|line| line.starts_with("Uid:")).unwrap();
    assert_eq!(line.split_whitespace().nth(1), Some(&uid[..]), "{line}");
    assert!(state.log().contains("without root"), "{}", state.log());
}

#[test]
fn devices_and_kernel_files_are_as_for_root() {
    let script = "
        ls /dev | sort | tr '\\n' ' '; echo
        echo x > /dev/null && head -c 4 /dev/zero | od -An -tx1 && head -c 9 /dev/urandom | wc -c
        head -c 1 /dev/full | wc -c; echo x 2>/dev/null > /dev/full || echo full
        stat -c '%t %T %a' /dev/null /dev/zero /dev/random
        mknod /tmp/disk b 8 0 2>/dev/null || echo no node
        cat /proc/kcore | wc -c; ls /sys/firmware | wc -l; ls /sys/fs/cgroup | wc -l
        echo 1 2>/dev/null > /proc/sys/kernel/panic || echo closed
        hostname; ls /sys/class/net; mount -t tmpfs none /tmp 2>/dev/null || echo no mount
        unshare -r true 2>/dev/null || echo no namespace";
    let plain = State::with_config(ALONE);
    let expected = Session::start(&plain).shell(script);
    drop(plain);
    let state = state();
    let session = Session::start(&state);
    assert_eq!(session.shell(script), expected);
    assert_eq!(session.shell("chmod 600 /dev/null 2>/dev/null || echo kept"), "kept\n");
    assert!(expected.contains("no node") && expected.contains("closed"), "{expected}");
    let mode = std::fs::metadata("/dev/null").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::mode(&mode.permissions());
    assert_eq!(mode & 0o777, 0o666, "the host's node is as it was");
}

#[test]
fn the_network_of_the_host_and_none() {
    let session = |config: &str| {
        let state = State::of_user(User::with_ids(), config);
        let text = Session::start(&state).shell("ls /sys/class/net; touch /sys/x 2>&1 | wc -l");
        drop(state);
        text
    };
    assert_eq!(session(ALONE), "lo\n1\n");
    let here = std::fs::read_dir("/sys/class/net").unwrap().count();
    let seen = session("network = \"host\"\n");
    assert_eq!(seen.lines().count(), here + 1, "{seen}");
}

#[test]
fn other_users_of_the_container() {
    let state = state();
    let session = Session::start(&state);
    let script = r#"withUser(name: "guest") { withWorkdir(path: "/tmp") {
        withExec(args: ["sh", "-c", "id -u; id -g; echo x > f; stat -c %u:%g f; cat /etc/shadow 2>&1 | wc -l"]) { stdout } } }"#;
    let chain = format!(
        r#"withExec(args: ["sh", "-c", "chmod 1777 /tmp; echo s > /etc/shadow; chmod 600 /etc/shadow"]) {{ {script} }}"#
    );
    assert_eq!(session.container(&chain), "1000\n1000\n1000:1000\n1\n");
    let last = r#"withExec(args: ["sh", "-c", "touch /f; chown 65535:65535 /f; stat -c %u:%g /f"]) { stdout }"#;
    assert_eq!(session.container(last), "65535:65535\n");
    let beyond = r#"withExec(args: ["sh", "-c", "touch /f; chown 65536 /f"]) { stdout }"#;
    let error = session.exec_error(&session.on_container(beyond));
    assert!(error.stderr.contains("Invalid argument"), "{error:?}");
}

#[test]
fn every_capability_is_one_of_the_namespace() {
    let state = state();
    let session = Session::start(&state);
    let script = "mount -t tmpfs none /tmp && echo mounted; mknod /disk b 8 0 2>/dev/null || echo no node; echo 1 2>/dev/null > /proc/sys/kernel/panic || echo closed";
    let chain = format!(
        r#"withExec(args: ["sh", "-c", {script:?}], insecureRootCapabilities: true) {{ stdout }}"#
    );
    assert_eq!(session.container(&chain), "mounted\nno node\nclosed\n");
}

#[test]
fn a_command_that_fails() {
    let state = state();
    let root = rootfs();
    let script = "--args=sh,-c,echo out; echo err >&2; exit 7";
    let output = state.cli(core(&root, &["with-exec", script, "stdout"])).run();
    let said = output.fails(7);
    assert!(said.contains("exit code: 7") && said.contains("err"), "{said}");
}

#[test]
fn secrets_are_the_same() {
    let state = state();
    let root = rootfs();
    let words = ["with-secret-variable", "--name=T", "--secret=env://TOKEN", "with-exec"];
    let script = "--args=sh,-c,test \"$T\" = plain && echo is $T";
    let chain = core(&root, &[&words[..], &[script, "stdout"]].concat());
    let output = state.cli(chain).env("TOKEN", "plain").run();
    assert_eq!(output.ok(), "is ***\n");
    let file = "--args=sh,-c,stat -c '%u:%g %a' /s";
    state.file("secret", "kept");
    let words =
        ["with-mounted-secret", "--path=/s", "--source=file://secret", "--owner=3:4", "with-exec"];
    let chain = core(&root, &[&words[..], &[file, "stdout"]].concat());
    assert_eq!(state.cli(chain).run().ok(), "3:4 400\n");
}

#[test]
fn limits_without_control_groups_are_said_once_and_not_held() {
    let config = format!("{ALONE}memory-limit = \"1GiB\"\n");
    let state = State::of_user(User::with_ids(), &config);
    let session = Session::start(&state);
    assert_eq!(session.shell("echo one"), "one\n");
    assert_eq!(session.shell("echo two"), "two\n");
    let log = state.log();
    assert!(log.matches("no control group is delegated").count() <= 1, "{log}");
    assert!(tree(state.engine().pid).len() >= 2);
}

#[test]
fn images_from_debian_packages() {
    let state = state().with_packages();
    let from = ["core", "container", "from", "--address=deb://bookworm+python3"];
    let exec = ["with-exec", "--args=python3,-c,import os; print(os.getuid() + 6 * 7)", "stdout"];
    assert_eq!(state.cli(from.iter().chain(&exec)).run().ok(), "42\n");
    let audit = "dpkg --audit; dpkg --verify; stat -c '%u:%g %a' /etc/shadow /usr/bin/passwd /var/mail; su nobody -s /bin/sh -c id";
    let args = format!("--args=sh,-c,{audit}");
    let from = ["core", "container", "from", "--address=deb://bookworm", "with-exec", &args];
    let output = state.cli(from.iter().chain(&["stdout"])).run();
    assert_eq!(
        output.ok(),
        "0:42 640\n0:0 4755\n0:8 2775\nuid=65534(nobody) gid=65534(nogroup) groups=65534(nogroup)\n"
    );
}
