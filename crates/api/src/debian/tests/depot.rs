//! From an archive to layers, and what of it is remembered.

use super::Steps;
use super::archive::{Archive, replace, text};
use crate::debian::address::Address;
use crate::debian::depot::Depot;
use crate::debian::error::Error;
use crate::debian::identity;
use crate::debian::plan::{Package, Plan};
use std::fs;
use std::time::Duration;
use store::{CacheEntry, Limits, Snapshot};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// An archive with a base of two packages, and two more.
fn archive() -> Archive {
    let mut archive = Archive::new();
    archive.add("apt", "Depends: lib\n", &[], &[("./usr/bin/apt", "x")]);
    archive.add("lib", "Multi-Arch: same\n", &[], &[("./lib/a.so", "y")]);
    archive.add("tool", "Depends: more\nPre-Depends: lib\n", &[], &[("./usr/bin/tool", "z")]);
    archive.add("more", "", &[], &[]);
    archive.publish();
    archive
}

async fn plan(depot: &Depot, address: &str, steps: &Steps) -> Result<Plan, Error> {
    let address = Address::parse(address).unwrap().unwrap();
    let _held = depot.hold().await?;
    let origins = depot.origins(&address).await?;
    let suites = vec![depot.suite(&origins[0]).await?];
    depot.plan(&address, &suites, steps).await
}

fn names(packages: &[Package]) -> Vec<&str> {
    packages.iter().map(|package| package.name.as_str()).collect()
}

#[tokio::test]
async fn a_plan_has_a_base_and_what_is_added() {
    let archive = archive();
    let steps = Steps::default();
    let plan = plan(&archive.depot(DAY), "deb://suite+tool", &steps).await.unwrap();
    assert_eq!(names(&plan.base), ["lib", "apt"]);
    assert_eq!(names(&plan.added), ["more", "tool"]);
    let flags: Vec<_> = plan.added.iter().map(|p| (p.automatic, p.pre_depends)).collect();
    assert_eq!(flags, [(true, false), (false, true)]);
    assert!(plan.added[1].url.ends_with("/mirror/pool/tool.deb"), "{}", plan.added[1].url);
    assert_eq!(steps.take(), ["download package lists", "resolve packages"]);
}

#[tokio::test]
async fn a_known_plan_needs_neither_archive_nor_index() {
    let archive = archive();
    let steps = Steps::default();
    let depot = archive.depot(DAY);
    plan(&depot, "deb://suite", &steps).await.unwrap();
    steps.take();
    fs::remove_dir_all(archive.path("mirror")).unwrap();
    plan(&depot, "deb://suite+tool", &steps).await.unwrap();
    assert_eq!(steps.take(), ["resolve packages"], "the index is in the cache");
    fs::remove_dir_all(archive.path("cache/indexes")).unwrap();
    plan(&depot, "deb://suite+tool", &steps).await.unwrap();
    assert!(steps.take().is_empty());
}

#[tokio::test]
async fn a_damaged_index_of_the_cache_is_made_again() {
    let archive = archive();
    let (steps, depot) = (Steps::default(), archive.depot(DAY));
    plan(&depot, "deb://suite", &steps).await.unwrap();
    let index = fs::read_dir(archive.path("cache/indexes")).unwrap().next().unwrap().unwrap();
    replace(&index.path(), "something else that is longer than a digest");
    let plan = plan(&depot, "deb://suite+more", &steps).await.unwrap();
    assert_eq!(names(&plan.added), ["more"]);
}

#[tokio::test]
async fn a_suite_is_asked_again_when_it_is_old() {
    let mut archive = archive();
    let steps = Steps::default();
    plan(&archive.depot(DAY), "deb://suite", &steps).await.unwrap();
    archive.add("new", "", &[], &[]);
    archive.publish();
    let error = plan(&archive.depot(DAY), "deb://suite+new", &steps).await.unwrap_err();
    assert_eq!(error.to_string(), "there is no package `new`");
    let plan = plan(&archive.depot(Duration::ZERO), "deb://suite+new", &steps).await.unwrap();
    assert_eq!(names(&plan.added), ["new"]);
}

