//! [`Globs`]: which files a search looks at, said as users of ripgrep say it.
//!
//! A glob without a slash matches a name at any depth. With at least one glob only files that match
//! one are looked at; a glob after `!` takes files out instead. The last one that matches decides.

use crate::pattern::{BadPattern, check_length};
use ignore::Match;
use ignore::overrides::{Override, OverrideBuilder};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Globs that choose files.
#[derive(Clone, Debug)]
pub struct Globs(Override);

impl Globs {
    /// Reads a list; an empty one chooses all files.
    pub fn new(texts: &[String]) -> Result<Self, BadPattern> {
        let mut builder = OverrideBuilder::new("");
        for text in texts {
            check_length(text)?;
            let added = builder.add(text);
            added.map_err(|error| BadPattern::new(text, &error.to_string()))?;
        }
        let refused = |error: ignore::Error| BadPattern::new(&texts.join(" "), &error.to_string());
        builder.build().map(Self).map_err(refused)
    }

    /// Whether an entry is left out, if any glob says something about it. A directory that is need not
    /// be entered. What a glob chooses is looked at even if it is hidden or ignored otherwise.
    pub fn says(&self, path: &[u8], directory: bool) -> Option<bool> {
        match self.0.matched(OsStr::from_bytes(path), directory) {
            Match::Ignore(_) => Some(true),
            Match::Whitelist(_) => Some(false),
            Match::None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skipped(globs: &[&str], path: &str) -> bool {
        let globs: Vec<String> = globs.iter().map(|glob| (*glob).to_owned()).collect();
        let name = path.trim_end_matches('/');
        Globs::new(&globs).unwrap().says(name.as_bytes(), name != path) == Some(true)
    }

    #[test]
    fn files_are_chosen() {
        for (globs, path, expected) in [
            (&[][..], "a.go", false),
            (&["*.go"], "a.go", false),
            (&["*.go"], "deep/er/a.go", false),
            (&["*.go"], "a.js", true),
            (&["*.go"], "deep/", false),
            (&["/*.go"], "deep/a.go", true),
            (&["*.{go,js}"], "x/a.js", false),
            (&["src/**"], "src/a/b", false),
            (&["src/**"], "other/a", true),
            (&["!*.js"], "a.js", true),
            (&["!*.js"], "a.go", false),
            (&["!vendor"], "vendor/", true),
            (&["*.go", "!*_test.go"], "x_test.go", true),
            (&["*.go", "!*_test.go"], "x.go", false),
        ] {
            assert_eq!(skipped(globs, path), expected, "{globs:?} {path}");
        }
    }

    #[test]
    fn a_broken_glob_is_named() {
        let error = Globs::new(&["a[".to_owned()]).unwrap_err();
        assert!(error.to_string().starts_with("`a[` is no pattern"), "{error}");
        assert_eq!(Globs::new(&["x".repeat(5000)]).unwrap_err(), BadPattern::TooLong(5000));
    }
}
