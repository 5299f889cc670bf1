//! [`Registry`]: the schema as our own data, with the ops behind its fields.
//!
//! `read` takes it from SDL, `install` puts ops in and compares, `describe` gives it to our command
//! line. It does not change once the graph is built.

mod describe;
mod install;
mod meta;
mod read;

pub(crate) use meta::META_FIELDS;
pub(crate) use read::{complete_sdl, read};

use crate::literal::Literal;
use crate::op::Resolver;
use crate::{TypeRef, Value};
use std::collections::HashMap;
use std::sync::Arc;

/// All types and directives of a schema.
#[derive(Clone)]
pub(crate) struct Registry {
    types: Vec<TypeDef>,
    by_name: HashMap<Arc<str>, usize>,
    pub(crate) directives: Vec<DirectiveDef>,
    /// Object types that also answer fragments on another object type.
    answers_for: Vec<(Box<str>, Box<str>)>,
}

/// A named type.
#[derive(Clone)]
pub(crate) struct TypeDef {
    pub(crate) name: Arc<str>,
    pub(crate) kind: Kind,
    pub(crate) description: String,
    pub(crate) fields: Vec<FieldDef>,
    fields_by_name: HashMap<Box<str>, usize>,
    pub(crate) inputs: Vec<ArgDef>,
    pub(crate) members: Vec<MemberDef>,
    pub(crate) interfaces: Vec<Box<str>>,
    /// Object types that an interface or union may be.
    pub(crate) possible: Vec<Arc<str>>,
    pub(crate) specified_by: Option<String>,
}

/// Sorts of named types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Scalar,
    Object,
    Interface,
    Union,
    Enum,
    Input,
}

/// A field of an object type or interface.
#[derive(Clone)]
pub(crate) struct FieldDef {
    pub(crate) name: Box<str>,
    pub(crate) description: String,
    pub(crate) args: Vec<ArgDef>,
    pub(crate) returns: TypeRef,
    pub(crate) deprecated: Option<String>,
    pub(crate) behaviour: Behaviour,
    pub(crate) resolver: Option<Arc<dyn Resolver>>,
    /// Coerced defaults of the arguments.
    pub(crate) defaults: Vec<(Box<str>, Value)>,
}

/// How a field is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Behaviour {
    /// Evaluated: a scalar, an enum or a list of those.
    Leaf,
    /// A call that is made and not evaluated.
    Object,
    /// Evaluated, because it may be null, or because its op says so.
    EvaluatedObject,
    /// Evaluated, because only that tells how many there are.
    Objects,
    /// A leaf of type `ID` whose op makes an object: the id of that object, evaluated.
    ObjectAsId,
    /// The id of the receiver, without evaluation.
    Id,
    /// The object behind an id, of any type.
    Node,
    /// The object behind an id, of this type.
    Load(Box<str>),
    /// `__typename`.
    Typename,
    /// A field that introspection answers.
    Introspection,
}

/// An argument, or a field of an input object.
#[derive(Clone)]
pub(crate) struct ArgDef {
    pub(crate) name: Box<str>,
    pub(crate) description: String,
    pub(crate) type_ref: TypeRef,
    pub(crate) default: Option<Literal>,
    pub(crate) expected: Option<Box<str>>,
    pub(crate) deprecated: Option<String>,
    pub(crate) sensitive: bool,
    /// Whether the op of the field knows the argument.
    pub(crate) understood: bool,
}

/// A member of an enum.
#[derive(Clone)]
pub(crate) struct MemberDef {
    pub(crate) name: Arc<str>,
    /// The base name, where this one is only another name for it.
    pub(crate) stands_for: Option<Arc<str>>,
    pub(crate) description: String,
    pub(crate) deprecated: Option<String>,
}

/// A directive.
#[derive(Clone)]
pub(crate) struct DirectiveDef {
    pub(crate) name: Box<str>,
    pub(crate) description: String,
    pub(crate) locations: Vec<String>,
    pub(crate) args: Vec<ArgDef>,
    pub(crate) repeatable: bool,
}

