//! [`Value`]: an argument of a [`Call`] after coercion, and its stored form.

use crate::{Call, Digest, DigestBuilder};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// An argument, coerced to the type its schema declares.
#[derive(Clone, Debug)]
pub enum Value {
    /// No value.
    Null,
    /// A truth value.
    Bool(bool),
    /// A whole number; wider than GraphQL's own `Int` because sizes and times need it.
    Int(i64),
    /// A floating point number.
    Float(f64),
    /// Text.
    String(Arc<str>),
    /// The base name of an enum member.
    Enum(Arc<str>),
    /// A list.
    List(Vec<Value>),
    /// An input object, fields in the order of the schema.
    Object(Vec<(Box<str>, Value)>),
    /// An object argument: the call that makes it.
    Call(Arc<Call>),
    /// A sensitive text, known to the session that gave it by this keyed digest only.
    Sealed(Digest),
}

/// The stored form of a [`Value`]: object arguments are named by digest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "one to one with `Value`, which documents each case")]
pub enum RecordValue {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    String(Arc<str>),
    Enum(Arc<str>),
    List(Vec<RecordValue>),
    Object(Vec<(Box<str>, RecordValue)>),
    Call(Digest),
    Sealed(Digest),
}

impl Value {
    /// The text of a string or enum value.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) | Self::Enum(text) => Some(text),
            _ => None,
        }
    }

    /// Whether this is [`Value::Null`].
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Calls `visit` for every call named in this value, at any depth.
    pub fn for_each_call<'a>(&'a self, visit: &mut dyn FnMut(&'a Arc<Call>)) {
        match self {
            Self::Call(call) => visit(call),
            Self::List(items) => items.iter().for_each(|item| item.for_each_call(visit)),
            Self::Object(fields) => fields.iter().for_each(|(_, value)| value.for_each_call(visit)),
            _ => {}
        }
    }

    pub(crate) fn digest_into(&self, builder: &mut DigestBuilder) {
        match self {
            Self::Null => builder.text("null"),
            Self::Bool(value) => builder.text("bool").number(u64::from(*value)),
            Self::Int(value) => builder.text("int").bytes(&value.to_le_bytes()),
            Self::Float(value) => builder.text("float").number(value.to_bits()),
            Self::String(text) => builder.text("string").text(text),
            Self::Enum(name) => builder.text("enum").text(name),
            Self::Call(call) => builder.text("call").digest(call.digest()),
            Self::Sealed(digest) => builder.text("sealed").digest(digest),
            Self::List(items) => {
                builder.text("list").number(items.len() as u64);
                items.iter().for_each(|item| item.digest_into(builder));
                builder
            }
            Self::Object(fields) => {
                builder.text("object").number(fields.len() as u64);
                for (name, value) in fields {
                    builder.text(name);
                    value.digest_into(builder);
                }
                builder
            }
        };
    }

    pub(crate) fn to_record(&self) -> RecordValue {
        match self {
            Self::Null => RecordValue::Null,
            Self::Bool(value) => RecordValue::Bool(*value),
            Self::Int(value) => RecordValue::Int(*value),
            Self::Float(value) => RecordValue::Float(*value),
            Self::String(text) => RecordValue::String(text.clone()),
            Self::Enum(name) => RecordValue::Enum(name.clone()),
            Self::Call(call) => RecordValue::Call(*call.digest()),
            Self::Sealed(digest) => RecordValue::Sealed(*digest),
            Self::List(items) => RecordValue::List(items.iter().map(Self::to_record).collect()),
            Self::Object(fields) => RecordValue::Object(
                fields.iter().map(|(name, value)| (name.clone(), value.to_record())).collect(),
            ),
        }
    }
}

impl RecordValue {
    /// Calls `visit` for every call named in this value.
    pub(crate) fn for_each_call(&self, visit: &mut dyn FnMut(Digest)) {
        match self {
            Self::Call(digest) => visit(*digest),
            Self::List(items) => items.iter().for_each(|item| item.for_each_call(visit)),
            Self::Object(fields) => fields.iter().for_each(|(_, value)| value.for_each_call(visit)),
            _ => {}
        }
    }

    /// The live value; `call` gives the call behind a digest.
    pub(crate) fn to_value(&self, call: &dyn Fn(&Digest) -> Option<Arc<Call>>) -> Option<Value> {
        Some(match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(*value),
            Self::Int(value) => Value::Int(*value),
            Self::Float(value) => Value::Float(*value),
            Self::String(text) => Value::String(text.clone()),
            Self::Enum(name) => Value::Enum(name.clone()),
            Self::Call(digest) => Value::Call(call(digest)?),
            Self::Sealed(digest) => Value::Sealed(*digest),
            Self::List(items) => {
                Value::List(items.iter().map(|item| item.to_value(call)).collect::<Option<_>>()?)
            }
            Self::Object(fields) => Value::Object(
                fields
                    .iter()
                    .map(|(name, value)| Some((name.clone(), value.to_value(call)?)))
                    .collect::<Option<_>>()?,
            ),
        })
    }
}
