//! End to end tests: the program `cli` in this package, and the program `reference` that writes the
//! generated pages of the documentation.
