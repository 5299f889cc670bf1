//! `FORMAT`: which layout a state folder has.
//!
//! A folder of an older layout is brought up to date when it is opened, or begun anew by the engine
//! when that is not possible any more. A folder of a newer one is never touched: who meets it must
//! keep its things elsewhere.

use crate::Error;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// Version of the whole layout, tables of the database included. Raised whenever an older program
/// could misread or spoil a newer folder.
const FORMAT: u32 = 2;
/// The oldest layout that opening brings up to date.
const OLDEST: u32 = 1;

/// What a state folder says about its layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Format {
    /// It is empty.
    Fresh,
    /// It can be opened.
    Known,
    /// Nobody brings it up to date any more.
    TooOld(u32),
    /// A newer program wrote it, or at least none that we know.
    Newer(String),
}

impl Format {
    /// Looks at a folder and changes nothing.
    pub fn of(dir: &Path) -> Result<Self, Error> {
        let file = dir.join("FORMAT");
        let text = match fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::Fresh),
            Err(error) => return Err(Error::io("read", &file)(error)),
        };
        Ok(match text.trim().parse() {
            Ok(OLDEST..=FORMAT) => Self::Known,
            Ok(number) if number < OLDEST => Self::TooOld(number),
            _ => Self::Newer(crate::view::shorten(text.trim())),
        })
    }
}

/// Writes down that the folder has our layout from now on, if it may.
pub(crate) fn claim(dir: &Path) -> Result<(), Error> {
    let found = match Format::of(dir)? {
        Format::Fresh | Format::Known => return write(dir),
        Format::TooOld(number) => number.to_string(),
        Format::Newer(text) => text,
    };
    Err(Error::Format { path: dir.to_owned(), found, known: FORMAT })
}

fn write(dir: &Path) -> Result<(), Error> {
    let (file, text) = (dir.join("FORMAT"), format!("{FORMAT}\n"));
    if fs::read_to_string(&file).is_ok_and(|found| found == text) {
        return Ok(());
    }
    // Written under another name first: a crash must not leave an empty version.
    let fresh = dir.join("FORMAT.new");
    fs::write(&fresh, text).map_err(Error::io("write", &fresh))?;
    fs::rename(&fresh, &file).map_err(Error::io("write", &file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_folder_says() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Format::of(folder.path()).unwrap(), Format::Fresh);
        for (text, expected) in [
            ("2\n", Format::Known),
            ("1\n", Format::Known),
            ("0\n", Format::TooOld(0)),
            ("3\n", Format::Newer("3".into())),
            ("", Format::Newer(String::new())),
            ("x", Format::Newer("x".into())),
        ] {
            fs::write(folder.path().join("FORMAT"), text).unwrap();
            assert_eq!(Format::of(folder.path()).unwrap(), expected, "{text:?}");
        }
    }

    #[test]
    fn older_layouts_become_ours_and_newer_ones_stay() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("FORMAT");
        claim(folder.path()).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "2\n");
        fs::write(&file, "1\n").unwrap();
        claim(folder.path()).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "2\n");
        fs::write(&file, "999\n").unwrap();
        let error = claim(folder.path()).unwrap_err();
        assert!(error.to_string().contains("has format 999"), "{error}");
        assert!(error.hint().is_some());
        assert_eq!(fs::read_to_string(&file).unwrap(), "999\n");
    }
}
