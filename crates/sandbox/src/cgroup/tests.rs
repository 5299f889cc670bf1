//! Finding groups in the texts of real machines of each kind.

use super::parse::{
    Membership, Own, has_all, hierarchies, is_top, memberships, own, places, value,
};
use super::{Groups, Version, v2};
use crate::{Limits, Oom};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;

const V2_CGROUP: &str = "0::/user.slice/user-0.slice/session-3.scope\n";
const V2_MOUNTS: &str = "\
22 27 0:20 / /proc rw,nosuid shared:5 - proc proc rw
32 23 0:27 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot
";

const V1_CGROUP: &str = "\
9:name=systemd:/
8:pids:/
4:memory:/jobs/one
2:cpu,cpuacct:/
";
const V1_MOUNTS: &str = "\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd
";

const HYBRID_CGROUP: &str = "\
9:name=systemd:/
8:pids:/
4:memory:/jobs/one
1:cpu:/
0::/
";
const HYBRID_MOUNTS: &str = "\
32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";

fn path(text: &str) -> Option<PathBuf> {
    Some(PathBuf::from(text))
}

#[test]
fn version_2_has_one_group() {
    let own = own(V2_CGROUP, V2_MOUNTS);
    assert_eq!(own.unified, path("/sys/fs/cgroup/user.slice/user-0.slice/session-3.scope"));
    assert_eq!((own.memory, own.pids, own.cpu), (None, None, None));
    assert_eq!(places(V2_MOUNTS), [Path::new("/sys/fs/cgroup")]);
    assert!(is_top(V2_MOUNTS, Path::new("/sys/fs/cgroup")));
    assert!(!is_top(V2_MOUNTS, Path::new("/sys/fs/cgroup/user.slice")));
}

#[test]
fn version_1_has_a_group_for_each_controller() {
    let own = own(V1_CGROUP, V1_MOUNTS);
    assert_eq!(own.unified, None);
    assert_eq!(own.memory, path("/sys/fs/cgroup/memory/jobs/one"));
    assert_eq!(own.pids, path("/sys/fs/cgroup/pids/"));
    assert_eq!(own.cpu, path("/sys/fs/cgroup/cpu,cpuacct/"));
}

#[test]
fn a_hybrid_machine_has_both() {
    let own = own(HYBRID_CGROUP, HYBRID_MOUNTS);
    assert_eq!(own.unified, path("/sys/fs/cgroup/unified/"));
    assert_eq!(own.memory, path("/sys/fs/cgroup/memory/jobs/one"));
    assert_eq!(own.cpu, path("/sys/fs/cgroup/cpu/"));
    assert_eq!(places(HYBRID_MOUNTS).len(), 4);
}

#[test]
fn inside_a_container_only_a_part_is_mounted() {
    let mounts = "9 8 0:9 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
    assert_eq!(own("4:memory:/docker/abc\n", mounts).memory, path("/sys/fs/cgroup/memory/"));
    assert_eq!(own("4:memory:/docker/abc/x\n", mounts).memory, path("/sys/fs/cgroup/memory/x"));
    assert_eq!(own("4:memory:/docker/abcd\n", mounts).memory, None);
    assert_eq!(own("4:memory:/../other\n", mounts).memory, None);
}

#[test]
fn nothing_mounted_is_nothing_found() {
    let own = own(V2_CGROUP, "22 27 0:20 / /proc rw - proc proc rw\n");
    assert_eq!(own.unified, None);
    assert_eq!(own.memory, None);
}

#[test]
fn odd_lines_do_no_harm() {
    assert_eq!(memberships("nonsense\n1:\n"), []);
    assert_eq!(
        memberships("1:cpu:/a:b\n"),
        [Membership { controllers: vec!["cpu".to_owned()], path: "/a:b".to_owned() }]
    );
    assert_eq!(hierarchies("too short\n1 2 - cgroup\n - cgroup cgroup rw\n"), []);
    let blank = "9 8 0:9 / /mnt/a\\040b\\134c rw - cgroup2 cgroup2 rw\n";
    assert_eq!(hierarchies(blank)[0].mount_point, Path::new("/mnt/a b\\c"));
}

#[test]
fn figures_are_found_by_name() {
    let events = "low 0\noom 3\noom_kill 2\noom_group_kill 0\n";
    assert_eq!(value(events, "oom_kill"), Some(2));
    assert_eq!(value(events, "missing"), None);
    assert!(has_all("cpuset cpu io memory pids\n", &["memory", "pids"]));
    assert!(!has_all("hugetlb memoryx\n", &["memory"]));
}

