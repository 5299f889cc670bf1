//! Writing trees and files to the caller's disk.
//!
//! A client on the same machine hands over the open directory, and the store writes into it with many
//! threads. Any other client is sent the same entries as frames and writes them itself. The rules are
//! the same both ways: see the crate `landing`.

mod frames;
mod progress;

use crate::host::{Handed, Host};
use crate::services::Services;
use frames::Frames;
use graph::Context;
use progress::Progress;
use protocol::attach::{OpenFor, WriteRequest, Writing};
use protocol::{Error, SpanKind};
use std::sync::Arc;
use store::{Destination, Outlet, OutletFile};
use tokio::sync::mpsc;

/// Pieces of a stream that may wait to be sent.
const WAITING_PIECES: usize = 4;

/// Where a directory goes, and what happens to what is there.
pub(crate) struct IntoDirectory {
    /// As the caller typed it.
    pub(crate) path: String,
    /// Whether everything goes that is there and is not written.
    pub(crate) wipe: bool,
    /// Paths that are removed first, as [`Destination::removed`] has them.
    pub(crate) removed: Vec<Vec<u8>>,
}

/// Writes a directory, and gives the absolute path of where it is now.
pub(crate) async fn directory(
    outlet: Outlet,
    to: IntoDirectory,
    cx: &Context,
) -> Result<String, Error> {
    let IntoDirectory { path, wipe, removed } = to;
    let export = Export::begin(path, Writing::Directory { wipe }, cx);
    let Some(handed) = export.open().await? else {
        let send = move |frames: &mut Frames| {
            frames.remove(&removed);
            frames.tree(&outlet)
        };
        return export.send(send).await;
    };
    let (written, progress) = (handed.path.clone(), export.progress.clone());
    let to = Destination { removed, wipe, ..destination(handed) };
    export.blocking(move || outlet.write(to, &*progress)).await?;
    export.progress.done();
    Ok(written)
}

/// Writes one file, and gives the absolute path of where it is now. An existing directory takes it
/// under `name`, unless that is empty.
pub(crate) async fn file(
    file: OutletFile,
    path: String,
    name: &str,
    cx: &Context,
) -> Result<String, Error> {
    let export = Export::begin(path, Writing::File { name_in_directory: name.to_owned() }, cx);
    export.progress.expect(file.size());
    let Some(handed) = export.open().await? else {
        return export.send(move |frames: &mut Frames| frames.file(&file)).await;
    };
    let (written, progress) = (handed.path.clone(), export.progress.clone());
    let (above, name) = handed.path.rsplit_once('/').unwrap_or(("", &handed.path));
    let (above, name) = (above.to_owned(), name.to_owned());
    let to = Destination { path: above, ..destination(handed) };
    export.blocking(move || file.write(to, name.as_bytes(), &*progress)).await?;
    export.progress.done();
    Ok(written)
}

fn destination(handed: Handed) -> Destination {
    Destination {
        directory: handed.directory,
        path: handed.path,
        owner: handed.owner,
        wipe: false,
        made: handed.made,
        removed: vec![],
    }
}

/// One export. What runs for it stops when this is dropped.
struct Export<'a> {
    cx: &'a Context,
    path: String,
    what: Writing,
    progress: Arc<Progress>,
}

impl<'a> Export<'a> {
    fn begin(path: String, what: Writing, cx: &'a Context) -> Self {
        let span = cx.span().child(format!("export {path}"), SpanKind::Work);
        let progress = Arc::new(Progress::new(span));
        Self { cx, path, what, progress }
    }

    /// The directory that is written into, if the client hands it over.
    async fn open(&self) -> Result<Option<Handed>, Error> {
        let host = self.cx.get::<Host>()?;
        host.files().open(self.path.clone(), OpenFor::Write(self.what.clone())).await
    }

    /// Lets the client write what `send` gives.
    async fn send(
        &self,
        send: impl FnOnce(&mut Frames) -> Result<(), Error> + Send + 'static,
    ) -> Result<String, Error> {
        let (sender, pieces) = mpsc::channel(WAITING_PIECES);
        let progress = self.progress.clone();
        let sending = self.blocking(move || {
            let mut frames = Frames::new(sender, progress);
            send(&mut frames)?;
            frames.end();
            Ok::<(), Error>(())
        });
        let request = WriteRequest { path: self.path.clone(), what: self.what.clone() };
        let host = self.cx.get::<Host>()?;
        let (sent, written) = tokio::join!(sending, host.files().write(request, pieces));
        // What could not be read here is why the client failed too.
        sent?;
        let written = written?;
        self.progress.done();
        Ok(written)
    }

    async fn blocking<T: Send + 'static, E: Into<Error> + Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, E> + Send + 'static,
    ) -> Result<T, Error> {
        self.cx.get::<Services>()?.blocking(work).await
    }
}

impl Drop for Export<'_> {
    fn drop(&mut self) {
        self.progress.stop();
    }
}
