//! Texts line by line: what differs, three versions brought together, patches as git writes them.
//!
//! Everything here works on bytes in memory and gives bytes back; it opens no file and knows no tree.
//! [`Reader`] takes a patch apart one file at a time, so that the length of a patch does not matter,
//! [`apply()`] brings the hunks of one file into its contents, [`write()`] writes what became of one
//! file, [`merge()`] brings two changes of one text together.

mod apply;
mod binary;
mod lines;
mod merge;
mod name;
mod read;
mod similar;
mod write;

pub use apply::{Applied, Labels, Rejected, apply, apply_leaving_marks};
pub use binary::{Binary, NotApplied};
pub use lines::{Hunk, count, differences, is_binary, split};
pub use merge::{Merged, merge};
pub use read::{Action, Body, Error, FilePatch, PatchHunk, Reader};
pub use similar::{Fingerprint, similarity};
pub use write::{Entry, Version, object_name, write};
