//! Which fields of an object are selected: fragments that apply are opened, conditions decided, equal
//! response keys merged.

use crate::Error;
use crate::TypeRef;
use crate::Value;
use crate::coerce::{Variables, coerce};
use crate::document::{Condition, Document, Field, Selection, SetId};
use crate::registry::Registry;
use std::collections::HashMap;

/// From here on response keys are found by hashing.
const FEW: usize = 16;

/// One response key and everything that is selected below it.
pub(super) struct Selected<'a> {
    pub(super) field: &'a Field,
    pub(super) sets: Vec<SetId>,
}

/// The fields selected by some sets on an object of this type, in the order of the document.
pub(super) fn collect<'a>(
    document: &'a Document,
    registry: &Registry,
    variables: &Variables,
    (object, sets): (&str, &[SetId]),
) -> Result<Vec<Selected<'a>>, Error> {
    let mut found: Vec<Selected<'a>> = vec![];
    let mut index: HashMap<&str, usize> = HashMap::new();
    let mut stack: Vec<std::slice::Iter<'a, Selection>> =
        sets.iter().rev().map(|set| document.set(*set).iter()).collect();
    while let Some(selections) = stack.last_mut() {
        let Some(selection) = selections.next() else {
            stack.pop();
            continue;
        };
        match selection {
            Selection::Fragment { on, conditions, set } => {
                let applies = on.as_deref().is_none_or(|on| registry.is(object, on));
                if applies && keep(registry, variables, conditions)? {
                    stack.push(document.set(*set).iter());
                }
            }
            Selection::Field(field) => {
                if !keep(registry, variables, &field.conditions)? {
                    continue;
                }
                let known = if found.len() < FEW {
                    found.iter().position(|selected| selected.field.key == field.key)
                } else {
                    index_all(&mut index, &found);
                    index.get(&*field.key).copied()
                };
                match known {
                    Some(known) => found[known].sets.extend(field.set),
                    None => found.push(Selected { field, sets: field.set.into_iter().collect() }),
                }
            }
        }
    }
    Ok(found)
}

/// Adds what came since the last time.
fn index_all<'a>(index: &mut HashMap<&'a str, usize>, found: &[Selected<'a>]) {
    for (position, selected) in found.iter().enumerate().skip(index.len()) {
        index.insert(&selected.field.key, position);
    }
}

fn keep(
    registry: &Registry,
    variables: &Variables,
    conditions: &[Condition],
) -> Result<bool, Error> {
    for condition in conditions {
        let boolean = TypeRef::NonNull(Box::new(TypeRef::Named("Boolean".into())));
        let value = coerce(registry, variables, &condition.value, &boolean);
        let value = value.map_err(|problem| Error::user(format!("argument `if`: {problem}")))?;
        if !matches!(value, Value::Bool(value) if value == condition.keep) {
            return Ok(false);
        }
    }
    Ok(true)
}
