//! The filter before every system call of a container.
//!
//! It refuses what containers have no business with, as Docker's default profile does: new namespaces, mounts,
//! modules, keys, clocks, the kernel log. Every number that the table does not know is refused
//! as unknown, so that programs fall back to older calls. A list of compares would cost more at each
//! start than all the rest of it, because the kernel runs the filter once for every number when it is
//! installed; so it is a tree over ranges (`tree`).

mod rules;
mod tree;

use crate::sys::FilterInstruction;

/// The filter for commands without all capabilities.
pub(crate) fn compile() -> Vec<FilterInstruction> {
    tree::compile(rules::ARCHITECTURE, &rules::ranges())
}

#[cfg(test)]
mod tests;
