//! An exec sees none of the host: processes, mounts, environment, files, devices, kernel log,
//! other execs.

use std::collections::BTreeSet;
use testkit::process::{wait_until, with_argument};
use testkit::{Random, Session, State};

#[test]
fn processes_of_the_host_are_not_there() {
    let state = State::new();
    let session = Session::start(&state);
    let text =
        session.shell("ls -d /proc/[0-9]* | wc -l; echo $$; cat /proc/1/cmdline | tr '\\0' ' '");
    let count: u32 = text.lines().next().unwrap().parse().unwrap();
    assert!(count < 8, "{text}");
    let killed = session.shell("kill -9 1 2>/dev/null; kill -0 1 && echo init lives");
    assert_eq!(killed, "init lives\n", "the command cannot end its init");
}

#[test]
fn mounts_are_the_containers_own() {
    let state = State::new();
    let session = Session::start(&state);
    let text = session.shell("cut -d ' ' -f 5 /proc/self/mountinfo");
    for place in text.lines() {
        let known = place == "/"
            || ["/proc", "/dev", "/sys", "/etc/hosts", "/etc/hostname", "/etc/resolv.conf"]
                .iter()
                .any(|known| place.starts_with(known));
        assert!(known, "{place} in {text}");
    }
    let document = session
        .on_container(r#"withExec(args: ["mount", "-t", "tmpfs", "none", "/tmp"]) { stdout }"#);
    assert_ne!(session.exec_error(&document).code, 0);
}

#[test]
fn the_environment_is_the_containers_own() {
    let state = State::new();
    let word = Random::new("environment").word();
    let rootfs = format!("--directory={}", testkit::busybox().display());
    let script = "--args=sh,-c,env; cat /proc/*/environ | tr '\\0' '\\n'";
    let chain = [
        "core",
        "container",
        "with-rootfs",
        &rootfs,
        "with-env-variable",
        "--name=OWN",
        "--value=mine",
        "with-exec",
        script,
        "stdout",
    ];
    let output = state.cli(chain).env("SECRET_OF_THE_HOST", &word).run();
    let text = output.ok();
    assert!(text.contains("OWN=mine"), "{text}");
    assert!(!text.contains(&word) && !text.contains("CITOOL_"), "{text}");
    let names: BTreeSet<&str> =
        text.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    let allowed =
        ["OWN", "PATH", "HOME", "HOSTNAME", "PWD", "SHLVL", "TERM", "USER", "_", "OLDPWD"];
    // What the machine trusts is the one thing of it that commands get without asking.
    let certificates = [
        "SSL_CERT_FILE",
        "CURL_CA_BUNDLE",
        "REQUESTS_CA_BUNDLE",
        "NODE_EXTRA_CA_CERTS",
        "GIT_SSL_CAINFO",
    ];
    let known = |name: &&str| allowed.contains(name) || certificates.contains(name);
    assert!(names.iter().all(known), "{names:?}");
}

#[test]
fn files_of_the_host_are_not_there() {
    let state = State::new();
    let session = Session::start(&state);
    let text = session.shell("ls -A /");
    let names: BTreeSet<&str> = text.lines().collect();
    let allowed = ["bin", "etc", "root", "tmp", "proc", "dev", "sys"];
    assert!(names.iter().all(|name| allowed.contains(name)), "{names:?}");
    let state_folder = state.dir().display().to_string();
    assert_eq!(
        session.shell(&format!("ls -d {state_folder} 2>/dev/null || echo not here")),
        "not here\n"
    );
}

#[test]
fn devices_are_the_default_set() {
    let state = State::new();
    let session = Session::start(&state);
    let text = session.shell("ls /dev");
    let names: BTreeSet<&str> = text.lines().collect();
    let allowed = [
        "console", "core", "fd", "full", "mqueue", "null", "ptmx", "pts", "random", "shm",
        "stderr", "stdin", "stdout", "tty", "urandom", "zero",
    ];
    assert!(names.iter().all(|name| allowed.contains(name)), "{names:?}");
    assert_eq!(session.shell("echo x > /dev/null && head -c 4 /dev/zero | wc -c"), "4\n");
    // The disk of the machine, made by hand.
    let disk = std::fs::read_dir("/sys/class/block").unwrap().flatten().find_map(|entry| {
        let number = std::fs::read_to_string(entry.path().join("dev")).ok()?;
        let (major, minor) = number.trim().split_once(':')?;
        Some((major.to_owned(), minor.to_owned()))
    });
    if let Some((major, minor)) = disk {
        let script = format!(
            "mknod /tmp/disk b {major} {minor} 2>/dev/null; head -c 1 /tmp/disk >/dev/null 2>&1 && echo read || echo refused"
        );
        assert_eq!(session.shell(&script), "refused\n");
    }
    let script = "mknod /tmp/mem c 1 1 2>/dev/null; head -c 1 /tmp/mem >/dev/null 2>&1 && echo read || echo refused";
    assert_eq!(session.shell(script), "refused\n");
}

#[test]
fn the_kernel_log_and_the_kernels_knobs_are_closed() {
    let state = State::new();
    let session = Session::start(&state);
    for script in [
        "dmesg",
        "head -c 1 /dev/kmsg",
        "timeout 1 head -c 1 /proc/kmsg",
        "head -c 1 /proc/kcore",
        "echo b > /proc/sysrq-trigger",
        "echo 1 > /proc/sys/vm/drop_caches",
        "echo x > /proc/sys/kernel/hostname",
        "echo x > /sys/kernel/mm/ksm/run",
        "unshare -m true",
        "hostname other",
    ] {
        let text = session.shell(&format!("( {script} ) 2>/dev/null | head -c 100; echo"));
        assert_eq!(text.trim(), "", "{script}: {text}");
    }
    let text = session.shell("grep -E 'NoNewPrivs|Seccomp:' /proc/self/status");
    assert!(text.contains("NoNewPrivs:\t1") && text.contains("Seccomp:\t2"), "{text}");
}

#[test]
fn other_execs_are_not_there() {
    let state = State::new();
    let session = Session::start(&state);
    let number = 1_000_000 + Random::new("other execs").below(1 << 30);
    let waiting =
        session.on_container(&format!(r#"withExec(args: ["sleep", "{number}"]) {{ stdout }}"#));
    let body = serde_json::json!({ "query": waiting }).to_string();
    let mut connection = session.endpoint.connect().unwrap();
    testkit::write_request(&mut connection, &session.endpoint.request(body)).unwrap();
    let name = format!("sleep {number}");
    assert!(wait_until(state.remaining(), || !with_argument(&name).is_empty()), "{}", state.log());
    let sleeping = with_argument(&name)[0];
    let text = session.shell("cat /proc/[0-9]*/cmdline | tr '\\0' ' '; kill -9 -1; true");
    assert!(!text.contains(&number.to_string()), "{text}");
    assert!(sleeping.is_alive(), "a signal to everybody reaches nobody else");
    let memory = session.shell("ls /dev/shm | wc -l; touch /dev/shm/mine");
    assert_eq!(memory, "0\n");
    assert_eq!(
        session.shell("ls -A /dev/shm | wc -l"),
        "0\n",
        "shared memory is not shared with the next"
    );
    drop(connection);
    assert!(sleeping.wait_gone());
}

#[test]
fn descriptors_of_the_engine_do_not_leak_in() {
    let state = State::new();
    let session = Session::start(&state);
    let text = session.shell("ls -l /proc/self/fd | grep -c -- '->'");
    let count: u32 = text.trim().parse().unwrap();
    assert!(count <= 4, "three streams and the folder being listed: {count}");
}
