//! What a container is to be like, in the words of the Open Container Initiative's runtime specification.
//!
//! The same as what [`super::super::mounts`] and [`super::super::confine`] make, with one difference: the filter names the
//! system calls that it refuses, so those of kernels to come are not refused.

use crate::capabilities;
use crate::wire::{MountEntry, MountKind, Run, Runtime};
use crate::zygote::{Area, HOSTNAME, World};
use rustix::thread::CapabilitySet;
use serde_json::{Value, json};

/// Names of capabilities, by their bits.
const CAPABILITIES: [&str; 41] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETGID",
    "SETUID",
    "SETPCAP",
    "LINUX_IMMUTABLE",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_ADMIN",
    "NET_RAW",
    "IPC_LOCK",
    "IPC_OWNER",
    "SYS_MODULE",
    "SYS_RAWIO",
    "SYS_CHROOT",
    "SYS_PTRACE",
    "SYS_PACCT",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_NICE",
    "SYS_RESOURCE",
    "SYS_TIME",
    "SYS_TTY_CONFIG",
    "MKNOD",
    "LEASE",
    "AUDIT_WRITE",
    "AUDIT_CONTROL",
    "SETFCAP",
    "MAC_OVERRIDE",
    "MAC_ADMIN",
    "SYSLOG",
    "WAKE_ALARM",
    "BLOCK_SUSPEND",
    "AUDIT_READ",
    "PERFMON",
    "BPF",
    "CHECKPOINT_RESTORE",
];

/// System calls that are refused, as in `seccomp`.
const REFUSED: &[&str] = &[
    "reboot",
    "kexec_load",
    "kexec_file_load",
    "init_module",
    "finit_module",
    "delete_module",
    "swapon",
    "swapoff",
    "acct",
    "quotactl",
    "quotactl_fd",
    "settimeofday",
    "clock_settime",
    "syslog",
    "vhangup",
    "sethostname",
    "setdomainname",
    "mount",
    "umount2",
    "pivot_root",
    "open_tree",
    "move_mount",
    "fsopen",
    "fsconfig",
    "fsmount",
    "fspick",
    "mount_setattr",
    "unshare",
    "setns",
    "open_by_handle_at",
    "fanotify_init",
    "kcmp",
    "pidfd_getfd",
    "process_madvise",
    "add_key",
    "request_key",
    "keyctl",
    "bpf",
    "perf_event_open",
    "userfaultfd",
    "io_uring_setup",
    "io_uring_enter",
    "io_uring_register",
    "lookup_dcookie",
    "mbind",
    "get_mempolicy",
    "set_mempolicy",
    "set_mempolicy_home_node",
    "migrate_pages",
    "move_pages",
    "iopl",
    "ioperm",
    "uselib",
    "ustat",
    "sysfs",
];

/// The document.
pub(super) fn of(world: &World, run: &Run, runtime: &Runtime) -> Value {
    json!({
        "ociVersion": "1.0.0",
        "hostname": HOSTNAME,
        "root": { "path": "rootfs", "readonly": false },
        "process": process(world, run),
        "mounts": mounts(run, runtime),
        "linux": {
            "namespaces": namespaces(run),
            "maskedPaths": if run.all_capabilities { vec![] } else { masked(world) },
            "readonlyPaths": if run.all_capabilities { vec![] } else { read_only(world) },
            "seccomp": if run.all_capabilities { Value::Null } else { filter() },
        },
    })
}

/// The part of it that is about the command.
pub(super) fn process(world: &World, run: &Run) -> Value {
    let kept = match run.all_capabilities {
        true => world.held,
        false => world.held.intersection(capabilities::DEFAULT),
    };
    let (kept, none) = (names(kept), Vec::<String>::new());
    let inherited = if run.all_capabilities { &kept } else { &none };
    json!({
        "terminal": run.terminal.is_some(),
        "user": { "uid": run.uid, "gid": run.gid, "additionalGids": run.groups },
        "args": run.args,
        "env": run.env,
        "cwd": run.workdir,
        "noNewPrivileges": !run.all_capabilities,
        "capabilities": {
            "bounding": kept, "effective": kept, "permitted": kept,
            "inheritable": inherited, "ambient": inherited,
        },
    })
}

/// Whether something is mounted in one of the kernel's file systems, which are not there before the program
/// has made them.
pub(super) fn in_kernel_files(target: &str) -> bool {
    let first = target.split('/').find(|part| !part.is_empty());
    first.is_some_and(|first| matches!(first, "dev" | "proc" | "sys"))
}

/// Where a mount of the run is in the bundle.
pub(super) fn mount_name(number: usize) -> String {
    format!("m{number}")
}

