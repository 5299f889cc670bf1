//! [`Edit`]: one change to a [`Tree`], as data.
//!
//! An edit is part of the identity of the tree it makes, so it holds only what was asked for. What
//! depends on the tree below (an owner's name, a destination that may be a directory) is looked up
//! when the edit is written.

use crate::alteration::Alteration;
use crate::changeset::{Done, PatchConflict, patching};
use crate::directory::Directory;
use crate::file::File;
use crate::owner::{self, OwnerSpec};
use crate::services::Services;
use crate::tree::Tree;
use protocol::{DigestBuilder, Error};
use std::sync::Arc;
use store::{CopyOptions, Editor, Owner, Remove, Snapshot, Store, View};

/// One change to a tree.
pub(crate) enum Edit {
    /// Writes a file; parents are created.
    NewFile {
        /// Where.
        path: String,
        /// What.
        contents: Arc<[u8]>,
        /// Permission bits.
        mode: u32,
        /// Whose.
        owner: OwnerSpec,
    },
    /// Makes a directory; parents are created.
    NewDirectory {
        /// Where.
        path: String,
        /// Permission bits.
        mode: u32,
        /// Whose.
        owner: OwnerSpec,
    },
    /// Copies one file in.
    CopyFile {
        /// From.
        source: File,
        /// To; a directory keeps the source's name in it.
        path: String,
        /// Permission bits instead of the source's.
        mode: Option<u32>,
        /// Whose.
        owner: OwnerSpec,
    },
    /// Copies a directory's contents in.
    CopyDirectory {
        /// From.
        source: Directory,
        /// To.
        path: String,
        /// What of it.
        filter: Filter,
        /// Permission bits instead of the source's.
        mode: Option<u32>,
        /// Whose.
        owner: OwnerSpec,
    },
    /// Makes the whole tree that of a directory, or some of it. The tree is empty before.
    Take {
        /// From.
        source: Directory,
        /// What of it.
        filter: Filter,
    },
    /// Changes something in the tree.
    Alter(Alteration),
    /// Removes files or a directory; patterns are allowed, what is missing is fine.
    Remove {
        /// Which.
        paths: Vec<String>,
        /// Whether directories are meant.
        directory: bool,
    },
    /// Does what was done from one directory to another.
    Changes {
        /// Where.
        path: String,
        /// What comes, each entry at its path.
        layer: Directory,
        /// What comes and goes.
        done: Arc<Done>,
    },
    /// Applies a patch.
    Patch {
        /// Where.
        path: String,
        /// The patch.
        patch: PatchText,
        /// What happens to what does not fit.
        on_conflict: PatchConflict,
    },
}

/// A patch, as text or in a file of any length.
pub(crate) enum PatchText {
    Text(Arc<[u8]>),
    File(File),
}

/// Which entries of a directory are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    /// Patterns of what to take; empty takes all.
    pub include: Vec<String>,
    /// Patterns of what to leave out; these win.
    pub exclude: Vec<String>,
    /// Whether `.gitignore` files in the tree apply.
    pub gitignore: bool,
}

/// An edit whose sources are on disk.
pub(crate) struct Prepared {
    step: Step,
    owner: OwnerSpec,
}

enum Step {
    NewFile { path: String, contents: Arc<[u8]>, mode: u32 },
    NewDirectory { path: String, mode: u32 },
    CopyFile { source: Source, name: String, path: String, mode: Option<u32> },
    CopyDirectory { source: Source, path: String, filter: Filter, mode: Option<u32> },
    Take { source: Source, filter: Filter },
    Alter(Alteration),
    Remove { paths: Vec<String>, directory: bool },
    Changes { path: String, layer: View, done: Arc<Done> },
    Patch { path: String, patch: PatchSource, on_conflict: PatchConflict },
}

enum PatchSource {
    Text(Arc<[u8]>),
    File(Source),
}

struct Source {
    view: View,
    path: String,
}

