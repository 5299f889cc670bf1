//! The corpus: Dockerfiles as projects of many kinds have them, each with a listing of what must come of it.
//!
//! `tests/corpus/<name>.case` holds a Dockerfile and its context, `<name>.listing` what is in the image: files with modes,
//! owners, link targets and contents, and the configuration. The listings were made once by another
//! builder (`cargo xtask corpus`); where that one is known to do otherwise than BuildKit, the case says so and
//! why, and the listing is BuildKit's.

mod case;
mod listing;
mod peer;

use case::Case;
use listing::Listing;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use testkit::registry::Registry;
use testkit::{Session, State};

/// How many are built at a time.
const AT_ONCE: usize = 4;
/// The image that all others are made from, and that listings leave out.
const PLAIN: &str = "alpine:3.20";

/// An engine that finds the base images under the names that people use.
struct World {
    session: Session,
    state: State,
    registry: Registry,
    /// What is in the plain base image.
    base: Listing,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

impl World {
    fn new() -> Self {
        let registry = Registry::start();
        let config = format!("[registry.\"docker.io\"]\nmirrors = [\"{}\"]\n", registry.address());
        let state = State::with_config(&config);
        let session = Session::start(&state);
        let plain = format!("publish(address: {})", json!(in_registry(&registry, PLAIN)));
        session.container(&plain);
        let mut world = Self { session, state, registry, base: Listing::default() };
        let bases = Case::read(&folder().join("bases.txt"));
        for (name, dockerfile) in bases.texts() {
            let context = world
                .state
                .file(&format!("bases/{}/Dockerfile", name.replace(':', "-")), dockerfile);
            let context = json!(context.parent().unwrap().to_string_lossy());
            let address = json!(in_registry(&world.registry, name));
            world.session.leaf(&format!(
                "{{ host {{ directory(path: {context}) {{ dockerBuild {{ publish(address: {address}) }} }} }} }}"
            ));
        }
        let id = world
            .session
            .leaf(&format!("{{ container {{ from(address: {}) {{ id }} }} }}", json!(PLAIN)));
        world.base = world.listing(&id, "base");
        world
    }

    /// Builds a case, and lists what came of it.
    fn build(&self, case: &Case) -> Result<Vec<String>, String> {
        let context = self.state.workdir().join(&case.name);
        case.write_to(&context);
        let options = case.options(&self.session);
        let path = json!(context.to_string_lossy());
        let document = format!(
            "{{ host {{ directory(path: {path}) {{ dockerBuild({options}) {{ sync }} }} }} }}"
        );
        let reply = self.session.send(&document).json();
        if let Some(errors) = reply.get("errors") {
            return Err(format!("{}: {errors:#}", case.name));
        }
        let id = reply["data"]["host"]["directory"]["dockerBuild"]["sync"].clone();
        Ok(self.listing(&id, &case.name).without(&self.base))
    }

    /// What is in a container, and what it says of itself.
    fn listing(&self, id: &Value, name: &str) -> Listing {
        let archive = self.state.workdir().join(format!("{name}.tar"));
        let image = self.state.workdir().join(format!("{name}.image.tar"));
        let (to_archive, to_image) =
            (json!(archive.to_string_lossy()), json!(image.to_string_lossy()));
        let rootfs = self
            .session
            .leaf(&format!("{{ loadContainerFromID(id: {id}) {{ rootfs {{ id }} }} }}"));
        self.session.container(&format!(
            r#"withMountedDirectory(path: "/mnt", source: {rootfs}, readOnly: true) {{
                withExec(args: ["busybox", "tar", "-cf", "/out.tar", "-C", "/mnt", "."]) {{
                    file(path: "/out.tar") {{ export(path: {to_archive}) }} }} }}"#
        ));
        self.session
            .leaf(&format!("{{ loadContainerFromID(id: {id}) {{ export(path: {to_image}) }} }}"));
        Listing::new(&archive, &listing::config_of_image(&image))
    }
}

fn in_registry(registry: &Registry, name: &str) -> String {
    let owner = if name.contains('/') { "" } else { "library/" };
    format!("{}/{owner}{name}", registry.address())
}

/// Does something for each case, a few at a time, and gives what was said.
fn each(cases: &[Case], work: impl Fn(&Case) -> Result<(), String> + Sync) -> Vec<String> {
    let (next, said) = (AtomicUsize::new(0), Mutex::new(vec![]));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(wrong) = work(case) {
                        said.lock().unwrap().push(wrong);
                    }
                }
            });
        }
    });
    said.into_inner().unwrap()
}

#[test]
fn every_file_builds_what_its_listing_says() {
    let cases = Case::all(&folder());
    assert!(cases.len() >= 40, "there are {} cases", cases.len());
    let world = World::new();
    let wrong = each(&cases, |case| {
        let path = folder().join(format!("{}.listing", case.name));
        let expected = std::fs::read_to_string(&path)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        let expected: Vec<&str> = expected.lines().filter(|line| !line.starts_with('#')).collect();
        listing::compare(&case.name, &expected, &world.build(case)?)
    });
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
#[ignore = "writes the listings with another builder: `cargo xtask corpus`"]
fn listings_are_written() {
    let world = World::new();
    let peer = peer::Peer::new(&world.state, &world.registry.address());
    let mut wrong = vec![];
    for case in Case::all(&folder()) {
        let listing = match peer.build(&case) {
            Ok(listing) => listing.without(&world.base),
            Err(said) => {
                wrong.push(said);
                continue;
            }
        };
        let (text, said) = case.corrected(listing);
        wrong.extend(said);
        std::fs::write(folder().join(format!("{}.listing", case.name)), text).unwrap();
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
