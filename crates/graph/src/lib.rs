//! A GraphQL server in which every field is an [`Op`] and every selection a memoised [`Call`].
//!
//! Write an op as a struct whose fields are its arguments (`#[derive(Args)]`), give it a parent, an
//! output and a `run`, and [`Builder::install`] it into a schema. A [`Session`] then turns a
//! document into calls, runs nothing until a leaf is asked for, and runs each call once. This crate
//! knows nothing of containers: what is remembered goes through [`Memo`], what is reported through
//! [`EventSink`], everything else an op needs through [`Extensions`].
//!
//! The life of a request: `document` reads and checks the text, `execute` turns selections into
//! calls and forces the leaves, `reply` writes the bytes.

mod builder;
mod coerce;
mod context;
mod document;
mod execute;
mod flight;
mod ids;
mod input;
mod introspect;
mod literal;
mod memo;
mod op;
mod output;
mod registry;
mod reply;
mod session;
mod span;

pub use builder::{Builder, Graph};
pub use context::{Context, Extensions};
pub use graph_macros::{Args, Enum, Input};
pub use input::{
    ArgValues, EnumValue, FromValue, Ref, Sealed, enum_from_value, enum_type_doc, enum_type_ref,
};
pub use memo::{Hold, Made, Memo, NoMemo, Remembered};
pub use op::{ArgDoc, Args, Object, Op, OpDoc, Root, Scope, TypeDoc, TypeDocKind};
pub use output::{ObjectValue, Outcome, Output, OwnId};
pub use protocol::Outcome as SpanOutcome;
pub use protocol::schema::TypeRef;
pub use protocol::{
    Call, CallRecord, Digest, Error, ErrorKind, Event, ExecFailure, LogStream, SpanId, SpanKind,
    Unit, Value,
};
pub use session::{Request, Session};
pub use span::{EventSink, Span};

#[doc(hidden)]
pub use serde_json as __serde_json;
