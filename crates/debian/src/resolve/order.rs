//! The order of a selection: a package comes after what it depends on.
//!
//! Cycles of plain dependencies exist and are legal; such a cycle is cut where it is entered.
//! Entry is by name, so that equal selections have equal orders.

use super::search::Search;
use super::{Chosen, PackageId, Selection};
use crate::relation::{alternatives, groups};
use std::collections::HashSet;

/// The packages of a search from the `skip`th on, in order: those that are essential, and what they
/// need, before all others.
pub(super) fn sort(search: &Search<'_>, skip: usize) -> Selection {
    let essential = |id: &PackageId| search.archives.package(*id).essential();
    let mut wanted: Vec<PackageId> = search.chosen[skip..].to_vec();
    wanted.sort_by_key(|id| (!essential(id), search.archives.package(*id).name()));
    let mut walk = Walk { search, left: wanted.iter().copied().collect(), sorted: vec![] };
    let (first, others) = wanted.split_at(wanted.partition_point(essential));
    first.iter().for_each(|id| walk.visit(*id));
    let essential = walk.sorted.len();
    others.iter().for_each(|id| walk.visit(*id));
    let chosen = |id| Chosen { id, automatic: !search.is_named(id) };
    Selection { packages: walk.sorted.into_iter().map(chosen).collect(), essential }
}

struct Walk<'a, 'b> {
    search: &'b Search<'a>,
    /// Not visited yet.
    left: HashSet<PackageId>,
    sorted: Vec<PackageId>,
}

impl Walk<'_, '_> {
    fn visit(&mut self, id: PackageId) {
        if !self.left.remove(&id) {
            return;
        }
        let package = self.search.archives.package(id);
        for group in groups(package.pre_depends()).chain(groups(package.depends())) {
            for relation in alternatives(group) {
                if let Some(dependency) = self.search.met_by(&relation) {
                    self.visit(dependency);
                }
            }
        }
        self.sorted.push(id);
    }
}