impl Edit {
    /// Feeds the identity of the edited tree.
    pub(crate) fn digest_into(&self, digest: &mut DigestBuilder) {
        match self {
            Self::NewFile { path, contents, mode, owner } => {
                digest.text("newFile").text(path).bytes(contents).number(u64::from(*mode));
                owner.digest_into(digest);
            }
            Self::NewDirectory { path, mode, owner } => {
                digest.text("newDirectory").text(path).number(u64::from(*mode));
                owner.digest_into(digest);
            }
            Self::CopyFile { source, path, mode, owner } => {
                digest.text("copyFile").digest(&source.known_identity()).text(path);
                digest_mode(digest, *mode);
                owner.digest_into(digest);
            }
            Self::CopyDirectory { source, path, filter, mode, owner } => {
                digest.text("copyDirectory").digest(&source.known_identity()).text(path);
                filter.digest_into(digest);
                digest_mode(digest, *mode);
                owner.digest_into(digest);
            }
            Self::Take { source, filter } => {
                digest.text("take").digest(&source.known_identity());
                filter.digest_into(digest);
            }
            Self::Alter(alteration) => alteration.digest_into(digest),
            Self::Remove { paths, directory } => {
                digest.text("remove").number(u64::from(*directory)).number(paths.len() as u64);
                paths.iter().for_each(|path| {
                    digest.text(path);
                });
            }
            Self::Changes { path, layer, done } => {
                digest.text("changes").text(path).digest(&layer.known_identity());
                done.digest_into(digest);
            }
            Self::Patch { path, patch, on_conflict } => {
                digest.text("patch").text(path).number(*on_conflict as u64);
                match patch {
                    PatchText::Text(text) => digest.bytes(text),
                    PatchText::File(file) => digest.digest(&file.known_identity()),
                };
            }
        }
    }

    /// How deep sources nest unwritten below this edit.
    pub(crate) fn nesting(&self) -> u32 {
        match self {
            Self::CopyFile { source, .. } => source.nesting_as_source(),
            Self::CopyDirectory { source, .. } | Self::Take { source, .. } => {
                source.nesting_as_source()
            }
            Self::Changes { layer, .. } => layer.nesting_as_source(),
            Self::Patch { patch: PatchText::File(file), .. } => file.nesting_as_source(),
            _ => 0,
        }
    }

    /// The tree that the edit takes from.
    pub(crate) fn source(&self) -> Option<&Tree> {
        match self {
            Self::CopyFile { source, .. } => Some(source.tree()),
            Self::CopyDirectory { source, .. } | Self::Take { source, .. } => Some(source.tree()),
            Self::Changes { layer, .. } => Some(layer.tree()),
            Self::Patch { patch: PatchText::File(file), .. } => Some(file.tree()),
            _ => None,
        }
    }

    /// What was done, if it may write many files, so that the result is worth keeping.
    pub(crate) fn kept_as(&self) -> Option<String> {
        match self {
            Self::CopyDirectory { path, .. } => Some(format!("directory copied to {path}")),
            Self::Take { .. } => Some("directory filtered".to_owned()),
            Self::Changes { .. } => Some("directory with changes".to_owned()),
            Self::Patch { .. } => Some("directory with a patch".to_owned()),
            Self::Alter(alteration) => alteration.kept_as(),
            _ => None,
        }
    }

    /// Writes the sources, so that [`Prepared::apply_all`] only has to copy.
    pub(crate) async fn prepare(&self, services: &Services) -> Result<Prepared, Error> {
        let (step, owner) = match self {
            Self::NewFile { path, contents, mode, owner } => (
                Step::NewFile { path: path.clone(), contents: contents.clone(), mode: *mode },
                owner.clone(),
            ),
            Self::NewDirectory { path, mode, owner } => {
                (Step::NewDirectory { path: path.clone(), mode: *mode }, owner.clone())
            }
            Self::CopyFile { source, path, mode, owner } => {
                let snapshot = source.snapshot(services).await?;
                let name = source.name().to_owned();
                let source = Source::new(services, &snapshot, source.path());
                (Step::CopyFile { source, name, path: path.clone(), mode: *mode }, owner.clone())
            }
            Self::CopyDirectory { source, path, filter, mode, owner } => {
                let snapshot = source.snapshot(services).await?;
                let source = Source::new(services, &snapshot, source.path());
                let (path, filter) = (path.clone(), filter.clone());
                (Step::CopyDirectory { source, path, filter, mode: *mode }, owner.clone())
            }
            Self::Take { source, filter } => {
                let snapshot = source.snapshot(services).await?;
                let source = Source::new(services, &snapshot, source.path());
                (Step::Take { source, filter: filter.clone() }, OwnerSpec::Source)
            }
            Self::Alter(alteration) => (Step::Alter(alteration.clone()), alteration.owner()),
            Self::Remove { paths, directory } => {
                (Step::Remove { paths: paths.clone(), directory: *directory }, OwnerSpec::Root)
            }
            Self::Changes { path, layer, done } => {
                let layer = services.store.view(&layer.snapshot(services).await?);
                let (path, done) = (path.clone(), Arc::clone(done));
                (Step::Changes { path, layer, done }, OwnerSpec::Root)
            }
            Self::Patch { path, patch, on_conflict } => {
                let patch = match patch {
                    PatchText::Text(text) => PatchSource::Text(text.clone()),
                    PatchText::File(file) => {
                        let snapshot = file.snapshot(services).await?;
                        PatchSource::File(Source::new(services, &snapshot, file.path()))
                    }
                };
                let (path, on_conflict) = (path.clone(), *on_conflict);
                (Step::Patch { path, patch, on_conflict }, OwnerSpec::Root)
            }
        };
        Ok(Prepared { step, owner })
    }
}

