//! All generated pages. Nothing in them is written by hand, so none of it can drift: a test compares
//! them with what is checked in.

mod commands;
mod environment;
mod types;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

pub use types::missing;

/// A page: its path in the folder of reference pages, and its text.
pub type Page = (String, String);

/// Makes all pages. `binary` is the program whose help is shown.
pub fn all(binary: &Path) -> io::Result<Vec<Page>> {
    let mut pages = vec![
        ("commands.md".to_owned(), commands::page(binary)?),
        ("engine-toml.md".to_owned(), config::engine::reference_markdown()),
        ("environment.md".to_owned(), environment::page()),
    ];
    pages.extend(types::pages()?);
    Ok(pages)
}

/// Writes pages into a folder, and removes those of types that are no more.
pub fn write(folder: &Path, pages: &[Page]) -> io::Result<()> {
    fs::create_dir_all(folder.join(types::FOLDER))?;
    for (name, text) in pages {
        fs::write(folder.join(name), text)?;
    }
    superfluous(folder, pages).iter().try_for_each(|path| fs::remove_file(folder.join(path)))
}

/// Names of the pages in a folder that differ from these, are missing or are there without need.
pub fn outdated(folder: &Path, pages: &[Page]) -> Vec<String> {
    let current = |(name, text): &Page| {
        fs::read_to_string(folder.join(name)).is_ok_and(|found| found == *text)
    };
    let differing = pages.iter().filter(|page| !current(page)).map(|(name, _)| name.clone());
    let superfluous = superfluous(folder, pages).into_iter();
    differing.chain(superfluous.map(|path| path.display().to_string())).collect()
}

/// Paths of pages about types that none of these pages is.
fn superfluous(folder: &Path, pages: &[Page]) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.join(types::FOLDER)).into_iter().flatten().flatten();
    let paths = entries.map(|entry| Path::new(types::FOLDER).join(entry.file_name()));
    paths.filter(|path| !pages.iter().any(|(name, _)| Path::new(name) == path)).collect()
}