/// Name of the root type.
pub(crate) const QUERY: &str = "Query";

impl Registry {
    /// Every type, sorted by name.
    pub(crate) fn types(&self) -> &[TypeDef] {
        &self.types
    }

    /// Where in [`Registry::types`] a type stands.
    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&TypeDef> {
        self.by_name.get(name).map(|index| &self.types[*index])
    }

    fn get_mut(&mut self, name: &str) -> Option<&mut TypeDef> {
        self.by_name.get(name).map(|index| &mut self.types[*index])
    }

    /// The field of a type, `__typename` and the fields of introspection included.
    pub(crate) fn field(&self, type_name: &str, field: &str) -> Option<&FieldDef> {
        self.get(type_name)?.field(field)
    }

    /// Whether an object of the type `object` is a `wanted`: itself, an interface of it, or a type
    /// it answers for.
    pub(crate) fn is(&self, object: &str, wanted: &str) -> bool {
        object == wanted
            || self
                .get(object)
                .is_some_and(|found| found.interfaces.iter().any(|name| **name == *wanted))
            || self.get(wanted).is_some_and(|found| {
                found.kind == Kind::Union && found.possible.iter().any(|name| **name == *object)
            })
            || self.answers_for.iter().any(|(own, other)| **own == *object && **other == *wanted)
    }

    /// Whether a fragment on `condition` can ever apply where the type `parent` stands.
    pub(crate) fn can_apply(&self, parent: &str, condition: &str) -> bool {
        self.possible(parent).iter().any(|object| {
            self.is(object, condition)
                || self.possible(condition).iter().any(|wanted| self.is(object, wanted))
        })
    }

    /// The object types that a composite type may be.
    fn possible(&self, name: &str) -> Vec<Arc<str>> {
        match self.get(name) {
            Some(found) if found.kind == Kind::Object => vec![found.name.clone()],
            Some(found) => found.possible.clone(),
            None => vec![],
        }
    }

    /// Whether values of the type are the names of objects: `ID` and every scalar called `*ID`.
    pub(crate) fn is_id(&self, name: &str) -> bool {
        name == "ID"
            || (name.ends_with("ID")
                && self.get(name).is_some_and(|found| found.kind == Kind::Scalar))
    }

    /// Lets objects of one type answer fragments on another.
    pub(crate) fn let_answer_for(&mut self, object: &str, other: &str) {
        self.answers_for.push((object.into(), other.into()));
    }
}

impl TypeDef {
    pub(crate) fn field(&self, name: &str) -> Option<&FieldDef> {
        self.fields_by_name.get(name).map(|index| &self.fields[*index])
    }

    fn field_mut(&mut self, name: &str) -> Option<&mut FieldDef> {
        self.fields_by_name.get(name).map(|index| &mut self.fields[*index])
    }

    pub(crate) fn is_composite(&self) -> bool {
        matches!(self.kind, Kind::Object | Kind::Interface | Kind::Union)
    }

    pub(crate) fn is_introspection(&self) -> bool {
        self.name.starts_with("__")
    }

    /// The fields that the schema lists: all but those of introspection.
    pub(crate) fn listed_fields(&self) -> impl Iterator<Item = &FieldDef> {
        self.fields.iter().filter(|field| !field.name.starts_with("__"))
    }
}

impl FieldDef {
    pub(crate) fn arg(&self, name: &str) -> Option<&ArgDef> {
        self.args.iter().find(|arg| *arg.name == *name)
    }

    /// Whether the field can be answered.
    pub(crate) fn is_implemented(&self) -> bool {
        self.resolver.is_some()
            || !matches!(
                self.behaviour,
                Behaviour::Leaf
                    | Behaviour::Object
                    | Behaviour::EvaluatedObject
                    | Behaviour::Objects
                    | Behaviour::ObjectAsId
            )
    }
}
