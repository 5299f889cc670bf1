//! Packages laid over a base: when that is what dpkg would do, and when it is not.

use super::Steps;
use super::archive::{Archive, Entry, text};
use crate::debian::address::Address;
use crate::debian::extend::{Laid, lay_over};
use std::time::Duration;
use store::{Meta, Snapshot, Store};

/// A configured base with one package.
fn base(store: &Store, diversions: &str) -> Snapshot {
    let mut layer = store.new_layer().unwrap();
    let meta = |mode| Meta { mode, ..Meta::default() };
    let mut file = |path: &str, text: &str| {
        layer.file(path, &meta(0o644), &mut text.as_bytes()).unwrap();
    };
    file("var/lib/dpkg/status", "Package: old\nStatus: install ok installed\nVersion: 1\n\n");
    file("var/lib/dpkg/info/old.list", "/.\n/bin\n/bin/old\n/usr/share/x\n");
    file("var/lib/dpkg/triggers/File", "/usr/share/icons old/noawait\n");
    file("var/lib/dpkg/triggers/ldconfig", "old/noawait\n");
    file("var/lib/dpkg/diversions", diversions);
    file("usr/bin/old", "old");
    layer.directory("tmp", &meta(0o1777)).unwrap();
    layer.symlink("var/run", "/run", &Meta::default()).unwrap();
    Snapshot::empty().push(layer.commit().unwrap())
}

/// Lays one package with these entries over a base.
async fn lay(
    diversions: &str,
    triggers: &str,
    data: &[Entry<'_>],
) -> (Archive, Store, Option<Laid>) {
    let mut archive = Archive::new();
    archive.add("apt", "", &[("./triggers", triggers)], data);
    archive.publish();
    let (depot, steps) = (archive.depot(Duration::MAX), Steps::default());
    let address = Address::parse("deb://suite").unwrap().unwrap();
    let _held = depot.hold().await.unwrap();
    let origins = depot.origins(&address).await.unwrap();
    let suites = [depot.suite(&origins[0]).await.unwrap()];
    let plan = depot.plan(&address, &suites, &steps).await.unwrap();
    let unpacked = depot.unpacked(&plan.base, &steps).await.unwrap();
    let store = depot.store.clone();
    let base = base(&store, diversions);
    let laid = lay_over(&store, &base, &unpacked, &plan.base, "amd64").unwrap();
    (archive, store, laid)
}

#[tokio::test]
async fn the_database_grows_and_triggers_are_noted() {
    let triggers = "interest-noawait /opt\nactivate-noawait ldconfig\n";
    let data = [("./usr/share/icons/a", "x"), ("./tmp/", "")];
    let (_archive, store, laid) = lay("", triggers, &data).await;
    let laid = laid.unwrap();
    let view = store.view(&laid.snapshot);
    let status = text(&view, "var/lib/dpkg/status");
    assert!(status.starts_with("Package: apt\nStatus: install ok unpacked\n"), "{status}");
    assert!(status.contains("Package: old\nStatus: install ok installed\n"), "{status}");
    let file = text(&view, "var/lib/dpkg/triggers/File");
    assert_eq!(file, "/usr/share/icons old/noawait\n/opt apt/noawait\n");
    assert_eq!(text(&view, "var/lib/dpkg/triggers/Unincorp"), "/usr/share/icons -\nldconfig -\n");
    assert_eq!(text(&view, "var/lib/dpkg/triggers/ldconfig"), "old/noawait\n");
    assert_eq!(laid.fixes, ["chown 0:0 '/tmp'; chmod 1777 '/tmp'"]);
}

#[tokio::test]
async fn what_only_dpkg_does_right_is_left_to_it() {
    let diversions = "/usr/bin/tool\n/usr/bin/tool.real\nold\n";
    let table: [(&str, Entry<'_>, bool); 6] = [
        ("", ("./usr/bin/tool", "x"), true),
        (diversions, ("./usr/bin/other", "x"), true),
        (diversions, ("./usr/bin/tool", "x"), false),
        ("", ("./bin/old", "taken over"), false),
        ("", ("./usr/bin/old", "taken over under its real name"), false),
        ("", ("./var/run/tool/", ""), false),
    ];
    for (diversions, entry, expect) in table {
        let (_archive, _store, laid) = lay(diversions, "", &[entry]).await;
        assert_eq!(laid.is_some(), expect, "{entry:?} with {diversions:?}");
    }
}
