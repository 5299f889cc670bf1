//! [`Source`]: where a repository is, and how what it has gets onto our disk.

use super::local::{Local, LocalOpen};
use super::remote::Remote;
use super::told;
use git::{Access, Depth, Git, Mirror, Refs};
use graph::Context;
use protocol::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::Volume;
use tokio::sync::OwnedMutexGuard;

/// Where a repository is.
#[derive(Clone)]
pub(crate) enum Source {
    /// Elsewhere.
    Remote(Arc<Remote>),
    /// In a directory.
    Local(Arc<Local>),
}

/// A repository on our disk that stays while this is held.
pub(super) struct OnDisk {
    path: PathBuf,
    _hold: Hold,
    /// Keeps others from cutting off what is to be read.
    writer: Option<OwnedMutexGuard<()>>,
}

enum Hold {
    Mirror { _volume: Volume },
    Local { _open: Arc<LocalOpen> },
}

impl OnDisk {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Lets others write there again, if it was held from them.
    pub(super) fn let_others_write(&mut self) {
        self.writer = None;
    }
}

impl Source {
    /// What the repository has, as this session first saw it.
    pub(super) async fn refs(&self, cx: &Context) -> Result<Refs, Error> {
        match self {
            Self::Remote(remote) => Ok(remote.open(cx).await?.refs.clone()),
            Self::Local(local) => Ok(local.open(cx).await?.refs.clone()),
        }
    }

    /// Where the repository comes from; none for one of the caller's own.
    pub(super) async fn origin(&self, cx: &Context) -> Result<Option<String>, Error> {
        match self {
            Self::Remote(remote) => Ok(Some(remote.open(cx).await?.url.to_string())),
            Self::Local(local) => Ok(local.origin().map(str::to_owned)),
        }
    }

    /// Whether something of this session is needed to read it.
    pub(super) async fn is_of_session(&self, cx: &Context) -> Result<bool, Error> {
        match self {
            Self::Remote(remote) => Ok(remote.open(cx).await?.is_private()),
            Self::Local(_) => Ok(true),
        }
    }

    /// A repository on disk that has these commits with so much of their history. Where that is but a part nobody else writes to
    /// it until [`OnDisk::let_others_write`].
    pub(super) async fn with_commits(
        &self,
        commits: &[&str],
        depth: Depth,
        cx: &Context,
    ) -> Result<OnDisk, Error> {
        match self {
            Self::Remote(remote) => remote_commits(remote, commits, depth, cx).await,
            Self::Local(local) => {
                let open = local.open(cx).await?;
                for commit in commits {
                    open.require(commit, cx).await?;
                }
                Ok(OnDisk { path: open.path(), _hold: Hold::Local { _open: open }, writer: None })
            }
        }
    }
}

async fn remote_commits(
    remote: &Remote,
    commits: &[&str],
    depth: Depth,
    cx: &Context,
) -> Result<OnDisk, Error> {
    let services = cx.get::<crate::services::Services>()?;
    let open = remote.open(cx).await?;
    let (url, store) = (open.url.to_string(), services.store.clone());
    let key = url.clone();
    let volume = services.blocking(move || store.mirror(&key)).await?;
    let mirror = Mirror::at(volume.path());
    let git: &Git = services.git.git();
    let held = |path, writer| {
        let _hold = Hold::Mirror { _volume: volume.clone() };
        OnDisk { path, _hold, writer }
    };
    // Who fetches less of a history cuts off there what others have fetched.
    let alone = matches!(depth, Depth::Commits(2..));
    let mut writer = if alone { Some(services.git.writer(&url).await) } else { None };
    if let Some(path) = mirror.find(git, commits, depth).await.map_err(told)? {
        return Ok(held(path, writer));
    }
    let store = services.store.clone();
    services.blocking(move || store.make_room()).await?;
    let fetching = match writer.take() {
        Some(writer) => writer,
        None => services.git.writer(&url).await,
    };
    let span = cx.span().child(format!("fetch {url}"), protocol::SpanKind::Work);
    let shown = span.clone();
    // Git's progress is for people as it is.
    let heard: git::Heard = Box::new(move |said: &[u8]| {
        shown.log(graph::LogStream::Engine, String::from_utf8_lossy(said).into_owned());
    });
    let access: &Access = &open.access;
    let fetched = mirror
        .fetch((git, &open.reach, access), (&open.refs, commits), depth, Some(heard))
        .await
        .map_err(told);
    match &fetched {
        Ok(_) => span.done(),
        Err(error) => span.end(graph::SpanOutcome::Failed(error.message.clone())),
    }
    Ok(held(fetched?, alone.then_some(fetching)))
}