#[tokio::test]
async fn an_archive_made_anew_without_a_change_changes_no_image() {
    let archive = archive();
    let (depot, steps) = (archive.depot(Duration::ZERO), Steps::default());
    let address = Address::parse("deb://suite+tool").unwrap().unwrap();
    let origins = depot.origins(&address).await.unwrap();
    let before = plan(&depot, "deb://suite+tool", &steps).await.unwrap();
    archive.publish_at("Sun, 08 Jun 2025 09:13:06 UTC");
    let after = plan(&depot, "deb://suite+tool", &steps).await.unwrap();
    let of = |plan: &Plan| identity(plan, &plan.added, &origins);
    assert_eq!(of(&before), of(&after));
    assert_ne!(of(&before), identity(&before, &[], &origins));
}

#[tokio::test]
async fn a_missing_suite_and_a_wrong_release_are_named() {
    let archive = archive();
    let steps = Steps::default();
    let depot = archive.depot(DAY);
    let error = plan(&depot, "deb://other", &steps).await.unwrap_err();
    assert!(error.to_string().ends_with("has no suite `other`"), "{error}");
    replace(&archive.path("mirror/dists/suite/InRelease"), "Suite: suite\n");
    let error = plan(&depot, "deb://suite", &steps).await.unwrap_err();
    assert!(error.to_string().ends_with("it has no valid `SHA256`"), "{error}");
}

#[tokio::test]
async fn an_index_that_was_not_signed_is_refused() {
    let archive = archive();
    let index = archive.path("mirror/dists/suite/main/binary-amd64/Packages");
    let text = fs::read_to_string(&index).unwrap().replacen("Version: 1", "Version: 9", 1);
    replace(&index, &text);
    let error = plan(&archive.depot(DAY), "deb://suite", &Steps::default()).await.unwrap_err();
    assert!(matches!(error, Error::Fetch(fetch::Error::Digest { .. })), "{error}");
}

#[tokio::test]
async fn a_package_becomes_a_layer() {
    let mut archive = Archive::new();
    archive.add(
        "apt",
        "Multi-Arch: same\n",
        &[("./conffiles", "/etc/demo\n/etc/absent\n"), ("./postinst", "#!/bin/sh\n")],
        &[
            ("./", ""),
            ("./lib/", ""),
            ("./lib/a.so", "code"),
            ("./etc/demo", "settings"),
            ("./usr/bin/link", "-> ../x"),
        ],
    );
    archive.publish();
    let (depot, steps) = (archive.depot(DAY), Steps::default());
    let plan = plan(&depot, "deb://suite", &steps).await.unwrap();
    steps.take();
    let unpacked = depot.unpacked(&plan.base, &steps).await.unwrap();
    assert_eq!(steps.take(), ["download packages", "unpack packages"]);
    let view = depot.store.view(&Snapshot::empty().push(unpacked[0].layer()));
    assert_eq!(text(&view, "usr/lib/a.so"), "code");
    assert_eq!(text(&view, "etc/demo.dpkg-new"), "settings");
    assert_eq!(view.read_link("usr/bin/link").unwrap(), "../x");
    assert!(view.stat("lib").is_err(), "a directory would hide the link");
    assert!(view.stat("etc/demo").is_err());
    let info = |ending| text(&view, &format!("var/lib/dpkg/info/apt:amd64.{ending}"));
    assert_eq!(info("list"), "/.\n/lib\n/lib/a.so\n/etc/demo\n/usr/bin/link\n");
    assert_eq!(info("postinst"), "#!/bin/sh\n");
    assert_eq!(info("md5sums"), "c13367945d5d4c91047b3b50234aa7ab  lib/a.so\n");
    let facts = &unpacked[0].facts;
    assert!(facts.stanza.contains("Status: install ok unpacked\n"), "{}", facts.stanza);
    assert!(facts.stanza.ends_with("Conffiles:\n /etc/demo newconffile\n"), "{}", facts.stanza);
    assert_eq!(facts.newest, 7);
    assert_eq!(facts.files, ["lib/a.so", "etc/demo", "usr/bin/link"]);
    fs::remove_dir_all(archive.path("cache")).unwrap();
    let again = depot.unpacked(&plan.base, &steps).await.unwrap();
    assert_eq!(again[0].layer(), unpacked[0].layer());
    assert!(steps.take().is_empty());
}

