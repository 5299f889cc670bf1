//! The door and its sessions, over a real socket, with an API of a few fields behind them.
//!
//! Index: `world` the API, the door and a client of a few lines; `greeting` who is let in; `query`
//! requests and their limits; `events` what a client hears; `ending` how sessions and engines end.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod ending;
mod events;
mod greeting;
mod query;
mod world;
