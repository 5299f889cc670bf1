//! `Directory.dockerBuild` and `Container.build`: containers from Dockerfiles.
//!
//! The language is read by the crate `dockerfile`. Here its instructions become what the rest of this crate
//! knows: copies are edits of trees, commands run by the path of `withExec`. So a build shares what was
//! made before with other builds, with other sessions and with pipelines that never saw a Dockerfile.
//!
//! [`build`] plans stages and runs them side by side, [`stage`] goes through the instructions of one.

mod archive;
mod build;
mod context;
mod copy;
mod location;
mod remote;
mod repository;
mod run;
mod scope;
mod sources;
mod stage;

use crate::container::Container;
use crate::directory::Directory;
use crate::platform;
use crate::scalars::Platform;
use crate::secret::Secret;
use crate::socket::Socket;
use build::Request;
use graph::{Args, Builder, Context, Input, Op, Ref};
use protocol::Error;

pub(crate) fn install(builder: &mut Builder) {
    builder.install::<DockerBuild>().install::<Build>();
}

/// A value for an `ARG` of a Dockerfile.
#[derive(Clone, Debug, Input)]
pub(crate) struct BuildArg {
    /// Name of the argument.
    name: String,
    /// Its value.
    value: String,
}

/// Builds a container from a Dockerfile of this directory, which is the build context.
#[derive(Args)]
struct DockerBuild {
    /// Values for `ARG`s.
    #[arg(default = "[]")]
    build_args: Vec<BuildArg>,
    /// The Dockerfile, in this directory.
    #[arg(default = "\"Dockerfile\"")]
    dockerfile: String,
    /// The platform to build for; that of the engine where none is given.
    platform: Option<Platform>,
    /// Secrets for `RUN --mount=type=secret`, by their names.
    #[arg(default = "[]")]
    secrets: Vec<Ref<Secret>>,
    /// The stage to build; the last one where none is given.
    #[arg(default = "\"\"")]
    target: String,
    /// Run commands as process 1, without an init process.
    #[arg(default = "false")]
    no_init: bool,
    /// The socket of an ssh agent, for `RUN --mount=type=ssh` and for `ADD` of repositories.
    ssh: Option<Ref<Socket>>,
}

impl Op for DockerBuild {
    type Parent = Directory;
    type Output = Container;
    const NAME: &'static str = "dockerBuild";

    async fn run(&self, directory: &Directory, cx: &Context) -> Result<Container, Error> {
        let platform = match &self.platform {
            Some(given) => platform::normalise(&given.0)?,
            None => platform::current().to_owned(),
        };
        let request = Request {
            context: directory.clone(),
            dockerfile: self.dockerfile.clone(),
            target: self.target.clone(),
            args: arguments(&self.build_args),
            secrets: self.secrets.iter().map(Ref::arc).collect(),
            ssh: self.ssh.as_ref().map(Ref::arc),
            blank: Container::scratch(&platform),
            platform,
            init: !self.no_init,
        };
        build::build(request, cx).await
    }
}

/// Builds a container from a Dockerfile. The old form of `Directory.dockerBuild`: nothing of this
/// container but its platform and its logins matters.
#[derive(Args)]
struct Build {
    /// Values for `ARG`s.
    #[arg(default = "[]")]
    build_args: Vec<BuildArg>,
    /// The build context.
    context: Ref<Directory>,
    /// The Dockerfile, in the context.
    #[arg(default = "\"Dockerfile\"")]
    dockerfile: String,
    /// Secrets for `RUN --mount=type=secret`, by their names.
    #[arg(default = "[]")]
    secrets: Vec<Ref<Secret>>,
    /// The stage to build; the last one where none is given.
    #[arg(default = "\"\"")]
    target: String,
    /// Run commands as process 1, without an init process.
    #[arg(default = "false")]
    no_init: bool,
}

impl Op for Build {
    type Parent = Container;
    type Output = Container;
    const NAME: &'static str = "build";

    async fn run(&self, container: &Container, cx: &Context) -> Result<Container, Error> {
        let platform = platform::normalise(container.platform())?;
        let request = Request {
            context: Directory::clone(&self.context),
            dockerfile: self.dockerfile.clone(),
            target: self.target.clone(),
            args: arguments(&self.build_args),
            secrets: self.secrets.iter().map(Ref::arc).collect(),
            ssh: None,
            blank: container.blank(&platform),
            platform,
            init: !self.no_init,
        };
        build::build(request, cx).await
    }
}

fn arguments(given: &[BuildArg]) -> Vec<(String, String)> {
    given.iter().map(|arg| (arg.name.clone(), arg.value.clone())).collect()
}
