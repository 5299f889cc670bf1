//! Terminals in containers: `terminal`, what it runs, and the look into what a failed command left.
//!
//! A command on a terminal runs as any other, over an overlay of its own, but nothing of what it does is
//! kept: the container stays the value that it is.

use super::exec::{Powers, ReturnType};
use super::failure;
use super::run::{self, Command, PreparedExec};
use super::{Container, MountPoint, MountSource};
use crate::host::{Host, UserTerminal};
use crate::nest::Nested;
use crate::services::Services;
use crate::tree::Tree;
use graph::{Args, Builder, Context, LogStream, Op, Scope, Value};
use protocol::Error;
use protocol::session::ClientSettings;

/// What a terminal runs when nobody says otherwise.
const SHELL: &str = "sh";
/// What programs take the terminal for. Images know it, and users' terminals understand it.
pub(super) const TERMINAL_KIND: (&str, &str) = ("TERM", "xterm-256color");

/// The image of a terminal that was given no container.
const IMAGE: &str = "deb://bookworm";
/// Where a terminal has the directory that it was opened for.
const PLACE: &str = "/src";

pub(super) fn install(builder: &mut Builder) {
    builder.install::<OpenTerminal>().install::<WithDefaultTerminalCmd>();
}

/// What a terminal runs, as a container remembers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TerminalCommand {
    pub(super) args: Vec<String>,
    powers: Powers,
}

/// Opens a shell in the container on your terminal. What is done there is not kept: the result is the container
/// as it was.
#[derive(Args)]
struct OpenTerminal {
    /// What runs there; empty is the container's own terminal command, or `sh`.
    #[arg(default = "[]")]
    cmd: Vec<String>,
    #[arg(group)]
    powers: Powers,
}

impl Op for OpenTerminal {
    type Parent = Container;
    type Output = Container;
    const NAME: &'static str = "terminal";
    const SCOPE: Scope = Scope::Session;

    fn is_unique(_: &[(Box<str>, Value)]) -> bool {
        true
    }

    async fn run(&self, container: &Container, cx: &Context) -> Result<Container, Error> {
        container.open_terminal(&self.cmd, self.powers, cx).await?;
        Ok(container.clone())
    }
}

/// Sets what `terminal` runs in this container.
#[derive(Args)]
struct WithDefaultTerminalCmd {
    /// The program and its arguments.
    args: Vec<String>,
    #[arg(group)]
    powers: Powers,
}

impl Op for WithDefaultTerminalCmd {
    type Parent = Container;
    type Output = Container;
    const NAME: &'static str = "withDefaultTerminalCmd";

    async fn run(&self, container: &Container, _: &Context) -> Result<Container, Error> {
        let (mut changed, args) = (container.clone(), self.args.clone());
        changed.terminal = Some(TerminalCommand { args, powers: self.powers });
        Ok(changed)
    }
}

impl Container {
    /// What a terminal runs here when asked to run `args`.
    pub(super) fn terminal_command(&self, args: &[String]) -> TerminalCommand {
        let own =
            |args: &[String]| TerminalCommand { args: args.to_vec(), powers: Powers::default() };
        match &self.terminal {
            _ if !args.is_empty() => own(args),
            Some(command) if !command.args.is_empty() => command.clone(),
            _ => own(&[SHELL.to_owned()]),
        }
    }

    /// A container for who has none of his own.
    pub(crate) async fn for_terminals(cx: &Context) -> Result<Self, Error> {
        let scratch = Self::scratch(crate::platform::current());
        scratch.assembled(IMAGE, cx).await
    }

    /// This container with a tree at hand, which commands begin in.
    pub(crate) fn beside(self, tree: Tree) -> Self {
        let mut changed = self.with_config(|config| config.workdir = PLACE.to_owned());
        changed.mounts.retain(|mount| mount.path != PLACE);
        let source = MountSource::Directory(tree);
        changed.mounts.push(MountPoint { path: PLACE.to_owned(), source, read_only: false });
        changed
    }

    /// Opens a terminal that runs `args`, or what this container says.
    pub(crate) async fn open_terminal(
        &self,
        args: &[String],
        powers: Powers,
        cx: &Context,
    ) -> Result<(), Error> {
        let mut command = self.terminal_command(args);
        command.powers.all_capabilities |= powers.all_capabilities;
        command.powers.nests |= powers.nests;
        open(self, command, None, cx).await
    }
}

