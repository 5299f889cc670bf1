//! Packages added to a base: their layers laid over it, and one run that configures only them.
//!
//! dpkg unpacks with more care than laying files over files: it follows directories that are links,
//! moves diverted files, takes files over from packages that are replaced. Where any of that is
//! needed, or where the quick way fails, dpkg does it all itself from the .deb files.

use super::Assembler;
use super::base::write;
use super::configure::Run;
use super::error::Error;
use super::plan::{Package, Plan};
use super::report::Report;
use super::script;
use super::unpack::{Facts, Unpacked, merged, newest};
use debian::database::{self, DIRECTORY, Triggers};
use sandbox::{MountPoint, Source};
use std::collections::HashSet;
use std::io::Read as _;
use store::{Kind, LayerRef, Mount, Snapshot, Store, View, ViewError};

impl Assembler {
    /// Adds the packages of a plan to its base.
    pub(super) async fn add(
        &self,
        base: &Snapshot,
        plan: &Plan,
        report: &dyn Report,
    ) -> Result<Snapshot, Error> {
        let unpacked = self.depot.unpacked(&plan.added, report).await?;
        let date = newest(&unpacked);
        let (store, base_copy) = (self.depot.store.clone(), base.clone());
        let (packages, added) = (unpacked.clone(), plan.added.clone());
        let architecture = self.depot.architecture;
        let laid =
            super::blocking(move || lay_over(&store, &base_copy, &packages, &added, architecture))
                .await?;
        let Some(laid) = laid else { return self.install(base, plan, date, report).await };
        let facts: Vec<&Facts> = unpacked.iter().map(|unpacked| &unpacked.facts).collect();
        let run = Run {
            title: "configure packages",
            base: &laid.snapshot,
            script: script::configure(&facts, &[], &laid.fixes),
            mounts: vec![],
            date,
        };
        match self.run(run, report).await {
            Err(Error::Configure { code, output }) => {
                tracing::info!(code, output, "the quick way failed, dpkg unpacks by itself");
                self.install(base, plan, date, report).await
            }
            other => other,
        }
    }

    /// Lets dpkg in the image unpack and configure the packages.
    async fn install(
        &self,
        base: &Snapshot,
        plan: &Plan,
        date: u64,
        report: &dyn Report,
    ) -> Result<Snapshot, Error> {
        self.depot.downloaded(&plan.added, report).await?;
        let source = Mount::bind(&self.depot.cache.packages())?;
        let packages = MountPoint {
            target: script::PACKAGES.to_owned(),
            source: Source::Mount(source),
            read_only: true,
        };
        let (store, base, added) = (self.depot.store.clone(), base.clone(), plan.added.clone());
        let architecture = self.depot.architecture;
        let marked = super::blocking(move || mark(&store, &base, &added, architecture)).await?;
        let run = Run {
            title: "install packages",
            base: &marked,
            script: script::install(&plan.added),
            mounts: vec![packages],
            date,
        };
        self.run(run, report).await
    }
}

/// Packages laid over a base, not configured.
pub(super) struct Laid {
    pub(super) snapshot: Snapshot,
    /// Commands that give directories of the base their metadata back.
    pub(super) fixes: Vec<String>,
}

/// Lays packages over a base, or gives none where that would not be what dpkg does.
pub(super) fn lay_over(
    store: &Store,
    base: &Snapshot,
    packages: &[Unpacked],
    added: &[Package],
    architecture: &str,
) -> Result<Option<Laid>, Error> {
    let view = store.view(base);
    if has_common_files(&view, packages)? {
        return Ok(None);
    }
    let mut layers: Vec<LayerRef> = packages.iter().map(Unpacked::layer).collect();
    layers.push(changed_database(store, &view, packages, added, architecture)?);
    let layer = store.merge(&layers)?;
    let Some(fixes) = fixes(&view, &store.view(&Snapshot::empty().push(layer.clone())))? else {
        return Ok(None);
    };
    Ok(Some(Laid { snapshot: base.push(layer), fixes }))
}

/// Whether a file of a package belongs to another one too, or is to be diverted or overridden.
fn has_common_files(base: &View, packages: &[Unpacked]) -> Result<bool, Error> {
    let mut taken = owned_paths(base)?;
    taken.extend(altered_paths(base)?);
    let mut files = packages.iter().flat_map(|unpacked| &unpacked.facts.files);
    Ok(files.any(|file| !taken.insert(merged(file))))
}

