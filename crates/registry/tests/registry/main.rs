//! The client against a real registry, in good and in bad condition.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

mod faults;
mod logins;
mod mirrors;
mod pull;
mod push;
mod resume;
mod security;
mod world;
