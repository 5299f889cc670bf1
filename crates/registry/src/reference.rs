//! Names of images: what people write, and what it means.
//!
//! `alpine` is `docker.io/library/alpine:latest`. The first part is a registry when it has a dot or
//! a port or is `localhost`; everything else is a repository of the default registry.

use crate::{Digest, Error};
use std::fmt;
use std::str::FromStr;

/// The registry of a name without one.
const DEFAULT_REGISTRY: &str = "docker.io";

/// Another name of it, which old configurations and credentials use.
const OLD_DEFAULT_REGISTRY: &str = "index.docker.io";

/// The namespace of a name of one word in the default registry.
const DEFAULT_NAMESPACE: &str = "library";

const DEFAULT_TAG: &str = "latest";

/// Longest repository name with its registry.
const MAX_NAME: usize = 255;

/// Longest tag.
const MAX_TAG: usize = 128;

/// A name of an image with all its parts. There is always a tag or a digest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    registry: String,
    repository: String,
    tag: Option<String>,
    digest: Option<Digest>,
}

impl Reference {
    /// Reads `[registry/]repository[:tag][@digest]` and fills in what is left out.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let fail = |reason: &str| Error::Reference { text: cut(text), reason: reason.to_owned() };
        if text.contains("://") {
            return Err(fail("an address of an image is written without `http://` and the like"));
        }
        let (name, digest) = match text.split_once('@') {
            Some((name, digest)) => (name, Some(digest.parse::<Digest>()?)),
            None => (text, None),
        };
        let (registry, rest) = split_registry(name);
        let (repository, tag) = match rest.split_once(':') {
            Some((repository, tag)) => (repository, Some(tag.to_owned())),
            None => (rest, None),
        };
        if !is_registry(registry) {
            return Err(fail("its registry is no `host` or `host:port`"));
        }
        if !is_repository(repository) || registry.len() + repository.len() > MAX_NAME {
            return Err(fail(
                "its repository is not made of lower case words, separated by `/`, `.`, `_` or `-`",
            ));
        }
        if tag.as_deref().is_some_and(|tag| !is_tag(tag)) {
            return Err(fail("its tag is not made of up to 128 letters, digits, `_`, `.` and `-`"));
        }
        let repository = match registry == DEFAULT_REGISTRY && !repository.contains('/') {
            true => format!("{DEFAULT_NAMESPACE}/{repository}"),
            false => repository.to_owned(),
        };
        let tag = match &digest {
            None => Some(tag.unwrap_or_else(|| DEFAULT_TAG.to_owned())),
            Some(_) => tag,
        };
        Ok(Self { registry: registry.to_owned(), repository, tag, digest })
    }

    /// `docker.io`, `localhost:5000`.
    pub fn registry(&self) -> &str {
        &self.registry
    }

    /// `library/alpine`.
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// `3.20`.
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// The manifest that is meant, where the name says it. It goes before the tag.
    pub fn digest(&self) -> Option<&Digest> {
        self.digest.as_ref()
    }

    /// The same name with a digest.
    #[must_use]
    pub fn with_digest(&self, digest: Digest) -> Self {
        Self { digest: Some(digest), ..self.clone() }
    }

    /// `docker.io/library/alpine`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.registry, self.repository)
    }

    /// What names the manifest in an address.
    pub(crate) fn target(&self) -> &str {
        match (&self.digest, &self.tag) {
            (Some(digest), _) => digest.as_str(),
            (None, Some(tag)) => tag,
            (None, None) => DEFAULT_TAG,
        }
    }
}

impl FromStr for Reference {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::parse(text)
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.registry, self.repository)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        match &self.digest {
            Some(digest) => write!(f, "@{digest}"),
            None => Ok(()),
        }
    }
}

/// The one name of a registry that has several.
pub(crate) fn canonical_registry(name: &str) -> &str {
    if name == OLD_DEFAULT_REGISTRY { DEFAULT_REGISTRY } else { name }
}

fn split_registry(name: &str) -> (&str, &str) {
    let Some((first, rest)) = name.split_once('/') else { return (DEFAULT_REGISTRY, name) };
    let upper = first.bytes().any(|byte| byte.is_ascii_uppercase());
    match first.contains(['.', ':']) || first == "localhost" || upper {
        true => (canonical_registry(first), rest),
        false => (DEFAULT_REGISTRY, name),
    }
}

