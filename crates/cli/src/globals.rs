//! Flags that every command takes, before or after its name.
//!
//! Each command flattens them rather than inheriting them, because `version` gives `-q` another
//! meaning. [`GlobalArgs`] is what was typed; [`GlobalArgs::display`] and the others say what it
//! means. A flag for something that is still to come is an error when it is used, never ignored.

use crate::environment::Environment;
use crate::error::Error;
use crate::words;
use clap::{ArgAction, Args};
use protocol::session::LockMode;
use std::path::PathBuf;
use std::time::Duration;
use tui::Mode;

/// How often a report gives a sign of life, unless the environment says otherwise.
const HEARTBEAT: Duration = Duration::from_secs(30);

/// What runs on a terminal that is opened after a failure.
const SHELL: &str = "/bin/sh";

/// Flags that every command takes.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "INHERITED OPTIONS")]
pub(crate) struct GlobalArgs {
    /// All but `-q`
    #[command(flatten)]
    pub(crate) shared: SharedArgs,
    /// Reduce verbosity (show progress, clean up at the end)
    #[arg(short, long, action = ArgAction::Count)]
    pub(crate) quiet: u8,
}

/// Flags that every command takes in the same meaning.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "INHERITED OPTIONS")]
pub(crate) struct SharedArgs {
    /// Apply changes without asking when a changeset is returned
    #[arg(short = 'y', long)]
    auto_apply: bool,
    /// Show debug logs and full verbosity
    #[arg(short, long)]
    pub(crate) debug: bool,
    /// Apply the named workspace environment overlay
    #[arg(long, value_name = "string")]
    env: Option<String>,
    /// Spawn a terminal when a container exec fails
    #[arg(short, long)]
    pub(crate) interactive: bool,
    /// Command of that terminal
    #[arg(long, value_name = "string", default_value = SHELL)]
    pub(crate) interactive_command: Option<String>,
    /// Lock lookup mode: disabled, live, pinned or frozen
    #[arg(long, value_name = "string", default_value = "disabled", value_parser = lock_mode)]
    lock: Option<String>,
    /// Leave the display running after completion
    #[arg(short = 'E', long)]
    no_exit: bool,
    /// Cloud org of cloud commands
    #[arg(long, value_name = "string")]
    org: Option<String>,
    /// Progress format: auto, plain, tty, dots, logs or report
    #[arg(long, value_name = "string", default_value = "auto")]
    #[arg(value_parser = ["auto", "plain", "tty", "dots", "logs", "report"])]
    progress: Option<String>,
    /// Show no progress at all
    #[arg(short, long)]
    silent: bool,
    /// Increase verbosity (-vv or -vvv for more)
    #[arg(short, long, action = ArgAction::Count)]
    verbose: u8,
    /// Open the trace in a web browser
    #[arg(short, long)]
    web: bool,
    /// Workspace location (local path or git reference)
    #[arg(short = 'W', long, value_name = "string")]
    workspace: Option<String>,
    /// Run an experimental release from a git reference
    #[arg(long, value_name = "string")]
    x_release: Option<String>,
    /// Change to this directory first
    #[arg(long, value_name = "string", hide = true)]
    pub(crate) workdir: Option<PathBuf>,
}

/// Which module a command loads.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ModuleArgs {
    /// URLs of remote modules that may use LLM APIs, or `all`
    #[arg(long, value_name = "strings", value_delimiter = ',')]
    allow_llm: Vec<String>,
    /// Load the module runtime eagerly
    #[arg(long)]
    eager_runtime: bool,
    /// Use a one-off module (local path or git reference); `core` is the core API
    #[arg(short = 'm', long, alias = "mod", value_name = "string")]
    load_module: Option<String>,
}

/// Whether a command loads a module at all.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct NoModuleArgs {
    /// Load no module: use the core API
    #[arg(short = 'M', long, alias = "no-mod", conflicts_with = "load_module")]
    pub(crate) no_load_module: bool,
}

/// What is shown, and how much of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DisplayChoice {
    pub(crate) mode: Mode,
    pub(crate) level: i32,
    pub(crate) debug: bool,
    /// How often a report gives a sign of life.
    pub(crate) heartbeat: Option<Duration>,
    /// Whether keys are for the display.
    pub(crate) keys: bool,
    /// Whether the display stays after the work until the user leaves it.
    pub(crate) stay: bool,
}

