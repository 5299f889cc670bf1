//! Makes the state folder with Debian images that tests start from; `cargo xtask test` runs this
//! first, so that no test has to wait for a download.

fn main() {
    testkit::make_seed();
}
