//! One .deb: an `ar` archive of a control part and a data part, read as a stream.
//!
//! The data part is handed out entry by entry and never held in memory. A path that is absolute
//! or climbs out is refused: an unpacker need not trust names. Whether the bytes are those that
//! the archive signed is for the caller to check.

#[cfg(test)]
mod tests;

use crate::codec::{UnknownCodec, decoder};
use crate::control::{Paragraph, paragraphs};
use sha2::{Digest, Sha256};
use std::io::{self, Read};

/// Control files are small; one above this is not a control file.
const CONTROL_LIMIT: u64 = 16 << 20;

/// A package whose control part has been read.
pub struct Deb<R: Read> {
    archive: ar::Archive<R>,
    control: Control,
}

/// The control part.
#[derive(Clone, Debug, Default)]
pub struct Control {
    /// The text of the file `control`.
    pub text: String,
    /// Its fields.
    pub fields: Paragraph,
    /// All other files: maintainer scripts, `conffiles`, `md5sums`, `triggers` and so on.
    pub files: Vec<ControlFile>,
}

/// A file of the control part.
#[derive(Clone, Debug)]
pub struct ControlFile {
    /// Its name, e.g. `postinst`.
    pub name: String,
    /// Its permissions.
    pub mode: u32,
    /// Its contents.
    pub contents: Vec<u8>,
}

/// An entry of the data part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Path below the root, without a leading slash; never empty.
    pub path: String,
    /// What it is.
    pub kind: Kind,
    /// Permissions.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Modification time in seconds since the Unix epoch.
    pub mtime: u64,
    /// Size of a file in bytes.
    pub size: u64,
}

/// Kinds of entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A directory.
    Directory,
    /// A file; its contents follow.
    File,
    /// A symbolic link with this target.
    Symlink(String),
    /// Another name of the file at this path.
    HardLink(String),
    /// A character device.
    Character(u32, u32),
    /// A block device.
    Block(u32, u32),
    /// A named pipe.
    Pipe,
}