/// Lets the user look into what a failed command left, if that was asked for. The failure stays what it
/// is, whatever comes of it.
pub(super) async fn look_into(
    error: Error,
    left: impl FnOnce() -> Result<Container, Error>,
    cx: &Context,
) -> Error {
    let Some(args) = interactive(cx) else { return error };
    let word =
        format!("{}\r\nThis is the container as it was left. `exit` leaves it.", error.message);
    let opened = match left() {
        Ok(left) => {
            let command = TerminalCommand { args, powers: Powers::default() };
            open(&left, command, Some(&word), cx).await
        }
        Err(error) => Err(error),
    };
    match opened {
        Ok(()) => error,
        Err(why) => {
            let hint = format!("no terminal was opened there: {}", why.message);
            why.hints.into_iter().fold(error.with_hint(hint), Error::with_hint)
        }
    }
}

/// What is to run on a terminal where a command failed, if anything is.
pub(super) fn interactive(cx: &Context) -> Option<Vec<String>> {
    let settings = cx.get::<ClientSettings>().ok()?;
    Some(settings.interactive.clone()).filter(|args| !args.is_empty())
}

/// Runs a command on the user's terminal, to its end.
async fn open(
    container: &Container,
    command: TerminalCommand,
    word: Option<&str>,
    cx: &Context,
) -> Result<(), Error> {
    let services = cx.get::<Services>()?;
    let revealed = container.secrets.reveal(cx).await?;
    let mut terminal = cx.get::<Host>()?.files().terminal().await?;
    let command = Command {
        args: command.args,
        expect: ReturnType::Any,
        all_capabilities: command.powers.all_capabilities,
        init: true,
        nests: command.powers.nests,
        stdin: String::new(),
        redirect_stdin: None,
        redirect_stdout: None,
        redirect_stderr: None,
        network: None,
    };
    let prepared = run::prepare(container, (&command, &revealed), services, cx).await?;
    if let Some(word) = word {
        terminal.say(word).await;
    }
    attend(terminal, prepared, &command, cx).await
}

async fn attend(
    terminal: UserTerminal,
    prepared: PreparedExec,
    command: &Command,
    cx: &Context,
) -> Result<(), Error> {
    let services = cx.get::<Services>()?;
    let mut spec = prepared.spec;
    // The user sees what the command prints, and nobody else does: nothing of it is kept.
    spec.filter = None;
    if spec.env.iter().all(|(name, _)| name != TERMINAL_KIND.0) {
        spec.env.push((TERMINAL_KIND.0.to_owned(), TERMINAL_KIND.1.to_owned()));
    }
    let ended = tokio::select! {
        ended = terminal.run(spec, &services.sandbox) => ended,
        never = Nested::attend(prepared.nested, cx.clone()) => match never {},
        Ok(full) = prepared.stopped => {
            drop(prepared.workspace);
            run::released(prepared.gone, services).await;
            return Err(failure::stopped(full, &command.args.join(" ")));
        }
    };
    match ended {
        Ok(exit) => {
            cx.span().log(LogStream::Engine, format!("exit code: {}\n", exit.code));
            Ok(())
        }
        Err(error) => Err(failure::not_begun(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_runs_what_was_asked_for_then_what_the_container_says_then_a_shell() {
        let words = |words: &[&str]| -> Vec<String> { words.iter().map(|&w| w.into()).collect() };
        let mut container = Container::scratch("linux/amd64");
        assert_eq!(container.terminal_command(&[]).args, ["sh"]);
        assert_eq!(container.terminal_command(&words(&["bash", "-l"])).args, ["bash", "-l"]);
        let powers = Powers { all_capabilities: true, nests: true };
        let own = TerminalCommand { args: words(&["fish"]), powers };
        container.terminal = Some(own.clone());
        assert_eq!(container.terminal_command(&[]), own);
        let asked = container.terminal_command(&words(&["bash"]));
        assert_eq!((asked.args, asked.powers), (words(&["bash"]), Powers::default()));
    }
}
