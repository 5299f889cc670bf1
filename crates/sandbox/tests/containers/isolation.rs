//! What a command must not see or do.

use crate::fixture::{Fixture, children_of, run};
use crate::{Case, cases};
use sandbox::User;
use std::fs;
use std::sync::Arc;

pub(crate) fn cases() -> Vec<Case> {
    cases![
        process_1_is_ours_and_cannot_be_looked_into,
        processes_of_the_host_are_not_seen,
        mounts_of_the_host_are_not_seen,
        capabilities_are_the_default_ones,
        other_users_have_no_capabilities,
        all_capabilities_are_those_of_the_engine,
        system_calls_are_filtered,
        only_the_default_devices_exist,
        the_kernel_log_is_out_of_reach,
        the_kernels_knobs_are_out_of_reach,
        descriptors_are_not_inherited,
        the_network_is_only_the_loopback,
        the_hosts_network_is_the_hosts,
        names_are_our_own,
        our_binary_cannot_be_written_to,
    ]
}

async fn process_1_is_ours_and_cannot_be_looked_into(fixture: Arc<Fixture>) {
    assert_eq!(fixture.run(&["cat", "/proc/1/comm"]).await.text(), "ci-tool.init");
    let line = fixture.run(&["cat", "/proc/1/cmdline"]).await;
    assert_eq!(line.text().trim_end_matches('\0'), "ci-tool.init");
    for file in ["exe", "root", "cwd"] {
        let outcome = fixture.run(&["readlink", &format!("/proc/1/{file}")]).await;
        assert_ne!(outcome.exit.code, 0, "{file}: {outcome:?}");
    }
    for file in ["environ", "maps", "mem", "auxv", "stack"] {
        let outcome = fixture.run(&["cat", &format!("/proc/1/{file}")]).await;
        assert_ne!(outcome.exit.code, 0, "{file}: {outcome:?}");
        assert_eq!(outcome.stdout, "", "{file}");
    }
    // The first instant after the start it may still have some open, which nobody can look at.
    let line =
        "for fd in 0 1 2 3 4 5 6 7 8 9; do readlink /proc/1/fd/$fd; cat < /proc/1/fd/$fd; done";
    assert_eq!(fixture.shell(line).await.stdout, "");
    assert_eq!(fixture.run(&["readlink", "/proc/self/exe"]).await.text(), "/bin/busybox");
    assert_eq!(fixture.run(&["cat", "/proc/self/environ"]).await.text(), "PATH=/bin\0");
}

async fn processes_of_the_host_are_not_seen(fixture: Arc<Fixture>) {
    let outcome = fixture.shell("cd /proc; echo $PPID $$; echo [0-9]*").await;
    assert_eq!(outcome.text(), "1 2\n1 2");
    let outcome = fixture.shell("kill -0 -1; echo alive").await;
    assert_eq!(outcome.text(), "alive");
}

async fn mounts_of_the_host_are_not_seen(fixture: Arc<Fixture>) {
    let outcome = fixture.shell("cut -d' ' -f5 /proc/self/mountinfo").await;
    let allowed = ["/", "/proc", "/sys", "/dev", "/etc/hosts", "/etc/hostname"];
    for place in outcome.text().lines() {
        let below = ["/proc/", "/sys/", "/dev/"].iter().any(|area| place.starts_with(area));
        assert!(below || allowed.contains(&place), "{place}");
    }
    let entries = fixture.run(&["ls", "/"]).await;
    assert_eq!(entries.text(), "bin\ndev\netc\nproc\nsys\ntmp");
}

fn status(text: &str, field: &str) -> String {
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{field}:")));
    line.unwrap_or_else(|| panic!("no {field} in {text}")).trim().to_owned()
}

const STATUS: [&str; 2] = ["cat", "/proc/self/status"];
const DOCKERS: &str = "00000000a80425fb";
const NONE: &str = "0000000000000000";

