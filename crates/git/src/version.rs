//! [`Version`]: the version that a tag names, in the order of releases.

use std::cmp::Ordering;

/// A version of the form `v1.2.3-rc.1+build`. The `v` and the last numbers may be absent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    numbers: [u64; 3],
    /// Empty for a release.
    before: Vec<Part>,
}

/// A part of what comes before a release: numbers come before words.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Number(u64),
    Word(String),
}

impl Version {
    /// The version that a tag names, if it names one.
    pub fn of_tag(tag: &str) -> Option<Self> {
        let text = tag.strip_prefix('v').unwrap_or(tag);
        let text = text.split_once('+').map_or(text, |(version, _)| version);
        let (numbers, before) = match text.split_once('-') {
            Some((numbers, before)) => (numbers, Some(before)),
            None => (text, None),
        };
        let mut found = [0; 3];
        let mut count = 0;
        for word in numbers.split('.') {
            *found.get_mut(count)? = number(word)?;
            count += 1;
        }
        // `2024` or `7` alone is more often something else.
        if count < 2 && !tag.starts_with('v') {
            return None;
        }
        let before = match before {
            Some(before) => before.split('.').map(Part::parse).collect::<Option<_>>()?,
            None => vec![],
        };
        Some(Self { numbers: found, before })
    }

    /// Whether it comes before the release of its numbers.
    pub fn is_pre_release(&self) -> bool {
        !self.before.is_empty()
    }
}

impl Part {
    fn parse(word: &str) -> Option<Self> {
        if let Some(number) = number(word) {
            return Some(Self::Number(number));
        }
        let usable = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        (!word.is_empty() && word.bytes().all(usable)).then(|| Self::Word(word.to_owned()))
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        let releases = self.before.is_empty().cmp(&other.before.is_empty());
        self.numbers.cmp(&other.numbers).then(releases).then_with(|| self.before.cmp(&other.before))
    }
}

/// A number without zeros in front.
fn number(word: &str) -> Option<u64> {
    let plain = word.bytes().all(|byte| byte.is_ascii_digit());
    let zeros = word.len() > 1 && word.starts_with('0');
    if plain && !zeros { word.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_releases_are() {
        let order = [
            "v0.1.0",
            "v0.2.0",
            "0.10.0",
            "v1.0.0-1",
            "v1.0.0-2",
            "v1.0.0-11",
            "v1.0.0-alpha",
            "v1.0.0-alpha.1",
            "v1.0.0-beta",
            "v1.0.0",
            "v1.0.1",
            "v1.1",
            "v2",
        ];
        for pair in order.windows(2) {
            let [one, other] = [pair[0], pair[1]].map(|tag| Version::of_tag(tag).unwrap());
            assert!(one < other, "{pair:?}");
        }
        assert_eq!(Version::of_tag("v1.0.0+a"), Version::of_tag("1.0.0"));
        assert!(Version::of_tag("v1.0.0-rc1").unwrap().is_pre_release());
    }

    #[test]
    fn other_tags_are_no_versions() {
        for tag in ["", "v", "latest", "release-1", "1", "v1.2.3.4", "v01.2.3", "v1.2.3-", "v1.a"] {
            assert_eq!(Version::of_tag(tag), None, "{tag}");
        }
    }
}
