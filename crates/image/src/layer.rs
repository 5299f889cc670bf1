//! What a layer changes: entries, and marks that hide what older layers have.
//!
//! In a layer's archive a name that begins with `.wh.` is no file but a mark. [`Layer`] reads marks
//! and entries apart and gives paths that cannot climb; [`Packer`] writes them.

use crate::Error;
use crate::tar::{Entry, Kind, Reader, Writer};
use std::io::{self, Read, Write};

/// What the name of a mark begins with.
const MARK: &[u8] = b".wh.";
/// What the names of marks begin with that an old storage driver kept for itself.
const DRIVER_MARK: &[u8] = b".wh..wh.";
/// The mark of a directory that hides everything older in it.
const OPAQUE: &[u8] = b".wh..wh..opq";

/// One change that a layer makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Something is made. Its path and, of a hard link, its target are relative, tidy and cannot
    /// climb; the root itself has an empty path. Contents of a file follow.
    Made(String, Entry),
    /// What older layers have at this path is hidden.
    Hidden(String),
    /// All that older layers have in this directory is hidden.
    Opaque(String),
}

/// Reads the changes of a layer.
pub struct Layer<R> {
    reader: Reader<R>,
}

impl<R: Read> Layer<R> {
    /// Over the plain bytes of a layer.
    pub fn new(plain: R) -> Self {
        Self { reader: Reader::new(plain) }
    }

    /// The next change; none at the end.
    pub fn next_change(&mut self) -> Result<Option<Change>, Error> {
        while let Some(entry) = self.reader.next_entry()? {
            if let Some(change) = change(entry)? {
                return Ok(Some(change));
            }
        }
        Ok(None)
    }

    /// The contents of the file that came last.
    pub fn contents(&mut self) -> impl Read + '_ {
        self.reader.contents()
    }

    /// Reads to the end of the bytes and gives back what they came from.
    pub fn finish(self) -> Result<R, Error> {
        self.reader.finish()
    }
}

/// What an entry means; none for what an old storage driver left.
fn change(mut entry: Entry) -> Result<Option<Change>, Error> {
    let path = clean(&entry.path, &entry.path)?;
    let (directory, name) = match path.rsplit_once('/') {
        Some((directory, name)) => (directory, name),
        None => ("", path.as_str()),
    };
    let parents = directory.split('/');
    if parents.clone().any(|part| part.as_bytes().starts_with(DRIVER_MARK)) {
        return Ok(None);
    }
    if parents.clone().any(|part| part.as_bytes().starts_with(MARK)) {
        return Err(Error::entry(&entry.path, "lies in a mark, which is no directory"));
    }
    if name.as_bytes() == OPAQUE {
        return Ok(Some(Change::Opaque(directory.to_owned())));
    }
    if name.as_bytes().starts_with(DRIVER_MARK) {
        return Ok(None);
    }
    if let Some(hidden) = name.strip_prefix(".wh.") {
        if matches!(hidden, "" | "." | "..") {
            return Err(Error::entry(&entry.path, "is a mark that hides no name"));
        }
        let slash = if directory.is_empty() { "" } else { "/" };
        return Ok(Some(Change::Hidden(format!("{directory}{slash}{hidden}"))));
    }
    if path.is_empty() && entry.kind != Kind::Directory {
        return Err(Error::entry(&entry.path, "would replace the root"));
    }
    if let Kind::HardLink(target) = &entry.kind {
        let target = clean(target, &entry.path)?;
        let last = target.rsplit('/').next().unwrap_or_default();
        if last.is_empty() || last.as_bytes().starts_with(MARK) {
            return Err(Error::entry(&entry.path, "is a hard link to what is no file"));
        }
        entry.kind = Kind::HardLink(target.into_bytes());
    }
    Ok(Some(Change::Made(path, entry)))
}

/// A path relative to the root without parts that mean nothing. One that climbs is refused, even
/// where it would come back: no honest program writes it.
fn clean(path: &[u8], entry: &[u8]) -> Result<String, Error> {
    let text = std::str::from_utf8(path)
        .map_err(|_| Error::entry(entry, "has a name that is not UTF-8, which is not supported"))?;
    let mut tidy = String::with_capacity(text.len());
    for part in text.split('/').filter(|part| !matches!(*part, "" | ".")) {
        if part == ".." {
            return Err(Error::entry(entry, "climbs out of its directory"));
        }
        if !tidy.is_empty() {
            tidy.push('/');
        }
        tidy.push_str(part);
    }
    Ok(tidy)
}

/// What the entries of a layer are written to.
pub trait Archive {
    /// Writes an entry and, of a file, exactly as many bytes as it says.
    fn entry(&mut self, entry: &Entry, contents: &mut dyn Read) -> io::Result<()>;
}

impl<W: Write> Archive for Writer<W> {
    fn entry(&mut self, entry: &Entry, contents: &mut dyn Read) -> io::Result<()> {
        Writer::entry(self, entry, contents)
    }
}

/// Writes the changes of a layer.
pub struct Packer<A> {
    archive: A,
}

impl<A: Archive> Packer<A> {
    /// Nothing is written yet.
    pub fn over(archive: A) -> Self {
        Self { archive }
    }

    /// What was written to. It is not ended.
    pub fn into_archive(self) -> A {
        self.archive
    }

