//! `Secret`: a text that is used and never shown.
//!
//! Either the request brings it (`setSecret`) or the client's machine keeps it (`secret`), which is asked
//! when a command first needs it. The plain text stays in memory: calls, ids, spans and records hold a
//! digest of it under the engine's own key, and whoever reads it here makes it known to the session,
//! so that it is taken out of everything that people look at. A secret belongs to the session that
//! brought it.

mod address;

use crate::host::{Host, HostObject};
use address::Address;
use graph::{Args, Builder, Context, Object, Op, Root, Scope};
use protocol::attach::MAX_SECRET_BYTES;
use protocol::{Call, Digest, Error, Value};
use redact::Known;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

pub(crate) fn install(builder: &mut Builder) {
    builder
        .install::<SetSecret>()
        .install::<FromAddress>()
        .install::<SetSecretFile>()
        .install::<FromName>()
        .install::<Name>()
        .install::<Uri>()
        .install::<Plaintext>();
}

/// A secret.
pub(crate) struct Secret {
    name: String,
    source: Source,
}

enum Source {
    /// The request brought it.
    Given(Arc<[u8]>),
    /// The client's machine keeps it.
    Kept(Kept),
}

/// A secret of the client's machine.
struct Kept {
    uri: String,
    /// What stands for the text in the names of commands; none takes the text itself.
    cache_key: Option<String>,
    /// How long a text that was read is used; none is as long as the session.
    time_to_live: Option<Duration>,
    read: Mutex<Option<(Instant, Arc<[u8]>)>>,
}

impl Secret {
    /// A secret of the client's machine.
    pub(crate) fn kept(address: &str, cache_key: Option<&str>) -> Result<Self, Error> {
        let Address { uri, cache_key: in_address, time_to_live } = Address::parse(address)?;
        let cache_key = cache_key.map(str::to_owned).or(in_address);
        let cache_key = cache_key.filter(|key| !key.is_empty());
        let (name, read) = (uri.clone(), Mutex::default());
        Ok(Self { name, source: Source::Kept(Kept { uri, cache_key, time_to_live, read }) })
    }

    /// What users call it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The text itself, for who uses it.
    pub(crate) async fn plaintext(&self, cx: &Context) -> Result<Arc<[u8]>, Error> {
        let plaintext = match &self.source {
            Source::Given(text) => text.clone(),
            Source::Kept(kept) => kept.read(cx).await?,
        };
        cx.get::<Known>()?.add(&plaintext);
        Ok(plaintext)
    }

    /// The same where only a text will do.
    pub(crate) async fn text(&self, cx: &Context) -> Result<String, Error> {
        let plaintext = self.plaintext(cx).await?;
        String::from_utf8(plaintext.to_vec()).map_err(|_| {
            Error::user(format!("secret `{}` is not text", self.name))
                .with_hint("mount it as a file with `withMountedSecret`")
        })
    }

    /// What stands for it in the name of a command. It tells nothing to who does not have the
    /// engine's key.
    pub(crate) async fn digest(&self, cx: &Context) -> Result<Digest, Error> {
        if let Source::Kept(Kept { cache_key: Some(key), .. }) = &self.source {
            return Ok(cx.sealed(&[b"cache key:", key.as_bytes()].concat()));
        }
        Ok(cx.sealed(&[b"text:", &*self.plaintext(cx).await?].concat()))
    }
}

impl Kept {
    /// The text, asked of the client once in its time to live.
    async fn read(&self, cx: &Context) -> Result<Arc<[u8]>, Error> {
        // Held while the client is asked: a password manager asks its user once, not for every command.
        let mut read = self.read.lock().await;
        if let Some((at, text)) = &*read
            && self.time_to_live.is_none_or(|limit| at.elapsed() < limit)
        {
            return Ok(text.clone());
        }
        let text: Arc<[u8]> = cx.get::<Host>()?.files().secret(self.uri.clone()).await?.into();
        *read = Some((Instant::now(), text.clone()));
        Ok(text)
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

    async fn run(&self, _: &Root, cx: &Context) -> Result<Secret, Error> {
        if self.plaintext.len() > MAX_SECRET_BYTES {
            let message = format!("secret `{}` is longer than {MAX_SECRET_BYTES} bytes", self.name);
            return Err(Error::user(message));
        }
        cx.get::<Known>()?.add(self.plaintext.as_bytes());
        let source = Source::Given(self.plaintext.as_bytes().into());
        Ok(Secret { name: self.name.clone(), source })
    }
}

/// A secret of your machine. It is read when a command first needs it.
#[derive(Args)]
struct FromAddress {
    /// Where it is: `env://NAME`, `file://path` or `cmd://line`. `?ttl=10m` at its end reads it again after
    /// that time.
    uri: String,
    /// A text that stands for the secret in the cache: commands with equal ones share results, whatever
    /// the secret is.
    cache_key: Option<String>,
}

impl Op for FromAddress {
    type Parent = Root;
    type Output = Secret;
    const NAME: &'static str = "secret";
    const SCOPE: Scope = Scope::Session;

