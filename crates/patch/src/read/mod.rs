//! [`Reader`]: a patch, taken apart one file at a time.
//!
//! Patches of git are understood with everything git says before the hunks; so are those of the
//! program `diff`. Text around them is passed over, as in a mail. Names lose their first part, which
//! is `a/` or `b/` as a rule, and never lead anywhere but down.

use crate::binary::{self, Binary};
use crate::name::unquote;
use std::io::{self, BufRead};

/// Why a patch cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It does not say what its own beginning promises.
    #[error("corrupt patch at line {line}: {why}")]
    Corrupt {
        /// Where, from 1.
        line: u64,
        /// What is wrong there.
        why: &'static str,
    },
    /// A name in it leads elsewhere.
    #[error("invalid path `{0}` in the patch")]
    Path(String),
    /// There is something, and no change in it.
    #[error("no change was found in the patch")]
    Nothing,
    /// It cannot be read.
    #[error("cannot read the patch: {0}")]
    Io(#[from] io::Error),
}

/// What a patch does to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePatch {
    /// What is done.
    pub action: Action,
    /// The file that is changed, removed, renamed or copied; for a new one, its own path.
    pub old_path: Vec<u8>,
    /// Where it is afterwards.
    pub path: Vec<u8>,
    /// What git says of kind and mode afterwards; none leaves it as it is.
    pub mode: Option<u32>,
    /// The object of git that was changed, if all of its name is given.
    pub old_object: Option<String>,
    /// How its contents change.
    pub body: Body,
}

/// What is done to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It is changed in its place.
    Modify,
    /// It is made.
    Create,
    /// It goes.
    Delete,
    /// It gets another path.
    Rename,
    /// It is made like another.
    Copy,
}

/// How the contents of a file change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// Not at all.
    Same,
    /// By hunks of lines.
    Hunks(Vec<PatchHunk>),
    /// As a whole.
    Binary(Binary),
    /// It is only said that they do.
    Withheld,
}

/// Some lines that take the place of others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatchHunk {
    /// The first old line, from 1; with no old lines, the line before.
    pub start: usize,
    /// The old lines, with their ends.
    pub old: Vec<Vec<u8>>,
    /// The new lines, with their ends.
    pub new: Vec<Vec<u8>>,
    /// How many of both are the same at the start.
    pub leading: usize,
    /// How many of both are the same at the end.
    pub trailing: usize,
}

/// Takes a patch apart.
pub struct Reader<R> {
    text: R,
    /// The line that is looked at; empty at the end.
    line: Vec<u8>,
    number: u64,
    begun: bool,
    found: bool,
    /// Whether anything but white space was met.
    something: bool,
}

/// What the lines before the hunks say.
#[derive(Default)]
struct Header {
    /// Both names of the first line, if they are the same but for their first part.
    both: Option<Vec<u8>>,
    from: Option<Vec<u8>>,
    to: Option<Vec<u8>>,
    old: Option<Name>,
    new: Option<Name>,
    action: Option<Action>,
    mode: Option<u32>,
    old_object: Option<String>,
}

/// A name of `---` or `+++`.
enum Name {
    Nothing,
    Path(Vec<u8>),
}

impl<R: BufRead> Reader<R> {
    /// Reads this text.
    pub fn new(text: R) -> Self {
        Self { text, line: vec![], number: 0, begun: false, found: false, something: false }
    }

    /// What is done to the next file; none at the end.
    pub fn next_patch(&mut self) -> Result<Option<FilePatch>, Error> {
        if !self.begun {
            self.begun = true;
            self.advance()?;
        }
        loop {
            if self.line.is_empty() {
                return if self.something && !self.found { Err(Error::Nothing) } else { Ok(None) };
            }
            if self.line.starts_with(b"diff --git ") {
                return self.git_patch().map(Some);
            }
            if self.line.starts_with(b"--- ") {
                if let Some(patch) = self.plain_patch()? {
                    return Ok(Some(patch));
                }
                continue;
            }
            if self.line.starts_with(b"@@ -") {
                return Err(self.corrupt("there are lines to change, and no file"));
            }
            self.something |= !self.line.trim_ascii().is_empty();
            self.advance()?;
        }
    }

