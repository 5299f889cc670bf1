//! [`Service`]: git on this engine, and who writes to which mirror.

use futures::future::BoxFuture;
use git::{Command, Git, Output, Run, RunError};
use protocol::Error;
use sandbox::{Errand, Errands};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::OwnedMutexGuard;

/// Git, for all sessions.
pub struct Service {
    git: Git,
    /// Hosts of ssh that were met before.
    known_hosts: PathBuf,
    writers: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
}

impl Service {
    /// Runs git by way of `errands`, with these further variables, and remembers hosts in a file.
    pub fn new(
        errands: Arc<Errands>,
        variables: Vec<(String, String)>,
        known_hosts: &Path,
    ) -> Self {
        let git = Git::new(Arc::new(Runner(errands)), variables);
        Self { git, known_hosts: known_hosts.to_owned(), writers: Mutex::default() }
    }

    pub(super) fn git(&self) -> &Git {
        &self.git
    }

    /// The file with hosts that were met before, which is made if it is not there.
    pub(super) fn known_hosts(&self) -> Result<&Path, Error> {
        let path = &self.known_hosts;
        let opened = std::fs::OpenOptions::new().append(true).create(true).open(path);
        match opened {
            Ok(_) => Ok(path),
            Err(error) => {
                Err(Error::environment(format!("cannot write `{}`: {error}", path.display())))
            }
        }
    }

    /// The right to write to the mirror of a url.
    pub(super) async fn writer(&self, url: &str) -> OwnedMutexGuard<()> {
        let lock = {
            let mut writers = self.writers.lock().unwrap_or_else(PoisonError::into_inner);
            writers.retain(|_, lock| Arc::strong_count(lock) > 1);
            writers.entry(url.to_owned()).or_default().clone()
        };
        lock.lock_owned().await
    }
}

/// Runs git as an errand.
struct Runner(Arc<Errands>);

impl Run for Runner {
    fn run(&self, command: Command) -> BoxFuture<'_, Result<Output, RunError>> {
        let Command { arguments, environment, folder, input, limit, heard } = command;
        let errand = Errand {
            program: "git".to_owned(),
            arguments,
            environment,
            folder: folder.display().to_string(),
            input,
            stdin: None,
            limit,
            heard,
        };
        Box::pin(async move {
            let done = self.0.run(errand).await.map_err(|error| match error {
                sandbox::Error::Program { code: 127, .. } => RunError::Missing,
                other => RunError::Failed(other.to_string()),
            })?;
            Ok(Output { code: done.code, stdout: done.stdout, stderr: done.stderr })
        })
    }
}
