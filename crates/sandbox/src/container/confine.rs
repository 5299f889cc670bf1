//! Gives up what a command must not have. After this there is no way back.

use crate::capabilities;
use crate::sys;
use crate::wire::Failure;
use crate::zygote::World;

/// Applies to this process and all its descendants.
pub(super) fn confine(world: &World, all_capabilities: bool) -> Result<(), Failure> {
    if all_capabilities {
        // Inheritable and ambient sets do not survive a change of user, so `command` sets them.
        return Ok(());
    }
    for capability in &world.unbound {
        rustix::thread::remove_capability_from_bounding_set(*capability)
            .map_err(Failure::setup("bound the capabilities"))?;
    }
    rustix::thread::set_capabilities(None, capabilities::default_sets(world.held))
        .map_err(Failure::setup("drop capabilities"))?;
    rustix::thread::set_no_new_privs(true).map_err(Failure::setup("refuse new privileges"))?;
    sys::install_filter(&world.filter).map_err(Failure::setup("install the system call filter"))
}
