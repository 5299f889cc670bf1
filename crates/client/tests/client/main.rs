//! The client through its face, against an engine made of a few lines.
//!
//! Index: `fake` the engine; `session` greeting, queries, events, close; `endpoint` the loopback
//! port; `start` starting an engine of one's own.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod endpoint;
mod fake;
mod own;
mod session;
mod start;
