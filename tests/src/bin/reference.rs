//! Writes the pages of `docs/reference` from what the program and its crates say about themselves.

fn main() {}
