//! Every file we read, as text in and plain data out, and where those files live.
//!
//! Nothing here opens a file or reads the environment: callers hand in the text and the values.
//! So a test needs no disk, and a file means the same to every part of the program. Start with
//! [`engine`] (what `engine.toml` may say), [`lock`] (what look-ups came to) and [`paths`] (where state and settings are kept).

pub mod engine;
pub mod lock;
pub mod paths;
mod quantity;

pub use quantity::{QuantityError, parse_duration, parse_size};