impl GlobalArgs {
    /// These flags after those: what is typed later wins, counts add up.
    #[must_use]
    pub(crate) fn after(self, earlier: Self) -> Self {
        let (late, early) = (self.shared, earlier.shared);
        Self {
            quiet: self.quiet.saturating_add(earlier.quiet),
            shared: SharedArgs {
                auto_apply: late.auto_apply || early.auto_apply,
                debug: late.debug || early.debug,
                env: late.env.or(early.env),
                interactive: late.interactive || early.interactive,
                interactive_command: chosen(
                    late.interactive_command,
                    early.interactive_command,
                    SHELL,
                ),
                lock: chosen(late.lock, early.lock, "disabled"),
                no_exit: late.no_exit || early.no_exit,
                org: late.org.or(early.org),
                progress: chosen(late.progress, early.progress, "auto"),
                silent: late.silent || early.silent,
                verbose: late.verbose.saturating_add(early.verbose),
                web: late.web || early.web,
                workspace: late.workspace.or(early.workspace),
                x_release: late.x_release.or(early.x_release),
                workdir: late.workdir.or(early.workdir),
            },
        }
    }

    /// Refuses flags for what is still to come.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let shared = &self.shared;
        let used = [
            (shared.env.is_some(), "--env"),
            (shared.workspace.is_some(), "--workspace"),
            (shared.x_release.is_some(), "--x-release"),
        ];
        match used.iter().find(|(used, _)| *used) {
            Some((_, flag)) => Err(Error::not_available(format_args!("`{flag}`"))),
            None => self.interactive().map(drop),
        }
    }

    /// Whether changes are applied without a question.
    pub(crate) fn applies_changes(&self) -> bool {
        self.shared.auto_apply
    }

    /// What runs on the terminal in a container whose command failed; nothing unless that was asked for.
    pub(crate) fn interactive(&self) -> Result<Vec<String>, Error> {
        let line = self.shared.interactive_command.as_deref().unwrap_or(SHELL);
        let split = words::split(line).and_then(|words| match words.first() {
            Some(_) => Ok(words),
            None => Err("it is empty"),
        });
        let refused = |reason| Error::user(format!("`--interactive-command`: {reason}"));
        let words = split.map_err(refused)?;
        Ok(if self.shared.interactive { words } else { vec![] })
    }

    /// What becomes of look-ups.
    pub(crate) fn lock(&self) -> LockMode {
        match self.shared.lock.as_deref() {
            Some("live") => LockMode::Live,
            Some("pinned") => LockMode::Pinned,
            Some("frozen") => LockMode::Frozen,
            _ => LockMode::Disabled,
        }
    }

    /// Whether nothing but results and errors is to be printed.
    pub(crate) fn is_silent(&self, environment: &Environment) -> bool {
        self.shared.silent || is_true(&environment.silent)
    }

    /// Whether the trace is to be opened.
    pub(crate) fn wants_web(&self) -> bool {
        self.shared.web
    }

    /// How progress is to be shown. `base` is the verbosity of the command without flags.
    pub(crate) fn display(
        &self,
        environment: &Environment,
        base: i32,
        terminal: bool,
    ) -> Result<DisplayChoice, Error> {
        let base = if environment.is_legacy() { base.max(1) } else { base };
        let quiet = match self.quiet {
            0 => environment.quiet.parse().unwrap_or(0),
            quiet => quiet,
        };
        let level = base + i32::from(self.shared.verbose) - i32::from(quiet);
        let mode = self.mode(environment, terminal)?;
        let live = mode == Mode::Live;
        Ok(DisplayChoice {
            mode,
            level,
            debug: self.shared.debug,
            heartbeat: heartbeat(&environment.report_heartbeat)?,
            keys: live,
            stay: live && self.shared.no_exit,
        })
    }

    fn mode(&self, environment: &Environment, terminal: bool) -> Result<Mode, Error> {
        if self.is_silent(environment) {
            return Ok(Mode::Silent);
        }
        let flag = self.shared.progress.as_deref().unwrap_or("auto");
        let name = match (flag, environment.progress.as_str()) {
            ("auto", "") => "auto",
            ("auto", variable) => variable,
            (flag, _) => flag,
        };
        match name {
            "auto" if terminal && !environment.dumb_terminal => Ok(Mode::Live),
            // Nobody watches: one report at the end says more than lines that nobody saw come.
            "auto" if !terminal && !environment.is_legacy() => Ok(Mode::Report),
            "auto" | "plain" => Ok(Mode::Plain),
            "tty" if terminal => Ok(Mode::Live),
            "tty" => Err(Error::user("progress format `tty` needs a terminal")),
            "dots" => Ok(Mode::Dots),
            "logs" => Ok(Mode::Logs),
            "report" => Ok(Mode::Report),
            other => Err(Error::user(format!(
                "unknown progress format `{other}`: use auto, plain, tty, dots, logs or report"
            ))),
        }
    }
}

