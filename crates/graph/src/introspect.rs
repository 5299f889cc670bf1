//! Introspection: the schema answers questions about itself.
//!
//! Answers come straight from the registry. The standard question gives half a megabyte and every
//! client of some libraries asks it first, so replies to questions without variables are kept.

use crate::literal::Literal;
use crate::registry::{ArgDef, Kind, QUERY, Registry};
use crate::{Digest, Error, TypeRef};
use serde_json::Value as Json;
use std::sync::{Arc, Mutex, PoisonError};

/// How many replies are kept; there are few ways to ask.
const MAX_ANSWERS: usize = 8;

/// Replies to whole requests about the schema.
#[derive(Default)]
pub(crate) struct AnswerCache(Mutex<Vec<(Digest, Arc<[u8]>)>>);

impl AnswerCache {
    pub(crate) fn get(&self, asked: &Digest) -> Option<Arc<[u8]>> {
        let answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        answers.iter().find(|(known, _)| known == asked).map(|(_, reply)| reply.clone())
    }

    pub(crate) fn put(&self, asked: Digest, reply: &[u8]) {
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if answers.iter().any(|(known, _)| *known == asked) {
            return;
        }
        if answers.len() >= MAX_ANSWERS {
            answers.remove(0);
        }
        answers.push((asked, reply.into()));
    }
}

/// A part of the schema that can be asked about.
pub(crate) enum Meta {
    /// The root, whose fields `__schema` and `__type` begin here.
    Query,
    Schema,
    /// A type, by itself or as a list or never null.
    Type(TypeRef),
    /// A field by positions of type and field.
    Field(usize, usize),
    Input(Owner, usize),
    /// A member by positions of type and member.
    Member(usize, usize),
    Directive(usize),
}

/// Whose an input value is.
#[derive(Clone, Copy)]
pub(crate) enum Owner {
    Field(usize, usize),
    InputObject(usize),
    Directive(usize),
}

/// A field of introspection with its arguments.
pub(crate) struct Question<'a> {
    pub(crate) field: &'a str,
    pub(crate) name: Option<String>,
    pub(crate) include_deprecated: bool,
}

/// What introspection answers.
pub(crate) enum Answer {
    Leaf(Json),
    One(Meta),
    Many(Vec<Meta>),
}

const NULL: Answer = Answer::Leaf(Json::Null);

impl Meta {
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Query => QUERY,
            Self::Schema => "__Schema",
            Self::Type(_) => "__Type",
            Self::Field(..) => "__Field",
            Self::Input(..) => "__InputValue",
            Self::Member(..) => "__EnumValue",
            Self::Directive(_) => "__Directive",
        }
    }

    pub(crate) fn answer(
        &self,
        registry: &Registry,
        question: &Question<'_>,
    ) -> Result<Answer, Error> {
        if question.field == "__typename" {
            return Ok(text(self.type_name()));
        }
        let answer = match self {
            Self::Query => query(registry, question),
            Self::Schema => schema(registry, question.field),
            Self::Type(TypeRef::Named(name)) => named_type(registry, name, question),
            Self::Type(wrapped) => wrapped_type(wrapped, question.field),
            Self::Field(owner, index) => field(registry, (*owner, *index), question),
            Self::Input(owner, index) => input(registry, *owner, *index, question.field),
            Self::Member(owner, index) => member(registry, (*owner, *index), question.field),
            Self::Directive(index) => directive(registry, *index, question),
        };
        answer.ok_or_else(|| {
            let (owner, field) = (self.type_name(), question.field);
            Error::internal(format!("introspection has no field `{owner}.{field}`"))
        })
    }
}

fn text(value: impl Into<String>) -> Answer {
    Answer::Leaf(Json::from(value.into()))
}

/// A description; none when there is no text.
fn description(value: &str) -> Answer {
    if value.is_empty() { NULL } else { text(value) }
}

fn optional(value: Option<&str>) -> Answer {
    value.map_or(NULL, text)
}

fn named(name: &str) -> Meta {
    Meta::Type(TypeRef::Named(name.into()))
}

fn query(registry: &Registry, question: &Question<'_>) -> Option<Answer> {
    Some(match question.field {
        "__schema" => Answer::One(Meta::Schema),
        "__type" => {
            let name = question.name.as_deref().filter(|name| registry.get(name).is_some());
            name.map_or(NULL, |name| Answer::One(named(name)))
        }
        "__schemaVersion" => text(protocol::VERSION),
        _ => return None,
    })
}

fn schema(registry: &Registry, field: &str) -> Option<Answer> {
    Some(match field {
        "description" | "mutationType" | "subscriptionType" => NULL,
        "types" => Answer::Many(registry.types().iter().map(|found| named(&found.name)).collect()),
        "queryType" => Answer::One(named(QUERY)),
        "directives" => Answer::Many((0..registry.directives.len()).map(Meta::Directive).collect()),
        _ => return None,
    })
}

