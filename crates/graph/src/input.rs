//! [`FromValue`]: how the arguments of a call become the fields of an op.
//!
//! Values arrive coerced to the types of the schema, so nothing here is lenient: a value of the wrong
//! sort is a defect of ours. Object arguments were evaluated before; a [`Ref`] only finds them.

use crate::op::{TypeDoc, TypeDocKind};
use crate::output::ObjectValue;
use crate::session::Vault;
use crate::{Call, Digest, Error, Object, TypeRef, Value};
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;

/// A type that an argument can have.
pub trait FromValue: Sized + Send + Sync + 'static {
    /// The type in the schema.
    fn type_ref() -> TypeRef;
    /// The object type that an `ID` stands for.
    fn expected() -> Option<&'static str> {
        None
    }
    /// The enum or input object behind it.
    fn type_doc() -> Option<TypeDoc> {
        None
    }
    /// Reads a coerced value.
    fn from_value(value: &Value, values: &ArgValues<'_>) -> Result<Self, Error>;
}

/// The arguments of one call, with what its object arguments were evaluated to.
pub struct ArgValues<'a> {
    pub(crate) given: &'a [(Box<str>, Value)],
    pub(crate) defaults: &'a [(Box<str>, Value)],
    pub(crate) objects: &'a HashMap<Digest, ObjectValue>,
    pub(crate) vault: &'a Vault,
}

impl ArgValues<'_> {
    /// The argument `name`: given, by default, or null.
    pub fn get<T: FromValue>(&self, name: &str) -> Result<T, Error> {
        let value = find(self.given, name).or_else(|| find(self.defaults, name));
        T::from_value(value.unwrap_or(&Value::Null), self).map_err(|error| named(error, name))
    }

    /// The field `name` of an input object.
    pub fn field<T: FromValue>(&self, object: &Value, name: &str) -> Result<T, Error> {
        let Value::Object(fields) = object else { return Err(mismatch("an input object")) };
        let value = find(fields, name).unwrap_or(&Value::Null);
        T::from_value(value, self).map_err(|error| named(error, name))
    }
}

fn find<'a>(values: &'a [(Box<str>, Value)], name: &str) -> Option<&'a Value> {
    values.iter().find(|(given, _)| **given == *name).map(|(_, value)| value)
}

fn named(mut error: Error, name: &str) -> Error {
    error.message = format!("argument `{name}`: {}", error.message);
    error
}

fn mismatch(expected: &str) -> Error {
    Error::user(format!("expected {expected}"))
}

/// A required type of this name.
fn required(name: &str) -> TypeRef {
    TypeRef::NonNull(Box::new(TypeRef::Named(name.into())))
}

impl FromValue for String {
    fn type_ref() -> TypeRef {
        required("String")
    }

    fn from_value(value: &Value, values: &ArgValues<'_>) -> Result<Self, Error> {
        match value {
            Value::String(text) => Ok(text.to_string()),
            Value::Sealed(digest) => values
                .vault
                .get(digest)
                .map(|text| text.to_string())
                .ok_or_else(|| Error::user("the sensitive text belongs to another session")),
            _ => Err(mismatch("a string")),
        }
    }
}

impl FromValue for i64 {
    fn type_ref() -> TypeRef {
        required("Int")
    }

    fn from_value(value: &Value, _: &ArgValues<'_>) -> Result<Self, Error> {
        match value {
            Value::Int(number) => Ok(*number),
            _ => Err(mismatch("a whole number")),
        }
    }
}

impl FromValue for f64 {
    fn type_ref() -> TypeRef {
        required("Float")
    }

    fn from_value(value: &Value, _: &ArgValues<'_>) -> Result<Self, Error> {
        match value {
            Value::Float(number) => Ok(*number),
            Value::Int(number) => Ok(*number as f64),
            _ => Err(mismatch("a number")),
        }
    }
}

impl FromValue for bool {
    fn type_ref() -> TypeRef {
        required("Boolean")
    }

    fn from_value(value: &Value, _: &ArgValues<'_>) -> Result<Self, Error> {
        match value {
            Value::Bool(value) => Ok(*value),
            _ => Err(mismatch("true or false")),
        }
    }
}

impl<T: FromValue> FromValue for Option<T> {
    fn type_ref() -> TypeRef {
        match T::type_ref() {
            TypeRef::NonNull(inner) => *inner,
            nullable => nullable,
        }
    }

    fn expected() -> Option<&'static str> {
        T::expected()
    }

    fn type_doc() -> Option<TypeDoc> {
        T::type_doc()
    }

    fn from_value(value: &Value, values: &ArgValues<'_>) -> Result<Self, Error> {
        if value.is_null() { Ok(None) } else { T::from_value(value, values).map(Some) }
    }
}

impl<T: FromValue> FromValue for Vec<T> {
    fn type_ref() -> TypeRef {
        TypeRef::NonNull(Box::new(TypeRef::List(Box::new(T::type_ref()))))
    }

