//! [`Op`]: one field of one type is one struct, and the erased form in which the graph holds it.
//!
//! An op says what it is (names, types, documentation) and what it does (`run`). Memoisation,
//! sharing, spans and cancellation are the graph's: an op must not do them itself.

use crate::input::{ArgValues, FromValue};
use crate::output::{ObjectValue, Outcome, Output};
use crate::{Context, Error, Extensions, TypeRef, Value};
use futures::future::BoxFuture;
use std::future::Future;
use std::marker::PhantomData;

/// A value behind an object type of the schema.
pub trait Object: Send + Sync + 'static {
    /// Name of the type in the schema.
    const TYPE: &'static str;
    /// Description of the type; empty keeps the one of the schema.
    const DESCRIPTION: &'static str = "";

    /// Whether all that the value stands for is still there. One that is not whole is forgotten when
    /// something was found lost, and its call is evaluated again.
    fn is_whole(&self, _extensions: &Extensions) -> bool {
        true
    }
}

/// The receiver of the fields of `Query`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Root;

impl Object for Root {
    const TYPE: &'static str = "Query";
}

/// The arguments of an op; derive it.
pub trait Args: Sized + Send + Sync + 'static {
    /// Names, types, defaults and documentation.
    fn describe() -> OpDoc;
    /// Reads the arguments of one call.
    fn parse(values: &ArgValues<'_>) -> Result<Self, Error>;
}

/// For how long and for whom the result of an op is remembered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// By call for the session; another session that loads the id runs the op again.
    #[default]
    Shared,
    /// By call for the session, and the object is this session's own: another session that needs it
    /// gets an error. For what is read from the client: host files, secrets, sockets.
    Session,
    /// Like `Shared`, but only the last few of a session. For what is found again at once: a change
    /// of the configuration, a text of a result that is kept. A session of many thousand steps would
    /// grow by all of them.
    Recent,
    /// Not at all: every request runs it. For what acts on the world, such as an export.
    Request,
}

/// One field of one type.
pub trait Op: Args {
    /// The receiver.
    type Parent: Object;
    /// The result.
    type Output: Output;
    /// Name of the field.
    const NAME: &'static str;
    /// Who may use the result, and for how long it is remembered.
    const SCOPE: Scope = Scope::Shared;

    /// Whether asking for the `id` already runs it, so that what only running it shows to be wrong is said at once.
    /// For what is cheap, and would otherwise fail far from where it was written.
    const EAGER: bool = false;

    /// Checks that need no evaluation. They run when the call is made, so already when only its
    /// `id` is asked. Only arguments that were given and differ from their default are there.
    fn check(_args: &[(Box<str>, Value)]) -> Result<(), Error> {
        Ok(())
    }

    /// Whether every call with these arguments is one of its own, so that nothing which was
    /// remembered before is used for it. Its id stands for that one call, and so for one value.
    fn is_unique(_args: &[(Box<str>, Value)]) -> bool {
        false
    }

    /// The work. It is dropped when nobody waits for it any more. It runs on the threads of the
    /// async runtime: what blocks for long belongs into `spawn_blocking`.
    fn run(
        &self,
        parent: &Self::Parent,
        cx: &Context,
    ) -> impl Future<Output = Result<Self::Output, Error>> + Send;
}

/// What an op says of itself.
#[derive(Clone, Debug, Default)]
pub struct OpDoc {
    /// Description of the field.
    pub description: &'static str,
    /// Its arguments.
    pub args: Vec<ArgDoc>,
}

/// What an op says of one argument, or an input object of one field.
#[derive(Clone, Debug)]
pub struct ArgDoc {
    /// Name in the schema.
    pub name: &'static str,
    /// Description.
    pub description: &'static str,
    /// Type; nullable where there is a default.
    pub type_ref: TypeRef,
    /// The default as a GraphQL literal.
    pub default: Option<&'static str>,
    /// The object type that an `ID` stands for.
    pub expected: Option<&'static str>,
    /// Whether the plain text must stay out of calls, spans and ids.
    pub sensitive: bool,
    /// The enum or input object the argument is of.
    pub type_doc: Option<TypeDoc>,
}