async fn capabilities_are_the_default_ones(fixture: Arc<Fixture>) {
    for init in [true, false] {
        let mut spec = fixture.spec(&STATUS);
        spec.init = init;
        let outcome = run(&fixture.plain, spec).await.unwrap();
        for field in ["CapEff", "CapPrm", "CapBnd"] {
            assert_eq!(status(outcome.text(), field), DOCKERS, "{field}");
        }
        for field in ["CapInh", "CapAmb"] {
            assert_eq!(status(outcome.text(), field), NONE, "{field}");
        }
        assert_eq!(status(outcome.text(), "NoNewPrivs"), "1");
        assert_eq!(status(outcome.text(), "Seccomp"), "2");
        assert_eq!(status(outcome.text(), "SigBlk"), NONE);
        assert_eq!(status(outcome.text(), "SigIgn"), NONE);
    }
}

async fn other_users_have_no_capabilities(fixture: Arc<Fixture>) {
    let mut spec = fixture.spec(&STATUS);
    spec.user = User { uid: 1000, gid: 1000, groups: Vec::new() };
    let outcome = run(&fixture.plain, spec).await.unwrap();
    assert_eq!(status(outcome.text(), "CapEff"), NONE);
    assert_eq!(status(outcome.text(), "CapPrm"), NONE);
    assert_eq!(status(outcome.text(), "CapBnd"), DOCKERS);
}

async fn all_capabilities_are_those_of_the_engine(fixture: Arc<Fixture>) {
    let own = status(&fs::read_to_string("/proc/self/status").unwrap(), "CapEff");
    for uid in [0, 1000] {
        let mut spec = fixture.spec(&STATUS);
        spec.all_capabilities = true;
        spec.user.uid = uid;
        let outcome = run(&fixture.plain, spec).await.unwrap();
        for field in ["CapEff", "CapPrm", "CapBnd", "CapInh", "CapAmb"] {
            assert_eq!(status(outcome.text(), field), own, "{field} of {uid}");
        }
        assert_eq!(status(outcome.text(), "Seccomp"), "0");
    }
    let mut spec =
        fixture.spec(&["sh", "-c", "mount -t tmpfs none /tmp && touch /tmp/x && ls /tmp"]);
    spec.all_capabilities = true;
    assert_eq!(run(&fixture.plain, spec).await.unwrap().text(), "x");
    assert!(!fixture.root.join("tmp/x").exists());
}

async fn system_calls_are_filtered(fixture: Arc<Fixture>) {
    let lines = [
        "unshare -U true",
        "unshare -m true",
        "mount -t tmpfs none /tmp",
        "mount -o bind /bin /tmp",
        "umount /proc",
        "umount /proc/sys",
        "hostname other",
        "mknod /tmp/disk b 254 0",
        "mknod /dev/kmsg c 1 11",
        "pivot_root / /tmp",
        "swapon /bin/busybox",
    ];
    for line in lines {
        let outcome = fixture.shell(line).await;
        assert_ne!(outcome.exit.code, 0, "{line}: {outcome:?}");
        let refused = ["not permitted", "not implemented", "denied", "must be superuser"];
        assert!(refused.iter().any(|word| outcome.stderr.contains(word)), "{line}: {outcome:?}");
    }
    assert_eq!(
        fixture.shell("mkfifo /tmp/pipe.$$ && rm /tmp/pipe.$$ && echo ok").await.text(),
        "ok"
    );
}

async fn only_the_default_devices_exist(fixture: Arc<Fixture>) {
    let outcome = fixture.run(&["ls", "/dev"]).await;
    let expected = "fd full mqueue null ptmx pts random shm stderr stdin stdout tty urandom zero";
    assert_eq!(outcome.text().replace('\n', " "), expected);
    let kinds =
        fixture.shell("cd /dev; stat -c '%n %a %t %T' null zero full random urandom tty").await;
    let expected =
        "null 666 1 3\nzero 666 1 5\nfull 666 1 7\nrandom 666 1 8\nurandom 666 1 9\ntty 666 5 0";
    assert_eq!(kinds.text(), expected);
    let line = "echo x > /dev/null && head -c 4 /dev/zero | wc -c && head -c 9 /dev/urandom | wc -c \
                && ls /dev/pts /dev/shm && touch /dev/shm/x && echo fine";
    assert!(fixture.shell(line).await.text().ends_with("fine"));
    let full = fixture.shell("echo x > /dev/full").await;
    assert!(full.stderr.contains("No space left"), "{full:?}");
}

