//! Everything short of running dpkg, over a small archive in a directory. Whole images are made in the
//! end-to-end tests, from the real archive.

mod archive;
mod depot;
mod host;
mod layout;

use super::report::{Report, Step};
use protocol::Unit;
use std::sync::{Arc, Mutex};

/// Remembers which steps there were.
#[derive(Default)]
struct Steps(Mutex<Vec<String>>);

struct Ignored;

impl Report for Steps {
    fn step(&self, name: &str) -> Arc<dyn Step> {
        self.0.lock().unwrap().push(name.to_owned());
        Arc::new(Ignored)
    }
}

impl Step for Ignored {
    fn progress(&self, _: u64, _: u64, _: Unit) {}
    fn log(&self, _: &str) {}
    fn done(&self) {}
}

impl Steps {
    /// The steps since the last time.
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}