/// What Rust says of a named input type.
#[derive(Clone, Debug)]
pub struct TypeDoc {
    /// Name in the schema.
    pub name: &'static str,
    /// Description.
    pub description: &'static str,
    /// Its members or fields.
    pub kind: TypeDocKind,
}

/// Members of an enum or fields of an input object.
#[derive(Clone, Debug)]
pub enum TypeDocKind {
    /// An enum.
    Enum {
        /// Names and descriptions of the members.
        members: &'static [(&'static str, &'static str)],
        /// Further names, each with the member it stands for.
        aliases: &'static [(&'static str, &'static str)],
    },
    /// Fields.
    Input(Vec<ArgDoc>),
}

impl ArgDoc {
    /// An argument of the Rust type `T`.
    pub fn of<T: FromValue>(name: &'static str, description: &'static str) -> Self {
        Self {
            name,
            description,
            type_ref: T::type_ref(),
            default: None,
            expected: T::expected(),
            sensitive: false,
            type_doc: T::type_doc(),
        }
    }

    /// Sets the default, a GraphQL literal; the argument need not be given then.
    #[must_use]
    pub fn with_default(mut self, literal: &'static str) -> Self {
        self.default = Some(literal);
        if let TypeRef::NonNull(inner) = self.type_ref {
            self.type_ref = *inner;
        }
        self
    }

    /// Keeps the plain text out of calls.
    #[must_use]
    pub fn sensitive(mut self) -> Self {
        self.sensitive = true;
        self
    }
}

/// An op whose types are forgotten.
pub(crate) trait Resolver: Send + Sync {
    fn scope(&self) -> Scope;
    /// The object type it makes, one or many.
    fn object(&self) -> Option<&'static str>;
    fn is_eager(&self) -> bool;
    fn check(&self, args: &[(Box<str>, Value)]) -> Result<(), Error>;
    fn is_unique(&self, args: &[(Box<str>, Value)]) -> bool;
    /// Whether all that an outcome of this op stands for is still there.
    fn is_whole(&self, outcome: &Outcome, extensions: &Extensions) -> bool;
    /// Reads the arguments at once and gives the work, which borrows nothing.
    fn start(
        &self,
        parent: ObjectValue,
        values: &ArgValues<'_>,
        cx: Context,
    ) -> Result<BoxFuture<'static, Result<Outcome, Error>>, Error>;
}

/// The one implementation of [`Resolver`].
pub(crate) struct Erased<O>(PhantomData<fn() -> O>);

impl<O> Default for Erased<O> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<O: Op> Resolver for Erased<O> {
    fn scope(&self) -> Scope {
        O::SCOPE
    }

    fn object(&self) -> Option<&'static str> {
        O::Output::OBJECT
    }

    fn is_eager(&self) -> bool {
        O::EAGER
    }

    fn check(&self, args: &[(Box<str>, Value)]) -> Result<(), Error> {
        O::check(args)
    }

    fn is_unique(&self, args: &[(Box<str>, Value)]) -> bool {
        O::is_unique(args)
    }

    fn is_whole(&self, outcome: &Outcome, extensions: &Extensions) -> bool {
        let whole = |object: &ObjectValue| O::Output::is_whole(object, extensions);
        match outcome {
            Outcome::Object(object) => object.iter().all(whole),
            Outcome::Objects(objects) => objects.iter().flatten().all(whole),
            Outcome::Leaf(_) | Outcome::OwnId => true,
        }
    }

    fn start(
        &self,
        parent: ObjectValue,
        values: &ArgValues<'_>,
        cx: Context,
    ) -> Result<BoxFuture<'static, Result<Outcome, Error>>, Error> {
        let op = O::parse(values)?;
        let parent = parent.downcast::<O::Parent>().map_err(|_| {
            let (expected, field) = (O::Parent::TYPE, O::NAME);
            Error::internal(format!("`{expected}.{field}` was called on another type"))
        })?;
        Ok(Box::pin(async move { op.run(&parent, &cx).await.map(Output::into_outcome) }))
    }
}