/// The bytes are not a package.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A part is missing.
    #[error("the package has no `{0}`")]
    Missing(&'static str),
    /// A part is compressed in an unknown way.
    #[error(transparent)]
    Codec(#[from] UnknownCodec),
    /// A name that leads out of the root, or that is no text.
    #[error("the package has an entry `{0}`, which is not a path below the root")]
    Path(String),
    /// An entry of a kind that no package has.
    #[error("entry `{0}` of the package is of an unknown kind")]
    Kind(String),
    /// It cannot be read.
    #[error("the package cannot be read: {0}")]
    Io(#[from] io::Error),
}

impl<R: Read + Send> Deb<R> {
    /// Reads as far as the control part.
    pub fn open(reader: R) -> Result<Self, Error> {
        let mut archive = ar::Archive::new(reader);
        let control = loop {
            let entry = archive.next_entry().ok_or(Error::Missing("control.tar"))??;
            let name = member_name(&entry);
            if name.starts_with("control.tar") {
                break read_control(decoder(&name, entry)?)?;
            }
        };
        Ok(Self { archive, control })
    }

    /// The control part.
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// Reads the data part and hands out each entry, with the contents where it is a file.
    pub fn unpack<E: From<Error>>(
        mut self,
        visit: &mut dyn FnMut(&Entry, &mut dyn Read) -> Result<(), E>,
    ) -> Result<Control, E> {
        loop {
            let entry = self.archive.next_entry().ok_or(Error::Missing("data.tar"))?;
            let entry = entry.map_err(Error::Io)?;
            let name = member_name(&entry);
            if name.starts_with("data.tar") {
                visit_all(decoder(&name, entry).map_err(Error::Codec)?, visit)?;
                return Ok(self.control);
            }
        }
    }
}

/// Some writers end names with a slash.
fn member_name<R: Read>(entry: &ar::Entry<'_, R>) -> String {
    let name = String::from_utf8_lossy(entry.header().identifier());
    name.trim_end_matches(['/', ' ']).to_owned()
}

fn read_control(reader: impl Read) -> Result<Control, Error> {
    let mut control = Control::default();
    let mut archive = tar::Archive::new(reader.take(CONTROL_LIMIT));
    for entry in archive.entries()? {
        let mut entry = entry?;
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let name = clean(&entry.path_bytes())?;
        let mode = entry.header().mode()?;
        let mut contents = vec![];
        entry.read_to_end(&mut contents)?;
        if name == "control" {
            control.text = String::from_utf8_lossy(&contents).into_owned();
        } else if !name.contains('/') {
            control.files.push(ControlFile { name, mode: mode & 0o777, contents });
        }
    }
    control.fields =
        paragraphs(&control.text).into_iter().next().ok_or(Error::Missing("control"))?;
    Ok(control)
}

fn visit_all<E: From<Error>>(
    reader: impl Read,
    visit: &mut dyn FnMut(&Entry, &mut dyn Read) -> Result<(), E>,
) -> Result<(), E> {
    let mut archive = tar::Archive::new(reader);
    for entry in archive.entries().map_err(Error::Io)? {
        let mut entry = entry.map_err(Error::Io)?;
        if let Some(description) = describe(&entry)? {
            visit(&description, &mut entry)?;
        }
    }
    Ok(())
}

/// What an entry is, or none for the root itself.
fn describe<R: Read>(entry: &tar::Entry<'_, R>) -> Result<Option<Entry>, Error> {
    let header = entry.header();
    let path = clean(&entry.path_bytes())?;
    if path.is_empty() {
        return Ok(None);
    }
    Ok(Some(Entry {
        kind: kind(entry, &path)?,
        path,
        mode: header.mode()? & 0o7777,
        uid: header.uid()? as u32,
        gid: header.gid()? as u32,
        mtime: header.mtime()?,
        size: entry.size(),
    }))
}

fn kind<R: Read>(entry: &tar::Entry<'_, R>, path: &str) -> Result<Kind, Error> {
    use tar::EntryType;
    let header = entry.header();
    let target = || {
        let target = entry.link_name_bytes().unwrap_or_default();
        String::from_utf8(target.into_owned()).map_err(|_| Error::Path(path.to_owned()))
    };
    let device = || {
        let (major, minor) = (header.device_major()?, header.device_minor()?);
        major.zip(minor).ok_or_else(|| Error::Kind(path.to_owned()))
    };
    Ok(match header.entry_type() {
        EntryType::Directory => Kind::Directory,
        EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => Kind::File,
        EntryType::Symlink => Kind::Symlink(target()?),
        EntryType::Link => Kind::HardLink(clean(target()?.as_bytes())?),
        EntryType::Char => device().map(|(major, minor)| Kind::Character(major, minor))?,
        EntryType::Block => device().map(|(major, minor)| Kind::Block(major, minor))?,
        EntryType::Fifo => Kind::Pipe,
        _ => return Err(Error::Kind(path.to_owned())),
    })
}

/// A path without `./`, doubled and trailing slashes. What leads out of the root is refused.
fn clean(path: &[u8]) -> Result<String, Error> {
    let refuse = || Error::Path(String::from_utf8_lossy(path).into_owned());
    let text = std::str::from_utf8(path).map_err(|_| refuse())?;
    if text.starts_with('/') || text.split('/').any(|name| name == "..") || text.contains('\0') {
        return Err(refuse());
    }
    let names: Vec<&str> =
        text.split('/').filter(|name| !name.is_empty() && *name != ".").collect();
    Ok(names.join("/"))
}

/// A reader that computes the sha256 of all that passes through.
pub struct Hashing<R> {
    reader: R,
    state: Sha256,
}

impl<R: Read> Hashing<R> {
    /// Hashes what is read from now on.
    pub fn new(reader: R) -> Self {
        Self { reader, state: Sha256::new() }
    }

    /// The digest of the whole, what nobody asked for yet included.
    pub fn finish(mut self) -> io::Result<[u8; 32]> {
        io::copy(&mut self, &mut io::sink())?;
        Ok(self.state.finalize().into())
    }
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        self.state.update(&buffer[..count]);
        Ok(count)
    }
}

impl Control {
    /// The contents of a control file.
    pub fn file(&self, name: &str) -> Option<&ControlFile> {
        self.files.iter().find(|file| file.name == name)
    }

    /// The text of a control file, empty where there is none.
    pub fn file_text(&self, name: &str) -> String {
        let contents = self.file(name).map(|file| file.contents.as_slice()).unwrap_or_default();
        String::from_utf8_lossy(contents).into_owned()
    }
}
