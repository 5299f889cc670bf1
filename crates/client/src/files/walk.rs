//! Walking a tree of the host, entry by entry, for the stream.
//!
//! Entries come parents first, the names of a directory in byte order, so that equal trees give
//! equal streams. A directory that is there only for what is below it is sent when the first such
//! entry is. An entry that vanishes before it is read was simply not there. Nothing is held in
//! memory but the names of one branch.

use super::named;
use super::read::{Output, Stop, contents, entry, open, special};
use super::{gitignore, read::bytes};
use protocol::attach::{Entry, EntryKind, IgnoreFile, Name, ReadRequest};
use selection::{Ignores, Matched, Selection, Verdict};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{DirEntry, FileType};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

pub(super) struct Walk<'a> {
    typed: &'a str,
    selection: Selection,
    /// Whether `.gitignore` files are looked for.
    gitignore: bool,
    /// Directories on the way here that are sent only if something below them is.
    pending: Vec<Entry>,
    /// First names of files that have several.
    links: HashMap<(u64, u64), Name>,
    out: &'a mut Output,
}

/// A directory whose entries are walked.
struct Directory<'a> {
    path: &'a Path,
    /// Path from the root of the walk.
    relative: &'a [u8],
    matched: &'a Matched,
    ignores: &'a Ignores,
}

impl<'a> Walk<'a> {
    /// Sends everything below `root`. There are `above` where `.gitignore` files apply.
    pub(super) fn run(
        request: &'a ReadRequest,
        root: &Path,
        above: Option<Vec<IgnoreFile>>,
        out: &'a mut Output,
    ) -> Result<(), Stop> {
        let selection = Selection::new(&request.include, &request.exclude)
            .map_err(|error| protocol::Error::user(error.to_string()))?;
        let matched = selection.root();
        let mut walk = Self {
            typed: &request.path,
            selection,
            gitignore: above.is_some(),
            pending: vec![],
            links: HashMap::new(),
            out,
        };
        let ignores = above
            .iter()
            .flatten()
            .fold(Ignores::default(), |ignores, file| ignores.with_above(&file.below, &file.text));
        walk.directory(&Directory {
            path: root,
            relative: b"",
            matched: &matched,
            ignores: &ignores,
        })
    }

    fn directory(&mut self, directory: &Directory<'_>) -> Result<(), Stop> {
        let Directory { path, relative, matched, ignores } = *directory;
        let entries = std::fs::read_dir(path).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let mut entries = match entries {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(named(&self.shown(relative), &error).into()),
        };
        entries.sort_by_key(DirEntry::file_name);
        let ignores = match self.gitignore {
            true => ignores.with_file_in(relative, &gitignore::read(path)?),
            false => ignores.clone(),
        };
        let directory = Directory { path, relative, matched, ignores: &ignores };
        entries.iter().try_for_each(|entry| self.entry(entry, &directory))
    }

    fn entry(&mut self, entry: &DirEntry, above: &Directory<'_>) -> Result<(), Stop> {
        let name = entry.file_name();
        let relative = match above.relative {
            [] => name.as_bytes().to_vec(),
            parent => [parent, b"/", name.as_bytes()].concat(),
        };
        let kind = entry.file_type().map_err(|error| named(&self.shown(&relative), &error))?;
        if above.ignores.ignores(&relative, kind.is_dir()) {
            return Ok(());
        }
        let (verdict, matched) = self.selection.check(&relative, kind.is_dir(), above.matched);
        if verdict == Verdict::Skip {
            return Ok(());
        }
        let path = entry.path();
        if kind.is_dir() {
            let (ignores, relative) = (above.ignores, relative.as_slice());
            let below = Directory { path: &path, relative, matched: &matched, ignores };
            return self.subdirectory(&below, verdict);
        }
        match self.leaf(&path, &relative, kind) {
            Err(Reading::Io(error)) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(Reading::Io(error)) => Err(named(&self.shown(&relative), &error).into()),
            Err(Reading::Stop(stop)) => Err(stop),
            Ok(()) => Ok(()),
        }
    }

    fn subdirectory(&mut self, directory: &Directory<'_>, verdict: Verdict) -> Result<(), Stop> {
        let metadata = match directory.path.symlink_metadata() {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(named(&self.shown(directory.relative), &error).into()),
        };
        self.pending.push(entry(directory.relative, EntryKind::Directory, &metadata));
        let depth = self.pending.len();
        if verdict == Verdict::Take {
            self.send_pending()?;
        }
        self.directory(directory)?;
        // Nothing below it was sent, so it is not either.
        self.pending.truncate(depth - 1);
        Ok(())
    }

    fn send_pending(&mut self) -> Result<(), Stop> {
        self.pending.drain(..).try_for_each(|entry| self.out.entry(&entry))
    }

    fn leaf(&mut self, path: &Path, relative: &[u8], kind: FileType) -> Result<(), Reading> {
        if kind.is_symlink() {
            let metadata = path.symlink_metadata()?;
            let target = bytes(&path.read_link()?);
            self.send_pending()?;
            let link = Entry { target, ..entry(relative, EntryKind::Symlink, &metadata) };
            return Ok(self.out.entry(&link)?);
        }
        if !kind.is_file() {
            return Err(Reading::Stop(special(&self.shown(relative), kind).into()));
        }
        let file = open(path)?;
        let metadata = file.metadata()?;
        self.send_pending()?;
        if metadata.nlink() > 1 {
            let inode = (metadata.dev(), metadata.ino());
            if let Some(first) = self.links.get(&inode) {
                let target = first.clone();
                let link = Entry { target, ..entry(relative, EntryKind::HardLink, &metadata) };
                return Ok(self.out.entry(&link)?);
            }
            self.links.insert(inode, Name::from(relative));
        }
        Ok(contents(&self.shown(relative), relative, file, self.out)?)
    }

    /// A path as the user would write it.
    fn shown(&self, relative: &[u8]) -> String {
        Path::new(self.typed).join(OsStr::from_bytes(relative)).display().to_string()
    }
}

/// Why one entry cannot be read.
enum Reading {
    Io(io::Error),
    Stop(Stop),
}

impl From<io::Error> for Reading {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Stop> for Reading {
    fn from(stop: Stop) -> Self {
        Self::Stop(stop)
    }
}
