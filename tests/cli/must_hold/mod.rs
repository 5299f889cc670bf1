//! What must hold whatever happens. Each loop makes `testkit::rounds` rounds and prints its seed.

mod cancels;
mod crashes;
mod isolation;
mod limits;
mod paths;
mod programs;
mod requests;
mod streams;