    fn advance(&mut self) -> Result<(), Error> {
        self.line.clear();
        self.number += 1;
        self.text.read_until(b'\n', &mut self.line)?;
        Ok(())
    }

    fn corrupt(&self, why: &'static str) -> Error {
        Error::Corrupt { line: self.number, why }
    }

    /// The line without its end.
    fn text(&self) -> &[u8] {
        let line = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
        line.strip_suffix(b"\r").unwrap_or(line)
    }

    fn git_patch(&mut self) -> Result<FilePatch, Error> {
        self.found = true;
        let mut header =
            Header { both: both(&self.text()[b"diff --git ".len()..]), ..Header::default() };
        let begins = self.number;
        loop {
            self.advance()?;
            if self.line.starts_with(b"--- ") {
                header.old = Some(self.file_name(4)?);
                self.advance()?;
                if !self.line.starts_with(b"+++ ") {
                    return Err(self.corrupt("a line that begins with `+++` is missing"));
                }
                header.new = Some(self.file_name(4)?);
                self.advance()?;
                break;
            }
            if !self.header_line(&mut header)? {
                break;
            }
        }
        let body = self.body()?;
        let unnamed = Error::Corrupt { line: begins, why: "it names no file" };
        header.finish(body)?.ok_or(unnamed)
    }

    /// Takes one line of a header; says whether it was one.
    fn header_line(&mut self, header: &mut Header) -> Result<bool, Error> {
        let text = self.text();
        let mode = |text: &[u8]| u32::from_str_radix(std::str::from_utf8(text).ok()?, 8).ok();
        let bad_mode = || self.corrupt("a mode is no number");
        if let Some(rest) = text.strip_prefix(b"new file mode ") {
            header.mode = Some(mode(rest).ok_or_else(bad_mode)?);
            header.action = Some(Action::Create);
        } else if let Some(rest) = text.strip_prefix(b"deleted file mode ") {
            mode(rest).ok_or_else(bad_mode)?;
            header.action = Some(Action::Delete);
        } else if let Some(rest) = text.strip_prefix(b"new mode ") {
            header.mode = Some(mode(rest).ok_or_else(bad_mode)?);
        } else if let Some(rest) = text.strip_prefix(b"index ") {
            let old = rest.split(|byte| *byte == b'.').next().unwrap_or_default();
            let whole = old.len() == 40 && old.iter().all(u8::is_ascii_hexdigit);
            let object = whole.then(|| String::from_utf8_lossy(old).into_owned());
            header.old_object = object.filter(|object| object.bytes().any(|digit| digit != b'0'));
        } else if let Some((action, is_source, start)) = moved(text) {
            let (name, _) =
                unquote(&text[start..]).ok_or_else(|| self.corrupt("a name is broken"))?;
            let side = if is_source { &mut header.from } else { &mut header.to };
            *side = Some(name);
            header.action = Some(action);
        } else {
            let known: [&[u8]; 3] = [b"old mode ", b"similarity index ", b"dissimilarity index "];
            return Ok(known.iter().any(|known| text.starts_with(known)));
        }
        Ok(true)
    }

    /// A patch without a line of git's; none if it is no patch after all.
    fn plain_patch(&mut self) -> Result<Option<FilePatch>, Error> {
        let old = self.file_name(4)?;
        self.advance()?;
        if !self.line.starts_with(b"+++ ") {
            return Ok(None);
        }
        let new = self.file_name(4)?;
        self.advance()?;
        if !self.line.starts_with(b"@@ -") {
            return Ok(None);
        }
        self.found = true;
        let header = Header { old: Some(old), new: Some(new), ..Header::default() };
        let line = self.number;
        let body = self.body()?;
        header.finish(body)?.map(Some).ok_or(Error::Corrupt { line, why: "it names no file" })
    }

    fn file_name(&self, start: usize) -> Result<Name, Error> {
        let text = &self.text()[start..];
        let (mut name, _) = unquote(text).ok_or_else(|| self.corrupt("a name is broken"))?;
        if !text.starts_with(b"\"") {
            // What follows a tab is a time.
            let end = name.iter().position(|byte| *byte == b'\t').unwrap_or(name.len());
            name.truncate(end);
        }
        Ok(if name == b"/dev/null" { Name::Nothing } else { Name::Path(name) })
    }