impl ModuleArgs {
    /// These flags after those.
    #[must_use]
    pub(crate) fn after(self, earlier: Self) -> Self {
        let mut allow_llm = earlier.allow_llm;
        allow_llm.extend(self.allow_llm);
        Self {
            allow_llm,
            eager_runtime: self.eager_runtime || earlier.eager_runtime,
            load_module: self.load_module.or(earlier.load_module),
        }
    }

    /// Whether the core API was asked for by name. Any other module is still to come.
    pub(crate) fn names_core(&self) -> Result<bool, Error> {
        if !self.allow_llm.is_empty() {
            return Err(Error::not_available("`--allow-llm`"));
        }
        if self.eager_runtime {
            return Err(Error::not_available("`--eager-runtime`"));
        }
        match self.load_module.as_deref() {
            None => Ok(false),
            Some("core") => Ok(true),
            Some(module) => {
                let what = format!("loading a module (`{module}`)");
                Err(Error::not_available(what).with_hint("`-m core` is the core API"))
            }
        }
    }
}

/// How often a report gives a sign of life.
fn heartbeat(text: &str) -> Result<Option<Duration>, Error> {
    if text.is_empty() {
        return Ok(Some(HEARTBEAT));
    }
    if text == "0" {
        return Ok(None);
    }
    let name = protocol::env::REPORT_HEARTBEAT;
    let parsed = config::parse_duration(text);
    let parsed = parsed.map_err(|error| Error::user(format!("`{name}`: {error}")))?;
    Ok(Some(parsed).filter(|every| !every.is_zero()))
}

/// The name of a lock mode. Some have a second one.
fn lock_mode(text: &str) -> Result<String, String> {
    let name = match text {
        "update" => "live",
        "auto" => "pinned",
        "strict" => "frozen",
        "disabled" | "live" | "pinned" | "frozen" => text,
        _ => return Err("invalid lock mode, use disabled, live, pinned or frozen".to_owned()),
    };
    Ok(name.to_owned())
}

/// The later value unless it is only the default.
fn chosen(late: Option<String>, early: Option<String>, default: &str) -> Option<String> {
    match (late, early) {
        (Some(late), Some(early)) if late == default => Some(early),
        (late, early) => late.or(early),
    }
}

