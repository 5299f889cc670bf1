//! Our rule about variables: where one may be used.
//!
//! It takes the place of the stock rule, which wants equal names of types: published clients declare
//! `ContainerID!` for `ID!`. What can never be coerced is still refused.

use super::VariableDefinition;
use crate::TypeRef;
use crate::registry::{Kind, Registry};
use std::collections::{HashMap, HashSet};

/// A variable where a type is wanted.
#[derive(Debug)]
pub(super) struct Usage {
    pub(super) variable: Box<str>,
    pub(super) wanted: TypeRef,
    /// Whether the place has a default of its own, so that no value is needed.
    pub(super) has_default: bool,
    /// Byte in the text.
    pub(super) offset: usize,
}

/// What one operation or fragment uses by itself.
#[derive(Debug, Default)]
pub(super) struct Uses {
    pub(super) variables: Vec<Usage>,
    pub(super) fragments: HashSet<Box<str>>,
}

/// The first use in an operation, its fragments included, that does not fit the declared type.
pub(super) fn misuse<'a>(
    registry: &Registry,
    declared: &'a [VariableDefinition],
    own: &'a Uses,
    fragments: &'a HashMap<Box<str>, Uses>,
) -> Option<(&'a Usage, &'a VariableDefinition)> {
    let mut seen: HashSet<&str> = HashSet::new();
    let mut stack = vec![own];
    while let Some(uses) = stack.pop() {
        for usage in &uses.variables {
            let definition = declared.iter().find(|found| found.name == usage.variable);
            if let Some(definition) = definition.filter(|found| !allowed(registry, found, usage)) {
                return Some((usage, definition));
            }
        }
        let next = uses.fragments.iter().filter(|name| seen.insert(name));
        stack.extend(next.filter_map(|name| fragments.get(name)));
    }
    None
}

fn allowed(registry: &Registry, definition: &VariableDefinition, usage: &Usage) -> bool {
    let has_value = usage.has_default || definition.default.is_some();
    let wanted = match &usage.wanted {
        TypeRef::NonNull(inner) if has_value => inner,
        wanted => wanted,
    };
    fits(registry, &definition.type_ref, wanted)
}

fn fits(registry: &Registry, declared: &TypeRef, wanted: &TypeRef) -> bool {
    match (declared, wanted) {
        (TypeRef::NonNull(declared), TypeRef::NonNull(wanted)) => fits(registry, declared, wanted),
        (_, TypeRef::NonNull(_)) => false,
        (TypeRef::NonNull(declared), wanted) => fits(registry, declared, wanted),
        (TypeRef::List(declared), TypeRef::List(wanted)) => fits(registry, declared, wanted),
        // One value stands for a list of one; null stands for no list.
        (single @ TypeRef::Named(_), TypeRef::List(wanted)) => match &**wanted {
            TypeRef::NonNull(wanted) => fits(registry, single, wanted),
            wanted => fits(registry, single, wanted),
        },
        (TypeRef::List(_), TypeRef::Named(_)) => false,
        (TypeRef::Named(declared), TypeRef::Named(wanted)) => names_fit(registry, declared, wanted),
    }
}

fn names_fit(registry: &Registry, declared: &str, wanted: &str) -> bool {
    let sort = |name: &str| registry.get(name).map(|found| found.kind);
    let is_text = |name: &str| {
        !matches!(name, "Int" | "Float" | "Boolean") && sort(name) == Some(Kind::Scalar)
    };
    declared == wanted
        || (declared == "Int" && wanted == "Float")
        || (declared == "String" && matches!(sort(wanted), Some(Kind::Scalar | Kind::Enum)))
        || (is_text(declared) && is_text(wanted))
}
