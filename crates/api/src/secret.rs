//! `Secret`: a text that is used and never shown.
//!
//! The plain text is a sealed argument: calls, ids, spans and records hold a digest of it under the
//! engine's own key. A secret belongs to the session that brought it.

use graph::{Args, Builder, Context, Object, Op, Root, Scope};
use protocol::Error;
use std::fmt;
use std::sync::Arc;

/// Longest secret.
const MAX_BYTES: usize = 512_000;

pub(crate) fn install(builder: &mut Builder) {
    builder.install::<SetSecret>().install::<Name>().install::<Plaintext>();
}

/// A secret.
pub(crate) struct Secret {
    name: String,
    plaintext: Arc<str>,
}

impl Secret {
    /// The text itself, for who uses it.
    pub(crate) fn plaintext(&self) -> &str {
        &self.plaintext
    }
}

impl Object for Secret {
    const TYPE: &'static str = "Secret";
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secret").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A secret of this session.
#[derive(Args)]
struct SetSecret {
    /// What it is called.
    name: String,
    /// The text. It stays out of ids, logs and caches.
    #[arg(sensitive)]
    plaintext: String,
}

impl Op for SetSecret {
    type Parent = Root;
    type Output = Secret;
    const NAME: &'static str = "setSecret";
    const SCOPE: Scope = Scope::Session;

    async fn run(&self, _: &Root, _: &Context) -> Result<Secret, Error> {
        if self.plaintext.len() > MAX_BYTES {
            let message = format!("secret `{}` is longer than {MAX_BYTES} bytes", self.name);
            return Err(Error::user(message));
        }
        Ok(Secret { name: self.name.clone(), plaintext: self.plaintext.as_str().into() })
    }
}

/// What it is called.
#[derive(Args)]
struct Name {}

impl Op for Name {
    type Parent = Secret;
    type Output = String;
    const NAME: &'static str = "name";

    async fn run(&self, secret: &Secret, _: &Context) -> Result<String, Error> {
        Ok(secret.name.clone())
    }
}

/// The text itself, in the session that brought it.
#[derive(Args)]
struct Plaintext {}

impl Op for Plaintext {
    type Parent = Secret;
    type Output = String;
    const NAME: &'static str = "plaintext";
    const SCOPE: Scope = Scope::Request;

    async fn run(&self, secret: &Secret, _: &Context) -> Result<String, Error> {
        Ok(secret.plaintext.to_string())
    }
}
