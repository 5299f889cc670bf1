//! The reference pages say what the program says.

use std::path::Path;
use testkit::State;

#[test]
fn reference_pages_are_current() {
    let state = State::new();
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference");
    let reference = testkit::beside_tests("reference");
    let binary = testkit::binary();
    let args = ["check", binary.to_str().unwrap(), pages.to_str().unwrap()];
    let output = state.program(&reference).args(args).run();
    assert!(output.status.success(), "run `cargo xtask docs`: {output:#?}");
}
