//! The base of a suite: packages in place, dpkg's database beside them, one run to configure all.

use super::Assembler;
use super::configure::Run;
use super::error::Error;
use super::host::{KeyFile, Origin, image_sources};
use super::plan::Plan;
use super::report::Report;
use super::script;
use super::unpack::{Facts, MERGED, Unpacked, merged, newest};
use debian::database::{self, DIRECTORY, Triggers};
use std::collections::HashMap;
use store::{LayerBuilder, LayerRef, Meta, Snapshot, Store};

/// The package whose first script writes the users and groups that the scripts of others need.
const FIRST: &str = "base-passwd";
/// Where the image names its archives.
const SOURCES: &str = "etc/apt/sources.list.d/debian.sources";

impl Assembler {
    /// Makes the base from its plan.
    pub(super) async fn make_base(
        &self,
        plan: &Plan,
        origins: &[Origin],
        report: &dyn Report,
    ) -> Result<Snapshot, Error> {
        let unpacked = self.depot.unpacked(&plan.base, report).await?;
        let (store, plan_copy) = (self.depot.store.clone(), plan.clone());
        let (packages, origins) = (unpacked.clone(), origins.to_vec());
        let architecture = self.depot.architecture;
        let step = report.step("lay out files");
        let snapshot = super::blocking(move || {
            check_files(&packages)?;
            lay_out(&store, architecture, &packages, &plan_copy, &origins)
        })
        .await?;
        step.done();
        let facts: Vec<&Facts> = unpacked.iter().map(|unpacked| &unpacked.facts).collect();
        let early = facts.get(..plan.essential).unwrap_or_default();
        let mut scripts = facts.clone();
        scripts.sort_by_key(|facts| facts.name != FIRST);
        let run = Run {
            title: "configure packages",
            base: &snapshot,
            script: script::configure(&scripts, early, &[]),
            mounts: vec![],
            date: newest(&unpacked),
        };
        self.run(run, report).await
    }
}

/// Refuses packages that have the same file: without a dpkg to ask there is no telling whose it is.
fn check_files(packages: &[Unpacked]) -> Result<(), Error> {
    let mut owners: HashMap<String, &str> = HashMap::new();
    for facts in packages.iter().map(|unpacked| &unpacked.facts) {
        for file in &facts.files {
            if let Some(other) = owners.insert(merged(file), &facts.name) {
                return Err(Error::SameFile {
                    first: other.to_owned(),
                    second: facts.name.clone(),
                    path: file.clone(),
                });
            }
        }
    }
    Ok(())
}

/// The tree before anything is configured.
fn lay_out(
    store: &Store,
    architecture: &str,
    packages: &[Unpacked],
    plan: &Plan,
    origins: &[Origin],
) -> Result<Snapshot, Error> {
    let mut layers = vec![];
    if !packages.iter().any(|unpacked| unpacked.facts.brings_links) {
        layers.push(links(store, architecture)?);
    }
    layers.extend(packages.iter().map(Unpacked::layer));
    layers.push(new_database(store, architecture, packages, plan, origins)?);
    let merged = Snapshot::empty().push(store.merge(&layers)?);
    add_keys(store, merged, origins)
}

/// The links into `/usr` that every system of this architecture has.
fn links(store: &Store, architecture: &str) -> Result<LayerRef, Error> {
    let names: &[&str] = match architecture {
        "amd64" => &MERGED,
        "i386" => &["bin", "sbin", "lib", "lib64", "libx32"],
        "ppc64el" => &["bin", "sbin", "lib", "lib64"],
        "s390x" => &["bin", "sbin", "lib", "lib32"],
        _ => &["bin", "sbin", "lib"],
    };
    let mut layer = store.new_layer()?;
    for name in names {
        layer.directory(&format!("usr/{name}"), &Meta { mode: 0o755, ..Meta::default() })?;
        layer.symlink(name, &format!("usr/{name}"), &Meta::default())?;
    }
    Ok(layer.commit()?)
}

fn new_database(
    store: &Store,
    architecture: &str,
    packages: &[Unpacked],
    plan: &Plan,
    origins: &[Origin],
) -> Result<LayerRef, Error> {
    let mut layer = store.new_layer()?;
    let stanzas: Vec<String> =
        packages.iter().map(|unpacked| unpacked.facts.stanza.clone()).collect();
    for (name, text) in [
        ("status", database::merge_status("", &stanzas).as_str()),
        ("available", ""),
        ("diversions", ""),
        ("statoverride", ""),
        ("info/format", "1\n"),
        ("triggers/Unincorp", ""),
    ] {
        write(&mut layer, &format!("{DIRECTORY}/{name}"), text)?;
    }
    let triggers: Vec<(String, Triggers)> = packages
        .iter()
        .map(|Unpacked { facts, .. }| (facts.info.clone(), Triggers::parse(&facts.triggers)))
        .collect();
    for (name, text) in database::interests(&triggers) {
        write(&mut layer, &format!("{DIRECTORY}/triggers/{name}"), &text)?;
    }
    let automatic: Vec<&str> =
        plan.base.iter().filter(|package| package.automatic).map(|p| p.name.as_str()).collect();
    let states = database::extended_states("", &automatic, architecture);
    write(&mut layer, "var/lib/apt/extended_states", &states)?;
    write(&mut layer, SOURCES, &image_sources(origins))?;
    Ok(layer.commit()?)
}

/// Puts the keys of the sources where apt in the image looks for them, unless a package did.
fn add_keys(store: &Store, snapshot: Snapshot, origins: &[Origin]) -> Result<Snapshot, Error> {
    let view = store.view(&snapshot);
    let keys: Vec<(&str, &KeyFile)> = origins
        .iter()
        .flat_map(|origin| &origin.keys)
        .filter_map(|key| key.image_path.as_deref().map(|path| (path, key)))
        .filter(|(path, _)| {
            let waiting = format!("{path}{}", database::NEW_CONFFILE);
            view.stat(path).is_err() && view.stat(&waiting).is_err()
        })
        .collect();
    if keys.is_empty() {
        return Ok(snapshot);
    }
    let mut layer = store.new_layer()?;
    for (path, key) in keys {
        let meta = Meta { mode: 0o644, ..Meta::default() };
        layer.file(&merged(path.trim_start_matches('/')), &meta, &mut &key.bytes[..])?;
    }
    Ok(snapshot.push(layer.commit()?))
}

/// Writes a text file that belongs to root.
pub(super) fn write(layer: &mut LayerBuilder, path: &str, text: &str) -> Result<(), Error> {
    let meta = Meta { mode: 0o644, ..Meta::default() };
    layer.file(path, &meta, &mut text.as_bytes())?;
    Ok(())
}
