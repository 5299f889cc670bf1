//! End to end tests: the real program, real containers, one test program for all of it.
//!
//! The files follow the words of the command line. Every file is named here; `cargo xtask tidy`
//! finds one that is not.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

// One command a file.
mod api;
mod core;
mod help;
mod query;
mod run;
mod session;
mod version;

// What is true of every command.
mod errors;
mod interrupt;
mod lock;
mod lock_git;
mod network;
mod progress;
mod progress_live;

// The engine behind them: starting, stopping, settings, greeting.
mod engine;
mod runtime;

// The same engine for a user without root.
mod rootless;

// What the wire promises: ids, values, introspection.
mod graph;

// Sessions inside containers.
mod nested;

// What was done between two directories, and the same done elsewhere.
mod changes;

// What a host lends to containers, and what containers lend to each other.
mod secrets;
mod services;
mod sockets;
mod terminal;

// Images made from Debian packages.
mod debian;

// Programs for published client libraries, unchanged.
mod clients;

// Engines on other machines.
mod remote;

// Loops over what must hold whatever happens: 20 rounds here, 200 in `cargo xtask soak`.
mod must_hold;

// The examples, the guide's programs and the reference pages are true.
// The examples and the reference pages are true.
mod docker_build;
mod docs;
mod examples;
mod guide;
