//! Folds the [`protocol::Event`]s of a session into a [`Trace`], the one model behind every view.
//!
//! Everything here is pure: no clock, no terminal, no I/O. Start with [`Trace::apply`], which takes
//! one event and says in a [`Change`] what became of it. What a view draws is a function of the
//! trace alone; memory stays bounded however many spans and however much output a session has.

mod lines;
mod log;
mod output;
mod page;
mod progress;
mod trace;

pub use lines::LineSplitter;
pub use log::{Line, LogTail};
pub use progress::{Pace, Progress};
pub use trace::{Change, Counts, Limits, Span, Trace};
