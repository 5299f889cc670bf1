//! Documents: from the text of a request to an immutable [`Document`] of our own.
//!
//! `limits` refuses what is too deep or too large before anybody recurses over it, `reader` parses and
//! validates on a thread with a deep stack, `convert` checks what our rules replace and makes the
//! [`Document`], `cache` keeps the last ones. Parser and validator are known in this module and in
//! `registry::read` only. A document borrows nothing, so it may live across awaits; its selections
//! lie flat in a table, so dropping it does not recurse.

pub(crate) mod ast;
pub(crate) mod cache;
mod convert;
mod limits;
pub(crate) mod reader;
mod usage;

use crate::literal::Literal;
use crate::{Error, TypeRef, Value};
use std::sync::Arc;

/// A checked document.
#[derive(Debug, Default)]
pub(crate) struct Document {
    pub(crate) operations: Vec<Operation>,
    /// All selection sets; [`SetId`] points here.
    sets: Vec<Vec<Selection>>,
    /// Whether a sensitive argument is written in it: then it must not be kept.
    pub(crate) sensitive: bool,
}

/// A selection set of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SetId(usize);

/// One `query`.
#[derive(Debug)]
pub(crate) struct Operation {
    pub(crate) name: Option<Box<str>>,
    pub(crate) variables: Vec<VariableDefinition>,
    pub(crate) set: SetId,
}

/// A declared variable.
#[derive(Clone, Debug)]
pub(crate) struct VariableDefinition {
    pub(crate) name: Box<str>,
    pub(crate) type_ref: TypeRef,
    pub(crate) default: Option<Literal>,
}

/// One entry of a selection set.
#[derive(Debug)]
pub(crate) enum Selection {
    Field(Field),
    /// A fragment, written in place or spread.
    Fragment {
        /// Objects it applies to; none applies to all.
        on: Option<Box<str>>,
        conditions: Vec<Condition>,
        set: SetId,
    },
}

/// A selected field.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) key: Arc<str>,
    pub(crate) name: Box<str>,
    pub(crate) args: Vec<(Box<str>, Given)>,
    pub(crate) conditions: Vec<Condition>,
    pub(crate) set: Option<SetId>,
}

/// An argument as far as it is known without variables.
#[derive(Clone, Debug)]
pub(crate) enum Given {
    /// Coerced already; ids are texts still.
    Constant(Value),
    /// Names a variable.
    Dynamic(Literal),
}

/// A `@skip` or `@include`.
#[derive(Clone, Debug)]
pub(crate) struct Condition {
    /// The value with which the selection stays.
    pub(crate) keep: bool,
    pub(crate) value: Literal,
}

/// Why a document is refused, and where.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    pub(crate) error: Error,
    /// Line and column, from 1.
    pub(crate) location: Option<(usize, usize)>,
}

impl Document {
    pub(crate) fn set(&self, id: SetId) -> &[Selection] {
        &self.sets[id.0]
    }

    /// The operation of this name, or the only one.
    pub(crate) fn operation(&self, name: Option<&str>) -> Result<&Operation, Error> {
        match name.filter(|name| !name.is_empty()) {
            Some(name) => self
                .operations
                .iter()
                .find(|operation| operation.name.as_deref() == Some(name))
                .ok_or_else(|| Error::user(format!("the document has no operation `{name}`"))),
            None => match self.operations.as_slice() {
                [only] => Ok(only),
                [] => Err(Error::user("the document has no operation")),
                _ => Err(Error::user("the document has several operations: name one to run")),
            },
        }
    }

    /// Whether an operation asks only about the schema, so that its answer never changes.
    pub(crate) fn is_introspection(&self, operation: &Operation) -> bool {
        operation.variables.is_empty()
            && self.set(operation.set).iter().all(|selection| {
                matches!(selection, Selection::Field(field)
                    if field.name.starts_with("__") && field.conditions.is_empty())
            })
    }
}

impl Refusal {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { error: Error::user(message), location: None }
    }

    /// Adds the place of a byte of the text.
    fn at(mut self, text: &str, offset: usize) -> Self {
        let before = text.get(..offset).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |index| index + 1);
        self.location = Some((line, before[start..].chars().count() + 1));
        self
    }
}
