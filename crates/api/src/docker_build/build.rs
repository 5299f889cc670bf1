//! The plan of a build: which stages there are, which the target needs, and who waits for whom.
//!
//! Every stage is a task of its own. It begins at once and waits where it takes something from another
//! one, so stages that do not need each other run side by side. Whoever stops asking stops all of them.

use super::context::BuildContext;
use super::location::{Location, in_file};
use super::scope::Scope;
use super::stage::{self, StageState};
use crate::container::Container;
use crate::directory::Directory;
use crate::platform;
use crate::secret::Secret;
use crate::services::Services;
use crate::socket::Socket;
use crate::tree::Tree;
use dockerfile::{Dockerfile, StageRef};
use graph::Context;
use protocol::Error;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OnceCell, watch};
use tokio::task::JoinSet;

/// What is to be built.
pub(super) struct Request {
    pub(super) context: Directory,
    /// Its path in the context.
    pub(super) dockerfile: String,
    /// The stage; empty is the last one.
    pub(super) target: String,
    pub(super) args: Vec<(String, String)>,
    pub(super) secrets: Vec<Arc<Secret>>,
    pub(super) ssh: Option<Arc<Socket>>,
    /// An empty container with the logins to use.
    pub(super) blank: Container,
    pub(super) platform: String,
    /// Whether commands have an init process.
    pub(super) init: bool,
}

/// A build on its way.
pub(super) struct Build {
    pub(super) file: Dockerfile,
    pub(super) scope: Scope,
    pub(super) context: BuildContext,
    pub(super) request: Request,
    pub(super) cx: Context,
    /// What each stage begins from, and for which platform.
    bases: Vec<(StageRef, String)>,
    stages: Mutex<Stages>,
    /// Images that instructions take files from, by name and platform.
    images: Mutex<Images>,
    failed: watch::Sender<Option<Error>>,
}

/// How far stages are.
#[derive(Default)]
struct Stages {
    begun: HashMap<usize, watch::Receiver<Option<Finished>>>,
    tasks: JoinSet<()>,
}

type Images = HashMap<(String, String), Arc<OnceCell<Container>>>;
type Finished = Result<Arc<StageState>, Error>;

/// Stops all stages when nobody waits for the build any more.
struct Stop(Arc<Build>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.stages.lock().unwrap_or_else(PoisonError::into_inner).tasks.abort_all();
    }
}

/// Builds a stage with all that it needs.
pub(super) async fn build(request: Request, cx: &Context) -> Result<Container, Error> {
    let services = cx.get::<Services>()?;
    let name = request.dockerfile.clone();
    let (context, text) = BuildContext::read(&request.context, &name, services).await?;
    let wrong = |error| in_file(&name, &text, error);
    let file = Dockerfile::parse(&text).map_err(wrong)?;
    let target = file.target(&request.target).map_err(wrong)?;
    let given = (request.platform.as_str(), request.target.as_str());
    let scope = Scope::new(&file, request.args.clone(), given).map_err(wrong)?;
    let bases = bases(&file, &scope, &request)?;
    let plain: Vec<StageRef> = bases.iter().map(|(base, _)| base.clone()).collect();
    let needed = file.needed(target, &plain);
    let (stages, images, failed) = (Mutex::default(), Mutex::default(), watch::Sender::new(None));
    let cx = cx.clone();
    let build = Build { file, scope, context, request, cx, bases, stages, images, failed };
    let build = Arc::new(build);
    let _stop = Stop(build.clone());
    let mut failure = build.failed.subscribe();
    for stage in needed {
        build.begin(stage);
    }
    let made = tokio::select! {
        made = build.stage(target) => made?,
        Ok(failed) = failure.wait_for(Option::is_some) => {
            let error = failed.clone();
            return Err(error.unwrap_or_else(|| Error::internal("a stage failed without a word")));
        }
    };
    // What its commands printed is not what a command of the user's printed.
    Ok(made.container.clone().without_outcome())
}