fn names(set: CapabilitySet) -> Vec<String> {
    let named = CAPABILITIES.iter().enumerate();
    let held = named.filter(|(bit, _)| set.bits() & (1 << bit) != 0);
    held.map(|(_, name)| format!("CAP_{name}")).collect()
}

/// The network and the control group are there already. Process 1 is ours, unless the command is to
/// be it.
fn namespaces(run: &Run) -> Vec<Value> {
    let mut kinds = vec!["mount", "ipc", "uts"];
    if !run.init {
        kinds.push("pid");
    }
    kinds.into_iter().map(|kind| json!({ "type": kind })).collect()
}

fn mounts(run: &Run, runtime: &Runtime) -> Vec<Value> {
    let kernel = |target: &str, kind: &str, options: &[&str]| {
        let options = ["nosuid", "noexec"].iter().chain(options).collect::<Vec<_>>();
        json!({ "destination": target, "type": kind, "source": kind, "options": options })
    };
    let writable = if run.all_capabilities { "rw" } else { "ro" };
    let mut mounts = vec![
        kernel("/proc", "proc", &["nodev"]),
        kernel("/sys", "sysfs", &["nodev", writable]),
        kernel("/dev", "tmpfs", &["mode=755", "size=65536k"]),
        kernel("/dev/pts", "devpts", &["newinstance", "ptmxmode=0666", "mode=0620", "gid=5"]),
        kernel("/dev/shm", "tmpfs", &["nodev", "mode=1777", "size=65536k"]),
        kernel("/dev/mqueue", "mqueue", &["nodev"]),
    ];
    let given = run.mounts.iter().filter(|entry| in_kernel_files(&entry.target)).enumerate();
    mounts.extend(given.map(|(number, entry)| bind(number, run, entry, runtime)));
    mounts
}

fn bind(number: usize, run: &Run, entry: &MountEntry, runtime: &Runtime) -> Value {
    let mut options = vec!["rbind", "rprivate", "nosuid"];
    if !run.all_capabilities && entry.kind != MountKind::Device {
        options.push("nodev");
    }
    if entry.read_only {
        options.push("ro");
    }
    let source = format!("{}/bundle/{}", runtime.place, mount_name(number));
    json!({ "destination": entry.target, "type": "bind", "source": source, "options": options })
}

fn masked(world: &World) -> Vec<String> {
    let all = world.masked_files.iter().chain(&world.masked_directories);
    all.map(|(area, path)| match area {
        Area::Proc => format!("/proc/{path}"),
        Area::Sys => format!("/sys/{path}"),
    })
    .collect()
}

fn read_only(world: &World) -> Vec<String> {
    world.read_only.iter().map(|path| format!("/proc/{path}")).collect()
}

fn filter() -> Value {
    let refuse = |names: &[&str]| json!({ "names": names, "action": "SCMP_ACT_ERRNO", "errnoRet": libc::EPERM });
    let when = |name: &str, argument: u32, mask: u64, value: u64| {
        json!({
            "names": [name], "action": "SCMP_ACT_ERRNO", "errnoRet": libc::EPERM,
            "args": [{
                "index": argument, "value": mask, "valueTwo": value, "op": "SCMP_CMP_MASKED_EQ",
            }],
        })
    };
    // The C library then uses `clone`, whose flags a filter can see.
    let unknown =
        json!({ "names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": libc::ENOSYS });
    let mut rules = vec![refuse(REFUSED), unknown];
    let namespaces = [
        libc::CLONE_NEWNS,
        libc::CLONE_NEWCGROUP,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWNET,
    ];
    rules.extend(namespaces.map(|flag| when("clone", 0, flag as u64, flag as u64)));
    rules.push(when("socket", 0, u64::from(u32::MAX), libc::AF_VSOCK as u64));
    for (name, argument) in [("mknod", 1), ("mknodat", 2)] {
        for kind in [libc::S_IFCHR, libc::S_IFBLK] {
            rules.push(when(name, argument, u64::from(libc::S_IFMT), u64::from(kind)));
        }
    }
    json!({ "defaultAction": "SCMP_ACT_ALLOW", "syscalls": rules })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_in_kernel_files_is_left_to_the_program() {
        for (target, expected) in [
            ("/dev/x", true),
            ("//proc/y", true),
            ("/sys", true),
            ("/device", false),
            ("/a/dev", false),
        ] {
            assert_eq!(in_kernel_files(target), expected, "{target}");
        }
    }

    #[test]
    fn capabilities_have_the_names_of_their_bits() {
        assert_eq!(
            names(CapabilitySet::CHOWN | CapabilitySet::SYS_ADMIN),
            ["CAP_CHOWN", "CAP_SYS_ADMIN"]
        );
        assert_eq!(names(CapabilitySet::CHECKPOINT_RESTORE), ["CAP_CHECKPOINT_RESTORE"]);
    }
}