impl Prepared {
    /// Writes edits on top of a snapshot, in as few layers as can be.
    pub(crate) fn apply_all(
        edits: &[Self],
        base: Snapshot,
        store: &Store,
    ) -> Result<Snapshot, Error> {
        let mut base = base;
        let mut open: Option<Editor> = None;
        for edit in edits {
            // Names are looked up in the tree as it is before this edit.
            if edit.owner.is_by_name()
                && let Some(editor) = open.take()
            {
                base = editor.commit()?;
            }
            let view = store.view(&base);
            let owner = edit.owner.resolve(&|path| owner::read_small_file(&view, path))?;
            let mut editor = match open.take() {
                Some(editor) => editor,
                None => store.edit(&base)?,
            };
            edit.apply(&mut editor, owner)?;
            open = Some(editor);
        }
        match open {
            Some(editor) => Ok(editor.commit()?),
            None => Ok(base),
        }
    }

    /// Writes edits on top of a snapshot, in one layer. Names of owners are those of the snapshot.
    pub(crate) fn apply_as_layer(
        edits: &[Self],
        base: &Snapshot,
        store: &Store,
    ) -> Result<Snapshot, Error> {
        let view = store.view(base);
        let mut editor = store.edit(base)?;
        for edit in edits {
            let owner = edit.owner.resolve(&|path| owner::read_small_file(&view, path))?;
            edit.apply(&mut editor, owner)?;
        }
        Ok(editor.commit()?)
    }

    fn apply(&self, editor: &mut Editor, owner: Option<Owner>) -> Result<(), Error> {
        match &self.step {
            Step::NewFile { path, contents, mode } => {
                editor.new_file(path, contents, *mode, owner.unwrap_or_default())?;
            }
            Step::NewDirectory { path, mode } => {
                editor.new_directory(path, *mode, owner.unwrap_or_default())?;
            }
            Step::CopyFile { source, name, path, mode } => {
                let (mode, name) = (*mode, Some(name.clone()));
                let options = CopyOptions { mode, owner, name, ..CopyOptions::default() };
                editor.copy_file((&source.view, &source.path), path, &options)?;
            }
            Step::CopyDirectory { source, path, filter, mode } => {
                let options = CopyOptions { mode: *mode, owner, ..filter.options() };
                editor.copy_tree((&source.view, &source.path), path, &options)?;
            }
            Step::Take { source, filter } => {
                editor.take((&source.view, &source.path), &filter.options())?;
            }
            Step::Alter(alteration) => alteration.apply(editor, owner.unwrap_or_default())?,
            Step::Remove { paths, directory } => {
                let kind = if *directory { Remove::Directory } else { Remove::File };
                paths.iter().try_for_each(|path| editor.remove(path, kind))?;
            }
            Step::Changes { path, layer, done } => {
                let base = editor.directory_at(path)?;
                done.apply(editor, &base, layer)?;
            }
            Step::Patch { path, patch, on_conflict } => match patch {
                PatchSource::Text(text) => {
                    patching::apply(editor, path, &mut &text[..], *on_conflict)?;
                }
                PatchSource::File(source) => {
                    let file = source.view.read(&source.path).map_err(store::Error::from)?;
                    let mut text = std::io::BufReader::with_capacity(1 << 16, file);
                    patching::apply(editor, path, &mut text, *on_conflict)?;
                }
            },
        }
        Ok(())
    }
}

impl Source {
    fn new(services: &Services, snapshot: &Snapshot, path: &str) -> Self {
        Self { view: services.store.view(snapshot), path: path.to_owned() }
    }
}

impl Filter {
    /// A copy of what it chooses, otherwise unchanged.
    fn options(&self) -> CopyOptions {
        CopyOptions {
            include: self.include.clone(),
            exclude: self.exclude.clone(),
            gitignore: self.gitignore,
            ..CopyOptions::default()
        }
    }

    fn digest_into(&self, digest: &mut DigestBuilder) {
        for patterns in [&self.include, &self.exclude] {
            digest.number(patterns.len() as u64);
            patterns.iter().for_each(|pattern| {
                digest.text(pattern);
            });
        }
        digest.number(u64::from(self.gitignore));
    }
}

fn digest_mode(digest: &mut DigestBuilder, mode: Option<u32>) {
    digest.number(mode.map_or(u64::MAX, u64::from));
}