fn wrapped_type(wrapped: &TypeRef, field: &str) -> Option<Answer> {
    let (kind, inner) = match wrapped {
        TypeRef::List(inner) => ("LIST", inner),
        TypeRef::NonNull(inner) => ("NON_NULL", inner),
        TypeRef::Named(_) => return None,
    };
    Some(match field {
        "kind" => text(kind),
        "ofType" => Answer::One(Meta::Type((**inner).clone())),
        "name" | "description" | "specifiedByURL" | "fields" | "interfaces" | "possibleTypes"
        | "enumValues" | "inputFields" | "isOneOf" => NULL,
        _ => return None,
    })
}

fn named_type(registry: &Registry, name: &str, question: &Question<'_>) -> Option<Answer> {
    let index = registry.position(name)?;
    let found = &registry.types()[index];
    let shown = |deprecated: &Option<String>| question.include_deprecated || deprecated.is_none();
    let has_fields = matches!(found.kind, Kind::Object | Kind::Interface);
    Some(match question.field {
        "kind" => text(match found.kind {
            Kind::Scalar => "SCALAR",
            Kind::Object => "OBJECT",
            Kind::Interface => "INTERFACE",
            Kind::Union => "UNION",
            Kind::Enum => "ENUM",
            Kind::Input => "INPUT_OBJECT",
        }),
        "name" => text(name),
        "description" => description(&found.description),
        "specifiedByURL" => optional(found.specified_by.as_deref()),
        "fields" if has_fields => {
            let fields = found.fields.iter().enumerate();
            let fields = fields.filter(|(_, field)| !field.name.starts_with("__"));
            let fields = fields.filter(|(_, field)| shown(&field.deprecated));
            Answer::Many(fields.map(|(field, _)| Meta::Field(index, field)).collect())
        }
        "interfaces" if has_fields => {
            Answer::Many(found.interfaces.iter().map(|name| named(name)).collect())
        }
        "possibleTypes" if matches!(found.kind, Kind::Interface | Kind::Union) => {
            Answer::Many(found.possible.iter().map(|name| named(name)).collect())
        }
        "enumValues" if found.kind == Kind::Enum => {
            let members = found.members.iter().enumerate();
            let members = members.filter(|(_, member)| shown(&member.deprecated));
            Answer::Many(members.map(|(member, _)| Meta::Member(index, member)).collect())
        }
        "inputFields" if found.kind == Kind::Input => {
            inputs(&found.inputs, Owner::InputObject(index), question)
        }
        "isOneOf" if found.kind == Kind::Input => Answer::Leaf(Json::Bool(false)),
        "fields" | "interfaces" | "possibleTypes" | "enumValues" | "inputFields" | "ofType"
        | "isOneOf" => NULL,
        _ => return None,
    })
}

fn inputs(all: &[ArgDef], owner: Owner, question: &Question<'_>) -> Answer {
    let shown = all.iter().enumerate();
    let shown =
        shown.filter(|(_, input)| question.include_deprecated || input.deprecated.is_none());
    Answer::Many(shown.map(|(index, _)| Meta::Input(owner, index)).collect())
}

fn field(registry: &Registry, at: (usize, usize), question: &Question<'_>) -> Option<Answer> {
    let found = registry.types().get(at.0)?.fields.get(at.1)?;
    Some(match question.field {
        "name" => text(&*found.name),
        "description" => description(&found.description),
        "args" => inputs(&found.args, Owner::Field(at.0, at.1), question),
        "type" => Answer::One(Meta::Type(found.returns.clone())),
        "isDeprecated" => Answer::Leaf(Json::Bool(found.deprecated.is_some())),
        "deprecationReason" => optional(found.deprecated.as_deref()),
        _ => return None,
    })
}

fn input(registry: &Registry, owner: Owner, index: usize, field: &str) -> Option<Answer> {
    let all = match owner {
        Owner::Field(owner, field) => &registry.types().get(owner)?.fields.get(field)?.args,
        Owner::InputObject(owner) => &registry.types().get(owner)?.inputs,
        Owner::Directive(owner) => &registry.directives.get(owner)?.args,
    };
    let found = all.get(index)?;
    Some(match field {
        "name" => text(&*found.name),
        "description" => description(&found.description),
        "type" => Answer::One(Meta::Type(found.type_ref.clone())),
        "defaultValue" => found.default.as_ref().map(Literal::to_string).map_or(NULL, text),
        "isDeprecated" => Answer::Leaf(Json::Bool(found.deprecated.is_some())),
        "deprecationReason" => optional(found.deprecated.as_deref()),
        _ => return None,
    })
}

fn member(registry: &Registry, at: (usize, usize), field: &str) -> Option<Answer> {
    let found = registry.types().get(at.0)?.members.get(at.1)?;
    Some(match field {
        "name" => text(&*found.name),
        "description" => description(&found.description),
        "isDeprecated" => Answer::Leaf(Json::Bool(found.deprecated.is_some())),
        "deprecationReason" => optional(found.deprecated.as_deref()),
        _ => return None,
    })
}

fn directive(registry: &Registry, index: usize, question: &Question<'_>) -> Option<Answer> {
    let found = registry.directives.get(index)?;
    Some(match question.field {
        "name" => text(&*found.name),
        "description" => description(&found.description),
        "isRepeatable" => Answer::Leaf(Json::Bool(found.repeatable)),
        "locations" => Answer::Leaf(Json::from(found.locations.clone())),
        "args" => inputs(&found.args, Owner::Directive(index), question),
        _ => return None,
    })
}