/// A directory that looks like a group to whoever only writes and reads files.
fn pretended_group() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("cgroup.controllers"), "cpu memory pids\n").unwrap();
    directory
}

#[test]
fn version_2_moves_the_engine_and_writes_limits() {
    let own = pretended_group();
    let limits = Limits { memory: Some(4096), pids: Some(7), cpus: Some(0.5) };
    let place = v2::Place { own: own.path(), top: false };
    let tree = v2::Tree::prepare(&place, "name", &limits, 4711).unwrap();
    let read = |path: &str| std::fs::read_to_string(own.path().join(path)).unwrap();
    assert_eq!(read("name/engine/cgroup.procs"), "4711");
    assert_eq!(read("cgroup.subtree_control"), "+memory +pids +cpu");
    assert_eq!(read("name/cgroup.subtree_control"), "+memory +pids +cpu");
    let groups = Groups { version: Version::Two(tree), limits, next: AtomicU64::new(3) };
    let group = groups.create().unwrap();
    assert!(group.unified());
    assert_eq!(group.entrances().count(), 1);
    assert_eq!(read("name/3/memory.max"), "4096");
    assert_eq!(read("name/3/memory.swap.max"), "0");
    assert_eq!(read("name/3/pids.max"), "7");
    assert_eq!(read("name/3/cpu.max"), "50000 100000");
    assert_eq!(group.oom(), None);
    std::fs::write(own.path().join("name/3/memory.events"), "oom 1\noom_kill 1\n").unwrap();
    std::fs::write(own.path().join("name/3/memory.peak"), "4000\n").unwrap();
    assert_eq!(group.oom(), Some(Oom { limit: 4096, peak: Some(4000) }));
}

#[test]
fn version_2_at_the_top_stays_where_it_is() {
    let own = pretended_group();
    let limits = Limits { pids: Some(7), ..Limits::default() };
    let place = v2::Place { own: own.path(), top: true };
    v2::Tree::prepare(&place, "name", &limits, 4711).unwrap();
    assert!(!own.path().join("name/engine").exists());
    assert!(v2::usable(own.path()));
}

#[test]
fn limits_without_controllers_are_an_error_that_names_them() {
    let own = tempfile::tempdir().unwrap();
    std::fs::write(own.path().join("cgroup.controllers"), "memory pids\n").unwrap();
    let limits = Limits { cpus: Some(1.0), ..Limits::default() };
    let place = v2::Place { own: own.path(), top: true };
    let error = v2::Tree::prepare(&place, "name", &limits, 1).unwrap_err();
    assert_eq!(error.to_string(), "cannot limit cpu: the engine's group only has `memory pids`");
    let nothing = Own { unified: None, memory: None, pids: None, cpu: None };
    let error = super::v1::Tree::prepare(&nothing, "name", &limits).unwrap_err();
    assert_eq!(error.to_string(), "cannot limit cpu: this host has no control group for it");
}

/// The one thing that only a kernel can answer: being cloned into a version 2 group.
#[test]
fn a_process_is_cloned_into_a_version_2_group() {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let unified = hierarchies(&mounts).into_iter().find(|found| found.unified());
    let top = unified.expect("a version 2 hierarchy is mounted").mount_point;
    let name = format!("sandbox-clone-{}", std::process::id());
    let directory = top.join(&name);
    std::fs::create_dir(&directory).unwrap();
    let entrance = std::fs::File::open(&directory).unwrap();
    let cloned = crate::sys::clone_process(0, Some(entrance.as_fd())).unwrap();
    let crate::sys::Clone3::Parent { pid, pidfd } = cloned else {
        // Nothing but this is safe in a copy of a threaded process; the parent reads what it needs
        // from the zombie, which stays in its group.
        crate::sys::exit_now(0)
    };
    let ended = rustix::process::WaitIdOptions::EXITED;
    let peek = ended | rustix::process::WaitIdOptions::NOWAIT;
    let id = || rustix::process::WaitId::PidFd(pidfd.as_fd());
    rustix::process::waitid(id(), peek).unwrap();
    let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    rustix::process::waitid(id(), ended).unwrap();
    std::fs::remove_dir(&directory).unwrap();
    assert!(
        groups.lines().any(|line| line.starts_with("0::") && line.ends_with(&name)),
        "{groups}"
    );
}
