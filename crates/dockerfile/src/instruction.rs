//! What a line of a Dockerfile asks for. Texts keep their variables, quotes and escapes.

use crate::{Healthcheck, Heredoc, RawMount};

/// One instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// The line it begins in, counted from 1.
    pub line: usize,
    /// All of it as one line, for people.
    pub text: String,
    /// What it asks for.
    pub action: Action,
}

/// What an instruction asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// `ARG name[=default] ...`
    Arg(Vec<(String, Option<String>)>),
    /// `ENV`
    Env(Vec<(String, String)>),
    /// `LABEL`
    Label(Vec<(String, String)>),
    /// `WORKDIR`
    Workdir(String),
    /// `USER`
    User(String),
    /// `COPY`
    Copy(Copy),
    /// `ADD`
    Add(Copy),
    /// `RUN`
    Run(Run),
    /// `SHELL`
    Shell(Vec<String>),
    /// `CMD`
    Cmd(CommandLine),
    /// `ENTRYPOINT`
    Entrypoint(CommandLine),
    /// `EXPOSE`
    Expose(Vec<String>),
    /// `VOLUME`
    Volume(Vec<String>),
    /// `STOPSIGNAL`
    StopSignal(String),
    /// `HEALTHCHECK`
    Healthcheck(Healthcheck),
    /// `ONBUILD`: an instruction for who begins from the image.
    OnBuild(String),
    /// `MAINTAINER`
    Maintainer(String),
}

/// A command in one of its two forms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandLine {
    /// A text for the shell.
    Shell(String),
    /// Program and arguments.
    Exec(Vec<String>),
}

/// `COPY` or `ADD`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Copy {
    /// What is copied, in order.
    pub sources: Vec<Source>,
    /// Where to.
    pub destination: String,
    /// The stage or image that it is copied from; none is the build context.
    pub from: Option<String>,
    /// `user[:group]` that owns it.
    pub chown: Option<String>,
    /// Permission bits.
    pub chmod: Option<String>,
    /// Keep the directories above a source.
    pub parents: bool,
    /// Patterns of what to leave out.
    pub exclude: Vec<String>,
    /// What a downloaded file must be.
    pub checksum: Option<String>,
    /// Whether `.git` of a repository is kept.
    pub keep_git_dir: bool,
    /// Whether archives are unpacked: local ones are unless this says no, remote ones if it says yes.
    pub unpack: Option<bool>,
}

/// Something that is copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A path or pattern, or an address for `ADD`.
    Path(String),
    /// A file that stands in the Dockerfile itself.
    Heredoc(Heredoc),
}

/// `RUN`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// What is run.
    pub command: CommandLine,
    /// Here-documents of the line.
    pub heredocs: Vec<Heredoc>,
    /// What it sees besides the stage's files.
    pub mounts: Vec<RawMount>,
    /// What it can reach.
    pub network: RunNetwork,
    /// Whether it asks to run without isolation.
    pub insecure: bool,
}

/// What a command can reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunNetwork {
    /// What the engine says.
    #[default]
    Default,
    /// Nothing.
    None,
    /// What the machine reaches.
    Host,
}
