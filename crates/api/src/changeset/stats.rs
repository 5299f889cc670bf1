//! `Changeset.diffStats`: what was changed, file by file, with numbers of lines.

use super::changes::{Change, parent};
use super::renames::{self, Candidate};
use super::{Changeset, Views};
use crate::services::Services;
use graph::{Args, Builder, Context, Enum, Object, Op};
use patch::Fingerprint;
use protocol::{Digest, Error};
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use std::collections::HashSet;
use store::{Kind, Metadata, View};

/// Longest file whose lines are looked at. Longer ones are dealt with as a whole.
pub(super) const LONGEST_TEXT: u64 = 64 << 20;
/// Longest file that is compared with others to find out that it was renamed and changed.
const LONGEST_RENAMED: u64 = 1 << 20;

pub(super) fn install(builder: &mut Builder) {
    builder
        .install::<DiffStats>()
        .install::<Path>()
        .install::<OldPath>()
        .install::<StatKind>()
        .install::<AddedLines>()
        .install::<RemovedLines>();
}

/// What became of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Enum)]
#[graph(name = "DiffStatKind")]
pub(crate) enum DiffStatKind {
    /// It is new.
    Added,
    /// It is there before and after, and differs.
    Modified,
    /// It is gone.
    Removed,
    /// It was under another path before, and may differ.
    Renamed,
}

/// What became of one file, in numbers.
#[derive(Clone, Debug)]
pub(crate) struct DiffStat {
    pub(super) kind: DiffStatKind,
    pub(super) path: Vec<u8>,
    pub(super) old_path: Option<Vec<u8>>,
    /// Whether it is a directory in which nothing is.
    is_directory: bool,
    added: u64,
    removed: u64,
}

impl Object for DiffStat {
    const TYPE: &'static str = "DiffStat";
    const DESCRIPTION: &'static str = "What became of one file, with numbers of lines.";
}

/// What became of each file, sorted by path, with numbers of lines. A directory is listed only if
/// nothing is in it. A removed file and a new one with the same or nearly the same contents are one
/// that was renamed.
#[derive(Args)]
struct DiffStats {}

impl Op for DiffStats {
    type Parent = Changeset;
    type Output = Vec<DiffStat>;
    const NAME: &'static str = "diffStats";

    async fn run(&self, changeset: &Changeset, cx: &Context) -> Result<Vec<DiffStat>, Error> {
        changeset.stats(cx.get::<Services>()?).await
    }
}

/// Declares a field of `DiffStat`.
macro_rules! field {
    ($op:ident, $name:literal -> $output:ty, $doc:literal, |$stat:ident| $value:expr) => {
        #[doc = $doc]
        #[derive(Args)]
        struct $op {}

        impl Op for $op {
            type Parent = DiffStat;
            type Output = $output;
            const NAME: &'static str = $name;

            async fn run(&self, $stat: &DiffStat, _: &Context) -> Result<$output, Error> {
                Ok($value)
            }
        }
    };
}

field!(Path, "path" -> String, "Where it is, or was if it is gone; that of a directory ends with a slash.",
    |stat| stat.name());
field!(OldPath, "oldPath" -> Option<String>, "Where it was, if it was renamed.",
    |stat| stat.old_path.as_deref().map(|path| String::from_utf8_lossy(path).into_owned()));
field!(StatKind, "kind" -> DiffStatKind, "What became of it.", |stat| stat.kind);
field!(AddedLines, "addedLines" -> i64, "New lines; 0 for what is no text.",
    |stat| stat.added as i64);
field!(RemovedLines, "removedLines" -> i64, "Lines that are gone; 0 for what is no text.",
    |stat| stat.removed as i64);

impl DiffStat {
    fn name(&self) -> String {
        let slash = if self.is_directory { "/" } else { "" };
        format!("{}{slash}", String::from_utf8_lossy(&self.path))
    }
}

impl Changeset {
    pub(super) async fn stats(&self, services: &Services) -> Result<Vec<DiffStat>, Error> {
        let changes = self.changes(services).await?;
        let views = self.views(services).await?;
        services.blocking(move || count(&changes, &views)).await
    }
}

/// What a file that came or went is.
struct One {
    candidate: Candidate,
    lines: u64,
}

fn count(changes: &[Change], views: &Views) -> Result<Vec<DiffStat>, store::Error> {
    let holders: HashSet<&[u8]> = changes.iter().map(|change| parent(&change.path)).collect();
    let is_listed = |change: &&Change, metadata: &Metadata| {
        !metadata.is_directory() || !holders.contains(change.path.as_slice())
    };
    let told = |change: &&Change, removed: bool| match removed {
        true => change.told().removed && change.before.is_some_and(|one| is_listed(change, &one)),
        false => change.told().added && change.after.is_some_and(|one| is_listed(change, &one)),
    };
    let gone: Vec<&Change> = changes.iter().filter(|change| told(change, true)).collect();
    let came: Vec<&Change> = changes.iter().filter(|change| told(change, false)).collect();
    let both: Vec<&Change> = changes.iter().filter(|change| change.told().modified).collect();
    let compares = !gone.is_empty() && !came.is_empty();
    let look = |view: &View, changes: &[&Change], old: bool| -> Result<Vec<One>, store::Error> {
        let one = |change: &&Change| {
            let metadata = if old { change.before } else { change.after };
            One::of(view, &change.path, metadata.as_ref(), compares)
        };
        changes.par_iter().map(one).collect()
    };
    let (gone_files, came_files) =
        (look(&views.before, &gone, true)?, look(&views.after, &came, false)?);
    let mut stats = modified(&both, views)?;
    add_others(&mut stats, (&gone, gone_files), (&came, came_files), views)?;
    stats.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(stats)
}

