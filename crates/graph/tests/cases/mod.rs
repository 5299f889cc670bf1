//! The tests by what they are about.

mod actions;
mod building;
mod coercion;
mod concurrency;
mod documents;
mod errors;
mod ids;
mod introspection;
mod laziness;
mod limits;
mod losses;
mod sessions;
mod spans;
mod speed;
mod validation;
