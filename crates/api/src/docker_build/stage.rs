//! One stage: what it begins from, then one instruction after the other.

use super::build::Build;
use super::location::Location;
use super::{copy, run};
use crate::container::Container;
use crate::edit::Edit;
use crate::owner::OwnerSpec;
use crate::services::Services;
use dockerfile::{Action, CommandLine, Expander, Healthcheck, Instruction, StageRef};
use graph::Context;
use protocol::{Error, Outcome, SpanKind};
use serde_json::{Value, json};
use std::sync::Arc;

/// What runs a text where no `SHELL` says otherwise.
const SHELL: &[&str] = &["/bin/sh", "-c"];
/// Search path of a stage that begins from an image without one.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A stage as far as it is made.
#[derive(Clone)]
pub(super) struct StageState {
    /// Which stage it is.
    pub(super) index: usize,
    pub(super) container: Container,
    /// What instructions and commands see: the image's variables and the arguments.
    pub(super) env: Vec<(String, String)>,
    /// Whether the stage itself said what runs by default.
    has_command: bool,
}

/// Makes a stage.
pub(super) async fn run(build: &Arc<Build>, index: usize) -> Result<StageState, Error> {
    let stage = &build.file.stages[index];
    let at = build.location(stage.line, &stage.text);
    let mut state = begin(build, index).await.map_err(|error| located(&at, error))?;
    for trigger in state.take_triggers() {
        let instruction = dockerfile::trigger(&trigger).map_err(|error| at.of_language(error))?;
        let at = build.location(stage.line, &format!("{} ONBUILD {trigger}", stage.text));
        step(&mut state, build, &instruction, &at).await?;
    }
    for instruction in &stage.instructions {
        let at = build.location(instruction.line, &instruction.text);
        step(&mut state, build, instruction, &at).await?;
    }
    Ok(state)
}

/// What a stage begins from.
async fn begin(build: &Arc<Build>, index: usize) -> Result<StageState, Error> {
    let (base, platform) = build.base(index);
    match base {
        StageRef::Stage(below) => {
            let below = build.stage(*below).await?;
            let container = below.container.clone();
            Ok(StageState { index, container, env: below.env.clone(), has_command: false })
        }
        StageRef::Image(name) => {
            let mut container = build.image(name, platform).await?;
            if name == "scratch" {
                container.set_workdir("/".to_owned());
            }
            if container.variables().iter().all(|(known, _)| known != "PATH") {
                container.set_variable("PATH", DEFAULT_PATH.to_owned());
            }
            container.note_step("", true);
            let env = container.variables().to_vec();
            Ok(StageState { index, container, env, has_command: false })
        }
    }
}

/// One instruction, under a span of its own where it does more than say something.
async fn step(
    state: &mut StageState,
    build: &Arc<Build>,
    instruction: &Instruction,
    at: &Location,
) -> Result<(), Error> {
    let span = match &instruction.action {
        Action::Copy(_) | Action::Add(_) | Action::Run(_) => {
            Some(build.cx.span().child(at.title(), SpanKind::Work))
        }
        _ => None,
    };
    let cx = match &span {
        Some(span) => build.cx.under(span.clone()),
        None => build.cx.clone(),
    };
    let done = state.perform(&instruction.action, build, &cx).await;
    let done = done.map_err(|error| located(at, error));
    let wrote = span.is_some() || matches!(instruction.action, Action::Workdir(_));
    state.container.note_step(&instruction.text, wrote);
    if let Some(span) = span {
        match &done {
            Ok(()) => span.done(),
            Err(error) => span.end(Outcome::Failed(error.message.clone())),
        }
    }
    done
}

/// The error with its line, unless another stage gave it one.
fn located(at: &Location, error: Error) -> Error {
    match error.message.starts_with(&format!("{}:", at.file)) {
        true => error,
        false => at.of(error),
    }
}

impl Build {
    fn location(&self, line: usize, text: &str) -> Location {
        Location { file: self.request.dockerfile.clone(), line, text: text.to_owned() }
    }
}

