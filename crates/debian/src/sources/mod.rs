//! Which archives a host uses: `sources.list` in both of its formats, and the choice for a suite.
//!
//! Only what decides where packages come from and who signs them is read; options that tune apt
//! itself (languages, diffs, check intervals) have no meaning here and are passed over.

mod deb822;
mod one_line;
#[cfg(test)]
mod tests;

pub use deb822::parse as parse_deb822;
pub use one_line::parse as parse_one_line;

/// A source as a file states it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Whether it is in use.
    pub enabled: bool,
    /// `deb`, `deb-src`.
    pub types: Vec<String>,
    /// Roots of archives.
    pub uris: Vec<String>,
    /// Names of suites.
    pub suites: Vec<String>,
    /// Names of components.
    pub components: Vec<String>,
    /// Architectures, where the source limits them.
    pub architectures: Vec<String>,
    /// Who signs.
    pub signed_by: SignedBy,
    /// `Trusted: yes`: the owner of the host asked for no signature to be checked.
    pub trusted: bool,
}

/// Whose signature is accepted. All empty: the keys that the host trusts in general.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SignedBy {
    /// Paths of keyrings.
    pub keyrings: Vec<String>,
    /// Fingerprints; where there are any, only these keys count.
    pub fingerprints: Vec<String>,
    /// A key block written into the source itself.
    pub inline: Option<String>,
}

/// One suite of one archive, chosen for an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Archive {
    /// Root of the archive, without a slash at the end.
    pub uri: String,
    /// The suite.
    pub suite: String,
    /// Components, in order, each once.
    pub components: Vec<String>,
    /// Who signs.
    pub signed_by: SignedBy,
    /// Whether the owner of the host asked for no signature to be checked.
    pub trusted: bool,
}

/// A source file or a choice that makes no sense.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    /// A line or paragraph that apt would refuse too.
    #[error("`{file}`: entry {entry}: {reason}")]
    Malformed {
        /// The file.
        file: String,
        /// Number of the line or paragraph, from 1.
        entry: usize,
        /// What is wrong.
        reason: String,
    },
    /// No source can serve packages for this architecture.
    #[error("this host has no enabled `deb` source for `{architecture}`")]
    NoSource {
        /// The architecture.
        architecture: String,
    },
}

/// The archives for a suite: every enabled `deb` source whose suite is the name itself or begins
/// with the name and a dash. A suite that no source names is looked for at the first URI.
pub fn select(sources: &[Source], suite: &str, architecture: &str) -> Result<Vec<Archive>, Error> {
    let usable = || sources.iter().filter(|source| source.serves(architecture));
    let mut archives: Vec<Archive> = vec![];
    for source in usable() {
        for name in source.suites.iter().filter(|name| belongs(name, suite)) {
            for uri in &source.uris {
                add(&mut archives, source, uri, name);
            }
        }
    }
    if !archives.is_empty() {
        return Ok(archives);
    }
    let first = usable().find_map(|source| source.uris.first().map(|uri| (source, uri)));
    let (source, uri) =
        first.ok_or_else(|| Error::NoSource { architecture: architecture.to_owned() })?;
    Ok(vec![Archive {
        uri: uri.clone(),
        suite: suite.to_owned(),
        components: vec!["main".to_owned()],
        signed_by: source.signed_by.clone(),
        trusted: source.trusted,
    }])
}

impl Source {
    fn serves(&self, architecture: &str) -> bool {
        let listed = self.architectures.iter().any(|listed| listed == architecture);
        self.enabled
            && self.types.iter().any(|kind| kind == "deb")
            && (self.architectures.is_empty() || listed)
    }
}

fn belongs(name: &str, suite: &str) -> bool {
    name.strip_prefix(suite).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

fn add(archives: &mut Vec<Archive>, source: &Source, uri: &str, suite: &str) {
    let known = archives.iter_mut().find(|archive| archive.uri == uri && archive.suite == suite);
    if let Some(archive) = known {
        for component in &source.components {
            if !archive.components.contains(component) {
                archive.components.push(component.clone());
            }
        }
        return;
    }
    archives.push(Archive {
        uri: uri.to_owned(),
        suite: suite.to_owned(),
        components: source.components.clone(),
        signed_by: source.signed_by.clone(),
        trusted: source.trusted,
    });
}

impl Archive {
    /// The archive as a paragraph of a `.sources` file.
    pub fn to_deb822(&self) -> String {
        let mut text = format!(
            "Types: deb\nURIs: {}\nSuites: {}\nComponents: {}\n",
            self.uri,
            self.suite,
            self.components.join(" ")
        );
        if self.trusted {
            text.push_str("Trusted: yes\n");
        }
        let named = self.signed_by.keyrings.iter().chain(&self.signed_by.fingerprints);
        let named = named.map(String::as_str).collect::<Vec<_>>().join(", ");
        if let Some(block) = &self.signed_by.inline {
            text.push_str("Signed-By:\n");
            for line in block.lines() {
                let line = if line.is_empty() { "." } else { line };
                text.push_str(&format!(" {line}\n"));
            }
        } else if !named.is_empty() {
            text.push_str(&format!("Signed-By: {named}\n"));
        }
        text
    }
}

impl SignedBy {
    /// Reads the value of `Signed-By`: a key block, or paths and fingerprints.
    fn parse(value: &str) -> Self {
        if value.contains("-----BEGIN PGP") {
            return Self { inline: Some(value.trim().to_owned()), ..Self::default() };
        }
        let mut signed_by = Self::default();
        for word in value.split([',', ' ', '\t', '\n']).filter(|word| !word.is_empty()) {
            let list = match word.starts_with('/') {
                true => &mut signed_by.keyrings,
                false => &mut signed_by.fingerprints,
            };
            list.push(word.to_owned());
        }
        signed_by
    }
}

/// An URI with the slashes at its end removed, so that equal archives compare equal.
fn plain_uri(uri: &str) -> String {
    uri.trim_end_matches('/').to_owned()
}
