//! `Engine`: the engine that answers, and what it keeps.

mod amount;
mod cache;
mod entry;

use crate::services::Services;
use graph::{Args, Builder, Context, Object, Op, Root, Scope};
use protocol::{Digest, Error};
use std::sync::Arc;

/// Adds `Query.engine` and all below it.
pub(crate) fn install(builder: &mut Builder) {
    builder.install::<GetEngine>().install::<Name>().install::<Clients>();
    cache::install(builder);
    entry::install(builder);
}

/// Who is connected to the engine; given to every session by the engine.
pub struct Connected(Arc<dyn Fn() -> Vec<String> + Send + Sync>);

impl Connected {
    /// Asks this whenever somebody wants to know.
    pub fn new(names: impl Fn() -> Vec<String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(names))
    }
}

/// The engine.
struct Engine;

impl Object for Engine {
    const TYPE: &'static str = "Engine";
}

/// The engine that answers this.
#[derive(Args)]
struct GetEngine {}

impl Op for GetEngine {
    type Parent = Root;
    type Output = Engine;
    const NAME: &'static str = "engine";

    async fn run(&self, _: &Root, _: &Context) -> Result<Engine, Error> {
        Ok(Engine)
    }
}

/// Name of the engine: one a state folder.
#[derive(Args)]
struct Name {}

impl Op for Name {
    type Parent = Engine;
    type Output = String;
    const NAME: &'static str = "name";

    async fn run(&self, _: &Engine, cx: &Context) -> Result<String, Error> {
        let store = cx.get::<Services>()?.store.dir().to_owned();
        let folder = store.parent().unwrap_or(&store);
        let digest = Digest::of(folder.as_os_str().as_encoded_bytes()).to_string();
        Ok(format!("ci-tool-{}", &digest[..16]))
    }
}

/// Short names of the sessions that are open now.
#[derive(Args)]
struct Clients {}

impl Op for Clients {
    type Parent = Engine;
    type Output = Vec<String>;
    const NAME: &'static str = "clients";
    const SCOPE: Scope = Scope::Request;

    async fn run(&self, _: &Engine, cx: &Context) -> Result<Vec<String>, Error> {
        let mut names = (cx.get::<Connected>()?.0)();
        names.sort();
        Ok(names)
    }
}
