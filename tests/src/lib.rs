//! The generated pages of `docs/reference`, written from what the program and its crates say about
//! themselves. The end to end tests are the program `cli` of this package.

pub mod pages;
mod schema;

pub use schema::schema;