#[tokio::test]
async fn a_damaged_package_of_the_cache_is_not_used() {
    let archive = archive();
    let (depot, steps) = (archive.depot(DAY), Steps::default());
    let plan = plan(&depot, "deb://suite", &steps).await.unwrap();
    depot.downloaded(&plan.base, &steps).await.unwrap();
    let path = depot.cache.package(&plan.base[0].sha256);
    replace(&path, "other bytes");
    let error = depot.unpacked(&plan.base, &steps).await.unwrap_err();
    assert!(matches!(error, Error::Damaged { .. }), "{error}");
    assert!(!path.exists());
    assert_eq!(depot.unpacked(&plan.base, &steps).await.unwrap().len(), 2);
}

/// The downloads as the store lists them.
fn downloads(depot: &Depot) -> Option<CacheEntry> {
    depot.store.entries().into_iter().find(|entry| entry.label == "mirror of Debian packages")
}

#[tokio::test]
async fn downloads_of_our_own_count_and_go_when_nobody_holds_them() {
    let archive = archive();
    let (depot, steps) = (archive.depot_with(DAY, None), Steps::default());
    let held = depot.hold().await.unwrap();
    let plan = plan(&depot, "deb://suite", &steps).await.unwrap();
    depot.downloaded(&plan.base, &steps).await.unwrap();
    let package = depot.cache.package(&plan.base[0].sha256);
    depot.store.collect(&Limits::NOTHING);
    assert!(package.exists(), "somebody works with it");
    drop(held);
    let listed = downloads(&depot).unwrap();
    assert!(listed.bytes >= fs::metadata(&package).unwrap().len(), "{listed:?}");
    assert_eq!((listed.kind.as_str(), listed.in_use), ("mirror", false));
    let freed = depot.store.collect(&Limits::NOTHING).bytes;
    assert!(freed >= listed.bytes && !package.exists());
    assert_eq!(downloads(&depot), None);
    let _held = depot.hold().await.unwrap();
    steps.take();
    assert_eq!(depot.unpacked(&plan.base, &steps).await.unwrap().len(), 2);
    assert_eq!(steps.take(), ["download packages", "unpack packages"]);
}

#[tokio::test]
async fn downloads_of_others_are_left_alone() {
    let archive = archive();
    let (depot, steps) = (archive.depot(DAY), Steps::default());
    let plan = plan(&depot, "deb://suite", &steps).await.unwrap();
    depot.downloaded(&plan.base, &steps).await.unwrap();
    assert_eq!(downloads(&depot), None);
    depot.store.collect(&Limits::NOTHING);
    assert!(depot.cache.package(&plan.base[0].sha256).exists());
}

#[tokio::test]
async fn a_download_that_has_no_room_is_refused_before_it_begins() {
    let archive = archive();
    let (mut depot, steps) = (archive.depot_with(DAY, None), Steps::default());
    let _held = depot.hold().await.unwrap();
    let plan = plan(&depot, "deb://suite", &steps).await.unwrap();
    let limits = Limits { max_used: 1, ..Limits::NONE };
    depot.store = store::Store::open_limited(&archive.path("other"), |_| limits).unwrap();
    let error = depot.downloaded(&plan.base, &steps).await.unwrap_err();
    assert!(error.to_string().contains("is full"), "{error}");
    assert!(!depot.cache.package(&plan.base[0].sha256).exists());
}
