//! `COPY` and `ADD`: files from the context, from stages, images, archives and the Dockerfile itself.
//!
//! All that one instruction copies becomes one layer. A copied directory lends its contents, not itself; a
//! copied file goes into a destination that is a directory. Links that are named are followed, links that are
//! met on the way are copied as they are.

use super::archive;
use super::build::Build;
use super::remote::Remote;
use super::sources::{Named, filtered, named};
use super::stage::{StageState, owner};
use crate::directory::Directory;
use crate::edit::{Edit, Filter};
use crate::file::File;
use crate::owner::OwnerSpec;
use crate::services::Services;
use crate::tree::Tree;
use dockerfile::{Copy, Heredoc, PathPart, PathPattern, Source};
use graph::Context;
use protocol::{Error, ErrorKind};
use std::sync::Arc;
use store::Kind;

/// Permission bits of files that stand in a Dockerfile, and of directories that are made.
const FILE_MODE: u32 = 0o644;
const DIRECTORY_MODE: u32 = 0o755;

/// Where and how things are copied.
pub(super) struct Target {
    /// From the root, without a slash before; with one behind where it is a directory for sure.
    path: String,
    /// Whose everything will be; files of stages and images keep their owners.
    owner: OwnerSpec,
    mode: Option<u32>,
    exclude: Vec<String>,
}

/// `COPY`
pub(super) async fn copy(
    state: &mut StageState,
    build: &Arc<Build>,
    copy: &Copy,
    cx: &Context,
) -> Result<(), Error> {
    let services = cx.get::<Services>()?;
    let target = target(state, build, copy, "COPY")?;
    let mut edits = vec![];
    for source in &copy.sources {
        match source {
            Source::Heredoc(heredoc) => {
                edits.push(written(state, build, heredoc, (&target, services)).await?);
            }
            Source::Path(path) => {
                let path = state.word(build, path)?;
                let tree = build.files(copy.from.as_deref(), state.index).await?;
                if copy.parents {
                    edits.extend(with_parents(&tree, &path, (&target, services)).await?);
                    continue;
                }
                let in_context = copy.from.is_none();
                for found in found(build, &tree, &path, (in_context, services)).await? {
                    edits.extend(copied(&tree, &found, (&target, services)).await?);
                }
            }
        }
    }
    finish(state, edits, services).await
}

/// `ADD`
pub(super) async fn add(
    state: &mut StageState,
    build: &Arc<Build>,
    copy: &Copy,
    cx: &Context,
) -> Result<(), Error> {
    let services = cx.get::<Services>()?;
    let target = target(state, build, copy, "ADD")?;
    let mut edits = vec![];
    for source in &copy.sources {
        let path = match source {
            Source::Heredoc(heredoc) => {
                edits.push(written(state, build, heredoc, (&target, services)).await?);
                continue;
            }
            Source::Path(path) => state.word(build, path)?,
        };
        if let Some(remote) = Remote::of(&path) {
            edits.extend(remote.copied((copy, &target), build, cx).await?);
            continue;
        }
        let tree = build.files(None, state.index).await?;
        for found in found(build, &tree, &path, (true, services)).await? {
            let unpack = copy.unpack != Some(false) && found.kind == Kind::File;
            let archive = match unpack {
                true => {
                    let file = File::below(tree.clone(), &found.path).as_source(services).await?;
                    archive::unpacked(&file, cx).await?
                }
                false => None,
            };
            match archive {
                Some(archive) => edits.extend(target.unpacked(archive)),
                None => edits.extend(copied(&tree, &found, (&target, services)).await?),
            }
        }
    }
    finish(state, edits, services).await
}

async fn finish(
    state: &mut StageState,
    edits: Vec<Edit>,
    services: &Services,
) -> Result<(), Error> {
    if !edits.is_empty() {
        let tree = state.container.root().with_layer(edits, services).await?;
        state.container.set_root(tree);
    }
    Ok(())
}

fn target(
    state: &StageState,
    build: &Build,
    copy: &Copy,
    instruction: &str,
) -> Result<Target, Error> {
    let typed = state.word(build, &copy.destination)?;
    let into = typed.is_empty() || typed == "." || typed.ends_with('/') || typed.ends_with("/.");
    if copy.sources.len() > 1 && !into {
        return Err(Error::user(format!(
            "when using {instruction} with more than one source file, the destination must be a directory and end with a /"
        )));
    }
    let tidy = state.container.path_from_workdir(&typed);
    let mut path = tidy.trim_start_matches('/').to_owned();
    if into && !path.is_empty() {
        path.push('/');
    }
    let chown = copy.chown.as_deref().map(|text| state.word(build, text)).transpose()?;
    let chmod = copy.chmod.as_deref().map(|text| state.word(build, text)).transpose()?;
    let exclude = copy.exclude.iter().map(|pattern| state.word(build, pattern));
    Ok(Target {
        path,
        owner: chown.map_or(OwnerSpec::Source, |text| owner(&text)),
        mode: chmod.as_deref().map(permissions).transpose()?,
        exclude: exclude.collect::<Result<_, _>>()?,
    })
}

fn permissions(text: &str) -> Result<u32, Error> {
    let bits = u32::from_str_radix(text, 8).ok().filter(|bits| *bits <= 0o7777);
    bits.ok_or_else(|| {
        Error::user(format!("invalid chmod parameter: '{text}'"))
            .with_hint("write permission bits as an octal number between 0 and 07777")
    })
}

