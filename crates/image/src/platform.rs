//! [`Platform`]: for which machines an image is, and which image of several fits one.

use crate::error::{Error, shorten};
use crate::{Descriptor, Family, Role};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Operating system, architecture and its variant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Platform {
    /// `amd64`, `arm64` and so on.
    #[serde(default)]
    pub architecture: String,
    /// `linux` and so on.
    #[serde(default)]
    pub os: String,
    /// `v7` and so on; empty where there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub variant: String,
    /// Version of the operating system, where that matters.
    #[serde(default, rename = "os.version", skip_serializing_if = "String::is_empty")]
    pub os_version: String,
}

impl Platform {
    /// From `os/arch[/variant]`, already checked.
    pub fn parse(text: &str) -> Self {
        let mut parts = text.split('/');
        let mut next = || parts.next().unwrap_or_default().to_owned();
        let (os, architecture, variant) = (next(), next(), next());
        Self { architecture, os, variant, os_version: String::new() }
    }

    /// How well an image for `self` runs where `wanted` is asked for; none when not at all, the
    /// lowest number is best. A machine runs what was built for older variants of it.
    fn distance(&self, wanted: &Self) -> Option<u32> {
        if self.os != wanted.os || self.architecture != wanted.architecture {
            return None;
        }
        let (own, asked) = (self.level(), wanted.level());
        match (own, asked) {
            (Some(own), Some(asked)) => asked.checked_sub(own),
            _ => (self.variant == wanted.variant).then_some(0),
        }
    }

    /// The variant as a number; what is left out is the usual one of the architecture.
    fn level(&self) -> Option<u32> {
        let usual = match self.architecture.as_str() {
            "arm64" => 8,
            "arm" => 7,
            "amd64" => 1,
            _ => 0,
        };
        match self.variant.as_str() {
            "" => Some(usual),
            variant => variant.strip_prefix('v')?.parse().ok(),
        }
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.os, self.architecture)?;
        match self.variant.is_empty() {
            true => Ok(()),
            false => write!(f, "/{}", self.variant),
        }
    }
}

/// The one of several images that fits a platform best.
pub(crate) fn pick<'a>(
    descriptors: &'a [Descriptor],
    wanted: &Platform,
) -> Result<&'a Descriptor, Error> {
    let images = || descriptors.iter().filter(|one| is_image(one));
    let fitting = images().filter_map(|one| Some((distance(one, wanted)?, one)));
    if let Some((_, best)) = fitting.min_by_key(|(distance, _)| *distance) {
        return Ok(best);
    }
    let mut names: Vec<String> = images()
        .map(|one| one.platform.as_ref().map_or_else(|| "unnamed".to_owned(), ToString::to_string))
        .collect();
    names.sort();
    names.dedup();
    let available = match names.is_empty() {
        true => "none".to_owned(),
        false => shorten(&names.join(", ")),
    };
    Err(Error::Platform { wanted: wanted.to_string(), available })
}

/// An image that says nothing about its platform is taken when there is no better one.
fn distance(descriptor: &Descriptor, wanted: &Platform) -> Option<u32> {
    match &descriptor.platform {
        Some(platform) if !platform.os.is_empty() => platform.distance(wanted),
        _ => Some(u32::MAX),
    }
}

/// Whether a descriptor names an image and not something said about one.
fn is_image(descriptor: &Descriptor) -> bool {
    let role = Family::role_of(&descriptor.media_type);
    let unknown = descriptor.platform.as_ref().is_some_and(|platform| platform.os == "unknown");
    matches!(role, Some(Role::Manifest | Role::Index)) && !unknown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Digest;

    fn index(platforms: &[&str]) -> Vec<Descriptor> {
        let describe = |text: &&str| {
            let mut descriptor = Descriptor::new(
                Family::Oci.media_type(Role::Manifest),
                Digest::of(text.as_bytes()),
                1,
            );
            descriptor.platform = (!text.is_empty()).then(|| Platform::parse(text));
            descriptor
        };
        platforms.iter().map(describe).collect()
    }

    fn picked(platforms: &[&str], wanted: &str) -> Result<String, String> {
        let index = index(platforms);
        let picked = pick(&index, &Platform::parse(wanted)).map_err(|error| error.to_string())?;
        let name = picked.platform.as_ref().map(ToString::to_string);
        Ok(name.unwrap_or_default())
    }

    #[test]
    fn the_best_variant_is_taken() {
        for (platforms, wanted, best) in [
            (&["linux/amd64", "linux/arm64/v8"][..], "linux/arm64", "linux/arm64/v8"),
            (&["linux/arm64", "linux/amd64"], "linux/arm64/v8", "linux/arm64"),
            (&["linux/arm/v5", "linux/arm/v6", "linux/arm/v7"], "linux/arm", "linux/arm/v7"),
            (&["linux/arm/v5", "linux/arm/v7"], "linux/arm/v6", "linux/arm/v5"),
            (&["linux/amd64/v3", "linux/amd64"], "linux/amd64", "linux/amd64"),
            (&["linux/amd64", "linux/amd64/v3"], "linux/amd64/v3", "linux/amd64/v3"),
            (&["linux/s390x", ""], "linux/amd64", ""),
            (&["unknown/unknown", "linux/amd64"], "linux/amd64", "linux/amd64"),
        ] {
            assert_eq!(picked(platforms, wanted).as_deref(), Ok(best), "{platforms:?} {wanted}");
        }
    }

    #[test]
    fn what_there_is_stands_in_the_error() {
        let said = picked(&["linux/s390x", "windows/amd64", "unknown/unknown"], "linux/amd64");
        let said = said.unwrap_err();
        assert!(said.contains("for linux/amd64; there are: linux/s390x, windows/amd64"), "{said}");
        assert!(picked(&[], "linux/amd64").unwrap_err().ends_with("none"));
        assert!(picked(&["linux/amd64/v3"], "linux/amd64").is_err());
    }
}
