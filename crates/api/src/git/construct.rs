//! Fields that make a repository: `Query.git`, `Directory.asGit`, and the old ways to give credentials.

use super::access::Given;
use super::local::Local;
use super::remote::Remote;
use super::{GitRepository, Source};
use crate::directory::Directory;
use crate::host;
use crate::secret::Secret;
use crate::service::Service;
use crate::services::Services;
use crate::socket::Socket;
use git::Spelled;
use graph::{Args, Builder, Context, Op, Ref, Root, Scope};
use protocol::{Error, Value};
use std::sync::Arc;

/// What is read of a directory of the caller's machine: a repository in it, or the parts of one that it is itself.
const REPOSITORY: &[&str] = &[
    ".git",
    "HEAD",
    "commondir",
    "config",
    "modules",
    "objects",
    "packed-refs",
    "refs",
    "reftable",
    "shallow",
];

pub(super) fn install(builder: &mut Builder) {
    builder
        .install::<MakeRepository>()
        .install::<AsGit>()
        .install::<WithAuthToken>()
        .install::<WithAuthHeader>();
}

/// A git repository elsewhere, or one of your machine.
#[derive(Args)]
struct MakeRepository {
    /// A service that is the server; it is started before anything is fetched.
    experimental_service_host: Option<Ref<Service>>,
    /// Whether trees have a `.git` unless they are asked for without.
    #[arg(default = "true")]
    keep_git_dir: bool,
    /// Socket of the ssh agent that has the keys; yours by default.
    ssh_auth_socket: Option<Ref<Socket>>,
    /// Lines of a `known_hosts` file: other hosts are refused. When empty, hosts are trusted when they are first met.
    #[arg(default = "\"\"")]
    ssh_known_hosts: String,
    /// Where: `https://host/path`, `ssh://user@host/path`, `user@host:path`, `host/path`, or `file:///path` for a repository
    /// of your machine.
    url: String,
    /// Password or token for http. Without credentials, your git's credential helper is asked when the server wants some.
    http_auth_token: Option<Ref<Secret>>,
    /// Value of the header `Authorization` for http.
    http_auth_header: Option<Ref<Secret>>,
    /// Whose the token is; servers that look at the token alone do not care.
    #[arg(default = "\"\"")]
    http_auth_username: String,
}

impl Op for MakeRepository {
    type Parent = Root;
    type Output = GitRepository;
    const NAME: &'static str = "git";

    fn check(args: &[(Box<str>, Value)]) -> Result<(), Error> {
        let url = args.iter().find(|(name, _)| &**name == "url").and_then(|(_, url)| url.as_str());
        spelled(url.unwrap_or_default()).map(drop)
    }

    async fn run(&self, _: &Root, cx: &Context) -> Result<GitRepository, Error> {
        let given = Given {
            token: self.http_auth_token.as_ref().map(Ref::arc),
            username: self.http_auth_username.clone(),
            header: self.http_auth_header.as_ref().map(Ref::arc),
            password: None,
            socket: self.ssh_auth_socket.as_ref().map(Ref::arc),
            known_hosts: self.ssh_known_hosts.clone(),
            service: self.experimental_service_host.as_ref().map(Ref::arc),
        };
        let repository = GitRepository::at(&self.url, given, cx).await?;
        Ok(GitRepository { discard: !self.keep_git_dir, ..repository })
    }
}

impl GitRepository {
    /// The repository at a place as users write it.
    pub(super) async fn at(text: &str, given: Given, cx: &Context) -> Result<Self, Error> {
        let spelled = spelled(text)?;
        if let Spelled::Path(path) = &spelled {
            let origin = text.starts_with("file://").then(|| text.to_owned());
            return Self::on_host(path, origin, cx).await;
        }
        let remote = Remote::new(spelled, given);
        let remote = remote.ok_or_else(|| Error::internal("a path is no remote"))?;
        Ok(Self::of(Source::Remote(Arc::new(remote))))
    }

    /// The repository at a path of the caller's machine: its `.git`, or what is one itself.
    pub(super) async fn on_host(
        path: &str,
        origin: Option<String>,
        cx: &Context,
    ) -> Result<Self, Error> {
        let mut directory = host::take_some(path, REPOSITORY, cx).await?;
        let services = cx.get::<Services>()?;
        let view = services.store.view(&directory.snapshot(services).await?);
        // A file says where the repository is, which may be anywhere below.
        if view.stat_link(".git").is_ok_and(|found| found.is_file()) {
            directory = host::take_directory(path, cx).await?;
        }
        Ok(Self::of(Source::Local(Arc::new(Local::on_host(directory, origin, path)))))
    }
}

/// What a text says of where a repository is.
pub(super) fn spelled(text: &str) -> Result<Spelled, Error> {
    Spelled::parse(text).map_err(|error| Error::user(error.to_string()))
}

/// The directory as a git repository: it has a `.git`, or is a bare repository itself.
#[derive(Args)]
struct AsGit {}

impl Op for AsGit {
    type Parent = Directory;
    type Output = GitRepository;
    const NAME: &'static str = "asGit";

    async fn run(&self, directory: &Directory, cx: &Context) -> Result<GitRepository, Error> {
        let local = Local::new(directory.clone(), None);
        local.open(cx).await?;
        Ok(GitRepository::of(Source::Local(Arc::new(local))))
    }
}

/// The repository with a token for http; `git(httpAuthToken:)` is the way to write it now.
#[derive(Args)]
struct WithAuthToken {
    /// Password or token.
    token: Ref<Secret>,
}

impl Op for WithAuthToken {
    type Parent = GitRepository;
    type Output = GitRepository;
    const NAME: &'static str = "withAuthToken";
    const SCOPE: Scope = Scope::Session;

    async fn run(&self, repository: &GitRepository, _: &Context) -> Result<GitRepository, Error> {
        Ok(repository.with(|given| {
            given.header = None;
            given.token = Some(self.token.arc());
        }))
    }
}

/// The repository with a header for http; `git(httpAuthHeader:)` is the way to write it now.
#[derive(Args)]
struct WithAuthHeader {
    /// Value of the header `Authorization`.
    header: Ref<Secret>,
}

impl Op for WithAuthHeader {
    type Parent = GitRepository;
    type Output = GitRepository;
    const NAME: &'static str = "withAuthHeader";
    const SCOPE: Scope = Scope::Session;

    async fn run(&self, repository: &GitRepository, _: &Context) -> Result<GitRepository, Error> {
        Ok(repository.with(|given| {
            given.token = None;
            given.header = Some(self.header.arc());
        }))
    }
}

impl GitRepository {
    /// The same with other credentials; a repository of the caller's own needs none.
    fn with(&self, change: impl FnOnce(&mut Given)) -> Self {
        let source = match &self.source {
            Source::Remote(remote) => Source::Remote(Arc::new(remote.with(change))),
            local => local.clone(),
        };
        Self { source, discard: self.discard }
    }
}
