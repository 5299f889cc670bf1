//! [`Schema`]: the API as our own command line sees it.
//!
//! Standard introspection tells published clients what exists. Our command line also needs to know
//! which fields work yet and what sort of object an `ID` argument stands for, so it reads this.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// All types by name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Schema {
    /// Types by name.
    pub types: BTreeMap<String, Type>,
}

/// One named type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Type {
    /// What sort of type it is.
    pub kind: TypeKind,
    /// For people; first line is the summary.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Fields of an object or interface.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<Field>,
    /// Fields of an input object.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<Argument>,
    /// Members of an enum.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<Member>,
}

/// Sorts of named types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names are GraphQL's own")]
pub enum TypeKind {
    Scalar,
    Object,
    Interface,
    Enum,
    Input,
}

/// One field.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Field {
    /// Name.
    pub name: String,
    /// For people; first line is the summary.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Arguments in the order of the schema.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<Argument>,
    /// What it returns.
    pub returns: TypeRef,
    /// Whether it works yet.
    pub implemented: bool,
    /// Whether it should not be used any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deprecated: bool,
}

/// One member of an enum.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Name.
    pub name: String,
    /// For people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The member that this one is another name for.
    #[serde(rename = "standsFor", default, skip_serializing_if = "Option::is_none")]
    pub stands_for: Option<String>,
}

/// One argument of a field, or one field of an input object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Argument {
    /// Name.
    pub name: String,
    /// For people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Its type.
    #[serde(rename = "type")]
    pub type_ref: TypeRef,
    /// The default as a GraphQL literal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// Name of the object type that an `ID` stands for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
}

/// A use of a type.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TypeRef {
    /// A named type that may be null.
    Named(String),
    /// A list.
    List(Box<TypeRef>),
    /// Never null.
    NonNull(Box<TypeRef>),
}

impl TypeRef {
    /// The name inside all lists and marks.
    pub fn base(&self) -> &str {
        match self {
            Self::Named(name) => name,
            Self::List(inner) | Self::NonNull(inner) => inner.base(),
        }
    }

    /// Whether a value must be given.
    pub fn is_required(&self) -> bool {
        matches!(self, Self::NonNull(_))
    }

    /// Whether it is a list, required or not.
    pub fn is_list(&self) -> bool {
        match self {
            Self::Named(_) => false,
            Self::List(_) => true,
            Self::NonNull(inner) => inner.is_list(),
        }
    }
}

impl std::fmt::Display for TypeRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Named(name) => f.write_str(name),
            Self::List(inner) => write!(f, "[{inner}]"),
            Self::NonNull(inner) => write!(f, "{inner}!"),
        }
    }
}