impl StageState {
    async fn perform(
        &mut self,
        action: &Action,
        build: &Arc<Build>,
        cx: &Context,
    ) -> Result<(), Error> {
        match action {
            Action::Copy(what) => return copy::copy(self, build, what, cx).await,
            Action::Add(what) => return copy::add(self, build, what, cx).await,
            Action::Run(what) => return run::run(self, build, what, cx).await,
            Action::Workdir(path) => return self.workdir(build, path, cx).await,
            _ => {}
        }
        self.configure(action, build)
    }

    /// What an instruction says about the image, without touching files.
    fn configure(&mut self, action: &Action, build: &Build) -> Result<(), Error> {
        match action {
            Action::Arg(arguments) => self.declare(arguments, build)?,
            Action::Env(pairs) => {
                for (name, value) in self.pairs(pairs, build)? {
                    self.set_env(&name, value.clone());
                    self.container.set_variable(&name, value);
                }
            }
            Action::Label(pairs) => {
                for (name, value) in self.pairs(pairs, build)? {
                    self.container.set_label(&name, value);
                }
            }
            Action::User(user) => {
                let user = self.word(build, user)?;
                self.container.set_user(user);
            }
            Action::Shell(words) => self.container.set_extra("Shell", json!(words)),
            Action::Cmd(line) => {
                self.has_command = true;
                let args = self.command_line(line);
                self.container.set_default_args(args);
            }
            Action::Entrypoint(line) => {
                let args = self.command_line(line);
                self.container.set_entrypoint(args);
                if !self.has_command {
                    self.container.set_default_args(vec![]);
                }
            }
            Action::Expose(ports) => self.expose(ports, build)?,
            Action::Volume(paths) => {
                let known = self.container.extra("Volumes").and_then(Value::as_object).cloned();
                let mut volumes = known.unwrap_or_default();
                for path in paths {
                    volumes.insert(self.word(build, path)?, json!({}));
                }
                self.container.set_extra("Volumes", Value::Object(volumes));
            }
            Action::StopSignal(signal) => {
                let signal = self.word(build, signal)?;
                self.container.set_extra("StopSignal", json!(signal));
            }
            Action::Healthcheck(check) => {
                let check = self.healthcheck(check);
                self.container.set_extra("Healthcheck", check);
            }
            Action::OnBuild(trigger) => {
                let known = self.container.extra("OnBuild").and_then(Value::as_array).cloned();
                let mut triggers = known.unwrap_or_default();
                triggers.push(json!(trigger));
                self.container.set_extra("OnBuild", Value::Array(triggers));
            }
            Action::Maintainer(name) => self.container.set_author(name.clone()),
            Action::Copy(_) | Action::Add(_) | Action::Run(_) | Action::Workdir(_) => {}
        }
        Ok(())
    }

    /// Replaces variables by what the stage knows.
    pub(super) fn expand<T>(
        &self,
        build: &Build,
        work: impl FnOnce(&Expander<'_>) -> Result<T, dockerfile::Error>,
    ) -> Result<T, Error> {
        build.scope.with(&self.env, work).map_err(|error| Error::user(error.message))
    }

    pub(super) fn word(&self, build: &Build, text: &str) -> Result<String, Error> {
        self.expand(build, |expander| expander.word(text))
    }

    /// Pairs with all variables replaced: a value does not see what stands on the same line.
    fn pairs(
        &self,
        pairs: &[(String, String)],
        build: &Build,
    ) -> Result<Vec<(String, String)>, Error> {
        let pair = |(name, value): &(String, String)| {
            let name = self.word(build, name)?;
            if name.is_empty() || name.contains(['=', '\0']) {
                return Err(Error::user(format!("`{name}` cannot be a name")));
            }
            Ok((name, self.word(build, value)?))
        };
        pairs.iter().map(pair).collect()
    }

    fn set_env(&mut self, name: &str, value: String) {
        match self.env.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => *old = value,
            None => self.env.push((name.to_owned(), value)),
        }
    }

