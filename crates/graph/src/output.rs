//! [`Output`]: what an op may answer, and the one form in which the graph keeps it.

use crate::op::TypeDoc;
use crate::{Extensions, Object, TypeRef};
use serde_json::Value as Json;
use std::any::Any;
use std::sync::Arc;

/// An object of any type.
pub type ObjectValue = Arc<dyn Any + Send + Sync>;

/// What an op answered.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// An object, or null where the field may be.
    Object(Option<ObjectValue>),
    /// A list of objects.
    Objects(Vec<Option<ObjectValue>>),
    /// A scalar, an enum, a list of those, or null.
    Leaf(Json),
    /// The id of the receiver, now that the work is done.
    OwnId,
}

impl Outcome {
    /// A leaf of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Leaf(Json::String(text.into()))
    }
}

/// A type that an op can answer.
pub trait Output: Sized + Send + Sync + 'static {
    /// The object type it is made of, one or many.
    const OBJECT: Option<&'static str> = None;

    /// The type in the schema.
    fn type_ref() -> TypeRef;
    /// The enum behind it.
    fn type_doc() -> Option<TypeDoc> {
        None
    }
    /// Description of the object type; empty keeps the one of the schema.
    fn object_description() -> &'static str {
        ""
    }
    /// Whether all that an object of this type stands for is still there.
    fn is_whole(_object: &ObjectValue, _extensions: &Extensions) -> bool {
        true
    }
    /// Forgets the type.
    fn into_outcome(self) -> Outcome;
}

/// The answer of a leaf such as `sync`: the receiver's own id, after the work.
#[derive(Clone, Copy, Debug, Default)]
pub struct OwnId;

fn required(name: &str) -> TypeRef {
    TypeRef::NonNull(Box::new(TypeRef::Named(name.into())))
}

impl Output for OwnId {
    fn type_ref() -> TypeRef {
        required("ID")
    }

    fn into_outcome(self) -> Outcome {
        Outcome::OwnId
    }
}

impl<T: Object> Output for T {
    const OBJECT: Option<&'static str> = Some(T::TYPE);

    fn type_ref() -> TypeRef {
        required(T::TYPE)
    }

    fn object_description() -> &'static str {
        T::DESCRIPTION
    }

    fn is_whole(object: &ObjectValue, extensions: &Extensions) -> bool {
        object.downcast_ref::<T>().is_none_or(|object| object.is_whole(extensions))
    }

    fn into_outcome(self) -> Outcome {
        Outcome::Object(Some(Arc::new(self)))
    }
}

impl Output for String {
    fn type_ref() -> TypeRef {
        required("String")
    }

    fn into_outcome(self) -> Outcome {
        Outcome::text(self)
    }
}

impl Output for i64 {
    fn type_ref() -> TypeRef {
        required("Int")
    }

    fn into_outcome(self) -> Outcome {
        Outcome::Leaf(Json::from(self))
    }
}

impl Output for f64 {
    fn type_ref() -> TypeRef {
        required("Float")
    }

    fn into_outcome(self) -> Outcome {
        Outcome::Leaf(Json::from(self))
    }
}

impl Output for bool {
    fn type_ref() -> TypeRef {
        required("Boolean")
    }

    fn into_outcome(self) -> Outcome {
        Outcome::Leaf(Json::Bool(self))
    }
}

impl Output for () {
    fn type_ref() -> TypeRef {
        TypeRef::Named("Void".into())
    }

    fn into_outcome(self) -> Outcome {
        Outcome::Leaf(Json::Null)
    }
}

impl<O: Output> Output for Option<O> {
    const OBJECT: Option<&'static str> = O::OBJECT;

    fn type_ref() -> TypeRef {
        match O::type_ref() {
            TypeRef::NonNull(inner) => *inner,
            nullable => nullable,
        }
    }

    fn type_doc() -> Option<TypeDoc> {
        O::type_doc()
    }

    fn object_description() -> &'static str {
        O::object_description()
    }

    fn is_whole(object: &ObjectValue, extensions: &Extensions) -> bool {
        O::is_whole(object, extensions)
    }

    fn into_outcome(self) -> Outcome {
        match self {
            Some(value) => value.into_outcome(),
            None if O::OBJECT.is_some() => Outcome::Object(None),
            None => Outcome::Leaf(Json::Null),
        }
    }
}

impl<O: Output> Output for Vec<O> {
    const OBJECT: Option<&'static str> = O::OBJECT;

    fn type_ref() -> TypeRef {
        TypeRef::NonNull(Box::new(TypeRef::List(Box::new(O::type_ref()))))
    }

    fn type_doc() -> Option<TypeDoc> {
        O::type_doc()
    }

    fn object_description() -> &'static str {
        O::object_description()
    }

    fn is_whole(object: &ObjectValue, extensions: &Extensions) -> bool {
        O::is_whole(object, extensions)
    }

    fn into_outcome(self) -> Outcome {
        let items = self.into_iter().map(Output::into_outcome);
        if O::OBJECT.is_none() {
            return Outcome::Leaf(items.map(leaf).collect());
        }
        Outcome::Objects(items.map(object).collect())
    }
}

/// The leaf in an element of a list of leaves.
fn leaf(outcome: Outcome) -> Json {
    match outcome {
        Outcome::Leaf(json) => json,
        _ => Json::Null,
    }
}

/// The object in an element of a list of objects. A list in a list of objects is refused when the op
/// is installed, so only objects come here.
fn object(outcome: Outcome) -> Option<ObjectValue> {
    match outcome {
        Outcome::Object(object) => object,
        _ => None,
    }
}
