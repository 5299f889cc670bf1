//! `Container.withExec`: the container after a command has run in it.

use super::Container;
use super::run::Command;
use graph::{Args, Builder, Context, Enum, Op};
use protocol::Error;

pub(super) fn install(builder: &mut Builder) {
    builder.install::<WithExec>();
}

/// Which exit codes count as success.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Enum)]
#[graph(name = "ReturnType")]
pub(crate) enum ReturnType {
    /// Only 0.
    Success,
    /// Any code but 0 that a program chooses itself: 1 to 127 and 192 to 255.
    Failure,
    /// 0 to 127 and 192 to 255.
    Any,
}

/// What a command may do beyond the usual.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Args)]
pub(crate) struct Powers {
    /// Give the command a session of its own with this engine: client libraries and `ci-tool` find it by
    /// variables. Its host is the container, never your machine.
    #[arg(name = "experimentalPrivilegedNesting", default = "false")]
    pub(crate) nests: bool,
    /// Run with every capability. The command is then not isolated from the host.
    #[arg(name = "insecureRootCapabilities", default = "false")]
    pub(crate) all_capabilities: bool,
}

/// How what was given becomes a command.
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct Manner {
    /// Replace `$VAR` and `${VAR}` in the arguments by the container's variables.
    #[arg(default = "false")]
    pub(super) expand: bool,
    #[arg(group)]
    pub(super) powers: Powers,
    /// Run the command as process 1, without an init process.
    #[arg(default = "false")]
    pub(super) no_init: bool,
    /// Put the entrypoint before the arguments.
    #[arg(default = "false")]
    pub(super) use_entrypoint: bool,
}

/// Runs a command in the container and keeps the changes it makes.
#[derive(Args)]
pub(crate) struct WithExec {
    /// The program and its arguments, e.g. `["go", "test", "./..."]`. Empty runs the default arguments.
    args: Vec<String>,
    #[arg(group)]
    manner: Manner,
    /// Exit codes that count as success.
    #[arg(default = "SUCCESS")]
    expect: ReturnType,
    /// Also write the standard error to this file.
    #[arg(default = "\"\"")]
    redirect_stderr: String,
    /// Also write the standard output to this file.
    #[arg(default = "\"\"")]
    redirect_stdout: String,
    /// Text for the standard input.
    #[arg(default = "\"\"")]
    stdin: String,
    /// Read the standard input from this file.
    #[arg(default = "\"\"")]
    redirect_stdin: String,
}

impl Op for WithExec {
    type Parent = Container;
    type Output = Container;
    const NAME: &'static str = "withExec";

    async fn run(&self, container: &Container, cx: &Context) -> Result<Container, Error> {
        if !self.stdin.is_empty() && !self.redirect_stdin.is_empty() {
            return Err(Error::user("`stdin` and `redirectStdin` exclude each other"));
        }
        let command = Command {
            args: self.command_line(container)?,
            expect: self.expect,
            all_capabilities: self.manner.powers.all_capabilities,
            init: !self.manner.no_init,
            nests: self.manner.powers.nests,
            stdin: self.stdin.clone(),
            redirect_stdin: self.path(container, &self.redirect_stdin)?,
            redirect_stdout: self.path(container, &self.redirect_stdout)?,
            redirect_stderr: self.path(container, &self.redirect_stderr)?,
            network: None,
        };
        super::run::run(container, command, cx).await
    }
}

impl WithExec {
    /// The final argument list: defaults and entrypoint applied.
    fn command_line(&self, container: &Container) -> Result<Vec<String>, Error> {
        let line = command_line(container, &self.args, self.manner)?;
        line.ok_or_else(|| Error::user("no command has been set"))
    }

    fn path(&self, container: &Container, path: &str) -> Result<Option<String>, Error> {
        (!path.is_empty()).then(|| container.absolute(path, self.manner.expand)).transpose()
    }
}

/// What a container runs when asked to run `args`: defaults and entrypoint applied, as it is asked for. None
/// if that is nothing.
pub(super) fn command_line(
    container: &Container,
    args: &[String],
    manner: Manner,
) -> Result<Option<Vec<String>>, Error> {
    let config = &container.config;
    let own = args.iter().map(|arg| container.expanded(arg, manner.expand));
    let own = own.collect::<Result<Vec<String>, Error>>()?;
    let mut line = if manner.use_entrypoint { config.entrypoint.clone() } else { vec![] };
    line.extend(if own.is_empty() { config.default_args.clone() } else { own });
    match line.first() {
        None => Ok(None),
        Some(program) if program.is_empty() => Err(Error::user("the program's name is empty")),
        Some(_) if line.iter().any(|arg| arg.contains('\0')) => {
            Err(Error::user("an argument contains a NUL byte"))
        }
        Some(_) => Ok(Some(line)),
    }
}

impl ReturnType {
    /// Whether a command that ended with `code` did what was expected.
    pub(super) fn accepts(self, code: i32) -> bool {
        let chosen = matches!(code, 0..=127 | 192..=255);
        match self {
            Self::Success => code == 0,
            Self::Failure => chosen && code != 0,
            Self::Any => chosen,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expected_exit_codes() {
        for (code, success, failure, any) in [
            (0, true, false, true),
            (1, false, true, true),
            (127, false, true, true),
            (128, false, false, false),
            (137, false, false, false),
            (191, false, false, false),
            (192, false, true, true),
            (254, false, true, true),
        ] {
            assert_eq!(ReturnType::Success.accepts(code), success, "{code}");
            assert_eq!(ReturnType::Failure.accepts(code), failure, "{code}");
            assert_eq!(ReturnType::Any.accepts(code), any, "{code}");
        }
    }
}
