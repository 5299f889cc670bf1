//! [`Git`]: a git command with nothing around it that we did not put there.
//!
//! Configuration of the machine and of its users is not read, hooks are not found, nobody is asked anything. What git
//! needs to know comes by its environment, which only the process itself and root can read, never by its arguments.

use crate::{Access, Error, Url};
use futures::future::BoxFuture;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Most that a command may write.
const MAX_OUTPUT: usize = 256 << 20;
/// Where git finds its helpers: `ssh` and `sh`.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Protocols that remotes may speak.
const REMOTE_PROTOCOLS: &str = "http:https:ssh:git";

/// Configuration of every command.
const CONFIG: &[(&str, &str)] = &[
    ("safe.directory", "*"),
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.untrackedCache", "false"),
    ("core.askPass", ""),
    ("credential.helper", ""),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("fetch.unpackLimit", "1"),
    ("fetch.recurseSubmodules", "false"),
    ("submodule.recurse", "false"),
    ("advice.detachedHead", "false"),
    ("protocol.version", "2"),
    ("checkout.workers", "0"),
    ("pack.threads", "0"),
    ("index.threads", "true"),
    // A server that has stopped talking is given up.
    ("http.lowSpeedLimit", "1"),
    ("http.lowSpeedTime", "60"),
];

/// Hears what git says while it runs.
pub type Heard = Box<dyn FnMut(&[u8]) + Send>;

/// A command as it is run.
pub struct Command {
    /// All arguments after `git`.
    pub arguments: Vec<String>,
    /// The whole environment.
    pub environment: Vec<(String, String)>,
    /// Where it runs.
    pub folder: PathBuf,
    /// What it reads.
    pub input: Vec<u8>,
    /// Most that it may write.
    pub limit: usize,
    /// Hears what it says.
    pub heard: Option<Heard>,
}

/// A command that has ended.
#[derive(Clone, Debug, Default)]
pub struct Output {
    /// Exit code.
    pub code: i32,
    /// What it wrote.
    pub stdout: Vec<u8>,
    /// What it said last.
    pub stderr: Vec<u8>,
}

/// Why a command could not be run.
#[derive(Debug)]
pub enum RunError {
    /// Git is not installed.
    Missing,
    /// Something else.
    Failed(String),
}

/// Who starts processes. Dropping the future ends the process.
pub trait Run: Send + Sync {
    /// Runs git to its end.
    fn run(&self, command: Command) -> BoxFuture<'_, Result<Output, RunError>>;
}

/// How git is run here.
#[derive(Clone)]
pub struct Git {
    run: Arc<dyn Run>,
    /// Further variables: proxies and certificates of this machine.
    surroundings: Arc<[(String, String)]>,
}

/// A command that is being put together.
pub(crate) struct Asked<'a> {
    git: &'a Git,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    config: Vec<(String, String)>,
    folder: PathBuf,
    input: Vec<u8>,
    heard: Option<Heard>,
}

impl Git {
    /// Git by way of `run`, with further variables.
    pub fn new(run: Arc<dyn Run>, surroundings: Vec<(String, String)>) -> Self {
        Self { run, surroundings: surroundings.into() }
    }

    /// A command that touches no network.
    pub(crate) fn ask<'a>(&'a self, arguments: &[&str]) -> Asked<'a> {
        Asked {
            git: self,
            arguments: arguments.iter().map(|word| (*word).to_owned()).collect(),
            environment: vec![("GIT_ALLOW_PROTOCOL".into(), "file".into())],
            config: vec![],
            folder: PathBuf::from("/"),
            input: vec![],
            heard: None,
        }
    }

    /// A command that speaks with a remote.
    pub(crate) fn ask_remote<'a>(
        &'a self,
        arguments: &[&str],
        url: &Url,
        access: &Access,
    ) -> Asked<'a> {
        let mut asked = self.ask(arguments);
        asked.environment = vec![("GIT_ALLOW_PROTOCOL".into(), REMOTE_PROTOCOLS.into())];
        asked.environment.extend(self.surroundings.iter().cloned());
        let (environment, config) = access.for_git(url);
        asked.environment.extend(environment);
        asked.config.extend(config);
        asked
    }
}