    fn body(&mut self) -> Result<Body, Error> {
        if self.line.starts_with(b"GIT binary patch") {
            self.advance()?;
            let body = self.binary()?.ok_or_else(|| self.corrupt("it has no contents"))?;
            // The way back, which nobody asked for.
            self.binary()?;
            return Ok(Body::Binary(body));
        }
        if self.line.starts_with(b"Binary files ") || self.line.starts_with(b"Files ") {
            self.advance()?;
            return Ok(Body::Withheld);
        }
        let mut hunks = vec![];
        while self.line.starts_with(b"@@ -") {
            hunks.push(self.hunk()?);
        }
        Ok(if hunks.is_empty() { Body::Same } else { Body::Hunks(hunks) })
    }

    fn binary(&mut self) -> Result<Option<Binary>, Error> {
        let text = self.text();
        let (literal, length) = match (text.strip_prefix(b"literal "), text.strip_prefix(b"delta "))
        {
            (Some(length), _) => (true, length),
            (_, Some(length)) => (false, length),
            _ => return Ok(None),
        };
        let length = std::str::from_utf8(length).ok().and_then(|length| length.parse().ok());
        let length = length.ok_or_else(|| self.corrupt("a length is no number"))?;
        let mut lines = vec![];
        self.advance()?;
        while !self.text().is_empty() {
            lines.push(self.text().to_vec());
            self.advance()?;
        }
        self.advance()?;
        let contents = binary::decode(&lines, length);
        let contents = contents.ok_or_else(|| self.corrupt("contents before it are broken"))?;
        Ok(Some(if literal { Binary::Literal(contents) } else { Binary::Delta(contents) }))
    }

    fn hunk(&mut self) -> Result<PatchHunk, Error> {
        let Some((start, mut old_left, mut new_left)) = counts(self.text()) else {
            return Err(self.corrupt("the numbers of lines cannot be read"));
        };
        let mut hunk = PatchHunk { start, old: vec![], new: vec![], leading: 0, trailing: 0 };
        let (mut changed, mut last) = (false, (false, false));
        self.advance()?;
        while old_left > 0 || new_left > 0 || self.line.starts_with(b"\\") {
            let too_few = || self.corrupt("a hunk has not the lines that it promises");
            let (sign, line) = match self.line.split_first() {
                // Some programs take white space off the end of lines.
                Some((b'\n', _)) => (b' ', &self.line[..]),
                Some((sign, line)) => (*sign, line),
                None => return Err(too_few()),
            };
            if sign == b'\\' {
                hunk.drop_end(last);
                self.advance()?;
                continue;
            }
            let (is_old, is_new) = (sign != b'+', sign != b'-');
            let known = matches!(sign, b' ' | b'+' | b'-');
            if !known || is_old && old_left == 0 || is_new && new_left == 0 {
                return Err(too_few());
            }
            let mut line = line.to_vec();
            if !line.ends_with(b"\n") {
                line.push(b'\n');
            }
            old_left -= usize::from(is_old);
            new_left -= usize::from(is_new);
            last = (is_old, is_new);
            hunk.add(line, last, &mut changed);
            self.advance()?;
        }
        Ok(hunk)
    }
}

impl PatchHunk {
    fn add(&mut self, line: Vec<u8>, (is_old, is_new): (bool, bool), changed: &mut bool) {
        if is_old && is_new {
            self.trailing += 1;
            self.leading += usize::from(!*changed);
            self.old.push(line.clone());
            self.new.push(line);
            return;
        }
        *changed = true;
        self.trailing = 0;
        if is_old { self.old.push(line) } else { self.new.push(line) }
    }

    /// The line that came last has no end.
    fn drop_end(&mut self, (is_old, is_new): (bool, bool)) {
        for (lines, affected) in [(&mut self.old, is_old), (&mut self.new, is_new)] {
            if let Some(line) = lines.last_mut().filter(|line| affected && line.ends_with(b"\n")) {
                line.pop();
            }
        }
    }
}

