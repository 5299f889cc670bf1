//! Which powers of root a command keeps.

use rustix::thread::{CapabilitySet, CapabilitySets};

/// What a command has by default, the same as under Docker. `MKNOD` makes no device: the filter refuses
/// it, because no device control group stands behind it here.
pub(crate) const DEFAULT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::SETPCAP)
    .union(CapabilitySet::NET_BIND_SERVICE)
    .union(CapabilitySet::NET_RAW)
    .union(CapabilitySet::SYS_CHROOT)
    .union(CapabilitySet::MKNOD)
    .union(CapabilitySet::AUDIT_WRITE)
    .union(CapabilitySet::SETFCAP);

/// The single capabilities of a set.
pub(crate) fn singles(set: CapabilitySet) -> impl Iterator<Item = CapabilitySet> {
    let bits = set.bits();
    (0..u64::BITS)
        .map(|position| 1 << position)
        .filter(move |bit| bits & bit != 0)
        .map(CapabilitySet::from_bits_retain)
}

/// What is left of `held` for a command with the default capabilities.
pub(crate) fn default_sets(held: CapabilitySet) -> CapabilitySets {
    let kept = held.intersection(DEFAULT);
    CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() }
}

/// All of `held`, in a form that survives the execution of programs.
pub(crate) fn all_sets(held: CapabilitySet) -> CapabilitySets {
    CapabilitySets { effective: held, permitted: held, inheritable: held }
}