fn is_registry(text: &str) -> bool {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let Some((address, after)) = rest.split_once(']') else { return false };
            if address.parse::<std::net::Ipv6Addr>().is_err() {
                return false;
            }
            ("ip", after)
        }
        None => text.find(':').map_or((text, ""), |at| text.split_at(at)),
    };
    let label = |label: &str| {
        let inner = label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        inner && !label.is_empty() && !label.starts_with('-') && !label.ends_with('-')
    };
    let port = port.is_empty()
        || port.strip_prefix(':').is_some_and(|port| {
            port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok()
        });
    port && host.split('.').all(label)
}

fn is_repository(text: &str) -> bool {
    text.split('/').all(is_component)
}

/// Words of lower case letters and digits with single separators between them: `.`, `_`, `__` or
/// any number of `-`.
fn is_component(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    let ends = [bytes.first(), bytes.last()];
    if !ends.iter().all(|end| end.is_some_and(|byte| is_word(*byte))) {
        return false;
    }
    let separators = text.split(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
    separators.into_iter().all(|separator| {
        matches!(separator, "" | "." | "_" | "__") || separator.bytes().all(|byte| byte == b'-')
    })
}

fn is_tag(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let starts = text.bytes().next().is_some_and(is_word);
    starts
        && text.len() <= MAX_TAG
        && text.bytes().all(|byte| is_word(byte) || matches!(byte, b'.' | b'-'))
}

/// At most as much of a text as a message can bear.
fn cut(text: &str) -> String {
    text.chars().take(MAX_NAME + MAX_TAG).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_filled_in() {
        let digest = Digest::sha256(b"");
        let pinned = format!("alpine@{digest}");
        let table = [
            ("alpine", "docker.io/library/alpine:latest".to_owned()),
            ("alpine:3.20", "docker.io/library/alpine:3.20".to_owned()),
            ("me/app", "docker.io/me/app:latest".to_owned()),
            ("docker.io/alpine", "docker.io/library/alpine:latest".to_owned()),
            ("index.docker.io/alpine", "docker.io/library/alpine:latest".to_owned()),
            ("localhost/app", "localhost/app:latest".to_owned()),
            ("localhost:5000/app:1", "localhost:5000/app:1".to_owned()),
            ("[::1]:5000/app", "[::1]:5000/app:latest".to_owned()),
            ("quay.example/a/b__c/d--e:V1", "quay.example/a/b__c/d--e:V1".to_owned()),
            (pinned.as_str(), format!("docker.io/library/alpine@{digest}")),
        ];
        for (text, expect) in table {
            let reference = Reference::parse(text).unwrap();
            assert_eq!(reference.to_string(), expect, "{text}");
            assert_eq!(Reference::parse(&expect).unwrap(), reference, "{text}");
        }
    }

    #[test]
    fn a_digest_goes_before_the_tag() {
        let digest = Digest::sha256(b"");
        let reference = Reference::parse("localhost:5000/app:1").unwrap();
        assert_eq!(reference.target(), "1");
        let pinned = reference.with_digest(digest.clone());
        assert_eq!(pinned.target(), digest.as_str());
        assert_eq!(pinned.to_string(), format!("localhost:5000/app:1@{digest}"));
    }

    #[test]
    fn names_that_make_no_sense_are_refused() {
        let long = "a".repeat(300);
        let tag = format!("app:{}", "a".repeat(129));
        let bad = [
            "",
            ":",
            "/",
            "App",
            "a//b",
            "a/../b",
            "..",
            "-a",
            "a-",
            "a___b",
            "a._b",
            "app:",
            "app:-",
            "app@sha256:1",
            "app@",
            "host.example:99999/a",
            "host.example:x/a",
            "[::1/a",
            "[x]/a",
            "https://host.example/app",
            "a b",
            "a?b",
            "host.example/%2e",
            "-h.example/a",
            &long,
            &tag,
        ];
        for text in bad {
            assert!(Reference::parse(text).is_err(), "{text}");
        }
    }
}
