//! An engine for a user without root: it becomes root of a user namespace.
//!
//! [`enter`] is the one place for it. The process gets a user namespace with 65,536 ids and a mount
//! namespace, keeps its process id and the host's network, and from then on everything else is as for
//! root. Inside, user 0 is the user who started the engine and the others come from the ranges that
//! the machine gives to that user (`ranges`); [`inside_ids`] translates between the two views.
//!
//! What stays different shows itself where it matters: overlays keep their marks elsewhere (`store`),
//! device nodes are bound and not made (`zygote::borrowed`), control groups are used if some were
//! delegated (`cgroup`), and the way out of the network is a program (`network`).

mod error;
mod ids;
mod mapper;
mod ranges;

pub use error::Error;
pub use ids::{inside, inside_ids};

use crate::sys;
use mapper::Mapper;
use ranges::Account;
use rustix::io::Errno;
use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::thread::{CapabilitySet, UnshareFlags};
use std::fs::read_to_string;

/// Whether this process lacks the rights of root and has to [`enter`] a namespace to get them.
pub fn needed() -> bool {
    let mounts = |held: CapabilitySet| held.contains(CapabilitySet::SYS_ADMIN);
    !rustix::process::geteuid().is_root()
        && !rustix::thread::capabilities(None).is_ok_and(|sets| mounts(sets.effective))
}

/// Makes this process root of a user namespace and of a mount namespace of its own.
///
/// Call this while there is only one thread: threads are in namespaces each for itself.
pub fn enter() -> Result<(), Error> {
    let account = Account::own()?;
    let maps = account.maps()?;
    // The programs that may write the maps must be started outside, before there is an inside.
    let mapper = Mapper::start(&maps)?;
    sys::unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNS).map_err(refused)?;
    mapper.map()?;
    // What the host mounts later shows here too, and nothing the other way. Doing it also tells
    // whether root may do here what root does: some security modules hand out powerless roots.
    let flags = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    mount_change("/", flags).map_err(powerless)
}

/// Why the kernel makes no user namespace for us.
fn refused(errno: Errno) -> Error {
    let is = |name: &str, value: &str| {
        let file = format!("/proc/sys/{}", name.replace('.', "/"));
        read_to_string(file).is_ok_and(|text| text.trim() == value)
    };
    let switches = [
        ("user.max_user_namespaces", "0", "user.max_user_namespaces=15000"),
        ("kernel.unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone=1"),
        (APPARMOR, "1", APPARMOR_OFF),
    ];
    match switches.into_iter().find(|(name, value, _)| is(name, value)) {
        Some((setting, value, command)) => Error::SwitchedOff { setting, value, command },
        None => Error::Refused { errno },
    }
}

const APPARMOR: &str = "kernel.apparmor_restrict_unprivileged_userns";
const APPARMOR_OFF: &str = "kernel.apparmor_restrict_unprivileged_userns=0";

/// Why root of the new namespace cannot do anything.
fn powerless(errno: Errno) -> Error {
    match refused(errno) {
        Error::Refused { errno } => Error::Powerless { errno },
        known => known,
    }
}
