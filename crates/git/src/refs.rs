//! [`Refs`]: what a repository has, as it says it in one go.

use crate::run::text;
use crate::version::Version;
use crate::{Access, Error, Git, Url};
use globset::GlobBuilder;
use std::collections::BTreeMap;

const BRANCHES: &str = "refs/heads/";
const TAGS: &str = "refs/tags/";

/// The references of a repository at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refs {
    head: Option<Head>,
    /// Commits by full names, sorted. Tags stand for the commits that they name.
    all: BTreeMap<String, String>,
}

/// What `HEAD` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The branch by its full name; none when it names a commit.
    pub branch: Option<String>,
    /// The commit.
    pub commit: String,
}

/// A commit and the name by which it was found: that of a reference, or its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Full name of a reference, or the commit.
    pub name: String,
    /// The commit.
    pub commit: String,
}

impl Refs {
    /// Asks a remote.
    pub async fn of_remote(git: &Git, url: &Url, access: &Access) -> Result<Self, Error> {
        let shown = url.to_string();
        let asked =
            git.ask_remote(&["ls-remote", "--quiet", "--symref", "--", &shown], url, access);
        // All names are wanted, and the first version tells them without being asked. Over plain TCP the question of the
        // second goes out in small pieces, which takes the kernels 40 ms.
        let output = asked.configured("protocol.version", "0").run().await?;
        if output.code != 0 {
            return Err(Error::of_remote(&shown, &format!("cannot read `{shown}`"), &output));
        }
        Ok(Self::parse(&text(output.stdout)))
    }

    /// Asks a repository on disk.
    pub async fn of_repository(git: &Git, repository: &std::path::Path) -> Result<Self, Error> {
        let path = repository.display().to_string();
        let asked = git.ask(&["ls-remote", "--quiet", "--symref", "--", &path]);
        Ok(Self::parse(&text(asked.success("cannot read the repository").await?)))
    }

    /// Reads what `ls-remote --symref` writes.
    pub fn parse(answer: &str) -> Self {
        let (mut refs, mut branch, mut head) = (Self::default(), None, None);
        for line in answer.lines() {
            let Some((value, name)) = line.split_once('\t') else { continue };
            if let Some(target) = value.strip_prefix("ref: ") {
                if name == "HEAD" {
                    branch = Some(target.to_owned());
                }
                continue;
            }
            if !is_commit_id(value) {
                continue;
            }
            match name.strip_suffix("^{}") {
                _ if name == "HEAD" => head = Some(value.to_owned()),
                Some(tag) => drop(refs.all.insert(tag.to_owned(), value.to_owned())),
                None => drop(refs.all.insert(name.to_owned(), value.to_owned())),
            }
        }
        refs.head = head.map(|commit| Head { branch, commit });
        refs
    }

    /// What `HEAD` says; none in a repository without commits.
    pub fn head(&self) -> Option<&Head> {
        self.head.as_ref()
    }

    /// The commit of `HEAD` and its branch.
    pub fn at_head(&self) -> Result<Named, Error> {
        let head = self
            .head
            .as_ref()
            .ok_or_else(|| Error::NotThere("a HEAD: it has no commits".into()))?;
        let name = head.branch.clone().unwrap_or_else(|| head.commit.clone());
        Ok(Named { name, commit: head.commit.clone() })
    }

    /// The reference of this full name.
    fn exactly(&self, name: String) -> Option<Named> {
        let commit = self.all.get(&name)?.clone();
        Some(Named { name, commit })
    }

    /// A branch by its name, short or full.
    pub fn branch(&self, name: &str) -> Result<Named, Error> {
        self.in_folder(BRANCHES, name, "branch")
    }

    /// A tag by its name, short or full.
    pub fn tag(&self, name: &str) -> Result<Named, Error> {
        self.in_folder(TAGS, name, "tag")
    }

    fn in_folder(&self, folder: &str, name: &str, kind: &str) -> Result<Named, Error> {
        let short = self.exactly(format!("{folder}{name}"));
        let full = || name.starts_with(folder).then(|| self.exactly(name.to_owned())).flatten();
        short.or_else(full).ok_or_else(|| Error::NotThere(format!("{kind} `{name}`")))
    }

    /// Whatever a name means to git: a full name, a tag, a branch, or a commit.
    pub fn any(&self, name: &str) -> Result<Named, Error> {
        if name == "HEAD" {
            return self.at_head();
        }
        let full = name.starts_with("refs/").then(|| self.exactly(name.to_owned())).flatten();
        let places = ["refs/", TAGS, BRANCHES, "refs/remotes/"];
        let short = || places.iter().find_map(|place| self.exactly(format!("{place}{name}")));
        if let Some(found) = full.or_else(short) {
            return Ok(found);
        }
        match is_commit_id(name) {
            true => Ok(Named { name: name.to_lowercase(), commit: name.to_lowercase() }),
            false => Err(Error::NotThere(format!("ref `{name}`"))),
        }
    }

    /// Whether some reference names a commit.
    pub fn has_tip(&self, commit: &str) -> bool {
        self.all.values().any(|tip| tip == commit)
    }

    /// Short names of tags that match one of these patterns; none means all.
    pub fn tags(&self, patterns: &[String]) -> Vec<String> {
        self.matching(TAGS, patterns)
    }

    /// Short names of branches that match one of these patterns; none means all.
    pub fn branches(&self, patterns: &[String]) -> Vec<String> {
        self.matching(BRANCHES, patterns)
    }

