//! A patch, applied to a directory of an edited tree.
//!
//! As git has it, what a patch says of a file is about the file as it was before the patch: two files
//! may trade places. So what goes, goes at the end, and what is overwritten on the way is kept until
//! then. What does not fit is collected, and all of it is said at once.

use super::changes::{join, parent};
use graph::Enum;
use patch::{Action, Body, FilePatch, Labels, PatchHunk, Rejected};
use protocol::Error;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::io::BufRead;
use store::{Editor, Kind, Meta, Metadata, Owner};

/// What stands at the marks of a conflict.
const LABELS: Labels<'static> = Labels { ours: "workspace", theirs: "patch" };
/// Most problems that one message names.
const MOST_SHOWN: usize = 20;
/// Kind and mode as git says them.
const LINK: u32 = 0o120_000;
const FILE: u32 = 0o100_000;
const KINDS: u32 = 0o170_000;

/// What happens when a patch does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Enum)]
#[graph(name = "PatchConflict")]
pub(crate) enum PatchConflict {
    /// It is an error, and nothing is applied.
    Fail,
    /// What does not fit stands between marks beside what is there; everything else is applied.
    LeaveConflictMarkers,
}

/// Applies a patch to the directory at a path.
pub(crate) fn apply(
    editor: &mut Editor,
    path: &str,
    text: &mut dyn BufRead,
    on_conflict: PatchConflict,
) -> Result<(), Error> {
    let base = editor.directory_at(path)?;
    let mut applying = Applying {
        editor,
        base,
        on_conflict,
        gone: BTreeSet::new(),
        written: HashSet::new(),
        overwritten: HashMap::new(),
        waiting: vec![],
        problems: vec![],
    };
    let mut reader = patch::Reader::new(text);
    while let Some(file) = reader.next_patch().map_err(unreadable)? {
        applying.file(file)?;
    }
    applying.finish()
}

fn unreadable(error: patch::Error) -> Error {
    match error {
        patch::Error::Io(error) => store::Error::from_read("the patch")(error).into(),
        other => Error::user(other.to_string()),
    }
}

/// A file or a link with what is in it.
#[derive(Clone)]
struct Original {
    meta: Meta,
    kind: Kind,
    contents: Vec<u8>,
}

/// Something that is to be written.
struct New {
    path: Vec<u8>,
    is_link: bool,
    meta: Meta,
    contents: Vec<u8>,
}

struct Applying<'a> {
    editor: &'a mut Editor,
    /// Exact path of the directory.
    base: Vec<u8>,
    on_conflict: PatchConflict,
    /// What the patch removes or gives another name.
    gone: BTreeSet<Vec<u8>>,
    written: HashSet<Vec<u8>>,
    /// What was where the patch puts something new.
    overwritten: HashMap<Vec<u8>, Original>,
    /// What can be written only when something else is gone.
    waiting: Vec<New>,
    problems: Vec<String>,
}

