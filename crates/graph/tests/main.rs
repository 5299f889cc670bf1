//! All tests of the graph through its face, in one binary.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

mod cases;
mod fixture;
