//! Where packages come from and whose signature counts, as the host has it configured.

use super::Settings;
use super::cache::read;
use super::error::Error;
use debian::release::Keyring;
use debian::sources::{self, Archive, SignedBy, Source};
use protocol::{Digest, DigestBuilder};
use std::fs;
use std::path::{Path, PathBuf};

/// An archive for the image, with the keys that may sign it.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    pub(super) archive: Archive,
    pub(super) keys: Vec<KeyFile>,
}

/// A file of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeyFile {
    /// Where it is on the host; a block written into a source has no file.
    path: PathBuf,
    /// Where apt in the image looks for it.
    pub(super) image_path: Option<String>,
    pub(super) bytes: Vec<u8>,
}

/// The archives for a suite.
pub(super) fn origins(
    settings: &Settings,
    suite: &str,
    architecture: &str,
) -> Result<Vec<Origin>, Error> {
    let archives = match &settings.mirror {
        Some(mirror) => vec![mirrored(settings, mirror, suite)],
        None => sources::select(&host_sources(&settings.apt)?, suite, architecture)?,
    };
    archives.into_iter().map(|archive| with_keys(settings, archive)).collect()
}

fn mirrored(settings: &Settings, mirror: &str, suite: &str) -> Archive {
    let scheme = if mirror.starts_with('/') { "file://" } else { "" };
    let keyrings = settings.keyring.iter().map(|path| path.display().to_string()).collect();
    Archive {
        uri: format!("{scheme}{}", mirror.trim_end_matches('/')),
        suite: suite.to_owned(),
        components: vec!["main".to_owned()],
        signed_by: SignedBy { keyrings, ..SignedBy::default() },
        trusted: false,
    }
}

/// All sources of the host, in the order apt reads them.
fn host_sources(apt: &Path) -> Result<Vec<Source>, Error> {
    let mut all = vec![];
    let main = apt.join("sources.list");
    if let Some(text) = read(&main)? {
        let text = String::from_utf8_lossy(&text).into_owned();
        all.extend(sources::parse_one_line(&main.display().to_string(), &text)?);
    }
    for path in files(&apt.join("sources.list.d"), &["list", "sources"])? {
        let text = read(&path)?.unwrap_or_default();
        let (name, text) =
            (path.display().to_string(), String::from_utf8_lossy(&text).into_owned());
        all.extend(match path.extension().is_some_and(|ending| ending == "list") {
            true => sources::parse_one_line(&name, &text)?,
            false => sources::parse_deb822(&name, &text)?,
        });
    }
    Ok(all)
}

/// Files of a directory with one of these endings, by name; none where there is no directory.
fn files(directory: &Path, endings: &[&str]) -> Result<Vec<PathBuf>, Error> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(vec![]),
        Err(error) => return Err(Error::io("read", directory)(error)),
    };
    let wanted = |path: &PathBuf| {
        path.extension().is_some_and(|ending| endings.iter().any(|wanted| ending == *wanted))
    };
    let mut paths: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(wanted).collect();
    paths.sort();
    Ok(paths)
}

fn with_keys(settings: &Settings, archive: Archive) -> Result<Origin, Error> {
    if archive.trusted {
        return Ok(Origin { archive, keys: vec![] });
    }
    let mut keys = vec![];
    if let Some(block) = &archive.signed_by.inline {
        let bytes = block.as_bytes().to_vec();
        keys.push(KeyFile { path: "Signed-By".into(), image_path: None, bytes });
    }
    for path in &archive.signed_by.keyrings {
        keys.push(key_file(Path::new(path), Some(path.clone()))?);
    }
    if keys.is_empty() {
        keys = general_keys(settings)?;
    }
    if keys.is_empty() {
        return Err(Error::NoKeys { archive: archive.uri });
    }
    Ok(Origin { archive, keys })
}

/// The keys for archives that name none: those of the configuration, else those that apt trusts for
/// everything, else those that the host's sources name.
fn general_keys(settings: &Settings) -> Result<Vec<KeyFile>, Error> {
    if let Some(path) = &settings.keyring {
        return Ok(vec![key_file(path, Some(path.display().to_string()))?]);
    }
    let mut paths = files(&settings.apt.join("trusted.gpg.d"), &["gpg", "asc"])?;
    let old = settings.apt.join("trusted.gpg");
    paths.extend(old.exists().then_some(old));
    let in_image = |path: &Path| {
        let below = path.strip_prefix(&settings.apt).ok()?;
        Some(format!("/etc/apt/{}", below.display()))
    };
    if !paths.is_empty() {
        return paths.iter().map(|path| key_file(path, in_image(path))).collect();
    }
    let mut named: Vec<String> = host_sources(&settings.apt)?
        .into_iter()
        .filter(|source| source.enabled)
        .flat_map(|source| source.signed_by.keyrings)
        .collect();
    named.dedup();
    named.iter().map(|path| key_file(Path::new(path), Some(path.clone()))).collect()
}

fn key_file(path: &Path, image_path: Option<String>) -> Result<KeyFile, Error> {
    let bytes = fs::read(path).map_err(Error::io("read", path))?;
    Ok(KeyFile { path: path.to_owned(), image_path, bytes })
}

impl Origin {
    /// The keys as a ring. An empty file among several is passed over, as apt does.
    pub(super) fn keyring(&self) -> Result<Keyring, Error> {
        let mut ring = Keyring::default();
        for key in self.keys.iter().filter(|key| !key.bytes.is_empty()) {
            let unusable = |source| Error::Keyring { path: key.path.clone(), source };
            ring.add(&key.bytes).map_err(unusable)?;
        }
        ring.restrict(&self.archive.signed_by.fingerprints);
        Ok(ring)
    }

    /// Adds all that decides what this origin may say.
    pub(super) fn digest_into(&self, digest: &mut DigestBuilder) {
        digest.text(&self.archive.to_deb822()).number(self.keys.len() as u64);
        for key in &self.keys {
            digest.text(key.image_path.as_deref().unwrap_or_default());
            digest.digest(&Digest::of(&key.bytes));
        }
    }
}

/// The `.sources` file of the image.
pub(super) fn image_sources(origins: &[Origin]) -> String {
    origins.iter().map(|origin| origin.archive.to_deb822()).collect::<Vec<_>>().join("\n")
}