async fn the_kernel_log_is_out_of_reach(fixture: Arc<Fixture>) {
    let outcome = fixture.run(&["dmesg"]).await;
    assert!(outcome.exit.code != 0 && outcome.stdout.is_empty(), "{outcome:?}");
    let outcome = fixture.run(&["cat", "/proc/kmsg"]).await;
    assert_eq!(outcome.stdout, "");
    assert_ne!(fixture.run(&["ls", "/dev/kmsg"]).await.exit.code, 0);
}

async fn the_kernels_knobs_are_out_of_reach(fixture: Arc<Fixture>) {
    for path in
        ["/proc/sys/kernel/core_pattern", "/proc/sys/vm/drop_caches", "/sys/kernel/uevent_helper"]
    {
        let outcome = fixture.shell(&format!("echo x > {path}")).await;
        assert_ne!(outcome.exit.code, 0, "{path}: {outcome:?}");
    }
    for path in
        ["/proc/keys", "/proc/timer_list", "/proc/interrupts", "/proc/kcore", "/sys/firmware"]
    {
        let outcome = fixture.shell(&format!("cat {path} || ls {path}")).await;
        assert_eq!(outcome.stdout, "", "{path}");
    }
    assert_eq!(
        fixture.shell("ls -A /sys/firmware /sys/fs/cgroup | grep -v :").await.stdout.trim(),
        ""
    );
    assert_ne!(fixture.shell("cat /proc/meminfo | grep MemTotal").await.text(), "");
}

async fn descriptors_are_not_inherited(fixture: Arc<Fixture>) {
    for init in [true, false] {
        let mut spec = fixture.spec(&["ls", "/proc/self/fd"]);
        spec.init = init;
        let outcome = run(&fixture.plain, spec).await.unwrap();
        assert_eq!(outcome.text(), "0\n1\n2\n3", "three streams and the directory that is listed");
    }
}

async fn the_network_is_only_the_loopback(fixture: Arc<Fixture>) {
    let outcome =
        fixture.shell("ls /sys/class/net; ifconfig lo | grep -c 'UP LOOPBACK RUNNING'").await;
    assert_eq!(outcome.text(), "lo\n1");
    let ping = "nc -l -p 5000 -e echo heard & while ! nc 127.0.0.1 5000; do :; done";
    assert_eq!(fixture.shell(ping).await.text(), "heard");
}

async fn the_hosts_network_is_the_hosts(fixture: Arc<Fixture>) {
    let outcome = run(&fixture.host, fixture.spec(&["ls", "/sys/class/net"])).await.unwrap();
    let mut names: Vec<String> = fs::read_dir("/sys/class/net")
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(outcome.text().lines().collect::<Vec<_>>(), names);
    let outcome = run(&fixture.host, fixture.spec(&["cat", "/etc/resolv.conf"])).await.unwrap();
    assert_eq!(outcome.stdout, fs::read_to_string("/etc/resolv.conf").unwrap_or_default());
}

async fn names_are_our_own(fixture: Arc<Fixture>) {
    let outcome = fixture.shell("hostname; cat /etc/hostname; grep -c ci-tool /etc/hosts").await;
    assert_eq!(outcome.text(), "ci-tool\nci-tool\n1");
    let outcome = fixture.shell("echo x >> /etc/hosts").await;
    assert!(outcome.stderr.contains("Read-only"), "{outcome:?}");
    let outcome = fixture.run(&["cat", "/proc/self/cgroup"]).await;
    for line in outcome.text().lines() {
        assert!(line.ends_with(":/"), "{line}");
    }
}

async fn our_binary_cannot_be_written_to(_: Arc<Fixture>) {
    let zygotes = children_of(std::process::id());
    assert!(zygotes.len() >= 3, "{zygotes:?}");
    for zygote in zygotes {
        let mounted = rustix::fs::statvfs(format!("/proc/{zygote}/exe")).unwrap();
        assert!(mounted.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY));
        let environment = fs::read(format!("/proc/{zygote}/environ")).unwrap();
        assert_eq!(environment, b"");
    }
}