fn is_true(value: &str) -> bool {
    matches!(value.to_ascii_lowercase().as_str(), "1" | "t" | "true")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Typed {
        #[command(flatten)]
        globals: GlobalArgs,
        #[command(flatten)]
        modules: ModuleArgs,
    }

    fn typed(words: &[&str]) -> Typed {
        Typed::parse_from(std::iter::once(&"ci-tool").chain(words))
    }

    fn mode(words: &[&str], variable: &str, terminal: bool) -> String {
        let environment = Environment { progress: variable.into(), ..Environment::default() };
        match typed(words).globals.display(&environment, 1, terminal) {
            Ok(choice) => format!("{:?} {}", choice.mode, choice.level),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn progress_format_comes_from_flag_then_variable_then_terminal() {
        for (words, variable, terminal, expected) in [
            (&[][..], "", true, "Live 1"),
            (&[], "", false, "Report 1"),
            (&[], "plain", false, "Plain 1"),
            (&[], "report", true, "Report 1"),
            (&["--progress=dots", "-vv"], "report", true, "Dots 3"),
            (&["--progress", "logs", "-q"], "", false, "Logs 0"),
            (&["--progress=tty"], "", false, "progress format `tty` needs a terminal"),
            (&["-s", "--progress=plain", "-qq"], "", true, "Silent -1"),
        ] {
            assert_eq!(mode(words, variable, terminal), expected, "{words:?} {variable}");
        }
        assert!(mode(&[], "fancy", true).contains("unknown progress format `fancy`"));
        let dumb = Environment { dumb_terminal: true, ..Environment::default() };
        let choice = |words: &[&str]| typed(words).globals.display(&dumb, 1, true).unwrap().mode;
        assert_eq!((choice(&[]), choice(&["--progress=tty"])), (Mode::Plain, Mode::Live));
        let legacy = Environment { command_set: "legacy".into(), ..Environment::default() };
        assert_eq!(typed(&[]).globals.display(&legacy, 1, false).unwrap().mode, Mode::Plain);
    }

    #[test]
    fn variables_are_defaults() {
        let environment =
            Environment { silent: "TRUE".into(), quiet: "2".into(), ..Environment::default() };
        let choice = typed(&[]).globals.display(&environment, 0, true).unwrap();
        assert_eq!((choice.mode, choice.level), (Mode::Silent, -2));
        let choice = typed(&["-q"]).globals.display(&environment, 0, true).unwrap();
        assert_eq!(choice.level, -1);
        let legacy = Environment { command_set: "legacy".into(), ..Environment::default() };
        assert_eq!(typed(&[]).globals.display(&legacy, 0, true).unwrap().level, 1);
    }

    #[test]
    fn a_display_stays_only_where_there_is_something_to_look_at() {
        let stays = |words: &[&str], terminal| {
            typed(words).globals.display(&Environment::default(), 1, terminal).unwrap().stay
        };
        assert!(stays(&["-E"], true) && stays(&["--no-exit", "--progress=tty"], true));
        assert!(!stays(&[], true) && !stays(&["-E"], false) && !stays(&["-E", "-s"], true));
    }

    #[test]
    fn signs_of_life_come_as_often_as_the_variable_says() {
        let every = |text: &str| heartbeat(text).map_err(|error| error.to_string());
        assert_eq!(every(""), Ok(Some(HEARTBEAT)));
        assert_eq!(every("2m"), Ok(Some(Duration::from_secs(120))));
        assert_eq!((every("0"), every("0s")), (Ok(None), Ok(None)));
        assert!(every("often").unwrap_err().contains("CITOOL_REPORT_HEARTBEAT"));
    }

    #[test]
    fn later_flags_win_and_counts_add_up() {
        let early = typed(&["-v", "--progress=plain", "--workdir=/a"]).globals;
        let late = typed(&["-vv", "-d"]).globals.after(early.clone());
        let environment = Environment::default();
        let choice = late.display(&environment, 0, true).unwrap();
        assert_eq!((choice.mode, choice.level, choice.debug), (Mode::Plain, 3, true));
        assert_eq!(late.shared.workdir, Some("/a".into()));
        let late = typed(&["--progress=dots"]).globals.after(early);
        assert_eq!(late.display(&environment, 0, true).unwrap().mode, Mode::Dots);
    }

    #[test]
    fn what_is_still_to_come_is_an_error_when_used() {
        for word in ["--env=x", "-W=.", "--x-release=main"] {
            let error = typed(&[word]).globals.check().unwrap_err().to_string();
            assert!(error.ends_with("is not available yet"), "{word}: {error}");
        }
        for word in ["-y", "--org=x", "--lock=live", "-w", "--interactive-command=bash"] {
            typed(&[word]).globals.check().unwrap();
        }
    }

    #[test]
    fn lock_modes_have_names_and_second_names() {
        let mode = |words: &[&str]| typed(words).globals.lock();
        for (word, expected) in [
            ("disabled", LockMode::Disabled),
            ("live", LockMode::Live),
            ("update", LockMode::Live),
            ("pinned", LockMode::Pinned),
            ("auto", LockMode::Pinned),
            ("frozen", LockMode::Frozen),
            ("strict", LockMode::Frozen),
        ] {
            assert_eq!(mode(&[&format!("--lock={word}")]), expected, "{word}");
        }
        assert_eq!(mode(&[]), LockMode::Disabled);
        let refused = Typed::try_parse_from(["ci-tool", "--lock=often"]).err().unwrap();
        assert!(refused.to_string().contains("invalid lock mode"), "{refused}");
        let early = typed(&["--lock=frozen"]).globals;
        assert_eq!(typed(&[]).globals.after(early).lock(), LockMode::Frozen);
    }

    #[test]
    fn a_terminal_after_a_failure_runs_what_was_asked_for() {
        let interactive = |words: &[&str]| typed(words).globals.interactive();
        assert!(interactive(&[]).unwrap().is_empty());
        assert!(interactive(&["--interactive-command=bash"]).unwrap().is_empty());
        assert_eq!(interactive(&["-i"]).unwrap(), ["/bin/sh"]);
        let given = interactive(&["-i", "--interactive-command", "bash -c 'a b'"]);
        assert_eq!(given.unwrap(), ["bash", "-c", "a b"]);
        for line in ["", "'open"] {
            let flag = format!("--interactive-command={line}");
            typed(&[&flag]).globals.check().unwrap_err();
        }
    }

    #[test]
    fn only_the_core_module_exists() {
        assert!(!typed(&[]).modules.names_core().unwrap());
        assert!(typed(&["-m", "core"]).modules.names_core().unwrap());
        assert!(typed(&["--mod=core"]).modules.names_core().unwrap());
        for word in ["-m=./x", "--allow-llm=all", "--eager-runtime"] {
            let error = typed(&[word]).modules.names_core().unwrap_err().to_string();
            assert!(error.ends_with("is not available yet"), "{word}: {error}");
        }
    }
}
