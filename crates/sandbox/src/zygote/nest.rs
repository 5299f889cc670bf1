//! [`Nest`]: the next container, made before anybody asks for it.
//!
//! New namespaces and the file systems of `/proc`, `/sys` and `/dev` are most of what a container
//! costs, and they are the same for every command. So one process waits in namespaces of its own with all
//! of that in place, and a run only hands it the rest. Each serves one run and ends with it.

use crate::container::{self, Reach};
use crate::packet;
use crate::sys::{self, Clone3, Pace};
use crate::zygote::{Line, World};
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A container that waits for its command.
pub(super) struct Nest {
    pub(super) pid: i32,
    pub(super) pidfd: OwnedFd,
    pub(super) control: OwnedFd,
    /// Where it is plugged into the engine's network.
    pub(super) place: Option<u32>,
    /// Its network namespace, once it is known.
    pub(super) line: Option<Line>,
}

impl Nest {
    /// Clones one. `flags` are its namespaces, `reach` is its network, `buffer` is where it receives its request.
    pub(super) fn make(
        world: &World,
        flags: u64,
        reach: Reach<'_>,
        buffer: &mut [u8],
    ) -> Result<Nest, Errno> {
        let (control, theirs) = packet::pair()?;
        match sys::clone_process(flags, None)? {
            Clone3::Child => {
                slow_down(world, &theirs);
                container::wait_and_enter(world, reach, &theirs, buffer)
            }
            Clone3::Parent { pid, pidfd } => {
                Ok(Nest { pid, pidfd, control, place: reach.place(), line: None })
            }
        }
    }

    /// Hands over a run. Who fails has died or is about to.
    pub(super) fn hand_over(
        &self,
        world: &World,
        packet: &[u8],
        descriptors: &[OwnedFd],
    ) -> Result<(), Errno> {
        let descriptors: Vec<BorrowedFd<'_>> = descriptors.iter().map(AsFd::as_fd).collect();
        packet::send(&self.control, packet, &descriptors)?;
        // After the request: see `slow_down`. It speeds itself up as well, once it runs.
        if world.paces {
            let _ = sys::set_pace(self.pid, Pace::Usual);
        }
        Ok(())
    }
}

/// Has a container that is made ahead run only where a processor would idle: it is made while a command runs,
/// and must not hold up who waits for that one's end. By itself and at once, because the zygote may not get to
/// run again before this one has done its work.
///
/// However late that is, who has a request runs as others do: either the zygote speeds it up after this, or the
/// request that the zygote has sent before is seen here.
fn slow_down(world: &World, control: &OwnedFd) {
    if world.paces {
        let _ = sys::set_pace(0, Pace::Idle);
        if packet::is_waiting(control) {
            speed_up(world);
        }
    }
}

/// Has a container that was made ahead run as others do.
pub(crate) fn speed_up(world: &World) {
    if world.paces {
        let _ = sys::set_pace(0, Pace::Usual);
    }
}
