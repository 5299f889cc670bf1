//! `Host`: the caller's machine, reached only through what the caller attaches to its session.

mod handed;
mod import;
mod progress;
mod read;
mod stream;
mod terminal;

pub(crate) use import::{import, take_directory, take_some};
pub use terminal::UserTerminal;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use graph::{Args, Builder, Context, Object, Op, Root};
use protocol::Error;
use protocol::attach::{
    Entry, GitCredential, GitCredentialRequest, IgnoreFile, ListenRequest, LockRecord, LockReply,
    LockRequest, Login, OpenFor, ReadRequest, SocketAddress, WriteRequest,
};
use std::os::fd::OwnedFd;
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

    /// Writes a tree or a file that comes as pieces of frames, cut anywhere, and gives its absolute
    /// path.
    fn write(
        &self,
        request: WriteRequest,
        pieces: mpsc::Receiver<Vec<u8>>,
    ) -> BoxFuture<'_, Result<String, Error>>;

    /// Opens a directory of this machine; none when the client does not hand it over, because it is
    /// elsewhere or because the engine has other rights than it. Then the directory can be read and
    /// written as parts.
    fn open(&self, path: String, purpose: OpenFor) -> BoxFuture<'_, Result<Option<Handed>, Error>>;

    /// The login that the client's machine keeps for a registry.
    fn login(&self, registry: String) -> BoxFuture<'_, Result<Option<Login>, Error>>;

    /// What the client's own git would log in with at a server.
    fn git_credential(
        &self,
        request: GitCredentialRequest,
    ) -> BoxFuture<'_, Result<Option<GitCredential>, Error>>;

    /// The bytes of a secret that the client's machine keeps, by its address.
    fn secret(&self, uri: String) -> BoxFuture<'_, Result<Vec<u8>, Error>>;

    /// Opens a connection to a socket of the client's machine.
    fn connect(&self, address: SocketAddress) -> BoxFuture<'_, Result<Channel, Error>>;

    /// Opens a port of the client's machine.
    fn listen(&self, request: ListenRequest) -> BoxFuture<'_, Result<HostPort, Error>>;

    /// Closes such a port, and waits until it is closed.
    fn close(&self, port: ListenRequest) -> BoxFuture<'_, Result<(), Error>>;

    /// Takes a connection to such a port.
    fn accept(&self, connection: u64) -> BoxFuture<'_, Result<Channel, Error>>;

    /// The terminal that the client's user sits at, once it is free.
    fn terminal(&self) -> BoxFuture<'_, Result<UserTerminal, Error>>;

    /// What is recorded of a look-up in the client's project.
    fn locked(&self, request: LockRequest) -> BoxFuture<'_, Result<LockReply, Error>>;

    /// Records what a look-up came to in the client's project.
    fn lock(&self, record: LockRecord) -> BoxFuture<'_, Result<(), Error>>;

    /// Gives an image, as the pieces of an archive, to the container program of the client's machine.
    fn load_image(
        &self,
        _name: String,
        _pieces: mpsc::Receiver<Bytes>,
    ) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async { Err(no_image_store()) })
    }

    /// An image of the container program of the client's machine, as the pieces of an archive.
    fn save_image(&self, _name: String) -> BoxFuture<'_, Result<ImagePieces, Error>> {
        Box::pin(async { Err(no_image_store()) })
    }

    /// The nearest entry of a name upwards from the working directory, relative to that.
    fn find_up(&self, name: String) -> BoxFuture<'_, Result<Option<String>, Error>>;
}

/// The pieces of an archive as they arrive.
pub type ImagePieces = BoxStream<'static, Result<Bytes, Error>>;

fn no_image_store() -> Error {
    Error::user("there is no store of images where this is called from")
}

/// A port of the client's machine, open for as long as this lives.
pub struct HostPort {
    /// Its number.
    pub port: u16,
    /// Who connects, by a number to be taken by.
    pub connections: BoxStream<'static, u64>,
}

/// A connection to a socket of the client's machine, or to a port of it.
pub struct Channel {
    /// What comes from the socket, until its side ends.
    pub incoming: BoxStream<'static, Bytes>,
    /// What goes to the socket; dropping it ends our side.
    pub outgoing: mpsc::Sender<Bytes>,
}

/// An open directory that the client handed over. All below it may be used with the engine's own
/// rights: the client made sure that they are no more than its own.
pub struct Handed {
    /// Open for reading.
    pub directory: OwnedFd,
    /// Absolute path, or that of the file in it that is to be written, without links.
    pub path: String,
    /// Whether it was made for this.
    pub made: bool,
    /// User and group that the client runs as: what is written belongs to them.
    pub owner: (u32, u32),
    /// `.gitignore` files above the directory, when they were asked for; none in no repository.
    pub ignores: Option<Vec<IgnoreFile>>,
    /// Patterns of what is not for reading.
    pub hidden: Vec<String>,
}

/// A piece of a tree on its way into the store.
pub enum TreePart {
    /// The next entry.
    Entry(Entry),
    /// The next bytes of the file whose entry came last.
    Data(Vec<u8>),
    /// The file whose entry came last comes again from its start, because it changed meanwhile.
    Again(Entry),
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

    /// How its files are reached.
    pub fn files(&self) -> &dyn HostFiles {
        &*self.0
    }
}

/// The object behind `Query.host`. What it reads belongs to the session that asks.
pub(crate) struct HostObject;

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
