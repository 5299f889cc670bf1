//! [`Context`]: what every command has at hand, and [`Work`]: a session with its display.

use crate::environment::Environment;
use crate::error::{Error, Kind};
use crate::globals::{DisplayChoice, GlobalArgs};
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::progress::{Finish, Progress};
use crate::terminal::Terminal;
use client::{Loans, Notices, Session, SessionOptions};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tui::{Display, Mode, Settings, Stream};

/// How long an interrupted session may take to stop what runs: the engine's own grace and a bit.
const STOP_LIMIT: Duration = Duration::from_secs(15);

/// What every command has at hand.
pub(crate) struct Context {
    pub(crate) environment: Environment,
    pub(crate) globals: GlobalArgs,
    pub(crate) output: Output,
}

impl Context {
    /// Checks the global flags and enters the working directory.
    pub(crate) fn new(mut environment: Environment, globals: GlobalArgs) -> Result<Self, Error> {
        globals.check()?;
        let output = Output::new(environment.no_color);
        let given = globals.shared.workdir.clone().filter(|path| !path.as_os_str().is_empty());
        let variable = Some(&environment.workdir).filter(|path| !path.is_empty());
        if let Some(path) = given.or_else(|| variable.map(PathBuf::from)) {
            environment.client.workdir = enter(&path)?;
        }
        if globals.wants_web() {
            output.warning("`--web` has nothing to open: there is no cloud to send a trace to");
        }
        Ok(Self { environment, globals, output })
    }

    /// Prints a hint about an older form, unless silence was asked for.
    pub(crate) fn deprecated(&self, text: &str) {
        if !self.globals.is_silent(&self.environment) {
            self.output.note(&format!("{} {text}", self.output.paint().blue("hint:")));
        }
    }

    /// Where words about the engine go: to standard error, unless silence was asked for.
    pub(crate) fn notices(&self) -> Notices {
        if self.globals.is_silent(&self.environment) {
            return Notices::default();
        }
        let output = self.output;
        Notices::to(move |notice| {
            output.note(&format!("{} {notice}", output.paint().blue("note:")));
        })
    }

    /// How progress is to be shown, for a command with this verbosity of its own.
    pub(crate) fn display_choice(&self, base: i32) -> Result<DisplayChoice, Error> {
        self.globals.display(&self.environment, base, self.output.stderr_is_terminal())
    }

    /// The absolute form of a path that was typed.
    pub(crate) fn absolute(&self, path: &Path) -> PathBuf {
        self.environment.client.workdir.join(path)
    }

    /// An error about which the user was told what is told at once.
    pub(crate) fn told(&self, error: Error) -> Error {
        tell_if_interrupted(&error, &self.output);
        error
    }

    /// Opens a session.
    pub(crate) async fn open(&self) -> Result<Work, Error> {
        self.open_with(Interrupt::new()?).await
    }

    /// Opens a session for a command that already listens to Ctrl-C.
    pub(crate) async fn open_with(&self, mut interrupt: Interrupt) -> Result<Work, Error> {
        let (terminals, loans) = client::terminals();
        let options = SessionOptions {
            notices: self.notices(),
            interactive: self.globals.interactive()?,
            lock: self.globals.lock(),
            terminals,
            ..SessionOptions::default()
        };
        match interrupt.or(client::connect(&self.environment.client, options)).await {
            Ok(session) => {
                let (output, loans) = (self.output, Some(loans));
                Ok(Work { session, interrupt, progress: None, output, loans, told: false })
            }
            Err(error) => Err(self.told(error)),
        }
    }
}

/// A session that a command works with.
pub(crate) struct Work {
    pub(crate) session: Session,
    pub(crate) interrupt: Interrupt,
    pub(crate) progress: Option<Progress>,
    output: Output,
    /// Who asks for the terminal; a display that is redrawn in place lends it.
    loans: Option<Loans>,
    told: bool,
}