/// What a source names; an error where that is nothing, unless it is a pattern.
async fn found(
    build: &Build,
    tree: &Tree,
    path: &str,
    (in_context, services): (bool, &Services),
) -> Result<Vec<Named>, Error> {
    let pattern = PathPattern::new(path).map_err(|error| Error::user(error.message))?;
    let literal = !pattern.is_pattern();
    match named(tree, pattern, services).await {
        Err(error) if literal && error.kind == ErrorKind::User => {
            let missing = Error::user(format!("\"{path}\": not found: no such file or directory"));
            Err(match in_context && build.context.hides(path, services).await {
                true => missing.with_hint("the ignore file of the build context hides it"),
                false => missing,
            })
        }
        other => other,
    }
}

/// The edits that copy one entry.
async fn copied(
    tree: &Tree,
    found: &Named,
    (target, services): (&Target, &Services),
) -> Result<Vec<Edit>, Error> {
    match found.kind {
        Kind::Directory => {
            directory_for(&Directory::below(tree.clone(), &found.path), (target, services)).await
        }
        Kind::File if target.excludes(&found.path)? => Ok(vec![]),
        Kind::File => {
            let source = File::below(tree.clone(), &found.path).as_source(services).await?;
            Ok(vec![target.file(source)])
        }
        _ => Err(Error::user(format!("\"{}\" is neither a file nor a directory", found.path))),
    }
}

/// The edits that copy what is in a directory.
pub(super) async fn directory_for(
    directory: &Directory,
    (target, services): (&Target, &Services),
) -> Result<Vec<Edit>, Error> {
    let source = match target.exclude.is_empty() {
        true => directory.as_source(services).await?,
        false => {
            let filter = Filter { exclude: target.exclude.clone(), ..Filter::default() };
            let part = filtered(directory, filter, services).await?;
            Directory::below(part.as_source(services).await?, "")
        }
    };
    Ok(target.contents_of(source, target.owner.clone(), target.mode))
}

/// A source that keeps the directories above it, from the root or from `/./` on.
async fn with_parents(
    tree: &Tree,
    path: &str,
    (target, services): (&Target, &Services),
) -> Result<Vec<Edit>, Error> {
    let (above, rest) = path.split_once("/./").unwrap_or(("", path));
    let literal = PathPattern::new(path).map_err(|error| Error::user(error.message))?;
    if !literal.is_pattern() {
        named(tree, literal, services).await?;
    }
    let include = vec![rest.trim_start_matches('/').to_owned()];
    let exclude = target.exclude.clone();
    let filter = Filter { include, exclude, ..Filter::default() };
    let directory = Directory::below(tree.clone(), above.trim_start_matches('/'));
    let part = filtered(&directory, filter, services).await?;
    let source = Directory::below(part.as_source(services).await?, "");
    Ok(target.contents_of(source, target.owner.clone(), target.mode))
}

/// A file that stands in the Dockerfile itself.
async fn written(
    state: &StageState,
    build: &Build,
    heredoc: &Heredoc,
    (target, services): (&Target, &Services),
) -> Result<Edit, Error> {
    let text = heredoc.contents();
    let text = match heredoc.expand {
        true => state.expand(build, |expander| expander.text(&text))?,
        false => text,
    };
    let contents: Arc<[u8]> = text.into_bytes().into();
    let mode = target.mode.unwrap_or(FILE_MODE);
    if target.path.ends_with('/') {
        let path = format!("{}{}", target.path, heredoc.name);
        return Ok(Edit::NewFile { path, contents, mode, owner: target.owner.clone() });
    }
    // The destination may be a directory that is there: a copy finds out.
    let (path, owner) = (heredoc.name.clone(), OwnerSpec::Root);
    let alone = Edit::NewFile { path, contents, mode, owner };
    let tree = Tree::empty().edited(alone, services).await?;
    let source = File::below(tree, &heredoc.name).as_source(services).await?;
    Ok(target.file(source))
}

impl Target {
    /// Whether a file that is copied by its own name is an exception by that name.
    fn excludes(&self, path: &str) -> Result<bool, Error> {
        let name = crate::paths::name(path);
        for pattern in &self.exclude {
            let pattern = PathPattern::new(pattern.trim_start_matches("**/"))
                .map_err(|error| Error::user(error.message))?;
            let matches = match pattern.parts() {
                [PathPart::Name(only)] => only == name,
                [PathPart::Pattern(only)] => only.is_match(name),
                _ => false,
            };
            if matches {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What is in an archive keeps its owners.
    pub(super) fn unpacked(&self, archive: Tree) -> Vec<Edit> {
        self.contents_of(Directory::below(archive, ""), OwnerSpec::Source, None)
    }

    pub(super) fn file(&self, source: File) -> Edit {
        let (path, mode, owner) = (self.path.clone(), self.mode, self.owner.clone());
        Edit::CopyFile { source, path, mode, owner }
    }

    /// The destination is made if it is missing, and then filled.
    fn contents_of(&self, source: Directory, owner: OwnerSpec, mode: Option<u32>) -> Vec<Edit> {
        let path = self.path.trim_end_matches('/').to_owned();
        let made = self.owner.clone();
        vec![
            Edit::NewDirectory { path: path.clone(), mode: DIRECTORY_MODE, owner: made },
            Edit::CopyDirectory { source, path, filter: Filter::default(), mode, owner },
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permission_bits_are_octal() {
        assert_eq!(permissions("755").unwrap(), 0o755);
        assert_eq!(permissions("01777").unwrap(), 0o1777);
        for text in ["", "888", "u+x", "77777"] {
            assert!(permissions(text).is_err(), "{text}");
        }
    }
}
