//! The package index of one archive, in one block of bytes.
//!
//! An index has tens of thousands of packages of which an image needs a hundred, and it is needed
//! again at every resolution. So it is parsed once, into a form that is the same in memory and on
//! disk: loading it is one read and one check, and only what is looked at is decoded.
//!
//! ```text
//! magic | packages: u32 | provides: u32 | package records | provide records | texts
//! ```
//!
//! Both tables are sorted by name; a text is an offset and a length in the last part. All numbers
//! are little endian. Descriptions and everything else that no resolver asks for are left out.

mod parse;
#[cfg(test)]
mod tests;

use std::ops::Range;

/// Raised when the layout or the meaning of a field changes; older bytes are then refused.
const MAGIC: &[u8; 8] = b"debidx02";
const HEADER: usize = 16;
/// 32-bit words of a package record: nine texts, size, digest, installed size, traits.
const RECORD: usize = 30;
/// 32-bit words of a provide record: the text of the name and the number of the package.
const PROVIDE: usize = 3;
const SIZE: usize = 18;
const SHA256: usize = 20;
const INSTALLED_SIZE: usize = 28;
const TRAITS: usize = 29;

/// The texts kept of a package, in the order of the record.
const FIELDS: [&str; 9] = [
    "Package",
    "Version",
    "Architecture",
    "Pre-Depends",
    "Depends",
    "Provides",
    "Conflicts",
    "Breaks",
    "Filename",
];

/// The index cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A package lacks a field without which it cannot be installed.
    #[error("package `{package}` of the index has no valid `{field}`")]
    Field {
        /// The package, as far as it is known.
        package: String,
        /// The field.
        field: &'static str,
    },
    /// The texts do not fit in 32-bit offsets.
    #[error("the package index is larger than 4 GiB")]
    TooLarge,
    /// The bytes are not what [`Index::as_bytes`] gave.
    #[error("the stored package index is damaged or of another version")]
    Damaged,
}

/// What an index knows of its packages.
#[derive(Clone, PartialEq, Eq)]
pub struct Index {
    bytes: Vec<u8>,
    packages: usize,
    provides: usize,
    texts: usize,
}

/// One package of an index.
#[derive(Clone, Copy)]
pub struct Package<'a> {
    index: &'a Index,
    number: u32,
}

/// How important the archive says a package is; smaller is more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// Part of every system.
    Required = 1,
    /// Expected on a usual system.
    Important,
    /// Installed by default.
    Standard,
    /// Everything else.
    Optional,
}

/// How a package relates to other architectures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MultiArch {
    /// Not at all.
    No,
    /// Several architectures can be installed at once.
    Same,
    /// Serves dependents of any architecture.
    Foreign,
    /// Serves dependents that ask for `:any`.
    Allowed,
}

impl Index {
    /// Parses the text of a `Packages` file.
    pub fn parse(text: &str) -> Result<Self, Error> {
        parse::parse(text)
    }

    /// Takes back what [`Self::as_bytes`] gave.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, Error> {
        if !bytes.starts_with(MAGIC) || bytes.len() < HEADER {
            return Err(Error::Damaged);
        }
        let packages = word(&bytes, 8) as usize;
        let provides = word(&bytes, 12) as usize;
        let texts = HEADER + 4 * (packages * RECORD + provides * PROVIDE);
        let valid = bytes.get(texts..).is_some_and(|texts| std::str::from_utf8(texts).is_ok());
        if !valid {
            return Err(Error::Damaged);
        }
        Ok(Self { bytes, packages, provides, texts })
    }

    /// The whole index, fit to be stored.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many packages there are.
    pub fn len(&self) -> usize {
        self.packages
    }

    /// Whether there is no package.
    pub fn is_empty(&self) -> bool {
        self.packages == 0
    }

    /// All packages, by name.
    pub fn packages(&self) -> impl Iterator<Item = Package<'_>> {
        (0..self.packages as u32).map(|number| Package { index: self, number })
    }

    /// The package with this number.
    pub fn package(&self, number: u32) -> Package<'_> {
        Package { index: self, number }
    }

    /// All versions of a package, in the order of the archive.
    pub fn named<'a>(&'a self, name: &str) -> impl Iterator<Item = Package<'a>> + use<'a> {
        equal_range(self.packages, name, |number| self.package(number as u32).name())
            .map(|number| self.package(number as u32))
    }

    /// All packages that provide a name, in the order of the archive.
    pub fn providers<'a>(&'a self, name: &str) -> impl Iterator<Item = Package<'a>> + use<'a> {
        equal_range(self.provides, name, |row| self.text_at(self.provide(row)))
            .map(|row| self.package(word(&self.bytes, self.provide(row) + 8)))
    }

    fn provide(&self, row: usize) -> usize {
        HEADER + 4 * (self.packages * RECORD + row * PROVIDE)
    }

    /// The text whose offset and length are written at `position`. Bytes that were tampered with
    /// give an empty text rather than a panic.
    fn text_at(&self, position: usize) -> &str {
        let start = self.texts + word(&self.bytes, position) as usize;
        let end = start + word(&self.bytes, position + 4) as usize;
        std::str::from_utf8(self.bytes.get(start..end).unwrap_or_default()).unwrap_or_default()
    }
}