/// Every path that dpkg knows in the base.
fn owned_paths(base: &View) -> Result<HashSet<String>, Error> {
    let mut paths = HashSet::new();
    let directory = format!("{DIRECTORY}/info");
    for entry in base.read_dir(&directory).map_err(store::Error::from)? {
        if entry.name.ends_with(".list") {
            let list = read(base, &format!("{directory}/{}", entry.name))?;
            paths.extend(list.lines().map(|path| merged(path.trim_start_matches('/'))));
        }
    }
    Ok(paths)
}

/// Every path that is diverted, or the place of a diverted file, or has other metadata than its
/// package says. Diversions are three lines each: from, to, by whom.
fn altered_paths(base: &View) -> Result<Vec<String>, Error> {
    let diversions = read(base, &format!("{DIRECTORY}/diversions"))?;
    let overrides = read(base, &format!("{DIRECTORY}/statoverride"))?;
    let overrides = overrides.lines().filter_map(|line| line.splitn(4, ' ').nth(3));
    let paths = diversions.lines().filter(|line| line.starts_with('/')).chain(overrides);
    Ok(paths.map(|path| merged(path.trim_start_matches('/'))).collect())
}

/// dpkg's and apt's database after the packages were unpacked.
fn changed_database(
    store: &Store,
    base: &View,
    packages: &[Unpacked],
    added: &[Package],
    architecture: &str,
) -> Result<LayerRef, Error> {
    let mut layer = store.new_layer()?;
    let stanzas: Vec<String> =
        packages.iter().map(|unpacked| unpacked.facts.stanza.clone()).collect();
    let status = read(base, &format!("{DIRECTORY}/status"))?;
    let status = database::merge_status(&status, &stanzas);
    write(&mut layer, &format!("{DIRECTORY}/status"), &status)?;
    let triggers: Vec<(String, Triggers)> = packages
        .iter()
        .map(|Unpacked { facts, .. }| (facts.info.clone(), Triggers::parse(&facts.triggers)))
        .collect();
    let before = read(base, &format!("{DIRECTORY}/triggers/File"))?;
    for (name, text) in database::interests(&triggers) {
        let path = format!("{DIRECTORY}/triggers/{name}");
        write(&mut layer, &path, &format!("{}{text}", read(base, &path)?))?;
    }
    let paths: Vec<String> = packages
        .iter()
        .flat_map(|unpacked| unpacked.facts.files.iter().map(|file| format!("/{file}")))
        .collect();
    let triggers: Vec<Triggers> = triggers.into_iter().map(|(_, triggers)| triggers).collect();
    let activated = database::activations(&before, paths.iter().map(String::as_str), &triggers);
    write(&mut layer, &format!("{DIRECTORY}/triggers/Unincorp"), &activated)?;
    write(&mut layer, STATES, &states(base, added, architecture)?)?;
    Ok(layer.commit()?)
}

const STATES: &str = "var/lib/apt/extended_states";

fn states(base: &View, added: &[Package], architecture: &str) -> Result<String, Error> {
    let automatic: Vec<&str> =
        added.iter().filter(|package| package.automatic).map(|p| p.name.as_str()).collect();
    Ok(database::extended_states(&read(base, STATES)?, &automatic, architecture))
}

/// The base with apt's record of what is there only because others need it.
fn mark(
    store: &Store,
    base: &Snapshot,
    added: &[Package],
    architecture: &str,
) -> Result<Snapshot, Error> {
    let mut layer = store.new_layer()?;
    write(&mut layer, STATES, &states(&store.view(base), added, architecture)?)?;
    Ok(base.push(layer.commit()?))
}

/// What must be put right in directories that the base has already, which dpkg leaves as they are;
/// none where something else is in the place of a directory.
fn fixes(base: &View, added: &View) -> Result<Option<Vec<String>>, Error> {
    let mut fixes = vec![];
    let mut clash = false;
    let visited = added.walk("/", &mut |path, metadata| {
        if metadata.kind != Kind::Directory {
            return store::Walk::Continue;
        }
        let path = format!("/{path}");
        match base.stat_link(&path) {
            Ok(there) if there.kind != Kind::Directory => clash = true,
            Ok(there) => {
                let same = (there.mode, there.uid, there.gid)
                    == (metadata.mode, metadata.uid, metadata.gid);
                if !same {
                    fixes.push(script::restore(&path, &there));
                }
            }
            Err(_) => {}
        }
        store::Walk::Continue
    });
    visited.map_err(store::Error::from)?;
    Ok((!clash).then_some(fixes))
}

/// The text of a file of the base, empty where there is none.
fn read(base: &View, path: &str) -> Result<String, Error> {
    let mut file = match base.open(path) {
        Ok(file) => file,
        Err(ViewError::NotFound(_)) => return Ok(String::new()),
        Err(error) => return Err(store::Error::from(error).into()),
    };
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(Error::io("read", std::path::Path::new(path)))?;
    Ok(text)
}