fn modified(both: &[&Change], views: &Views) -> Result<Vec<DiffStat>, store::Error> {
    let stat = |change: &&Change| {
        let (added, removed) = lines_between(views, &change.path, change)?;
        Ok(DiffStat {
            kind: DiffStatKind::Modified,
            path: change.path.clone(),
            old_path: None,
            is_directory: false,
            added,
            removed,
        })
    };
    both.par_iter().map(stat).collect()
}

/// Adds what came, went or was renamed.
fn add_others(
    stats: &mut Vec<DiffStat>,
    (gone, gone_files): (&[&Change], Vec<One>),
    (came, came_files): (&[&Change], Vec<One>),
    views: &Views,
) -> Result<(), store::Error> {
    // Only files are renamed: of anything else there is nothing to tell it by.
    let is_file = |metadata: Option<Metadata>| metadata.is_some_and(|one| one.is_file());
    let old_indexes: Vec<usize> =
        (0..gone.len()).filter(|index| is_file(gone[*index].before)).collect();
    let new_indexes: Vec<usize> =
        (0..came.len()).filter(|index| is_file(came[*index].after)).collect();
    let old: Vec<_> = old_indexes.iter().map(|index| &gone_files[*index].candidate).collect();
    let new: Vec<_> = new_indexes.iter().map(|index| &came_files[*index].candidate).collect();
    let found = renames::find(&old, &new);
    let mut renamed = HashSet::new();
    for (index, one) in came_files.iter().enumerate() {
        let was = new_indexes.binary_search(&index).ok().and_then(|at| found.get(&at));
        let mut stat = DiffStat {
            kind: DiffStatKind::Added,
            path: came[index].path.clone(),
            old_path: None,
            is_directory: came[index].after.is_some_and(|one| one.is_directory()),
            added: one.lines,
            removed: 0,
        };
        if let Some(was) = was.map(|at| old_indexes[*at]) {
            renamed.insert(was);
            stat.kind = DiffStatKind::Renamed;
            stat.old_path = Some(gone[was].path.clone());
            (stat.added, stat.removed) =
                match one.candidate.digest == gone_files[was].candidate.digest {
                    true => (0, 0),
                    false => {
                        let change = Change {
                            path: came[index].path.clone(),
                            before: gone[was].before,
                            after: came[index].after,
                        };
                        lines_between(views, &gone[was].path, &change)?
                    }
                };
        }
        stats.push(stat);
    }
    for (index, one) in gone_files.iter().enumerate().filter(|(index, _)| !renamed.contains(index))
    {
        stats.push(DiffStat {
            kind: DiffStatKind::Removed,
            path: gone[index].path.clone(),
            old_path: None,
            is_directory: gone[index].before.is_some_and(|one| one.is_directory()),
            added: 0,
            removed: one.lines,
        });
    }
    Ok(())
}

impl One {
    fn of(
        view: &View,
        path: &[u8],
        metadata: Option<&Metadata>,
        compares: bool,
    ) -> Result<Self, store::Error> {
        let length = metadata.map_or(0, |metadata| metadata.size);
        let text = text_of(view, path, metadata)?;
        let (lines, digest) = match &text {
            Some(text) if !patch::is_binary(text) => (line_count(text), Digest::of(text)),
            Some(bytes) => (0, Digest::of(bytes)),
            // Nothing else has this digest: what is so long is not compared.
            None => (0, Digest::builder("long").bytes(path).finish()),
        };
        let looked_at = text.filter(|_| compares && length <= LONGEST_RENAMED);
        let fingerprint = looked_at.map(|text| Fingerprint::of(&text));
        Ok(Self {
            candidate: Candidate { path: path.to_vec(), length, digest, fingerprint },
            lines,
        })
    }
}

/// Lines that were added and removed between two versions of a file.
fn lines_between(views: &Views, old: &[u8], change: &Change) -> Result<(u64, u64), store::Error> {
    let before = text_of(&views.before, old, change.before.as_ref())?;
    let after = text_of(&views.after, &change.path, change.after.as_ref())?;
    let is_text = |text: &Vec<u8>| !patch::is_binary(text);
    match (before.filter(is_text), after.filter(is_text)) {
        (Some(before), Some(after)) => Ok(patch::count(&before, &after)),
        _ => Ok((0, 0)),
    }
}

/// What is in a file, or where a link leads; none if it is too long to be looked at. Anything else is
/// empty.
pub(super) fn text_of(
    view: &View,
    path: &[u8],
    metadata: Option<&Metadata>,
) -> Result<Option<Vec<u8>>, store::Error> {
    match metadata {
        Some(found) if found.kind == Kind::File && found.size > LONGEST_TEXT => Ok(None),
        Some(found) if matches!(found.kind, Kind::File | Kind::Symlink) => {
            Ok(Some(view.contents_at(path, u64::MAX)?.unwrap_or_default()))
        }
        _ => Ok(Some(vec![])),
    }
}

fn line_count(text: &[u8]) -> u64 {
    let ends = text.iter().filter(|byte| **byte == b'\n').count() as u64;
    ends + u64::from(text.last().is_some_and(|byte| *byte != b'\n'))
}