impl Asked<'_> {
    /// On this repository.
    pub(crate) fn on(mut self, repository: &Path) -> Self {
        self.set("GIT_DIR", repository);
        self.folder = repository.to_owned();
        self
    }

    /// With this setting.
    pub(crate) fn configured(mut self, name: &str, value: &str) -> Self {
        self.config.push((name.to_owned(), value.to_owned()));
        self
    }

    /// With this variable.
    pub(crate) fn with(mut self, name: &str, value: &Path) -> Self {
        self.set(name, value);
        self
    }

    fn set(&mut self, name: &str, value: &Path) {
        self.environment.push((name.to_owned(), value.display().to_string()));
    }

    /// With what another repository has known, too.
    pub(crate) fn knowing(mut self, other: &Path) -> Self {
        let objects = other.join("objects").display().to_string();
        // It is a list: what is quoted stays together.
        let quoted = objects.replace('\\', "\\\\").replace('"', "\\\"");
        let name = "GIT_ALTERNATE_OBJECT_DIRECTORIES".to_owned();
        self.environment.push((name, format!("\"{quoted}\"")));
        self
    }

    /// In this folder.
    pub(crate) fn within(mut self, folder: &Path) -> Self {
        self.folder = folder.to_owned();
        self
    }

    /// With this to read.
    pub(crate) fn reading(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.input = input.into();
        self
    }

    /// Somebody hears what it says.
    pub(crate) fn heard_by(mut self, heard: Option<Heard>) -> Self {
        self.heard = heard;
        self
    }

    /// Runs it, whatever it ends with.
    pub(crate) async fn run(self) -> Result<Output, Error> {
        let mut environment: Vec<(String, String)> = [
            ("PATH", PATH),
            ("HOME", "/nonexistent"),
            ("LC_ALL", "C"),
            ("TZ", "UTC"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_ATTR_NOSYSTEM", "1"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_ASKPASS", ""),
            ("GIT_NO_REPLACE_OBJECTS", "1"),
            // What a mirror was fetched without is not fetched behind our back.
            ("GIT_NO_LAZY_FETCH", "1"),
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_FLUSH", "1"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        environment.extend(self.environment);
        let fixed = CONFIG.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let config: Vec<(String, String)> = fixed.chain(self.config).collect();
        environment.push(("GIT_CONFIG_COUNT".into(), config.len().to_string()));
        for (index, (key, value)) in config.into_iter().enumerate() {
            environment.push((format!("GIT_CONFIG_KEY_{index}"), key));
            environment.push((format!("GIT_CONFIG_VALUE_{index}"), value));
        }
        let command = Command {
            arguments: self.arguments,
            environment,
            folder: self.folder,
            input: self.input,
            limit: MAX_OUTPUT,
            heard: self.heard,
        };
        Ok(self.git.run.run(command).await?)
    }

    /// Runs it and gives what it wrote; anything but success is an error.
    pub(crate) async fn success(self, action: &str) -> Result<Vec<u8>, Error> {
        let output = self.run().await?;
        if output.code != 0 {
            return Err(Error::of_command(action, &output));
        }
        Ok(output.stdout)
    }
}

/// The text of an answer.
pub(crate) fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Runs commands by the standard library, for tests.
    pub(crate) struct Plain;

    impl Run for Plain {
        fn run(&self, command: Command) -> BoxFuture<'_, Result<Output, RunError>> {
            Box::pin(async move {
                use std::io::Write as _;
                let mut process = std::process::Command::new("git");
                process.args(command.arguments).env_clear().envs(command.environment);
                process.current_dir(command.folder);
                let pipe = std::process::Stdio::piped;
                let mut child =
                    process.stdin(pipe()).stdout(pipe()).stderr(pipe()).spawn().unwrap();
                let mut stdin = child.stdin.take().unwrap();
                let feed = std::thread::spawn(move || stdin.write_all(&command.input));
                let done = child.wait_with_output().unwrap();
                let _ = feed.join();
                let code = done.status.code().unwrap_or(1);
                Ok(Output { code, stdout: done.stdout, stderr: done.stderr })
            })
        }
    }

    pub(crate) fn git() -> Git {
        Git::new(Arc::new(Plain), vec![])
    }
}
