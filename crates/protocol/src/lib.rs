//! Everything that crosses a process boundary, as plain data.
//!
//! The client tower and the engine tower never import each other: they meet here. Nothing in this
//! crate does I/O, is async or reads a clock. Start with [`Call`] (what names an object), then
//! [`Event`] (what a user sees of running work) and [`session`] (how a client and an engine greet).

pub mod attach;
mod call;
mod digest;
pub mod env;
mod error;
mod event;
mod id;
pub mod schema;
pub mod session;
mod value;

pub use call::{Call, CallRecord, DecodeError};
pub use digest::{Digest, DigestBuilder, ParseDigestError};
pub use error::{Error, ErrorKind, ExecFailure, PathSegment};
pub use event::{Event, LogStream, Outcome, SpanId, SpanKind, Unit};
pub use id::{Id, ParseIdError};
pub use value::{RecordValue, Value};

/// Version of the program and of the engine: they are one binary.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Version of the wire between client and engine. Raised when an old peer could misread a new one.
pub const WIRE_VERSION: u32 = 2;
