//! `Directory.dockerBuild` and `Container.build`: Dockerfiles.

mod cache;
mod corpus;
mod errors;
mod files;
mod images;
mod mounts;
mod repositories;

use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use testkit::registry::Registry;
use testkit::{Session, State};

/// An engine, and a registry that has the static root file system as `base:1`.
pub(crate) struct World {
    pub(crate) session: Session,
    pub(crate) state: State,
    pub(crate) registry: Registry,
    contexts: AtomicU32,
}

impl World {
    fn new() -> Self {
        let registry = Registry::start();
        let state = State::new();
        let session = Session::start(&state);
        let world = Self { session, state, registry, contexts: AtomicU32::new(0) };
        let publish = format!(
            "withEnvVariable(name: \"PATH\", value: \"/bin\") {{ publish(address: {}) }}",
            json!(world.base())
        );
        world.session.container(&publish);
        world
    }

    /// The image that Dockerfiles of these tests begin from: `FROM $BASE`.
    fn base(&self) -> String {
        format!("{}/base:1", self.registry.address())
    }

    /// Writes a build context and gives its folder.
    fn context(&self, files: &[(&str, &str)]) -> PathBuf {
        let number = self.contexts.fetch_add(1, Ordering::Relaxed);
        for (name, text) in files {
            self.state.file(&format!("context{number}/{name}"), text);
        }
        self.state.workdir().join(format!("context{number}"))
    }

    /// `{ host { directory(path: ...) { dockerBuild(...) { <chain> } } } }`; every build has `BASE`.
    fn document(&self, files: &[(&str, &str)], options: &str, chain: &str) -> String {
        self.document_in(&self.context(files), options, chain)
    }

    fn document_in(&self, context: &std::path::Path, options: &str, chain: &str) -> String {
        let (path, base) = (json!(context.to_string_lossy()), json!(self.base()));
        let options = match options.contains("buildArgs") {
            true => options.replace(
                "buildArgs: [",
                &format!("buildArgs: [{{name: \"BASE\", value: {base}}}, "),
            ),
            false => format!("buildArgs: [{{name: \"BASE\", value: {base}}}] {options}"),
        };
        format!(
            "{{ host {{ directory(path: {path}) {{ dockerBuild({options}) {{ {chain} }} }} }} }}"
        )
    }

    /// The one value of a chain on what a Dockerfile makes, which begins from the base.
    #[track_caller]
    fn built(&self, dockerfile: &str, files: &[(&str, &str)], chain: &str) -> Value {
        self.session.leaf(&self.document(&with(dockerfile, files), "", chain))
    }

    /// Output of a shell script in what a Dockerfile makes.
    #[track_caller]
    fn shell(&self, dockerfile: &str, files: &[(&str, &str)], script: &str) -> String {
        let value = self.built(dockerfile, files, &exec(script));
        value.as_str().expect("output is text").to_owned()
    }

    /// What is said about a build that must fail.
    #[track_caller]
    fn error(&self, dockerfile: &str, files: &[(&str, &str)]) -> String {
        self.session.error(&self.document(&with(dockerfile, files), "", "sync"))
    }
}

/// `withExec` of a shell script.
fn exec(script: &str) -> String {
    format!(r#"withExec(args: ["sh", "-c", {}]) {{ stdout }}"#, json!(script))
}

/// The files of a context, with a Dockerfile. One without `FROM` begins from the base.
fn with<'a>(dockerfile: &'a str, files: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let mut all = files.to_vec();
    all.push(("Dockerfile", dockerfile));
    all
}
