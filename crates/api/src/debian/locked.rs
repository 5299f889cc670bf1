//! The packages of an image as a text, for a lock: which, in which version, and the digest of each.
//!
//! One line a package, in the order of the plan, so that the same text gives the same image. Archives go by their
//! place among those of the host, because each machine has a mirror of its own; what a package is, its digest says.
//! An image that is made from such a text asks the archive for packages only, not for what is newest.

use super::error::Error;
use super::host::Origin;
use super::plan::{Package, Plan};

/// How the first line begins.
const HEAD: &str = "packages";
/// Marks of a package.
const AUTOMATIC: &str = "automatic";
const PRE_DEPENDS: &str = "pre-depends";

/// The text of a plan.
pub(super) fn to_text(plan: &Plan, origins: &[Origin]) -> String {
    let head = format!("{HEAD} {} {} {}", plan.base.len(), plan.essential, plan.added.len());
    let packages = plan.base.iter().chain(&plan.added).map(|package| line(package, origins));
    std::iter::once(head).chain(packages).collect::<Vec<_>>().join("\n")
}

fn line(package: &Package, origins: &[Origin]) -> String {
    let Package { name, version, architecture, url, size, sha256, .. } = package;
    let below = |(place, origin): (usize, &Origin)| {
        let path = url.strip_prefix(&origin.archive.uri)?.strip_prefix('/')?;
        Some((place, path))
    };
    // A package of no archive that is known is found by its whole address.
    let found = origins.iter().enumerate().find_map(below);
    let (place, path) =
        found.map_or(("-".to_owned(), url.as_str()), |(place, path)| (place.to_string(), path));
    let digest = hex::encode(sha256);
    let mut line = format!("{name} {version} {architecture} {place} {path} {size} {digest}");
    for (mark, set) in [(AUTOMATIC, package.automatic), (PRE_DEPENDS, package.pre_depends)] {
        if set {
            line = format!("{line} {mark}");
        }
    }
    line
}

/// The plan of a text.
pub(super) fn from_text(text: &str, origins: &[Origin]) -> Result<Plan, Error> {
    let mut lines = text.lines();
    let head: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
    let counts = |texts: &[&str]| texts.iter().map(|text| text.parse::<usize>().ok()).collect();
    let counts: Option<Vec<usize>> = match &head[..] {
        [HEAD, rest @ ..] => counts(rest),
        _ => None,
    };
    let Some([base, essential, added]) = counts.as_deref() else {
        return Err(Error::Locked("it does not begin with the numbers of packages".to_owned()));
    };
    let packages: Vec<Package> =
        lines.map(|line| package(line, origins)).collect::<Result<_, _>>()?;
    if base.checked_add(*added) != Some(packages.len()) || essential > base {
        let message = format!("it has {} packages, not {base} and {added}", packages.len());
        return Err(Error::Locked(message));
    }
    let (first, rest) = packages.split_at(*base);
    Ok(Plan { base: first.to_vec(), essential: *essential, added: rest.to_vec() })
}

fn package(line: &str, origins: &[Origin]) -> Result<Package, Error> {
    let parsed = || {
        let mut words = line.split(' ');
        let [name, version, architecture] = [words.next()?, words.next()?, words.next()?];
        let [place, path, size, digest] =
            [words.next()?, words.next()?, words.next()?, words.next()?];
        let marks: Vec<&str> = words.collect();
        let url = match place {
            "-" => path.to_owned(),
            place => format!("{}/{path}", origins.get(place.parse::<usize>().ok()?)?.archive.uri),
        };
        Some(Package {
            name: name.to_owned(),
            version: version.to_owned(),
            architecture: architecture.to_owned(),
            url,
            size: size.parse().ok()?,
            sha256: bytes(digest)?,
            automatic: marks.contains(&AUTOMATIC),
            pre_depends: marks.contains(&PRE_DEPENDS),
        })
    };
    let name = line.split(' ').next().unwrap_or_default();
    parsed().ok_or_else(|| {
        Error::Locked(format!("package `{name}` cannot be read, or its archive is not known here"))
    })
}

fn bytes(digest: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    hex::decode_to_slice(digest, &mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use debian::sources::{Archive, SignedBy};

    fn origin(uri: &str) -> Origin {
        let archive = Archive {
            uri: uri.into(),
            suite: "s".into(),
            components: vec!["main".into()],
            signed_by: SignedBy::default(),
            trusted: false,
        };
        Origin { archive, keys: vec![] }
    }

    fn package(name: &str, url: &str) -> Package {
        Package {
            name: name.into(),
            version: "1:2.3+deb12u1".into(),
            architecture: "amd64".into(),
            url: url.into(),
            size: 42,
            sha256: [0xa5; 32],
            automatic: name == "two",
            pre_depends: name == "one",
        }
    }

    fn plan(one: &str, two: &str) -> Plan {
        Plan { base: vec![package("one", one)], essential: 1, added: vec![package("two", two)] }
    }

    #[test]
    fn a_plan_comes_back_with_the_archives_of_the_machine() {
        let here = [origin("http://here/debian"), origin("http://here/security")];
        let made = plan("http://here/debian/pool/one.deb", "http://here/security/pool/two.deb");
        let text = to_text(&made, &here);
        assert_eq!(text.lines().count(), 3, "{text}");
        assert_eq!(format!("{:?}", from_text(&text, &here).unwrap()), format!("{made:?}"));
        let there = [origin("file:///mirror"), origin("file:///other")];
        let expected = plan("file:///mirror/pool/one.deb", "file:///other/pool/two.deb");
        assert_eq!(format!("{:?}", from_text(&text, &there).unwrap()), format!("{expected:?}"));
    }

    #[test]
    fn what_is_no_plan_is_an_error() {
        let here = [origin("http://here")];
        let text = to_text(&plan("http://here/one.deb", "http://here/two.deb"), &here);
        for wrong in [
            String::new(),
            "sha256:abc".into(),
            text.replace("packages 1 1 1", "packages 1 2 1"),
            text.replace("packages 1 1 1", "packages 2 1 1"),
            text.replace("packages 1 1 1", "packages 1 1"),
            text.replace("a5a5", "a5"),
            text.replace(" 0 one.deb", " 7 one.deb"),
            text.replace(" 42 ", " many "),
            text.lines().take(2).collect::<Vec<_>>().join("\n"),
        ] {
            from_text(&wrong, &here).unwrap_err();
        }
    }
}
