//! `Host`: the caller's machine, reached only through what the caller attaches to its session.

mod import;
mod read;

use futures::future::BoxFuture;
use graph::{Args, Builder, Context, Object, Op, Root};
use protocol::Error;
use protocol::attach::{Entry, ReadRequest, WriteRequest};
use std::sync::Arc;
use tokio::sync::mpsc;

/// The files of a session's host. The engine gives every session one.
pub struct Host(Arc<dyn HostFiles>);

/// How the files of a host are reached.
pub trait HostFiles: Send + Sync {
    /// Reads a tree or a file; its parts are sent in order, [`TreePart::End`] last.
    fn read(
        &self,
        request: ReadRequest,
        parts: mpsc::Sender<TreePart>,
    ) -> BoxFuture<'_, Result<(), Error>>;

    /// Writes one file atomically, and gives its absolute path.
    fn write(
        &self,
        request: WriteRequest,
        source: std::fs::File,
    ) -> BoxFuture<'_, Result<String, Error>>;

    /// The nearest entry of a name upwards from the working directory, relative to that.
    fn find_up(&self, name: String) -> BoxFuture<'_, Result<Option<String>, Error>>;
}

/// A piece of a tree on its way into the store.
pub enum TreePart {
    /// The next entry.
    Entry(Entry),
    /// The next bytes of the file whose entry came last.
    Data(Vec<u8>),
    /// The file whose entry came last is complete.
    EndOfFile,
    /// The tree is complete.
    End,
}

impl Host {
    /// Reaches the host through `files`.
    pub fn new(files: Arc<dyn HostFiles>) -> Self {
        Self(files)
    }

    pub(crate) fn files(&self) -> &dyn HostFiles {
        &*self.0
    }
}

/// The object behind `Query.host`. What it reads belongs to the session that asks.
struct HostObject;

impl Object for HostObject {
    const TYPE: &'static str = "Host";
}

pub(crate) fn install(builder: &mut Builder) {
    builder.install::<GetHost>();
    read::install(builder);
}

/// The caller's machine.
#[derive(Args)]
struct GetHost {}

impl Op for GetHost {
    type Parent = Root;
    type Output = HostObject;
    const NAME: &'static str = "host";

    async fn run(&self, _: &Root, _: &Context) -> Result<HostObject, Error> {
        Ok(HostObject)
    }
}
