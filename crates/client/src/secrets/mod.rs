//! Secrets that this machine keeps, read when the engine first needs them.
//!
//! A secret is named by an address: `env://NAME`, `file://path` or `cmd://line`. Its bytes are taken as
//! they are. Errors never hold a secret, and of a name that may be one, because somebody typed the
//! secret itself, they hold three letters.

mod command;

use protocol::Error;
use protocol::attach::{MAX_SECRET_BYTES, SecretRequest};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The environment variables that secrets may be in.
#[derive(Clone, Default)]
pub struct EnvVariables(Arc<HashMap<OsString, OsString>>);

impl FromIterator<(OsString, OsString)> for EnvVariables {
    fn from_iter<T: IntoIterator<Item = (OsString, OsString)>>(variables: T) -> Self {
        Self(Arc::new(variables.into_iter().collect()))
    }
}

/// The values are nobody's business.
impl std::fmt::Debug for EnvVariables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "EnvVariables({})", self.0.len())
    }
}

/// What a secret may be read from.
pub(crate) struct Keeper<'a> {
    pub(crate) variables: &'a EnvVariables,
    /// Where commands run.
    pub(crate) workdir: &'a Path,
    /// The absolute path that a user meant.
    pub(crate) resolve: &'a (dyn Fn(&str) -> Result<PathBuf, Error> + Send + Sync),
}

/// The bytes of a secret.
pub(crate) async fn read(keeper: Keeper<'_>, request: SecretRequest) -> Result<Vec<u8>, Error> {
    let (provider, rest) = request.parts()?;
    let secret = match provider {
        "env" => variable(keeper.variables, rest)?,
        "file" => file(rest, (keeper.resolve)(rest)?).await?,
        _ => command::output(rest, keeper.workdir).await?,
    };
    if secret.len() > MAX_SECRET_BYTES {
        let message =
            format!("a secret of `{provider}://` is longer than {MAX_SECRET_BYTES} bytes");
        return Err(Error::user(message));
    }
    Ok(secret)
}

fn variable(variables: &EnvVariables, name: &str) -> Result<Vec<u8>, Error> {
    let value = variables.0.get(OsStr::from_bytes(name.as_bytes()));
    value.map(|value| value.clone().into_vec()).ok_or_else(|| {
        let message = format!("secret env var not found: \"{}...\"", beginning(name));
        Error::user(message).with_hint("set it where the command is typed, and export it")
    })
}

async fn file(typed: &str, path: PathBuf) -> Result<Vec<u8>, Error> {
    let read = tokio::task::spawn_blocking(move || {
        let mut secret = vec![];
        // A little more than is allowed, so that a longer one is noticed.
        let limit = MAX_SECRET_BYTES as u64 + 1;
        File::open(path)?.take(limit).read_to_end(&mut secret)?;
        Ok::<_, io::Error>(secret)
    });
    let read = read.await.map_err(|error| Error::internal(error.to_string()))?;
    read.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            Error::user(format!("secret file {typed}: no such file or directory"))
        }
        _ => Error::environment(format!("secret file {typed}: {error}")),
    })
}

/// The first letters of what may be a secret itself.
fn beginning(text: &str) -> String {
    text.chars().take(3).collect()
}

#[cfg(test)]
mod tests;
