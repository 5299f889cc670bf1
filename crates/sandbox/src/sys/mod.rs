//! The system calls that `rustix` does not wrap, each behind a function that is safe to call.
//!
//! All `unsafe` of the crate lives in this folder. Nothing here decides anything: a function is one
//! call, or the few that belong together, and reports what the kernel said.

mod calls;
mod process;
mod signals;

pub(crate) use calls::{
    FilterInstruction, close_all_but, close_on_exec_from, close_range, enter_container,
    enter_network, erase_arguments, hide_control_groups, install_filter, join_new_session_keyring,
    loopback_up, set_mount_attributes, set_own_mount_attributes, take_descriptor, unshare, watched,
};
pub(crate) use process::{
    Buried, Clone3, Pace, Strings, clone_process, execute, execute_descriptor, exit_now,
    place_descriptor, set_pace, spawn_in_shared_memory, trace_me, wait_for, wait_for_any,
};
pub(crate) use signals::{block_all, default_all, next_signal, unblock_all, watch_children};

/// What the last call of this thread failed with.
fn last_error() -> rustix::io::Errno {
    let code = std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
    rustix::io::Errno::from_raw_os_error(code)
}
