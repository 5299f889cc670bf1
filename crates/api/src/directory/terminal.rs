//! `Directory.terminal`: a shell beside the directory, on the user's terminal.

use super::Directory;
use crate::container::{Container, Powers};
use crate::services::Services;
use graph::{Args, Builder, Context, Op, Ref, Scope, Value};
use protocol::Error;

pub(super) fn install(builder: &mut Builder) {
    builder.install::<OpenTerminal>();
}

/// Opens a shell on your terminal in a container that has the directory at `/src`. What is done there is not
/// kept: the result is the directory as it was.
#[derive(Args)]
struct OpenTerminal {
    /// What runs there; empty is the container's own terminal command, or `sh`.
    #[arg(default = "[]")]
    cmd: Vec<String>,
    /// The container; without one it is the image `deb://bookworm`.
    container: Option<Ref<Container>>,
    #[arg(group)]
    powers: Powers,
}

impl Op for OpenTerminal {
    type Parent = Directory;
    type Output = Directory;
    const NAME: &'static str = "terminal";
    const SCOPE: Scope = Scope::Session;

    fn is_unique(_: &[(Box<str>, Value)]) -> bool {
        true
    }

    async fn run(&self, directory: &Directory, cx: &Context) -> Result<Directory, Error> {
        let tree = directory.as_tree(cx.get::<Services>()?).await?;
        let container = match &self.container {
            Some(container) => Container::clone(container),
            None => Container::for_terminals(cx).await?,
        };
        let container = container.beside(tree);
        container.open_terminal(&self.cmd, self.powers, cx).await?;
        Ok(directory.clone())
    }
}
