//! The search itself: a growing set of chosen packages that can be rolled back.

use super::{Archives, Error, PackageId};
use crate::relation::{Relation, alternatives, groups, relations};
use std::collections::{HashMap, HashSet};

/// What is chosen so far.
pub(super) struct Search<'a> {
    pub(super) archives: &'a Archives,
    /// In the order they were chosen; the lists below grow and shrink with it.
    pub(super) chosen: Vec<PackageId>,
    named: HashSet<PackageId>,
    by_name: HashMap<&'a str, PackageId>,
    /// Chosen packages by the names they provide.
    provided: HashMap<&'a str, Vec<PackageId>>,
    /// By the name it is against: who excludes it, and which versions.
    excluded: HashMap<&'a str, Vec<(PackageId, Relation<'a>)>>,
    /// Packages that could not be installed; they are not tried again.
    failed: HashSet<PackageId>,
    /// From the package asked for to the one being looked at.
    chain: Vec<PackageId>,
}

impl<'a> Search<'a> {
    pub(super) fn new(archives: &'a Archives) -> Self {
        Self {
            archives,
            chosen: vec![],
            named: HashSet::new(),
            by_name: HashMap::new(),
            provided: HashMap::new(),
            excluded: HashMap::new(),
            failed: HashSet::new(),
            chain: vec![],
        }
    }

    /// Takes a package as installed, with its dependencies met.
    pub(super) fn assume(&mut self, id: PackageId) {
        self.add(id);
    }

    /// Whether the package was asked for by name.
    pub(super) fn is_named(&self, id: PackageId) -> bool {
        self.named.contains(&id)
    }

    /// Chooses packages and all they depend on. All of them are chosen before any dependency is
    /// looked at, so that they are preferred among alternatives.
    pub(super) fn install(&mut self, named: &[PackageId]) -> Result<(), Error> {
        let mut fresh = vec![];
        for &id in named {
            self.named.insert(id);
            if self.is_chosen(id) {
                continue;
            }
            self.chain = vec![id];
            self.check(id)?;
            self.add(id);
            fresh.push(id);
        }
        for id in fresh {
            self.chain = vec![id];
            self.add_dependencies(id)?;
        }
        Ok(())
    }

    fn is_chosen(&self, id: PackageId) -> bool {
        self.by_name.get(self.archives.package(id).name()) == Some(&id)
    }

    /// Whether a chosen package meets the relation.
    pub(super) fn met_by(&self, relation: &Relation<'_>) -> Option<PackageId> {
        let own = self.by_name.get(relation.name).copied();
        let providers = self.provided.get(relation.name).into_iter().flatten().copied();
        own.into_iter()
            .chain(providers)
            .find(|id| self.archives.is_met_by(relation, &self.archives.package(*id)))
    }

    fn add_dependencies(&mut self, id: PackageId) -> Result<(), Error> {
        let package = self.archives.package(id);
        for group in groups(package.pre_depends()).chain(groups(package.depends())) {
            if alternatives(group).all(|relation| self.met_by(&relation).is_none()) {
                self.add_one_of(group)?;
            }
        }
        Ok(())
    }

    fn add_one_of(&mut self, group: &'a str) -> Result<(), Error> {
        let mut failure = None;
        for relation in alternatives(group) {
            for id in self.archives.solutions(&relation) {
                match self.try_install(id) {
                    Ok(()) => return Ok(()),
                    Err(error) => failure = failure.or(error),
                }
            }
        }
        let unsatisfiable =
            || Error::Unsatisfiable { dependency: group.to_owned(), chain: self.chain_names() };
        Err(failure.unwrap_or_else(unsatisfiable))
    }

    /// Chooses a package and its dependencies, or leaves everything as it was. No error is given
    /// for what is already known to fail.
    fn try_install(&mut self, id: PackageId) -> Result<(), Option<Error>> {
        if self.failed.contains(&id) {
            return Err(None);
        }
        let (mark, depth) = (self.chosen.len(), self.chain.len());
        self.chain.push(id);
        let result = self.check(id).and_then(|()| {
            self.add(id);
            self.add_dependencies(id)
        });
        self.chain.truncate(depth);
        result.map_err(|error| {
            self.roll_back(mark);
            self.failed.insert(id);
            Some(error)
        })
    }

    /// Refuses a package that excludes a chosen one or is excluded by one.
    fn check(&self, id: PackageId) -> Result<(), Error> {
        let package = self.archives.package(id);
        let conflict = |other: PackageId| Error::Conflict {
            package: package.name().to_owned(),
            other: self.archives.package(other).name().to_owned(),
            chain: self.chain_names(),
        };
        if let Some(&other) = self.by_name.get(package.name()) {
            // Another version of a package that is there already.
            return Err(conflict(other));
        }
        for relation in relations(package.conflicts()).chain(relations(package.breaks())) {
            if let Some(other) = self.met_by(&relation) {
                return Err(conflict(other));
            }
        }
        let provided = relations(package.provides()).map(|provided| provided.name);
        for name in std::iter::once(package.name()).chain(provided) {
            for (other, relation) in self.excluded.get(name).into_iter().flatten() {
                if self.archives.is_met_by(relation, &package) {
                    return Err(conflict(*other));
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, id: PackageId) {
        let package = self.archives.package(id);
        self.chosen.push(id);
        self.by_name.insert(package.name(), id);
        for provided in relations(package.provides()) {
            self.provided.entry(provided.name).or_default().push(id);
        }
        for relation in relations(package.conflicts()).chain(relations(package.breaks())) {
            self.excluded.entry(relation.name).or_default().push((id, relation));
        }
    }

    /// Takes back the packages chosen since there were `mark` of them.
    fn roll_back(&mut self, mark: usize) {
        for id in self.chosen.split_off(mark) {
            let package = self.archives.package(id);
            self.by_name.remove(package.name());
            for provided in relations(package.provides()) {
                self.provided.entry(provided.name).or_default().retain(|other| *other != id);
            }
            for relation in relations(package.conflicts()).chain(relations(package.breaks())) {
                self.excluded.entry(relation.name).or_default().retain(|(other, _)| *other != id);
            }
        }
    }

    fn chain_names(&self) -> Vec<String> {
        self.chain.iter().map(|id| self.archives.package(*id).name().to_owned()).collect()
    }
}
