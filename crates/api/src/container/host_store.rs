//! Images of the container program on the caller's machine: `exportImage` gives it one,
//! `Host.containerImage` takes one.

use super::Container;
use super::publish::{LayerCompression, MediaTypes, form, recipes};
use crate::file::File;
use crate::host::{Host, HostObject};
use crate::services::Services;
use crate::tree::Tree;
use bytes::Bytes;
use futures::StreamExt as _;
use graph::{Args, Builder, Context, Op, Ref, Scope};
use protocol::{Digest, Error, SpanKind, Unit};
use registry::Reference;
use std::io::{self, Read};
use store::{Meta, Snapshot, Store, Timestamp};
use tokio::sync::mpsc;

/// Bytes of an archive that travel together.
const PIECE: usize = 256 << 10;
/// Pieces that may wait.
const PIECES_IN_FLIGHT: usize = 16;
/// Name of an archive in its tree.
const ARCHIVE: &str = "image.tar";

pub(super) fn install(builder: &mut Builder) {
    builder.install::<ExportImage>().install::<ContainerImage>();
}

/// Gives the container as an image to the container program of your machine: docker, podman or nerdctl.
#[derive(Args)]
struct ExportImage {
    /// What the image is called there: `[registry/]repository[:tag]`.
    name: String,
    /// The same image for other platforms.
    #[arg(default = "[]")]
    platform_variants: Vec<Ref<Container>>,
    /// Compress all layers in this way; otherwise layers of images stay as they are.
    forced_compression: Option<LayerCompression>,
    /// Whose names the documents use.
    #[arg(default = "OCIMediaTypes")]
    media_types: MediaTypes,
}

impl Op for ExportImage {
    type Parent = Container;
    type Output = ();
    const NAME: &'static str = "exportImage";
    const SCOPE: Scope = Scope::Request;

    async fn run(&self, container: &Container, cx: &Context) -> Result<(), Error> {
        check_name(&self.name)?;
        let services = cx.get::<Services>()?;
        let form = form(self.media_types, self.forced_compression);
        let recipes = recipes(container, &self.platform_variants);
        let archive = crate::image::tarball(&recipes, form, cx).await?;
        let snapshot = archive.snapshot(services).await?;
        let (store, path) = (services.store.clone(), archive.path().to_owned());
        let (sender, pieces) = mpsc::channel(PIECES_IN_FLIGHT);
        let span = cx.span().child(format!("load {}", self.name), SpanKind::Work);
        let reading = services.blocking(move || send(&store, &snapshot, &path, &sender));
        let loading = cx.get::<Host>()?.files().load_image(self.name.clone(), pieces);
        let (read, loaded) = futures::join!(reading, loading);
        // A program that refused is the cause when the archive could not be sent whole.
        loaded?;
        read?;
        span.done();
        Ok(())
    }
}

/// Sends an archive piece by piece. Who takes it may stop: that is no failure of this side.
fn send(
    store: &Store,
    snapshot: &Snapshot,
    path: &str,
    sender: &mpsc::Sender<Bytes>,
) -> Result<(), Error> {
    let mut archive = store.view(snapshot).read(path).map_err(store::Error::from)?;
    loop {
        let mut piece = vec![0; PIECE];
        let length = match archive.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(store::Error::from_read(path)(error).into()),
        };
        piece.truncate(length);
        if sender.blocking_send(piece.into()).is_err() {
            return Ok(());
        }
    }
}

/// A container that begins from an image of the container program of your machine.
#[derive(Args)]
struct ContainerImage {
    /// What the image is called there.
    name: String,
}

impl Op for ContainerImage {
    type Parent = HostObject;
    type Output = Container;
    const NAME: &'static str = "containerImage";
    const SCOPE: Scope = Scope::Session;

    async fn run(&self, _: &HostObject, cx: &Context) -> Result<Container, Error> {
        check_name(&self.name)?;
        let services = cx.get::<Services>()?;
        let span = cx.span().child(format!("save {}", self.name), SpanKind::Work);
        let mut saved = cx.get::<Host>()?.files().save_image(self.name.clone()).await?;
        let (sender, pieces) = mpsc::channel(PIECES_IN_FLIGHT);
        let store = services.store.clone();
        let writing = services.blocking(move || receive(&store, pieces));
        let sending = async {
            let mut count = 0;
            while let Some(piece) = saved.next().await {
                let piece = piece?;
                count += piece.len() as u64;
                span.progress(count, None, Unit::Bytes);
                if sender.send(Some(piece)).await.is_err() {
                    return Ok(());
                }
            }
            // Only now it is known that the archive is whole. Who writes may have given up.
            let _ = sender.send(None).await;
            drop(sender);
            Ok::<_, Error>(())
        };
        let (sent, written) = futures::join!(sending, writing);
        sent?;
        let (snapshot, identity) = written?;
        span.done();
        let archive = File::below(Tree::settled(identity, snapshot), ARCHIVE);
        let container = Container::scratch(crate::platform::current());
        let pulled = crate::image::import(&archive, "", &container.platform, cx).await?;
        Ok(container.with_image(pulled))
    }
}

/// Writes an archive into the store while it arrives.
fn receive(
    store: &Store,
    mut pieces: mpsc::Receiver<Option<Bytes>>,
) -> Result<(Snapshot, Digest), Error> {
    let mut tree = store.inflow()?;
    let mut file = tree.file(ARCHIVE.as_bytes())?;
    loop {
        match pieces.blocking_recv() {
            Some(Some(bytes)) => file.write(&bytes)?,
            Some(None) => break,
            None => return Err(Error::environment("the image did not arrive whole")),
        }
    }
    file.finish(&Meta { mode: 0o600, uid: 0, gid: 0, mtime: Timestamp::default() })?;
    Ok(tree.finish()?)
}

/// Refuses what is no name of an image; one that begins with a dash would be a flag.
fn check_name(name: &str) -> Result<(), Error> {
    if name.starts_with('-') || Reference::parse(name).is_err() {
        return Err(Error::user(format!("`{name}` is no name of an image")));
    }
    Ok(())
}
