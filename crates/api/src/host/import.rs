//! Takes a tree of the host into the store, known by its content.
//!
//! A client on this machine hands its directory over, and the store reads it itself. Any other
//! client sends its files.

use super::Host;
use super::handed::take;
use super::progress::Progress;
use super::stream::receive;
use crate::directory::Directory;
use crate::services::Services;
use crate::tree::Tree;
use graph::Context;
use protocol::attach::{OpenFor, ReadRequest};
use protocol::{Error, SpanKind};
use std::sync::Arc;

/// Reads what `request` names; a single file becomes a tree with just that file.
pub(crate) async fn import(host: &Host, request: ReadRequest, cx: &Context) -> Result<Tree, Error> {
    let services = cx.get::<Services>()?;
    let span = cx.span().child(format!("import {}", request.path), SpanKind::Work);
    let progress = Arc::new(Progress::new(span));
    let taken = async {
        let handed = match request.directory {
            true => {
                let purpose = OpenFor::Read { gitignore: request.gitignore };
                host.files().open(request.path.clone(), purpose).await?
            }
            false => None,
        };
        match handed {
            Some(handed) => take(handed, request, services, &progress).await,
            None => receive(host, request, services, &progress).await,
        }
    };
    let (identity, snapshot) = taken.await.inspect_err(|error| progress.failed(error))?;
    progress.done();
    Ok(Tree::settled(identity, snapshot))
}

/// Takes a whole directory of the host in.
pub(crate) async fn take_directory(path: &str, cx: &Context) -> Result<Directory, Error> {
    take_some(path, &[], cx).await
}

/// Takes what matches some patterns in; none takes all.
pub(crate) async fn take_some(
    path: &str,
    include: &[&str],
    cx: &Context,
) -> Result<Directory, Error> {
    let request = ReadRequest {
        path: path.to_owned(),
        directory: true,
        include: include.iter().map(|pattern| (*pattern).to_owned()).collect(),
        exclude: vec![],
        gitignore: false,
    };
    Ok(Directory::below(import(cx.get::<Host>()?, request, cx).await?, ""))
}
