//! What an archive signed: the InRelease file of a suite, verified and read.
//!
//! A [`Release`] comes only out of [`verify`], or out of [`parse`] where the owner of the host
//! said that an archive needs no signature. From there every digest is covered by it.

mod date;
mod keyring;
#[cfg(test)]
mod tests;

pub use keyring::{Keyring, KeyringError};

use crate::control::paragraphs;
use crate::index::parse_sha256;
use std::collections::HashMap;

/// The contents of a Release file.
#[derive(Clone, Debug)]
pub struct Release {
    /// `Suite`, e.g. `oldstable`.
    pub suite: Option<String>,
    /// `Codename`, e.g. `bookworm`.
    pub codename: Option<String>,
    /// `Date`, in seconds since the Unix epoch.
    pub date: Option<i64>,
    /// `Valid-Until`, in seconds since the Unix epoch.
    pub valid_until: Option<i64>,
    /// Whether files can be had by their digest.
    pub by_hash: bool,
    /// How apt would rank this archive by default.
    pub rank: Rank,
    files: HashMap<String, File>,
}

/// How willingly packages of an archive are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// Only where nothing else has the package (`NotAutomatic`).
    Last,
    /// The same, but what came from it stays current (`ButAutomaticUpgrades`).
    Later,
    /// As any archive.
    Usual,
}

/// A file that the Release file vouches for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct File {
    /// Its digest.
    pub sha256: [u8; 32],
    /// Its size in bytes.
    pub size: u64,
}

/// Why a Release file is not accepted.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not a cleartext-signed text.
    #[error("not a signed Release file: {0}")]
    Unsigned(String),
    /// No signature is by a key of the keyring.
    #[error("no signature of it is valid: {reason}")]
    Signature {
        /// What was tried.
        reason: String,
    },
    /// The file expired.
    #[error("it expired {0} s ago: the archive is stale or the clock of this machine is wrong")]
    Expired(i64),
    /// It lacks what must be there.
    #[error("it has no valid `{0}`")]
    Field(&'static str),
}

/// Verifies an InRelease file against a keyring and reads it. `now` is in seconds since the Unix
/// epoch. Text outside the signed part is refused, so nothing unsigned is ever read.
pub fn verify(in_release: &[u8], keyring: &Keyring, now: i64) -> Result<Release, Error> {
    let text = keyring.signed_text(in_release, now)?;
    parse(&text, now)
}

/// Reads an InRelease file of an archive whose owner asked for no signature to be checked.
pub fn read_unverified(in_release: &[u8], now: i64) -> Result<Release, Error> {
    let text = String::from_utf8_lossy(in_release);
    let text = match text.strip_prefix("-----BEGIN PGP SIGNED MESSAGE-----") {
        Some(rest) => rest.split_once("\n\n").map_or("", |(_, body)| body),
        None => &text,
    };
    parse(text.split("\n-----BEGIN PGP SIGNATURE-----").next().unwrap_or_default(), now)
}

/// Reads the text of a Release file without any proof of who wrote it.
pub fn parse(text: &str, now: i64) -> Result<Release, Error> {
    let paragraphs = paragraphs(text);
    let fields = paragraphs.first().ok_or(Error::Field("SHA256"))?;
    let date = |name: &'static str| match fields.get(name) {
        Some(text) => date::parse(text).map(Some).ok_or(Error::Field(name)),
        None => Ok(None),
    };
    let release = Release {
        suite: fields.get("Suite").map(str::to_owned),
        codename: fields.get("Codename").map(str::to_owned),
        date: date("Date")?,
        valid_until: date("Valid-Until")?,
        by_hash: fields.is_yes("Acquire-By-Hash"),
        rank: match (fields.is_yes("NotAutomatic"), fields.is_yes("ButAutomaticUpgrades")) {
            (true, false) => Rank::Last,
            (true, true) => Rank::Later,
            (false, _) => Rank::Usual,
        },
        files: files(fields.get("SHA256").ok_or(Error::Field("SHA256"))?)?,
    };
    match release.valid_until {
        Some(until) if until < now => Err(Error::Expired(now - until)),
        _ => Ok(release),
    }
}

fn files(table: &str) -> Result<HashMap<String, File>, Error> {
    let mut files = HashMap::new();
    for line in table.lines().filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [digest, size, name] = words[..] else { return Err(Error::Field("SHA256")) };
        let sha256 = parse_sha256(digest).ok_or(Error::Field("SHA256"))?;
        let size = size.parse().map_err(|_| Error::Field("SHA256"))?;
        files.insert(name.to_owned(), File { sha256, size });
    }
    Ok(files)
}

impl Release {
    /// What the file says about a file of the suite, e.g. `main/binary-amd64/Packages.xz`.
    pub fn file(&self, name: &str) -> Option<File> {
        self.files.get(name).copied()
    }

    /// The package index of a component in the best form there is: its name and what is known of
    /// it. An architecture or component that the suite does not have gives none.
    pub fn packages(&self, component: &str, architecture: &str) -> Option<(String, File)> {
        ["xz", "zst", "gz", ""].iter().find_map(|ending| {
            let dot = if ending.is_empty() { "" } else { "." };
            let name = format!("{component}/binary-{architecture}/Packages{dot}{ending}");
            self.file(&name).map(|file| (name, file))
        })
    }
}

/// Where a file of a suite is, relative to the root of the archive.
pub fn path(release: &Release, suite: &str, name: &str, file: &File) -> String {
    if !release.by_hash {
        return format!("dists/{suite}/{name}");
    }
    let directory = name.rsplit_once('/').map_or("", |(directory, _)| directory);
    format!("dists/{suite}/{directory}/by-hash/SHA256/{}", hex::encode(file.sha256))
}
