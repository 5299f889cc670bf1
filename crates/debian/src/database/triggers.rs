//! Triggers: who wants to know of which change, and which changes there were.
//!
//! dpkg keeps interests in `triggers/File` (paths) and `triggers/<name>` (explicit names), and
//! changes that nobody looked at yet in `triggers/Unincorp`, which the next run takes in.

use std::collections::{BTreeMap, BTreeSet};

/// What the `triggers` file of a package says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Triggers {
    /// Names of interest, and whether the activating package waits until they are handled.
    pub interests: Vec<(String, bool)>,
    /// Names that a change of this package's state activates.
    pub activates: Vec<String>,
}

impl Triggers {
    /// Reads a `triggers` file.
    pub fn parse(text: &str) -> Self {
        let mut triggers = Self::default();
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or_default();
            let words: Vec<&str> = line.split_whitespace().collect();
            let [directive, name] = words[..] else { continue };
            let name = name.to_owned();
            match directive {
                "interest" | "interest-await" => triggers.interests.push((name, true)),
                "interest-noawait" => triggers.interests.push((name, false)),
                "activate" | "activate-await" | "activate-noawait" => triggers.activates.push(name),
                _ => {}
            }
        }
        triggers
    }
}

/// The files below `triggers/` that hold the interests of packages, by their name: `File` for
/// paths, one more for each explicit name. `packages` are pairs of info name and triggers.
pub fn interests(packages: &[(String, Triggers)]) -> BTreeMap<String, String> {
    let mut files = BTreeMap::from([("File".to_owned(), String::new())]);
    for (package, triggers) in packages {
        for (name, awaits) in &triggers.interests {
            let flag = if *awaits { "" } else { "/noawait" };
            match name.starts_with('/') {
                true => add(&mut files, "File", &format!("{name} {package}{flag}\n")),
                false => add(&mut files, name, &format!("{package}{flag}\n")),
            }
        }
    }
    files
}

fn add(files: &mut BTreeMap<String, String>, file: &str, line: &str) {
    files.entry(file.to_owned()).or_default().push_str(line);
}

/// The text of `triggers/Unincorp` after packages were unpacked: the paths of interest in `file`
/// (the text of `triggers/File`) that lie on or above one of `paths`, and the names activated.
/// Nobody waits: the run that takes this in handles everything before it ends.
pub fn activations<'a>(
    file: &str,
    paths: impl Iterator<Item = &'a str>,
    packages: &[Triggers],
) -> String {
    let interests: BTreeSet<&str> =
        file.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let mut activated: BTreeSet<&str> =
        packages.iter().flat_map(|triggers| &triggers.activates).map(String::as_str).collect();
    for path in paths.filter(|_| !interests.is_empty()) {
        let mut prefix = path;
        loop {
            if let Some(interest) = interests.get(prefix) {
                activated.insert(interest);
            }
            match prefix.rfind('/') {
                Some(slash) if slash > 0 => prefix = &prefix[..slash],
                _ => break,
            }
        }
    }
    activated.iter().map(|name| format!("{name} -\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directives() {
        let text = "# c\ninterest /usr/share/icons\ninterest-noawait ldconfig\n\
            activate-noawait x # tail\nactivate\n";
        let triggers = Triggers::parse(text);
        let expect = [("/usr/share/icons".to_owned(), true), ("ldconfig".to_owned(), false)];
        assert_eq!(triggers.interests, expect);
        assert_eq!(triggers.activates, ["x"]);
    }

    #[test]
    fn interests_go_into_files() {
        let packages = [
            ("a".to_owned(), Triggers::parse("interest /p\ninterest-noawait t\n")),
            ("b:amd64".to_owned(), Triggers::parse("interest-noawait /p/q\ninterest t\n")),
        ];
        let files = interests(&packages);
        assert_eq!(files["File"], "/p a\n/p/q b:amd64/noawait\n");
        assert_eq!(files["t"], "a/noawait\nb:amd64\n");
        assert_eq!(interests(&[])["File"], "");
    }

    #[test]
    fn activations_by_path_and_by_name() {
        let file = "/usr/share/man man-db/noawait\n/usr/lib/x a\n/etc b\n";
        let paths = ["/usr/share/man/man1/a.1", "/usr/lib/xy", "/usr/share"];
        let package = Triggers::parse("activate-noawait ldconfig\n");
        let text = activations(file, paths.into_iter(), &[package]);
        assert_eq!(text, "/usr/share/man -\nldconfig -\n");
        assert_eq!(activations("", ["/usr"].into_iter(), &[]), "");
    }
}