    /// `ARG`: what the user gave, the default, or what stands before the first stage.
    fn declare(
        &mut self,
        arguments: &[(String, Option<String>)],
        build: &Build,
    ) -> Result<(), Error> {
        for (name, default) in arguments {
            let value = match (build.scope.given(name), default) {
                (Some(given), _) => Some(given.clone()),
                (None, Some(default)) => Some(self.word(build, default)?),
                (None, None) => build.scope.global(name).cloned(),
            };
            if let Some(value) = value {
                self.set_env(name, value);
            }
        }
        Ok(())
    }

    /// `WORKDIR`: the directory is made, and belongs to the user of the stage.
    async fn workdir(&mut self, build: &Build, path: &str, cx: &Context) -> Result<(), Error> {
        let path = self.container.path_from_workdir(&self.word(build, path)?);
        if path != "/" {
            let (mode, owner) = (0o755, owner(self.container.user()));
            let place = path.trim_start_matches('/').to_owned();
            let edit = Edit::NewDirectory { path: place, mode, owner };
            let tree = self.container.root().with_layer(vec![edit], cx.get::<Services>()?).await?;
            self.container.set_root(tree);
        }
        self.container.set_workdir(path);
        Ok(())
    }

    /// The words that run a command.
    pub(super) fn command_line(&self, line: &CommandLine) -> Vec<String> {
        match line {
            CommandLine::Exec(words) => words.clone(),
            CommandLine::Shell(text) if text.is_empty() => vec![],
            CommandLine::Shell(text) => self.shell(text),
        }
    }

    /// The words that have the shell run a text.
    pub(super) fn shell(&self, text: &str) -> Vec<String> {
        let given = self.container.extra("Shell").and_then(Value::as_array);
        let given = given.map(|words| words.iter().filter_map(|word| word.as_str()).collect());
        let shell: Vec<&str> = given.unwrap_or_else(|| SHELL.to_vec());
        shell.into_iter().chain([text]).map(str::to_owned).collect()
    }

    fn expose(&mut self, ports: &[String], build: &Build) -> Result<(), Error> {
        for text in ports {
            for port in self.expand(build, |expander| expander.words(text))? {
                let wrong = || Error::user(format!("invalid containerPort: {port}"));
                let (numbers, protocol) = port.split_once('/').unwrap_or((&port, "tcp"));
                let protocol = protocol.to_ascii_lowercase();
                let (from, to) = numbers.split_once('-').unwrap_or((numbers, numbers));
                let number = |text: &str| text.parse::<u16>().map_err(|_| wrong());
                for number in number(from)?..=number(to)? {
                    if !self.container.expose(&format!("{number}/{protocol}")) {
                        return Err(wrong());
                    }
                }
            }
        }
        Ok(())
    }

    fn healthcheck(&self, check: &Healthcheck) -> Value {
        let Some(command) = &check.command else { return json!({ "Test": ["NONE"] }) };
        let test = match command {
            CommandLine::Exec(words) => [&["CMD".to_owned()][..], words].concat(),
            CommandLine::Shell(text) => vec!["CMD-SHELL".to_owned(), text.clone()],
        };
        let mut value = json!({ "Test": test });
        for (name, number) in [
            ("Interval", check.interval),
            ("Timeout", check.timeout),
            ("StartPeriod", check.start_period),
            ("StartInterval", check.start_interval),
            ("Retries", check.retries),
        ] {
            if let Some(number) = number {
                value[name] = json!(number);
            }
        }
        value
    }

    /// What the image that it begins from wants done first; images made from it will not.
    fn take_triggers(&mut self) -> Vec<String> {
        let triggers = self.container.extra("OnBuild").and_then(Value::as_array);
        let text = |trigger: &Value| trigger.as_str().map(str::to_owned);
        let triggers: Vec<String> = triggers.into_iter().flatten().filter_map(text).collect();
        if !triggers.is_empty() {
            self.container.set_extra("OnBuild", Value::Null);
        }
        triggers
    }
}

/// `user[:group]` as a Dockerfile means it: a number without a group is the group's number too.
pub(super) fn owner(text: &str) -> OwnerSpec {
    match !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        true => OwnerSpec::Named(format!("{text}:{text}")),
        false => OwnerSpec::parse(text),
    }
}