/// What each stage begins from, once variables are replaced.
fn bases(
    file: &Dockerfile,
    scope: &Scope,
    request: &Request,
) -> Result<Vec<(StageRef, String)>, Error> {
    let mut bases: Vec<(StageRef, String)> = vec![];
    for (index, stage) in file.stages.iter().enumerate() {
        let at = Location {
            file: request.dockerfile.clone(),
            line: stage.line,
            text: stage.text.clone(),
        };
        let base = scope.expand(&stage.base).map_err(|error| at.of_language(error))?;
        if base.is_empty() {
            let message = format!("base name ({}) should not be blank", stage.base);
            return Err(at.of(Error::user(message)));
        }
        let base = file.base(&base, index);
        let platform = match (&stage.platform, &base) {
            (Some(platform), _) => {
                let platform = scope.expand(platform).map_err(|error| at.of_language(error))?;
                platform::normalise(&platform).map_err(|error| at.of(error))?
            }
            (None, StageRef::Stage(below)) => bases[*below].1.clone(),
            (None, StageRef::Image(_)) => request.platform.clone(),
        };
        bases.push((base, platform));
    }
    Ok(bases)
}

impl Build {
    /// What a stage begins from, and for which platform.
    pub(super) fn base(&self, stage: usize) -> &(StageRef, String) {
        &self.bases[stage]
    }

    /// A stage, when it is made.
    pub(super) async fn stage(self: &Arc<Self>, index: usize) -> Finished {
        let mut watched = self.begin(index);
        let gone = || Error::internal("a stage of a build ended without a word");
        let finished = watched.wait_for(Option::is_some).await.map_err(|_| gone())?;
        finished.clone().ok_or_else(gone)?
    }

    /// Begins a stage unless it was begun before.
    fn begin(self: &Arc<Self>, index: usize) -> watch::Receiver<Option<Finished>> {
        let mut stages = self.stages.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(begun) = stages.begun.get(&index) {
            return begun.clone();
        }
        let (sender, receiver) = watch::channel(None);
        stages.begun.insert(index, receiver.clone());
        let build = self.clone();
        stages.tasks.spawn(async move {
            let finished = stage::run(&build, index).await.map(Arc::new);
            if let Err(error) = &finished {
                build.failed.send_if_modified(|first| {
                    let is_first = first.is_none();
                    if is_first {
                        *first = Some(error.clone());
                    }
                    is_first
                });
            }
            // Nobody may wait for it.
            let _ = sender.send(Some(finished));
        });
        receiver
    }

    /// An image by its name.
    pub(super) async fn image(&self, name: &str, platform: &str) -> Result<Container, Error> {
        let blank = self.request.blank.blank(platform);
        if name == "scratch" {
            return Ok(blank);
        }
        let cell = {
            let mut images = self.images.lock().unwrap_or_else(PoisonError::into_inner);
            images.entry((name.to_owned(), platform.to_owned())).or_default().clone()
        };
        cell.get_or_try_init(|| blank.based_on(name, &self.cx)).await.cloned()
    }

    /// The files that an instruction of a stage takes something from.
    pub(super) async fn files(
        self: &Arc<Self>,
        from: Option<&str>,
        stage: usize,
    ) -> Result<Tree, Error> {
        let Some(from) = from else {
            return self.context.tree(self.cx.get::<Services>()?).await;
        };
        match self.file.find(from, stage) {
            StageRef::Stage(index) => Ok(self.stage(index).await?.container.root().clone()),
            StageRef::Image(name) => {
                let image = self.image(&name, &self.bases[stage].1).await?;
                Ok(image.root().clone())
            }
        }
    }

    /// The secret of this name. One of the client's machine also goes by the last part of its address.
    pub(super) fn secret(&self, id: &str) -> Option<&Arc<Secret>> {
        let secrets = &self.request.secrets;
        let by_address = |secret: &&Arc<Secret>| {
            let place = secret.name().split_once("://").map(|(_, place)| place);
            place.is_some_and(|place| place == id || place.rsplit('/').next() == Some(id))
        };
        secrets
            .iter()
            .find(|secret| secret.name() == id)
            .or_else(|| secrets.iter().find(by_address))
    }
}
