//! [`Literal`]: an input value before coercion, from a document, from JSON or from a schema.

use crate::document::ast;
use serde_json::Value as Json;
use std::fmt;
use std::sync::Arc;

/// An input value as it was written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    String(Arc<str>),
    Enum(Arc<str>),
    List(Vec<Literal>),
    Object(Vec<(Box<str>, Literal)>),
    Variable(Box<str>),
}

impl Literal {
    /// Reads a constant in GraphQL syntax, e.g. the default in an op.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        ast::constant(text)
    }

    /// Whether a variable is named anywhere in it.
    pub(crate) fn has_variables(&self) -> bool {
        match self {
            Self::Variable(_) => true,
            Self::List(items) => items.iter().any(Self::has_variables),
            Self::Object(fields) => fields.iter().any(|(_, value)| value.has_variables()),
            _ => false,
        }
    }

    /// What sort of value it is; never the value itself, which may be sensitive.
    pub(crate) fn sort(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a truth value",
            Self::Int(_) | Self::Float(_) => "a number",
            Self::String(_) => "a string",
            Self::Enum(_) => "a name",
            Self::List(_) => "a list",
            Self::Object(_) => "an object",
            Self::Variable(_) => "a variable",
        }
    }
}

impl From<&Json> for Literal {
    /// Recursion is bounded by the depth that the JSON parser accepts.
    fn from(json: &Json) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(value) => Self::Bool(*value),
            Json::Number(number) => match number.as_i64() {
                Some(number) => Self::Int(number),
                None => Self::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(text) => Self::String(text.as_str().into()),
            Json::Array(items) => Self::List(items.iter().map(Self::from).collect()),
            Json::Object(fields) => Self::Object(
                fields.iter().map(|(name, value)| (name.as_str().into(), value.into())).collect(),
            ),
        }
    }
}

impl fmt::Display for Literal {
    /// The GraphQL syntax.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => value.fmt(f),
            Self::Int(number) => number.fmt(f),
            Self::Float(number) => write!(f, "{number:?}"),
            Self::String(text) => write_string(f, text),
            Self::Enum(name) => f.write_str(name),
            Self::Variable(name) => write!(f, "${name}"),
            Self::List(items) => {
                f.write_str("[")?;
                for (index, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if index == 0 { "" } else { ", " })?;
                }
                f.write_str("]")
            }
            Self::Object(fields) => {
                f.write_str("{")?;
                for (index, (name, value)) in fields.iter().enumerate() {
                    write!(f, "{}{name}: {value}", if index == 0 { "" } else { ", " })?;
                }
                f.write_str("}")
            }
        }
    }
}

/// A string in double quotes: the escapes of JSON are those of GraphQL.
pub(crate) fn write_string(f: &mut impl fmt::Write, text: &str) -> fmt::Result {
    f.write_str(&Json::from(text).to_string())
}