    /// A pattern matches the last parts of a full name, as for `git ls-remote`.
    fn matching(&self, folder: &str, patterns: &[String]) -> Vec<String> {
        let globs = patterns.iter().filter_map(|pattern| {
            let glob = GlobBuilder::new(&format!("*/{pattern}")).backslash_escape(true).build();
            glob.ok().map(|glob| glob.compile_matcher())
        });
        let globs: Vec<_> = globs.collect();
        let wanted = |name: &str| {
            patterns.is_empty() || globs.iter().any(|glob| glob.is_match(format!("/{name}")))
        };
        let names = self.all.keys().filter(|name| wanted(name));
        names.filter_map(|name| name.strip_prefix(folder)).map(str::to_owned).collect()
    }

    /// All tags with their commits, by full names.
    pub fn tagged(&self) -> impl Iterator<Item = (&str, &str)> {
        let tags = self.all.iter().filter(|(name, _)| name.starts_with(TAGS));
        tags.map(|(name, commit)| (name.as_str(), commit.as_str()))
    }

    /// The tag of the highest version.
    pub fn latest_version(&self) -> Result<Named, Error> {
        let newest = self.versions().max_by(|(one, _), (other, _)| one.cmp(other));
        newest.map(|(_, named)| named).ok_or_else(|| Error::NotThere("a tag of a version".into()))
    }

    /// The tag of the highest version at a commit.
    pub fn release_of(&self, commit: &str, pre_release: bool) -> Option<Named> {
        let here = self.versions().filter(|(version, named)| {
            named.commit == commit && (pre_release || !version.is_pre_release())
        });
        here.max_by(|(one, _), (other, _)| one.cmp(other)).map(|(_, named)| named)
    }

    fn versions(&self) -> impl Iterator<Item = (Version, Named)> {
        self.tagged().filter_map(|(name, commit)| {
            let version = Version::of_tag(name.strip_prefix(TAGS)?)?;
            Some((version, Named { name: name.to_owned(), commit: commit.to_owned() }))
        })
    }
}

/// Whether a text is the whole id of a commit.
pub fn is_commit_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(digit: char) -> String {
        digit.to_string().repeat(40)
    }

    fn refs() -> Refs {
        let lines = [
            "ref: refs/heads/main\tHEAD".to_owned(),
            format!("{}\tHEAD", id('a')),
            format!("{}\trefs/heads/feature/x", id('b')),
            format!("{}\trefs/heads/main", id('a')),
            format!("{}\trefs/heads/v1.0.0", id('c')),
            format!("{}\trefs/pull/1/head", id('d')),
            format!("{}\trefs/tags/sub/v9", id('e')),
            format!("{}\trefs/tags/v1.0.0", id('e')),
            format!("{}\trefs/tags/v1.0.0^{{}}", id('a')),
            format!("{}\trefs/tags/v1.1.0-rc1", id('b')),
            "garbage".to_owned(),
        ];
        Refs::parse(&lines.join("\n"))
    }

    fn named(name: &str, digit: char) -> Named {
        Named { name: name.into(), commit: id(digit) }
    }

    #[test]
    fn names_are_short_or_full_and_tags_give_commits() {
        let refs = refs();
        assert_eq!(refs.at_head().unwrap(), named("refs/heads/main", 'a'));
        assert_eq!(refs.branch("main").unwrap(), named("refs/heads/main", 'a'));
        assert_eq!(refs.branch("refs/heads/main").unwrap(), named("refs/heads/main", 'a'));
        assert_eq!(refs.tag("v1.0.0").unwrap(), named("refs/tags/v1.0.0", 'a'));
        assert_eq!(refs.any("v1.0.0").unwrap(), named("refs/tags/v1.0.0", 'a'));
        assert_eq!(refs.any("refs/pull/1/head").unwrap(), named("refs/pull/1/head", 'd'));
        assert_eq!(refs.any("heads/v1.0.0").unwrap(), named("refs/heads/v1.0.0", 'c'));
        assert_eq!(refs.any(&id('F')).unwrap(), named(&id('f'), 'f'));
    }

    #[test]
    fn branches_tags_and_commits_are_told_apart() {
        let refs = refs();
        for missing in
            [refs.branch("v9"), refs.tag("main"), refs.any("nope"), refs.branch(&id('a'))]
        {
            let error = missing.unwrap_err().to_string();
            assert!(error.starts_with("repository does not contain"), "{error}");
        }
        assert!(Refs::default().at_head().is_err());
    }

    #[test]
    fn patterns_match_the_end_of_a_name() {
        let refs = refs();
        let tags = |pattern: &str| refs.tags(&[pattern.to_owned()]);
        assert_eq!(refs.tags(&[]), ["sub/v9", "v1.0.0", "v1.1.0-rc1"]);
        assert_eq!(tags("v*"), ["sub/v9", "v1.0.0", "v1.1.0-rc1"]);
        assert_eq!(tags("refs/tags/v*"), ["v1.0.0", "v1.1.0-rc1"]);
        assert_eq!(tags("v1.0.?"), ["v1.0.0"]);
        assert_eq!(tags("nope"), Vec::<String>::new());
        assert_eq!(refs.branches(&["x".into(), "main".into()]), ["feature/x", "main"]);
    }

    #[test]
    fn releases_are_found_by_version() {
        let refs = refs();
        assert_eq!(refs.latest_version().unwrap().name, "refs/tags/v1.1.0-rc1");
        assert_eq!(refs.release_of(&id('a'), false).unwrap().name, "refs/tags/v1.0.0");
        assert_eq!(refs.release_of(&id('b'), false), None);
        assert_eq!(refs.release_of(&id('b'), true).unwrap().name, "refs/tags/v1.1.0-rc1");
        assert!(Refs::default().latest_version().is_err());
    }
}
