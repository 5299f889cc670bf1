//! A directory that the client handed over, read by the store.

use super::Handed;
use super::progress::Progress;
use crate::services::Services;
use protocol::attach::ReadRequest;
use protocol::{Digest, Error};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use store::{HostDirectory, IntakeError, Snapshot};

/// Takes the directory in. It is not read any further when nobody waits.
pub(super) async fn take(
    handed: Handed,
    request: ReadRequest,
    services: &Services,
    progress: &Arc<Progress>,
) -> Result<(Digest, Snapshot), Error> {
    let ReadRequest { path: typed, include, mut exclude, .. } = request;
    let Handed { directory, path, ignores, hidden, .. } = handed;
    exclude.extend(hidden);
    let ignores = ignores.map(|files| files.into_iter().map(|file| (file.below, file.text)));
    let ignores = ignores.map(Iterator::collect);
    let source = HostDirectory { directory, path, include, exclude, ignores };
    let store = services.store.clone();
    let watch = progress.clone();
    let stop = StopOnDrop(progress.clone());
    let taken = services.blocking(move || {
        store.take_in(&source, &*watch).map_err(|error| explained(&typed, error))
    });
    let taken = taken.await?;
    drop(stop);
    if taken.unchanged {
        progress.mark_cached();
    }
    Ok((taken.digest, taken.snapshot))
}

/// Ends an import whose waiter has gone.
struct StopOnDrop(Arc<Progress>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// The error with the path as the user would write it.
fn explained(typed: &str, error: IntakeError) -> Error {
    let (path, problem) = match error {
        IntakeError::Entry { path, problem } => (path, problem),
        IntakeError::Store(error) => return error.into(),
        IntakeError::Cancelled => return Error::environment(error.to_string()),
    };
    let shown = match &path[..] {
        [] => typed.to_owned(),
        path => Path::new(typed).join(OsStr::from_bytes(path)).display().to_string(),
    };
    let explained = Error::new(problem.kind(), format!("{shown}: {problem}"));
    match problem.hint() {
        Some(hint) => explained.with_hint(hint),
        None => explained,
    }
}