impl Work {
    /// Begins to show progress.
    pub(crate) fn show(&mut self, choice: DisplayChoice) {
        let loans = self.loans.take();
        if choice.mode == Mode::Silent {
            return;
        }
        let settings = Settings {
            mode: choice.mode,
            level: choice.level,
            debug: choice.debug,
            paint: self.output.paint(),
            size: Box::new(tui::stderr_size),
            keys: choice.keys && self.output.stdout_is_terminal(),
            heartbeat: choice.heartbeat,
        };
        let terminal = Terminal::new(choice.mode == Mode::Live, settings.keys, loans);
        let (stdout, stderr) = (Box::new(std::io::stdout()), Box::new(std::io::stderr()));
        let display = Display::new(settings, stdout, stderr);
        let progress = Progress::start(self.session.events(), display, terminal, choice.stay);
        self.progress = Some(progress);
    }

    /// Prints a line beside the display, which is not disturbed by it.
    pub(crate) async fn tell(&mut self, line: &str) {
        self.told = true;
        match &self.progress {
            Some(progress) => {
                let bytes = format!("{line}\n").into_bytes();
                progress.printer().print(Stream::Stderr, bytes).await;
            }
            None => self.output.note(line),
        }
    }

    /// Prints text beside the display.
    pub(crate) async fn say(&self, text: &str) {
        match &self.progress {
            Some(progress) => {
                progress.printer().print(Stream::Stderr, text.as_bytes().to_vec()).await;
            }
            None => self.output.note(text.trim_end_matches('\n')),
        }
    }

    /// Does something that needs the terminal, while the display stands aside.
    pub(crate) async fn aside<T>(
        &mut self,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        match &self.progress {
            Some(progress) => progress.aside(self.interrupt.or(work)).await,
            None => self.interrupt.or(work).await,
        }
    }

    /// Ends the session when what it made is safe, then the display. `failed` says how the command
    /// itself went.
    pub(crate) async fn end<T>(
        mut self,
        result: Result<T, Error>,
        failed: bool,
    ) -> Result<T, Error> {
        if let Err(error @ Error { kind: Kind::Interrupted, .. }) = result {
            return Err(self.abandon(error).await);
        }
        let closed = self.interrupt.or(self.session.close()).await;
        let how = match &closed {
            Err(Error { kind: Kind::Interrupted, .. }) => Finish::Interrupted,
            _ if failed => Finish::Failed,
            _ => Finish::Succeeded,
        };
        let shown = match self.progress.take() {
            Some(progress) => progress.finish(how).await,
            None => tui::Shown::default(),
        };
        match (result, closed) {
            (Err(mut error), _) => {
                error.shown = shown;
                Err(error)
            }
            (Ok(_), Err(error)) => {
                tell_if_interrupted(&error, &self.output);
                Err(error.within("the session did not end well"))
            }
            (Ok(value), Ok(())) => Ok(value),
        }
    }

    async fn abandon(mut self, error: Error) -> Error {
        if let Some(progress) = self.progress.take() {
            progress.finish(Finish::Interrupted).await;
        }
        if !self.told {
            tell_if_interrupted(&error, &self.output);
        }
        tokio::select! {
            _ = tokio::time::timeout(STOP_LIMIT, self.session.close()) => {}
            () = self.interrupt.pressed() => {}
        }
        error
    }
}

fn tell_if_interrupted(error: &Error, output: &Output) {
    if matches!(error.kind, Kind::Interrupted) {
        output.note("Interrupted: stopping what runs. Press Ctrl-C again to leave at once.");
    }
}

fn enter(path: &Path) -> Result<PathBuf, Error> {
    let cannot = |error: std::io::Error| {
        Error::user(format!("cannot change to directory `{}`: {error}", path.display()))
    };
    std::env::set_current_dir(path).map_err(cannot)?;
    std::env::current_dir().map_err(cannot)
}