impl Header {
    /// The whole of it; none if no file is named.
    fn finish(self, body: Body) -> Result<Option<FilePatch>, Error> {
        let action = match (self.action, &self.old, &self.new) {
            (Some(action), _, _) => action,
            (None, Some(Name::Nothing), _) => Action::Create,
            (None, _, Some(Name::Nothing)) => Action::Delete,
            _ => Action::Modify,
        };
        let stripped = |name: Option<Name>| match name {
            Some(Name::Path(path)) => Some(strip(&path)),
            _ => None,
        };
        let (old, new) = (stripped(self.old), stripped(self.new));
        let old_path = self.from.or(old).or_else(|| self.both.clone());
        let path = self.to.or(new).or(self.both);
        let (old_path, path) = match action {
            Action::Modify => {
                // Where two names differ the shorter one is meant: the other is a copy beside it.
                let both = old_path.zip(path);
                let meant = both.map(|(old, new)| if old.len() < new.len() { old } else { new });
                (meant.clone(), meant)
            }
            Action::Create => (path.clone(), path),
            Action::Delete => (old_path.clone(), old_path),
            Action::Rename | Action::Copy => (old_path, path),
        };
        let Some((old_path, path)) = old_path.zip(path) else { return Ok(None) };
        for path in [&old_path, &path] {
            if !is_safe(path) {
                return Err(Error::Path(String::from_utf8_lossy(path).into_owned()));
            }
        }
        let (mode, old_object) = (self.mode, self.old_object);
        Ok(Some(FilePatch { action, old_path, path, mode, old_object, body }))
    }
}

/// The path without its first part.
fn strip(path: &[u8]) -> Vec<u8> {
    match path.iter().position(|byte| *byte == b'/') {
        Some(slash) if !path.starts_with(b"/") => path[slash + 1..].to_vec(),
        _ => path.to_vec(),
    }
}

/// Whether a path leads down and nowhere else.
fn is_safe(path: &[u8]) -> bool {
    !path.contains(&0)
        && path.split(|byte| *byte == b'/').all(|name| !matches!(name, b"" | b"." | b".."))
}

/// The path that both names of git's first line have after their first part.
fn both(text: &[u8]) -> Option<Vec<u8>> {
    if text.starts_with(b"\"") {
        let (first, rest) = unquote(text)?;
        let (second, _) = unquote(rest.strip_prefix(b" ")?)?;
        return Some(strip(&first)).filter(|first| *first == strip(&second));
    }
    if let Some(quote) = text.windows(2).position(|pair| pair == b" \"") {
        let (second, _) = unquote(&text[quote + 1..])?;
        return Some(strip(&text[..quote])).filter(|first| *first == strip(&second));
    }
    // A name may hold spaces: the one in the middle is meant.
    let spaces = (0..text.len()).filter(|index| text[*index] == b' ');
    let mut halves = spaces.map(|index| (strip(&text[..index]), strip(&text[index + 1..])));
    halves.find(|(first, second)| first == second).map(|(first, _)| first)
}

/// What a line says that names a source or a target: the action, whether it is the source, and
/// where the name begins.
fn moved(text: &[u8]) -> Option<(Action, bool, usize)> {
    let known: [(&[u8], Action, bool); 4] = [
        (b"rename from ", Action::Rename, true),
        (b"rename to ", Action::Rename, false),
        (b"copy from ", Action::Copy, true),
        (b"copy to ", Action::Copy, false),
    ];
    let found = known.into_iter().find(|(start, _, _)| text.starts_with(start))?;
    Some((found.1, found.2, found.0.len()))
}

/// First old line, number of old lines and of new ones, from `@@ -1,2 +3,4 @@`.
fn counts(text: &[u8]) -> Option<(usize, usize, usize)> {
    let text = std::str::from_utf8(text.split(|byte| *byte == b'@').nth(2)?).ok()?;
    let (old, new) = text.trim().split_once(' ')?;
    let side = |text: &str| -> Option<(usize, usize)> {
        match text.split_once(',') {
            Some((start, count)) => Some((start.parse().ok()?, count.parse().ok()?)),
            None => Some((text.parse().ok()?, 1)),
        }
    };
    let ((start, old), (_, new)) = (side(old.strip_prefix('-')?)?, side(new.strip_prefix('+')?)?);
    Some((start, old, new))
}

#[cfg(test)]
mod tests;
