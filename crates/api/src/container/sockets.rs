//! Sockets of the client's machine in a container.
//!
//! While a command runs, the engine listens on a socket of its own, in memory, that is mounted into the
//! container. Whoever connects there is connected through the client, one stream for each. The sockets
//! are no part of the name of a command: what is behind one is never the same twice.

use super::Container;
use crate::host::Host;
use crate::owner::{self, OwnerSpec};
use crate::relay::relay;
use crate::services::Services;
use crate::socket::Socket;
use graph::{Args, Builder, Context, LogStream, Op, Ref, Span};
use protocol::Error;
use protocol::attach::SocketAddress;
use std::sync::Arc;
use std::time::Duration;
use store::{Mount, Snapshot, Target, TargetKind};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::{AbortHandle, JoinSet};

/// How long to wait when no connection can be taken, e.g. because no descriptor is free.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

pub(super) fn install(builder: &mut Builder) {
    builder.install::<WithUnixSocket>().install::<WithoutUnixSocket>();
}

/// A socket as it is mounted.
#[derive(Clone)]
pub(super) struct SocketMount {
    /// Tidy and absolute.
    pub(super) path: String,
    pub(super) owner: OwnerSpec,
    pub(super) socket: Arc<Socket>,
}

/// Takes connections until it is dropped; those that are open end with it.
pub(crate) struct Listening(AbortHandle);

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What a command connects to, and how the client is reached for it.
#[derive(Clone)]
struct Line {
    host: Arc<Host>,
    address: SocketAddress,
    /// Hears of connections that fail.
    span: Span,
}

/// What the sockets of a container are mounted onto.
pub(super) fn targets(container: &Container) -> impl Iterator<Item = Target> {
    let sockets = container.sockets.iter();
    sockets.map(|socket| Target { path: socket.path.clone(), kind: TargetKind::File })
}

/// Listens on every socket of a container.
pub(super) fn listen(
    container: &Container,
    rootfs: &Snapshot,
    services: &Services,
    cx: &Context,
) -> Result<(Vec<sandbox::MountPoint>, Vec<Listening>), Error> {
    let (mut mounts, mut listening) = (vec![], vec![]);
    if container.sockets.is_empty() {
        return Ok((mounts, listening));
    }
    let view = services.store.view(rootfs);
    for socket in &container.sockets {
        let owner = socket.owner.resolve(&|path| owner::read_small_file(&view, path))?;
        let owner = owner.unwrap_or_default();
        let (whole, taken) = lend(&socket.socket, (owner.uid, owner.gid), cx)?;
        let part = services.store.part(&whole, sandbox::MEMORY_ENTRY)?;
        let source = sandbox::Source::Mount(part);
        let target = socket.path.clone();
        mounts.push(sandbox::MountPoint { target, source, read_only: false });
        listening.push(taken);
    }
    Ok((mounts, listening))
}

/// A socket in memory that this user and group may connect to. It is in the file system that comes back.
fn lend(socket: &Socket, owner: (u32, u32), cx: &Context) -> Result<(Mount, Listening), Error> {
    let failed = |error: sandbox::Error| Error::environment(error.to_string());
    let (whole, listener) = sandbox::memory_socket(owner).map_err(failed)?;
    let line = Line {
        host: cx.get::<Host>()?.clone(),
        address: socket.address().clone(),
        span: cx.span().clone(),
    };
    let listener = UnixListener::from_std(listener)
        .map_err(|error| Error::environment(format!("cannot listen for a socket: {error}")))?;
    Ok((whole, Listening(tokio::spawn(accept(listener, line)).abort_handle())))
}

/// The same for a program of the engine's own.
pub(crate) fn lend_socket(socket: &Socket, cx: &Context) -> Result<(Mount, Listening), Error> {
    lend(socket, (0, 0), cx)
}

async fn accept(listener: UnixListener, line: Line) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(forward(stream, line.clone()));
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot take a connection of a container");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
}

/// Passes bytes both ways until both sides have ended.
async fn forward(stream: UnixStream, line: Line) {
    let channel = match line.host.files().connect(line.address).await {
        Ok(channel) => channel,
        Err(error) => return line.span.log(LogStream::Engine, format!("{}\n", error.message)),
    };
    relay(stream, channel).await;
}

/// Gives commands a socket of your machine.
#[derive(Args)]
struct WithUnixSocket {
    /// Replace `$VAR` and `${VAR}` in the path by the container's variables.
    #[arg(default = "false")]
    expand: bool,
    /// `user[:group]` that owns it and may connect; root when empty.
    #[arg(default = "\"\"")]
    owner: String,
    /// Where.
    path: String,
    /// The socket.
    source: Ref<Socket>,
    /// Give it to the container's user instead.
    #[arg(default = "false")]
    inherit_owner: bool,
}

impl Op for WithUnixSocket {
    type Parent = Container;
    type Output = Container;
    const NAME: &'static str = "withUnixSocket";

    async fn run(&self, container: &Container, cx: &Context) -> Result<Container, Error> {
        let path = container.mount_path(&self.path, self.expand)?;
        let owner = container.owner(&self.owner, self.inherit_owner, cx).await?;
        let mut changed = container.clone();
        changed.sockets.retain(|socket| socket.path != path);
        changed.sockets.push(SocketMount { path, owner, socket: self.source.arc() });
        Ok(changed)
    }
}

/// Takes a socket away.
#[derive(Args)]
struct WithoutUnixSocket {
    /// Replace `$VAR` and `${VAR}` in the path by the container's variables.
    #[arg(default = "false")]
    expand: bool,
    /// Where it is.
    path: String,
}

impl Op for WithoutUnixSocket {
    type Parent = Container;
    type Output = Container;
    const NAME: &'static str = "withoutUnixSocket";

    async fn run(&self, container: &Container, _: &Context) -> Result<Container, Error> {
        let path = container.absolute(&self.path, self.expand)?;
        let mut changed = container.clone();
        changed.sockets.retain(|socket| socket.path != path);
        Ok(changed)
    }
}
