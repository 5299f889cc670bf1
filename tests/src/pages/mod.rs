//! All generated pages. Nothing in them is written by hand, so none of it can drift: a test compares
//! them with what is checked in.

mod commands;
mod environment;
mod functions;

use std::io;
use std::path::Path;

pub use functions::missing;

/// A page: its file name and its text.
pub type Page = (&'static str, String);

/// Makes all pages. `binary` is the program whose help is shown.
pub fn all(binary: &Path) -> io::Result<Vec<Page>> {
    Ok(vec![
        ("commands.md", commands::page(binary)?),
        ("engine-toml.md", config::engine::reference_markdown()),
        ("environment.md", environment::page()),
        ("functions.md", functions::page()?),
    ])
}

/// Names of the pages in a folder that differ from these.
pub fn outdated<'a>(folder: &Path, pages: &'a [Page]) -> Vec<&'a str> {
    let current = |(name, text): &Page| {
        std::fs::read_to_string(folder.join(name)).is_ok_and(|found| found == *text)
    };
    pages.iter().filter(|page| !current(page)).map(|(name, _)| *name).collect()
}