    fn expected() -> Option<&'static str> {
        T::expected()
    }

    fn type_doc() -> Option<TypeDoc> {
        T::type_doc()
    }

    fn from_value(value: &Value, values: &ArgValues<'_>) -> Result<Self, Error> {
        match value {
            Value::List(items) => items.iter().map(|item| T::from_value(item, values)).collect(),
            _ => Err(mismatch("a list")),
        }
    }
}

/// An evaluated object argument.
pub struct Ref<T> {
    value: Arc<T>,
    call: Arc<Call>,
}

impl<T> Ref<T> {
    /// The call that makes the object: its name.
    pub fn call(&self) -> &Arc<Call> {
        &self.call
    }

    /// The object, to keep.
    pub fn arc(&self) -> Arc<T> {
        self.value.clone()
    }
}

impl<T> Clone for Ref<T> {
    fn clone(&self) -> Self {
        Self { value: self.value.clone(), call: self.call.clone() }
    }
}

impl<T> Deref for Ref<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: std::fmt::Debug> std::fmt::Debug for Ref<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.value.fmt(f)
    }
}

impl<T: Object> FromValue for Ref<T> {
    fn type_ref() -> TypeRef {
        required("ID")
    }

    fn expected() -> Option<&'static str> {
        Some(T::TYPE)
    }

    fn from_value(value: &Value, values: &ArgValues<'_>) -> Result<Self, Error> {
        let Value::Call(call) = value else { return Err(mismatch("an id")) };
        let object = values.objects.get(call.digest()).cloned();
        let value = object.and_then(|object| object.downcast::<T>().ok()).ok_or_else(|| {
            let (expected, made) = (T::TYPE, call.returns());
            Error::internal(format!("expected a `{expected}`, the call makes a `{made}`"))
        })?;
        Ok(Self { value, call: call.clone() })
    }
}

/// A sensitive argument that stays sealed; [`crate::Context::unseal`] gives the plain text to the
/// session that brought it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sealed(pub Digest);

impl FromValue for Sealed {
    fn type_ref() -> TypeRef {
        required("String")
    }

    fn from_value(value: &Value, _: &ArgValues<'_>) -> Result<Self, Error> {
        match value {
            Value::Sealed(digest) => Ok(Self(*digest)),
            _ => Err(mismatch("a sealed text")),
        }
    }
}

/// A Rust enum that is a GraphQL enum; derive it with `Enum`.
pub trait EnumValue: Sized {
    /// Name of the enum in the schema.
    const TYPE: &'static str;
    /// Description of the enum.
    const DESCRIPTION: &'static str;
    /// Names and descriptions of the members, without aliases.
    const MEMBERS: &'static [(&'static str, &'static str)];
    /// Further names that are accepted, each with the base name it stands for.
    const ALIASES: &'static [(&'static str, &'static str)];

    /// The member with this name or alias.
    fn from_name(name: &str) -> Option<Self>;
    /// The base name of the member.
    fn name(&self) -> &'static str;
}

/// The type of a derived enum.
pub fn enum_type_ref<T: EnumValue>() -> TypeRef {
    required(T::TYPE)
}

/// The documentation of a derived enum.
pub fn enum_type_doc<T: EnumValue>() -> TypeDoc {
    let kind = TypeDocKind::Enum { members: T::MEMBERS, aliases: T::ALIASES };
    TypeDoc { name: T::TYPE, description: T::DESCRIPTION, kind }
}

/// Reads a member of a derived enum.
pub fn enum_from_value<T: EnumValue>(value: &Value) -> Result<T, Error> {
    let name = value.as_str().ok_or_else(|| mismatch(T::TYPE))?;
    T::from_name(name).ok_or_else(|| {
        crate::reply::not_implemented(format!("the value `{name}` of `{}`", T::TYPE))
    })
}

/// Defines a custom scalar: a text with a type of its own.
///
/// `scalar!(/// Docs. pub Platform);` or `scalar!(/// Docs. pub Json, "JSON");`
#[macro_export]
macro_rules! scalar {
    ($(#[$meta:meta])* $visibility:vis $name:ident) => {
        $crate::scalar!($(#[$meta])* $visibility $name, stringify!($name));
    };
    ($(#[$meta:meta])* $visibility:vis $name:ident, $type:expr) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        $visibility struct $name(
            /// The text.
            pub String,
        );

        impl $crate::FromValue for $name {
            fn type_ref() -> $crate::TypeRef {
                $crate::TypeRef::NonNull(Box::new($crate::TypeRef::Named($type.into())))
            }

            fn from_value(
                value: &$crate::Value,
                values: &$crate::ArgValues<'_>,
            ) -> Result<Self, $crate::Error> {
                <String as $crate::FromValue>::from_value(value, values).map(Self)
            }
        }

        impl $crate::Output for $name {
            fn type_ref() -> $crate::TypeRef {
                <Self as $crate::FromValue>::type_ref()
            }

            fn into_outcome(self) -> $crate::Outcome {
                $crate::Outcome::text(self.0)
            }
        }
    };
}
