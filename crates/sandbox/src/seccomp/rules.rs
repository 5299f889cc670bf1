//! Which system calls are allowed.
//!
//! Written as the calls that are refused among those that are known: the known ones are a closed
//! list of number ranges, so what is new in a later kernel is refused until it is added here.

use super::tree::{Range, Verdict};

/// What the kernel calls this processor architecture.
#[cfg(target_arch = "x86_64")]
pub(super) const ARCHITECTURE: u32 = 0xC000_003E;
/// What the kernel calls this processor architecture.
#[cfg(target_arch = "aarch64")]
pub(super) const ARCHITECTURE: u32 = 0xC000_00B7;

/// First and last number of each run of known calls, in order.
#[cfg(target_arch = "x86_64")]
const KNOWN: [(u32, u32); 2] = [(0, 334), (424, 469)];
/// First and last number of each run of known calls, in order.
#[cfg(target_arch = "aarch64")]
const KNOWN: [(u32, u32); 2] = [(0, 294), (424, 469)];

/// Calls that would need a capability which containers do not have, or that reach beyond the container.
const REFUSED: &[libc::c_long] = &[
    // The machine itself.
    libc::SYS_reboot,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    // Mounts and namespaces.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_unshare,
    libc::SYS_setns,
    // Around the permissions of files and processes.
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_process_madvise,
    // Keys are not divided by namespaces.
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // Large pieces of kernel that are seldom needed and often broken into.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_lookup_dcookie,
    // Placement of memory.
    libc::SYS_mbind,
    libc::SYS_get_mempolicy,
    libc::SYS_set_mempolicy,
    libc::SYS_set_mempolicy_home_node,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
];

/// The same, where the architecture has more of them.
#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[libc::c_long] =
    &[libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_uselib, libc::SYS_ustat, libc::SYS_sysfs];
/// The same, where the architecture has more of them.
#[cfg(target_arch = "aarch64")]
const REFUSED_HERE: &[libc::c_long] = &[];

/// Calls that programs must believe the kernel does not have. For `clone3` because its flags lie
/// in memory, where a filter cannot look; the C library then uses `clone`. The numbers are
/// `statmount`, `listmount`, the three of `lsm_` and `open_tree_attr`, which the C library's crate does not name.
const UNKNOWN: &[libc::c_long] = &[libc::SYS_clone3, 457, 458, 459, 460, 461, 467];

/// Calls that depend on their arguments.
const CHECKED: &[(libc::c_long, Verdict)] = &[
    (libc::SYS_clone, Verdict::RefuseBits { argument: 0, bits: NAMESPACE_FLAGS }),
    (libc::SYS_personality, Verdict::AllowOnly { argument: 0, values: &PERSONALITIES }),
    (libc::SYS_socket, Verdict::RefuseValue { argument: 0, value: libc::AF_VSOCK as u32 }),
    (libc::SYS_mknodat, Verdict::RefuseDevice { argument: 2 }),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, Verdict::RefuseDevice { argument: 1 }),
];

/// Every `CLONE_NEW…` that `clone` takes.
const NAMESPACE_FLAGS: u32 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET) as u32;

/// The execution domains that programs ask for in earnest: Linux, 32-bit Linux, both with
/// `UNAME26`, and the question which one it is.
const PERSONALITIES: [u32; 5] = [0, 0x8, 0x2_0000, 0x2_0008, u32::MAX];

/// The verdict on one system call number.
pub(super) fn verdict(number: u32) -> Verdict {
    if !KNOWN.iter().any(|(first, last)| (*first..=*last).contains(&number)) {
        return Verdict::Unknown;
    }
    let call = libc::c_long::from(number);
    if let Some((_, verdict)) = CHECKED.iter().find(|(checked, _)| *checked == call) {
        return *verdict;
    }
    if UNKNOWN.contains(&call) {
        return Verdict::Unknown;
    }
    if REFUSED.contains(&call) || REFUSED_HERE.contains(&call) {
        return Verdict::Refuse;
    }
    Verdict::Allow
}

/// All numbers, as ranges with one verdict each, in order and without gaps.
pub(super) fn ranges() -> Vec<Range> {
    let end = KNOWN.last().map_or(0, |(_, last)| last + 1);
    let mut ranges: Vec<Range> = Vec::new();
    for number in 0..=end {
        let verdict = verdict(number);
        if ranges.last().is_none_or(|last| last.verdict != verdict) {
            ranges.push(Range { first: number, verdict });
        }
    }
    ranges
}
