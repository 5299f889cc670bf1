//! Finding groups in the texts of real machines of each kind.

use super::parse::{Membership, has_all, hierarchies, is_top, memberships, own, places, value};
use std::path::{Path, PathBuf};

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