impl std::fmt::Debug for Index {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Index({} packages)", self.packages)
    }
}

impl<'a> Package<'a> {
    fn position(&self, field: usize) -> usize {
        HEADER + 4 * (self.number as usize * RECORD + field)
    }

    fn text(&self, field: usize) -> &'a str {
        self.index.text_at(self.position(2 * field))
    }

    fn word(&self, field: usize) -> u32 {
        word(&self.index.bytes, self.position(field))
    }

    /// Its number in the index.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// `Package`.
    pub fn name(&self) -> &'a str {
        self.text(0)
    }

    /// `Version`.
    pub fn version(&self) -> &'a str {
        self.text(1)
    }

    /// `Architecture`.
    pub fn architecture(&self) -> &'a str {
        self.text(2)
    }

    /// `Pre-Depends`.
    pub fn pre_depends(&self) -> &'a str {
        self.text(3)
    }

    /// `Depends`.
    pub fn depends(&self) -> &'a str {
        self.text(4)
    }

    /// `Provides`.
    pub fn provides(&self) -> &'a str {
        self.text(5)
    }

    /// `Conflicts`.
    pub fn conflicts(&self) -> &'a str {
        self.text(6)
    }

    /// `Breaks`.
    pub fn breaks(&self) -> &'a str {
        self.text(7)
    }

    /// `Filename`, relative to the root of the archive.
    pub fn filename(&self) -> &'a str {
        self.text(8)
    }

    /// `Size` of the .deb in bytes.
    pub fn size(&self) -> u64 {
        u64::from(self.word(SIZE)) | u64::from(self.word(SIZE + 1)) << 32
    }

    /// `SHA256` of the .deb.
    pub fn sha256(&self) -> [u8; 32] {
        let start = self.position(SHA256);
        let mut digest = [0; 32];
        if let Some(bytes) = self.index.bytes.get(start..start + 32) {
            digest.copy_from_slice(bytes);
        }
        digest
    }

    /// `Installed-Size` in KiB.
    pub fn installed_size(&self) -> u32 {
        self.word(INSTALLED_SIZE)
    }

    /// `Essential: yes`.
    pub fn essential(&self) -> bool {
        self.word(TRAITS) & 1 != 0
    }

    /// `Priority`.
    pub fn priority(&self) -> Priority {
        match self.word(TRAITS) >> 8 & 0xff {
            1 => Priority::Required,
            2 => Priority::Important,
            3 => Priority::Standard,
            _ => Priority::Optional,
        }
    }

    /// `Multi-Arch`.
    pub fn multi_arch(&self) -> MultiArch {
        match self.word(TRAITS) >> 16 & 0xff {
            1 => MultiArch::Same,
            2 => MultiArch::Foreign,
            3 => MultiArch::Allowed,
            _ => MultiArch::No,
        }
    }
}

impl std::fmt::Debug for Package<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.name(), self.version())
    }
}

fn word(bytes: &[u8], position: usize) -> u32 {
    let mut word = [0; 4];
    if let Some(bytes) = bytes.get(position..position + 4) {
        word.copy_from_slice(bytes);
    }
    u32::from_le_bytes(word)
}

/// The rows of a table sorted by name that have this name.
fn equal_range<'a>(rows: usize, name: &str, at: impl Fn(usize) -> &'a str) -> Range<usize> {
    let find = |wanted: &dyn Fn(&str) -> bool| {
        let (mut low, mut high) = (0, rows);
        while low < high {
            let middle = (low + high) / 2;
            if wanted(at(middle)) { low = middle + 1 } else { high = middle }
        }
        low
    };
    find(&|found| found < name)..find(&|found| found <= name)
}

/// The 32 bytes behind 64 hex digits.
pub fn parse_sha256(text: &str) -> Option<[u8; 32]> {
    let mut digest = [0; 32];
    hex::decode_to_slice(text, &mut digest).ok()?;
    Some(digest)
}
