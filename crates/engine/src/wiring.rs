//! The one list that puts the parts of an engine together. Nothing is decided here.

use crate::attendants::Attendants;
use crate::backend::Backend;
use crate::memo::StoredMemo;
use crate::{Error, key, network};
use api::debian::Assembler;
use api::{Observable, Services, Slots, Turns};
use config::engine::{Engine, Network};
use fetch::Fetcher;
use graph::{Extensions, Graph};
use protocol::Digest;
use sandbox::{Limits, Sandbox};
use std::path::Path;
use std::sync::Arc;
use store::{Store, Target, TargetKind};

/// Where the host keeps its configuration of apt.
const APT_FOLDER: &str = "/etc/apt";

/// The parts of a running engine.
pub(crate) struct Wired {
    graph: Arc<Graph>,
    services: Arc<Services>,
}

impl Wired {
    /// What the door needs.
    pub(crate) fn backend(&self) -> Backend {
        let mut extensions = Extensions::new();
        extensions.insert(self.services.clone());
        let store = self.services.store.clone();
        let flush = Arc::new(move || {
            // A session ends: what only it needed can go.
            store.collect_soon();
            store.flush().map_err(Into::into)
        });
        Backend { graph: self.graph.clone(), extensions, flush }
    }

    /// What the user is to be told about how the store was opened.
    pub(crate) fn word(&self) -> Option<String> {
        self.services.store.word().map(str::to_owned)
    }

    /// Where commands run.
    pub(crate) fn sandbox(&self) -> &Sandbox {
        &self.services.sandbox
    }
}

/// Opens a state folder and puts the engine together. Blocks; must be called inside the runtime.
pub(crate) fn open(
    state_dir: &Path,
    config: &Engine,
    attendants: Attendants,
) -> Result<Wired, Error> {
    let Attendants { zygote, guard, errands, proxies } = attendants;
    let (bridge, store) = std::thread::scope(|scope| {
        // Both wait for the kernel more than they work.
        let bridge = scope.spawn(|| network::open(config, guard));
        let store = Store::open_limited(&state_dir.join("store"), |disk| limits(config, disk))
            .map_err(|e| Error::unfit("store", &e, e.hint()));
        (bridge.join(), store)
    });
    let store = store?;
    let panicked = |_| Error::part("network")(&std::io::Error::other("its thread panicked"));
    let bridge = bridge.map_err(panicked)??;
    let runtime = crate::runtime::find(&config.runtime, state_dir)?;
    let settings = sandbox_settings(state_dir, config, runtime);
    let targets = targets(&settings);
    match sandbox::sweep(&settings.cgroup_name) {
        Ok(0) => {}
        Ok(groups) => tracing::info!(groups, "control groups of a dead engine were removed"),
        // A machine without control groups is fine; with limits the sandbox itself will say no.
        Err(error) => tracing::warn!(%error, "control groups of a dead engine may be left"),
    }
    let sandbox = Sandbox::new(zygote, settings, bridge).map_err(|e| Error::part("sandbox")(&e))?;
    let graph = graph(&store, state_dir)?;
    let debian = debian(state_dir, config, (&store, &sandbox, &targets));
    let observable = Observable {
        network: match config.network {
            Network::Bridge => "bridge",
            Network::None => "none",
            Network::Host => "host",
        },
    };
    let known_hosts = state_dir.join("known_hosts");
    let errands = Arc::new(errands);
    let git = api::git::Service::new(errands.clone(), proxies.clone(), &known_hosts);
    let volumes = Turns::default();
    let images = crate::registries::images(config)?;
    let slots = Slots::default();
    let surroundings = network::surroundings(config, proxies);
    let services = Services {
        store,
        sandbox,
        targets,
        debian,
        images,
        web: crate::network::web(config)?,
        errands,
        git,
        volumes,
        slots,
        observable,
        surroundings,
    };
    Ok(Wired { graph, services: Arc::new(services) })
}

/// How much room the store may take on a disk of this size.
fn limits(config: &Engine, disk: u64) -> store::Limits {
    let space = config.space(disk);
    store::Limits {
        max_used: space.max_used,
        min_free: space.min_free,
        floor: space.floor,
        reserved: space.reserved,
        target: space.target,
        keep: space.keep,
        collect: space.gc,
    }
}

fn graph(store: &Store, state_dir: &Path) -> Result<Arc<Graph>, Error> {
    let mut builder = Graph::builder(api::SCHEMA).map_err(|e| Error::part("schema")(&e))?;
    api::install(&mut builder);
    let memo = Arc::new(StoredMemo::new(store.clone()));
    builder.build(memo, key::load(state_dir)?).map_err(|e| Error::part("schema")(&e))
}

fn sandbox_settings(
    state_dir: &Path,
    config: &Engine,
    runtime: Option<sandbox::Runtime>,
) -> sandbox::Settings {
    let folder = Digest::of(state_dir.as_os_str().as_encoded_bytes()).to_string();
    sandbox::Settings {
        grace: config.grace,
        // Every state folder has its own, so that one engine's sweep spares another's.
        cgroup_name: format!("ci-tool-{}", &folder[..16]),
        limits: Limits {
            memory: config.memory_limit,
            pids: config.pids_limit,
            cpus: config.cpu_limit,
        },
        network: match config.network {
            Network::Bridge => sandbox::Network::Bridge,
            Network::None => sandbox::Network::None,
            Network::Host => sandbox::Network::Host,
        },
        hosts_files: state_dir.join("hosts"),
        runtime,
    }
}

fn debian(
    state_dir: &Path,
    config: &Engine,
    (store, sandbox, targets): (&Store, &Sandbox, &[Target]),
) -> Assembler {
    let settings = api::debian::Settings {
        apt: APT_FOLDER.into(),
        mirror: config.debian_mirror.clone(),
        keyring: config.debian_keyring.clone(),
        refresh: config.debian_refresh,
        cache: config.debian_cache.clone(),
    };
    // Where engines before this one kept downloads, which nobody counted.
    store.trash(&state_dir.join("debian"));
    let downloads = fetch::Settings { proxy: config.proxy.clone(), ..fetch::Settings::default() };
    let fetcher = Fetcher::new(downloads);
    Assembler::new(store.clone(), sandbox.clone(), targets.to_vec(), fetcher, settings)
}

fn targets(settings: &sandbox::Settings) -> Vec<Target> {
    let target = |(path, directory): (&str, bool)| Target {
        path: path.to_owned(),
        kind: if directory { TargetKind::Directory } else { TargetKind::File },
    };
    sandbox::targets(settings).into_iter().map(target).collect()
}
