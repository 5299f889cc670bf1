//! Draws a [`telemetry::Trace`]: live on a terminal, or as lines, dots, logs or one report.
//!
//! [`Display`] is the whole face: it takes events, folds them and lets one view write what changed.
//! Views are pure: they turn a trace and a time into text, so tests compare text. This crate sends
//! no query and reads no environment; what it needs to know comes in with [`Settings`].

mod display;
mod dots;
mod keyboard;
mod keys;
mod live;
mod logs;
mod look;
mod plain;
mod report;
mod silent;
mod terminal;
mod text;
mod tree;

pub use display::{Answer, Display, Mode, Settings, Shown, Stream};
pub use keyboard::{Keyboard, may_draw};
pub use look::Paint;
pub use terminal::{Size, stderr_size};
pub use text::{bytes, clean, duration, width};

#[cfg(test)]
mod tests;
