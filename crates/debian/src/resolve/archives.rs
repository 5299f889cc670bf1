//! The archives of a suite as one set of packages.

use crate::index::{Index, MultiArch, Package};
use crate::relation::{Relation, relations};
use crate::release::Rank;
use crate::version;

/// All archives that packages may come from.
#[derive(Debug)]
pub struct Archives {
    architecture: String,
    archives: Vec<(Index, Rank)>,
}

/// A package of [`Archives`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PackageId {
    /// Which archive, in the order they were added.
    pub archive: u32,
    /// Which package of its index.
    pub number: u32,
}

impl Archives {
    /// No archive yet.
    pub fn new(architecture: &str) -> Self {
        Self { architecture: architecture.to_owned(), archives: vec![] }
    }

    /// Adds an archive.
    pub fn push(&mut self, index: Index, rank: Rank) {
        self.archives.push((index, rank));
    }

    /// One package.
    pub fn package(&self, id: PackageId) -> Package<'_> {
        self.archives[id.archive as usize].0.package(id.number)
    }

    /// The version of a package that is installed by default: of the archives that rank highest,
    /// the newest; of equal ones the first.
    pub fn candidate(&self, name: &str) -> Option<PackageId> {
        let mut best: Option<(PackageId, Rank, Package<'_>)> = None;
        for (archive, (index, rank)) in self.archives.iter().enumerate() {
            for package in index.named(name).filter(|package| self.installs(package)) {
                let better = best.as_ref().is_none_or(|(_, best_rank, best)| {
                    let order = version::compare(package.version(), best.version());
                    rank.cmp(best_rank).then(order).is_gt()
                });
                if better {
                    let id = PackageId { archive: archive as u32, number: package.number() };
                    best = Some((id, *rank, package));
                }
            }
        }
        best.map(|(id, _, _)| id)
    }

    /// Candidates that provide a name, in the order of the archives.
    pub fn providers(&self, name: &str) -> Vec<PackageId> {
        let mut found = vec![];
        for (archive, (index, _)) in self.archives.iter().enumerate() {
            for package in index.providers(name) {
                let id = PackageId { archive: archive as u32, number: package.number() };
                if self.candidate(package.name()) == Some(id) && !found.contains(&id) {
                    found.push(id);
                }
            }
        }
        found
    }

    /// Candidates that meet a relation: the package of that name first, then who provides it, the
    /// essential and the more important before others.
    pub(super) fn solutions(&self, relation: &Relation<'_>) -> Vec<PackageId> {
        let own = self.candidate(relation.name);
        let own = own.filter(|id| self.is_met_by(relation, &self.package(*id)));
        let providers = self.providers(relation.name).into_iter();
        let mut providers: Vec<PackageId> = providers
            .filter(|id| Some(*id) != own && self.is_met_by(relation, &self.package(*id)))
            .collect();
        providers.sort_by_key(|id| {
            let package = self.package(*id);
            (!package.essential(), package.priority())
        });
        own.into_iter().chain(providers).collect()
    }

    /// Whether a package meets a relation, by its name or by what it provides.
    pub(super) fn is_met_by(&self, relation: &Relation<'_>, package: &Package<'_>) -> bool {
        if !self.is_qualified(relation, package) {
            return false;
        }
        if package.name() == relation.name && relation.admits(package.version()) {
            return true;
        }
        relations(package.provides())
            .any(|provided| provided.name == relation.name && relation.admits_provided(&provided))
    }

    fn is_qualified(&self, relation: &Relation<'_>, package: &Package<'_>) -> bool {
        match relation.qualifier {
            None | Some("native") => true,
            Some("any") => package.multi_arch() == MultiArch::Allowed,
            Some(architecture) => architecture == self.architecture,
        }
    }

    fn installs(&self, package: &Package<'_>) -> bool {
        package.architecture() == "all" || package.architecture() == self.architecture
    }

    /// Candidates that every system has: essential ones and those of priority `required`.
    pub(super) fn required(&self) -> Vec<PackageId> {
        let mut found = vec![];
        for (index, _) in &self.archives {
            for package in index.packages() {
                let Some(candidate) = self.is_required(&package) else { continue };
                if !found.contains(&candidate) {
                    found.push(candidate);
                }
            }
        }
        found
    }

    fn is_required(&self, package: &Package<'_>) -> Option<PackageId> {
        let wanted = |package: &Package<'_>| package.essential() || package.priority() as u32 == 1;
        if !wanted(package) {
            return None;
        }
        // An older version may have been required where the candidate no longer is.
        self.candidate(package.name()).filter(|id| wanted(&self.package(*id)))
    }

    /// Names that resemble one that does not exist.
    pub(super) fn near(&self, name: &str) -> Vec<String> {
        let mut near: Vec<(usize, &str)> = vec![];
        for (index, _) in &self.archives {
            for found in index.packages().map(|package| package.name()) {
                let distance = if found.starts_with(name) {
                    found.len() - name.len()
                } else if found.len().abs_diff(name.len()) <= 2 {
                    edit_distance(name.as_bytes(), found.as_bytes())
                } else {
                    continue;
                };
                if distance <= 2 {
                    near.push((distance, found));
                }
            }
        }
        near.sort_unstable();
        near.dedup();
        near.into_iter().take(3).map(|(_, name)| name.to_owned()).collect()
    }
}

/// Insertions, deletions and replacements between two texts.
fn edit_distance(left: &[u8], right: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (line, byte) in left.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for column in 1..row.len() {
            let replace = diagonal + usize::from(*byte != right[column - 1]);
            diagonal = row[column];
            row[column] = replace.min(row[column] + 1).min(row[column - 1] + 1);
        }
    }
    row[right.len()]
}
