//! `Error` and `ErrorValue`: an error as a value, with a message and further values in JSON; and the
//! fields that make a container or a directory fail.

use crate::container::Container;
use crate::directory::Directory;
use crate::json_value;
use crate::scalars::Json;
use graph::{Args, Builder, Context, Object, Op, Root};
use protocol::Error;

pub(crate) fn install(builder: &mut Builder) {
    builder
        .install::<MakeError>()
        .install::<Message>()
        .install::<WithValue>()
        .install::<Values>()
        .install::<ValueName>()
        .install::<ValueValue>()
        .install::<FailContainer>()
        .install::<FailDirectory>();
}

/// An error, as a value.
#[derive(Clone)]
pub(crate) struct ErrorObject {
    message: String,
    values: Vec<ErrorValue>,
}

/// A named value of an error.
#[derive(Clone)]
pub(crate) struct ErrorValue {
    name: String,
    /// JSON.
    value: String,
}

impl Object for ErrorObject {
    const TYPE: &'static str = "Error";
}

impl Object for ErrorValue {
    const TYPE: &'static str = "ErrorValue";
}

/// An error.
#[derive(Args)]
struct MakeError {
    /// What went wrong.
    message: String,
}

impl Op for MakeError {
    type Parent = Root;
    type Output = ErrorObject;
    const NAME: &'static str = "error";

    async fn run(&self, _: &Root, _: &Context) -> Result<ErrorObject, Error> {
        Ok(ErrorObject { message: self.message.clone(), values: vec![] })
    }
}

/// What went wrong.
#[derive(Args)]
struct Message {}

impl Op for Message {
    type Parent = ErrorObject;
    type Output = String;
    const NAME: &'static str = "message";

    async fn run(&self, error: &ErrorObject, _: &Context) -> Result<String, Error> {
        Ok(error.message.clone())
    }
}

/// Adds a value to the error. One of the same name is replaced.
#[derive(Args)]
struct WithValue {
    /// What it is called.
    name: String,
    /// The value.
    value: Json,
}

impl Op for WithValue {
    type Parent = ErrorObject;
    type Output = ErrorObject;
    const NAME: &'static str = "withValue";

    async fn run(&self, error: &ErrorObject, _: &Context) -> Result<ErrorObject, Error> {
        let value = json_value::parse(&self.value.0)?.to_string();
        let added = ErrorValue { name: self.name.clone(), value };
        let mut changed = error.clone();
        match changed.values.iter_mut().find(|known| known.name == self.name) {
            Some(known) => *known = added,
            None => changed.values.push(added),
        }
        Ok(changed)
    }
}

/// The values of the error, in the order in which they were added.
#[derive(Args)]
struct Values {}

impl Op for Values {
    type Parent = ErrorObject;
    type Output = Vec<ErrorValue>;
    const NAME: &'static str = "values";

    async fn run(&self, error: &ErrorObject, _: &Context) -> Result<Vec<ErrorValue>, Error> {
        Ok(error.values.clone())
    }
}

/// What the value is called.
#[derive(Args)]
struct ValueName {}

impl Op for ValueName {
    type Parent = ErrorValue;
    type Output = String;
    const NAME: &'static str = "name";

    async fn run(&self, value: &ErrorValue, _: &Context) -> Result<String, Error> {
        Ok(value.name.clone())
    }
}

/// The value.
#[derive(Args)]
struct ValueValue {}

impl Op for ValueValue {
    type Parent = ErrorValue;
    type Output = Json;
    const NAME: &'static str = "value";

    async fn run(&self, value: &ErrorValue, _: &Context) -> Result<Json, Error> {
        Ok(Json(value.value.clone()))
    }
}

/// Fails with an error as soon as something of the container is needed.
#[derive(Args)]
struct FailContainer {
    /// What went wrong; empty is no error.
    err: String,
}

impl Op for FailContainer {
    type Parent = Container;
    type Output = Container;
    const NAME: &'static str = "withError";

    async fn run(&self, container: &Container, _: &Context) -> Result<Container, Error> {
        fail(&self.err)?;
        Ok(container.clone())
    }
}

/// Fails with an error as soon as something of the directory is needed.
#[derive(Args)]
struct FailDirectory {
    /// What went wrong; empty is no error.
    err: String,
}

impl Op for FailDirectory {
    type Parent = Directory;
    type Output = Directory;
    const NAME: &'static str = "withError";

    async fn run(&self, directory: &Directory, _: &Context) -> Result<Directory, Error> {
        fail(&self.err)?;
        Ok(directory.clone())
    }
}

fn fail(message: &str) -> Result<(), Error> {
    if message.trim().is_empty() { Ok(()) } else { Err(Error::user(message)) }
}
