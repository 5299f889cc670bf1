//! Submodules: what a commit says of them.

use crate::run::text;
use crate::{Error, Git};
use std::collections::BTreeMap;
use std::path::Path;

/// A submodule of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// What `.gitmodules` calls it; safe as a path.
    pub name: String,
    /// Where it is in the tree.
    pub path: String,
    /// Where its repository is, as it is written.
    pub url: String,
    /// Its commit.
    pub commit: String,
}

/// The submodules of a commit in a repository on disk. Those without a url are left out, as git does.
pub async fn modules(git: &Git, repository: &Path, commit: &str) -> Result<Vec<Module>, Error> {
    let file = format!("{commit}:.gitmodules");
    let found = git.ask(&["cat-file", "-e", &file]).on(repository).run().await?;
    if found.code != 0 {
        return Ok(vec![]);
    }
    let words = ["config", "--blob", &file, "--null", "--get-regexp", r"^submodule\."];
    let listed = git.ask(&words).on(repository).run().await?;
    let sections = sections(&text(listed.stdout));
    let paths: Vec<&str> = sections.values().filter_map(|(path, _)| path.as_deref()).collect();
    if paths.is_empty() {
        return Ok(vec![]);
    }
    let mut words = vec!["--literal-pathspecs", "ls-tree", "-z", commit, "--"];
    words.extend(&paths);
    let entries = git.ask(&words).on(repository).success("cannot read submodules").await?;
    let commits = commits(&text(entries));
    let module = |(name, (path, url)): (String, (Option<String>, Option<String>))| {
        let (path, url) = (path?, url?);
        let commit = commits.get(&path)?.clone();
        Some(Module { name, path, url, commit })
    };
    Ok(sections.into_iter().filter_map(module).collect())
}

/// Path and url of each name. Names that would lead out of a folder are left out.
fn sections(listed: &str) -> BTreeMap<String, (Option<String>, Option<String>)> {
    let mut sections: BTreeMap<String, (Option<String>, Option<String>)> = BTreeMap::new();
    for entry in listed.split('\0') {
        let Some((key, value)) = entry.split_once('\n') else { continue };
        let Some((name, variable)) =
            key.strip_prefix("submodule.").and_then(|rest| rest.rsplit_once('.'))
        else {
            continue;
        };
        if !is_plain(name) {
            continue;
        }
        let section = sections.entry(name.to_owned()).or_default();
        match variable {
            "path" if is_plain(value) => section.0 = Some(value.to_owned()),
            "url" if !value.is_empty() => section.1 = Some(value.to_owned()),
            _ => {}
        }
    }
    sections
}

/// Commits of submodules by their paths, of what `ls-tree -z` writes.
fn commits(listed: &str) -> BTreeMap<String, String> {
    let entry = |entry: &str| {
        let (head, path) = entry.split_once('\t')?;
        let commit = head.strip_prefix("160000 commit ")?;
        Some((path.to_owned(), commit.trim().to_owned()))
    };
    listed.split('\0').filter_map(entry).collect()
}

/// Whether a relative path stays where it begins.
fn is_plain(path: &str) -> bool {
    let part = |part: &str| !matches!(part, "" | "." | "..") && !part.eq_ignore_ascii_case(".git");
    !path.contains('\\') && !path.starts_with('-') && path.split('/').all(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn submodules_that_lead_elsewhere_are_left_out() {
        let listed = "submodule.a.b.path\nlib/a\0submodule.a.b.url\n../a\0\
                      submodule.../x.path\nx\0submodule.e.path\n../e\0submodule.g.path\na/.GIT/b\0\
                      submodule.e.url\nhttps://h/e\0submodule.o.path\n-o\0";
        let found = sections(listed);
        assert_eq!(found["a.b"], (Some("lib/a".into()), Some("../a".into())));
        assert_eq!(found["e"], (None, Some("https://h/e".into())));
        assert_eq!(found.get("g"), Some(&(None, None)));
        assert!(!found.contains_key("../x") && found["o"] == (None, None));
    }

    #[test]
    fn only_submodules_of_a_listing_are_commits() {
        let listed = "160000 commit abc\tlib/a\x00100644 blob def\tfile\0";
        assert_eq!(commits(listed), BTreeMap::from([("lib/a".into(), "abc".into())]));
    }
}