impl Applying<'_> {
    fn file(&mut self, file: FilePatch) -> Result<(), Error> {
        let is_fresh = file.action == Action::Create;
        let original = if is_fresh { None } else { self.original(&file)? };
        if original.is_none() && !is_fresh && !self.may_be_missing(&file) {
            self.problem(&file.old_path, "no such file");
            return Ok(());
        }
        let old = original.as_ref().map_or(&[][..], |original| &original.contents);
        let Some((contents, whole)) = self.contents(&file, old) else { return Ok(()) };
        if file.action == Action::Delete && whole {
            if contents.is_empty() {
                self.gone.insert(file.old_path);
            } else {
                self.problem(&file.old_path, "there is more in it than the patch removes");
            }
            return Ok(());
        }
        if file.action == Action::Rename && whole {
            self.gone.insert(file.old_path.clone());
        }
        let Some(new) = self.new_entry(&file, original.as_ref(), contents) else { return Ok(()) };
        self.put(new, file.action)
    }

    /// What the patch is about: the file as it was before it.
    fn original(&self, file: &FilePatch) -> Result<Option<Original>, Error> {
        let kept = self.overwritten.get(&file.old_path);
        match kept.filter(|_| file.action != Action::Modify) {
            Some(kept) => Ok(Some(kept.clone())),
            None => self.read(&file.old_path),
        }
    }

    fn read(&self, path: &[u8]) -> Result<Option<Original>, Error> {
        let place = join(&self.base, path);
        let Some(found) = self.editor.entry_at(&place)? else { return Ok(None) };
        if !matches!(found.kind, Kind::File | Kind::Symlink) {
            return Ok(None);
        }
        let contents = self.editor.contents_at(&place)?.unwrap_or_default();
        Ok(Some(Original { meta: meta_of(&found), kind: found.kind, contents }))
    }

    /// Whether a missing file can be told by marks.
    fn may_be_missing(&self, file: &FilePatch) -> bool {
        let marks = self.on_conflict == PatchConflict::LeaveConflictMarkers;
        marks && file.action == Action::Modify && matches!(file.body, Body::Hunks(_))
    }

    /// The new contents, and whether all of the patch is in them; none if that is a problem.
    fn contents(&mut self, file: &FilePatch, old: &[u8]) -> Option<(Vec<u8>, bool)> {
        match &file.body {
            Body::Same if file.action == Action::Delete => Some((vec![], true)),
            Body::Same => Some((old.to_vec(), true)),
            Body::Hunks(hunks) => self.with_hunks(file, old, hunks),
            Body::Binary(binary) => {
                let named = file.old_object.as_ref();
                if named.is_some_and(|name| *name != patch::object_name(old)) {
                    self.problem(&file.old_path, "its contents are not those the patch is for");
                    return None;
                }
                let applied = binary.clone().apply(old);
                if applied.is_err() {
                    self.problem(&file.old_path, "the patch for its contents does not fit");
                }
                applied.ok().map(|contents| (contents, true))
            }
            Body::Withheld => {
                self.problem(&file.path, "its contents are not in the patch");
                None
            }
        }
    }

    fn with_hunks(
        &mut self,
        file: &FilePatch,
        old: &[u8],
        hunks: &[PatchHunk],
    ) -> Option<(Vec<u8>, bool)> {
        match patch::apply(old, hunks) {
            Ok(contents) => Some((contents, true)),
            Err(Rejected(rejected)) if self.on_conflict == PatchConflict::Fail => {
                let numbers: Vec<String> = rejected.iter().map(usize::to_string).collect();
                let (s, do_not) = if rejected.len() == 1 { ("", "does") } else { ("s", "do") };
                let why = format!("hunk{s} {} {do_not} not fit", numbers.join(", "));
                self.problem(&file.old_path, &why);
                None
            }
            Err(_) => {
                let applied = patch::apply_leaving_marks(old, hunks, &LABELS);
                Some((applied.contents, applied.conflicts == 0))
            }
        }
    }

    /// What is to be written; none if it is something that a directory cannot have.
    fn new_entry(
        &mut self,
        file: &FilePatch,
        original: Option<&Original>,
        contents: Vec<u8>,
    ) -> Option<New> {
        let was_link = original.is_some_and(|original| original.kind == Kind::Symlink);
        let is_link = match file.mode.map(|mode| mode & KINDS) {
            None => was_link,
            Some(LINK) => true,
            Some(FILE) => false,
            Some(_) => {
                self.problem(&file.path, "it is neither a file nor a link in the patch");
                return None;
            }
        };
        let plain = || Editor::new_meta(0o644, Owner::default());
        let mut meta = original.filter(|_| !was_link).map_or_else(plain, |original| original.meta);
        meta.mtime = plain().mtime;
        if let Some(mode) = file.mode {
            meta.mode = match mode & 0o100 != 0 {
                // Who may read it may run it.
                true => meta.mode | (meta.mode & 0o444) >> 2,
                false => meta.mode & !0o111,
            };
        }
        let path = if file.action == Action::Delete { &file.old_path } else { &file.path };
        Some(New { path: path.clone(), is_link, meta, contents })
    }

    fn put(&mut self, new: New, action: Action) -> Result<(), Error> {
        let place = join(&self.base, &new.path);
        let there = self.editor.entry_at(&place)?;
        let in_the_way = there.is_some_and(|there| there.is_directory());
        if in_the_way || self.editor.is_blocked(&place)? {
            self.waiting.push(new);
            return Ok(());
        }
        let is_new = matches!(action, Action::Create | Action::Rename | Action::Copy);
        if is_new
            && !self.written.contains(&new.path)
            && let Some(original) = self.read(&new.path)?
        {
            self.overwritten.insert(new.path.clone(), original);
        }
        self.write(new)
    }

    fn write(&mut self, new: New) -> Result<(), Error> {
        let place = join(&self.base, &new.path);
        match new.is_link {
            true => self.editor.put_link(&place, &new.contents, &new.meta)?,
            false => self.editor.put_file(&place, &new.contents, &new.meta)?,
        }
        self.written.insert(new.path);
        Ok(())
    }

    fn finish(mut self) -> Result<(), Error> {
        for path in self.gone.iter().filter(|path| !self.written.contains(*path)) {
            let place = join(&self.base, path);
            self.editor.remove_entry(&place)?;
            let mut above = parent(&place);
            while above.len() > self.base.len() {
                self.editor.remove_empty_directory(above)?;
                above = parent(above);
            }
        }
        for new in std::mem::take(&mut self.waiting) {
            let place = join(&self.base, &new.path);
            if self.editor.is_blocked(&place)? {
                self.problem(&new.path, "it is beyond a symbolic link or a file");
            } else if self.editor.entry_at(&place)?.is_some_and(|there| there.is_directory()) {
                self.problem(&new.path, "it is a directory");
            } else {
                self.write(new)?;
            }
        }
        for (path, original) in std::mem::take(&mut self.overwritten) {
            if !self.gone.contains(&path) {
                self.already_there(&path, &original)?;
            }
        }
        self.result()
    }

    /// Something was put where something else was that the patch did not take away.
    fn already_there(&mut self, path: &[u8], original: &Original) -> Result<(), Error> {
        let place = join(&self.base, path);
        let new = self.editor.contents_at(&place)?.unwrap_or_default();
        let is_text = |text: &[u8]| original.kind == Kind::File && !patch::is_binary(text);
        let marks = self.on_conflict == PatchConflict::LeaveConflictMarkers;
        if !marks || !is_text(&new) || !is_text(&original.contents) {
            self.problem(path, "already exists");
            return Ok(());
        }
        let merged = patch::merge(b"", &original.contents, &new, &LABELS);
        let (patch::Merged::Clean(contents) | patch::Merged::Conflicts(contents)) = merged;
        Ok(self.editor.put_file(&place, &contents, &original.meta)?)
    }

    fn problem(&mut self, path: &[u8], what: &str) {
        self.problems.push(format!("`{}`: {what}", String::from_utf8_lossy(path)));
    }

    fn result(mut self) -> Result<(), Error> {
        if self.problems.is_empty() {
            return Ok(());
        }
        self.problems.sort();
        let more = self.problems.len().saturating_sub(MOST_SHOWN);
        self.problems.truncate(MOST_SHOWN);
        let mut message = format!("patch does not apply: {}", self.problems.join("; "));
        if more > 0 {
            message.push_str(&format!("; and {more} more"));
        }
        let error = Error::user(message);
        Err(match self.on_conflict {
            PatchConflict::Fail => error.with_hint(
                "`onConflict: LEAVE_CONFLICT_MARKERS` leaves lines that do not fit between marks",
            ),
            PatchConflict::LeaveConflictMarkers => error,
        })
    }
}

fn meta_of(metadata: &Metadata) -> Meta {
    Meta { mode: metadata.mode, uid: metadata.uid, gid: metadata.gid, mtime: metadata.mtime }
}