    fn check(args: &[(Box<str>, Value)]) -> Result<(), Error> {
        let uri = args.iter().find(|(name, _)| **name == *"uri");
        uri.and_then(|(_, value)| value.as_str()).map_or(Ok(()), Address::check)
    }

    async fn run(&self, _: &Root, _: &Context) -> Result<Secret, Error> {
        Secret::kept(&self.uri, self.cache_key.as_deref())
    }
}

/// A secret that this session has set before, by its name. For old programs: newer ones keep the secret
/// that `setSecret` gives.
#[derive(Args)]
struct FromName {
    /// Means nothing any more.
    #[expect(dead_code, reason = "old programs send it")]
    accessor: Option<String>,
    /// What it was called.
    name: String,
}

impl Op for FromName {
    type Parent = Root;
    type Output = Secret;
    const NAME: &'static str = "loadSecretFromName";
    const SCOPE: Scope = Scope::Session;

    async fn run(&self, _: &Root, cx: &Context) -> Result<Secret, Error> {
        let mut sealed = vec![];
        // Ids of other sessions may have been tried here.
        let own = |call: &Arc<Call>| call.scope() == Some(cx.session_id());
        for call in cx.calls_of(SetSecret::NAME).into_iter().filter(own) {
            let arg = |wanted: &str| call.args().iter().find(|(name, _)| **name == *wanted);
            let name = arg("name").and_then(|(_, value)| value.as_str());
            if let (Some((_, Value::Sealed(text))), true) =
                (arg("plaintext"), name == Some(&self.name))
                && !sealed.contains(text)
            {
                sealed.push(*text);
            }
        }
        let name = &self.name;
        let refused = |message: String| {
            Err(Error::user(message).with_hint("keep the secret that `setSecret` gives"))
        };
        match &sealed[..] {
            [] => refused(format!("this session has set no secret `{name}`")),
            [text] => {
                let text = cx.unseal(text).ok_or_else(|| Error::internal("a secret is lost"))?;
                let source = Source::Given(text.as_bytes().into());
                Ok(Secret { name: name.clone(), source })
            }
            _ => refused(format!("this session has set several secrets `{name}`")),
        }
    }
}

/// A secret of this session that is in a file of your machine.
#[derive(Args)]
struct SetSecretFile {
    /// What it is called.
    name: String,
    /// The file.
    path: String,
}

impl Op for SetSecretFile {
    type Parent = HostObject;
    type Output = Secret;
    const NAME: &'static str = "setSecretFile";
    const SCOPE: Scope = Scope::Session;

    async fn run(&self, _: &HostObject, _: &Context) -> Result<Secret, Error> {
        let (uri, read) = (format!("file://{}", self.path), Mutex::default());
        let kept = Kept { uri, cache_key: None, time_to_live: None, read };
        Ok(Secret { name: self.name.clone(), source: Source::Kept(kept) })
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

/// Where it is on your machine; empty when the request brought it.
#[derive(Args)]
struct Uri {}

impl Op for Uri {
    type Parent = Secret;
    type Output = String;
    const NAME: &'static str = "uri";

    async fn run(&self, secret: &Secret, _: &Context) -> Result<String, Error> {
        Ok(match &secret.source {
            Source::Given(_) => String::new(),
            Source::Kept(kept) => kept.uri.clone(),
        })
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

    async fn run(&self, secret: &Secret, cx: &Context) -> Result<String, Error> {
        secret.text(cx).await
    }
}