    /// Writes an entry whose path is relative and has no slash at its end. `contents` are those of a
    /// file.
    pub fn made(&mut self, entry: &Entry, contents: &mut dyn Read) -> Result<(), Error> {
        let name = entry.path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        if name.starts_with(MARK) {
            let reason = "has a name that images use for marks and cannot hold";
            return Err(Error::entry(&entry.path, reason));
        }
        if entry.kind != Kind::Directory {
            return Ok(self.archive.entry(entry, contents)?);
        }
        let mut entry = entry.clone();
        entry.path = if entry.path.is_empty() { b"./".to_vec() } else { entry.path };
        if !entry.path.ends_with(b"/") {
            entry.path.push(b'/');
        }
        Ok(self.archive.entry(&entry, contents)?)
    }

    /// Hides what older layers have at a path.
    pub fn hide(&mut self, path: &[u8]) -> io::Result<()> {
        let slash = path.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
        self.mark([&path[..slash], MARK, &path[slash..]].concat())
    }

    /// Hides all that older layers have in a directory.
    pub fn opaque(&mut self, directory: &[u8]) -> io::Result<()> {
        let slash: &[u8] = if directory.is_empty() { b"" } else { b"/" };
        self.mark([directory, slash, OPAQUE].concat())
    }

    fn mark(&mut self, path: Vec<u8>) -> io::Result<()> {
        self.archive.entry(&Entry::new(path, Kind::File, 0), &mut io::empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(entries: &[Entry]) -> Result<Vec<Change>, Error> {
        let mut writer = Writer::new(vec![]);
        for entry in entries {
            writer.entry(entry, &mut io::repeat(b'x')).unwrap();
        }
        let bytes = writer.finish().unwrap();
        let mut layer = Layer::new(&bytes[..]);
        let mut changes = vec![];
        while let Some(change) = layer.next_change()? {
            changes.push(change);
        }
        layer.finish()?;
        Ok(changes)
    }

    fn file(path: &str) -> Entry {
        Entry::new(path, Kind::File, 0o644)
    }

    fn directory(path: &str) -> Entry {
        Entry::new(path, Kind::Directory, 0o755)
    }

    #[test]
    fn marks_and_entries_are_told_apart() {
        let found = changes(&[
            directory("./"),
            directory("./etc/"),
            file("/etc//./hosts"),
            file("etc/.wh.passwd"),
            file(".wh.tmp"),
            file("var/.wh..wh..opq"),
            file(".wh..wh..opq"),
            file(".wh..wh.aufs"),
            directory(".wh..wh.plnk/"),
            file(".wh..wh.plnk/1.2"),
            file("a.wh.b"),
        ])
        .unwrap();
        let shown: Vec<String> = found
            .iter()
            .map(|change| match change {
                Change::Made(path, _) => format!("made {path}"),
                Change::Hidden(path) => format!("hidden {path}"),
                Change::Opaque(path) => format!("opaque {path}"),
            })
            .collect();
        let expected = [
            "made ",
            "made etc",
            "made etc/hosts",
            "hidden etc/passwd",
            "hidden tmp",
            "opaque var",
            "opaque ",
            "made a.wh.b",
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn hostile_names_are_refused() {
        let link = |target: &str| Entry::new("l", Kind::HardLink(target.into()), 0o644);
        for (entry, reason) in [
            (file("../x"), "climbs"),
            (file("a/../../x"), "climbs"),
            (file("/../x"), "climbs"),
            (file("a/../b"), "climbs"),
            (file(".wh."), "hides no name"),
            (file(".wh.."), "hides no name"),
            (file("a/.wh..."), "hides no name"),
            (file(".wh.x/y"), "lies in a mark"),
            (file("./"), "replace the root"),
            (Entry::new("/", Kind::Symlink(b"/etc".to_vec()), 0o777), "replace the root"),
            (link("../etc/passwd"), "climbs"),
            (link("/"), "no file"),
            (link(".wh.x"), "no file"),
            (Entry::new(&b"\xff\xfe"[..], Kind::File, 0o644), "not UTF-8"),
        ] {
            let shown = String::from_utf8_lossy(&entry.path).into_owned();
            let said = changes(&[entry]).err().unwrap_or_else(|| panic!("{shown} was taken"));
            assert!(said.to_string().contains(reason), "{shown}: {said}");
        }
    }

    #[test]
    fn what_is_packed_reads_back() {
        let mut packer = Packer::over(Writer::new(vec![]));
        let mut note = |entry: Entry| packer.made(&entry, &mut io::empty()).map(drop);
        note(directory("etc")).unwrap();
        assert!(note(file("etc/.wh.x")).unwrap_err().to_string().contains("marks"));
        packer.opaque(b"etc").unwrap();
        packer.opaque(b"").unwrap();
        packer.hide(b"etc/gone").unwrap();
        packer.hide(b"gone").unwrap();
        let bytes = packer.into_archive().finish().unwrap();
        let mut layer = Layer::new(&bytes[..]);
        let mut next = || layer.next_change().unwrap();
        let Some(Change::Made(path, entry)) = next() else { panic!() };
        assert_eq!((path.as_str(), &entry.path[..]), ("etc", &b"etc/"[..]));
        assert_eq!(next(), Some(Change::Opaque("etc".to_owned())));
        assert_eq!(next(), Some(Change::Opaque(String::new())));
        assert_eq!(next(), Some(Change::Hidden("etc/gone".to_owned())));
        assert_eq!(next(), Some(Change::Hidden("gone".to_owned())));
        assert_eq!(next(), None);
    }
}
