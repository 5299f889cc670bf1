//! The host's configuration of apt.

use crate::debian::Settings;
use crate::debian::error::Error;
use crate::debian::host::{self, image_sources};
use std::fs;
use std::path::Path;
use std::time::Duration;

fn settings(folder: &Path) -> Settings {
    Settings {
        apt: folder.to_owned(),
        mirror: None,
        keyring: None,
        refresh: Duration::ZERO,
        cache: Some(folder.join("cache")),
    }
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn both_formats_are_read_and_other_files_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let apt = folder.path();
    write(&apt.join("k.gpg"), "key");
    let line = |host: &str| {
        format!("deb [signed-by={}] http://{host}.example/ s main\n", apt.join("k.gpg").display())
    };
    write(&apt.join("sources.list"), &line("a"));
    write(&apt.join("sources.list.d/b.list"), &line("b"));
    write(&apt.join("sources.list.d/d.list.off"), "nonsense");
    let paragraph = "Types: deb\nURIs: http://c.example\nSuites: s-updates\nComponents: main\n";
    write(&apt.join("sources.list.d/c.sources"), paragraph);
    write(&apt.join("trusted.gpg.d/t.asc"), "trusted");
    let origins = host::origins(&settings(apt), "s", "amd64").unwrap();
    let uris: Vec<&str> = origins.iter().map(|origin| origin.archive.uri.as_str()).collect();
    assert_eq!(uris, ["http://a.example", "http://b.example", "http://c.example"]);
    assert_eq!(origins[0].keys[0].bytes, b"key");
    assert_eq!(origins[2].keys[0].bytes, b"trusted");
    assert_eq!(origins[2].keys[0].image_path.as_deref(), Some("/etc/apt/trusted.gpg.d/t.asc"));
    assert!(image_sources(&origins).contains("URIs: http://c.example\n"));
}

#[test]
fn a_mirror_of_the_configuration_goes_before_the_host() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings(folder.path());
    write(&folder.path().join("sources.list"), "deb http://a.example s main\n");
    write(&folder.path().join("k.gpg"), "key");
    settings.mirror = Some("/srv/debian/".to_owned());
    settings.keyring = Some(folder.path().join("k.gpg"));
    let origins = host::origins(&settings, "s", "amd64").unwrap();
    assert_eq!(origins.len(), 1);
    assert_eq!(origins[0].archive.uri, "file:///srv/debian");
    assert_eq!(origins[0].archive.components, ["main"]);
    assert_eq!(origins[0].keys[0].bytes, b"key");
}

#[test]
fn a_host_without_sources_or_keys_gets_a_hint() {
    let folder = tempfile::tempdir().unwrap();
    let refuse = |settings: &Settings| {
        protocol::Error::from(host::origins(settings, "s", "amd64").unwrap_err())
    };
    let error = refuse(&settings(folder.path()));
    assert_eq!(error.message, "this host has no enabled `deb` source for `amd64`");
    assert!(error.hints[0].contains("`debian-mirror`"), "{:?}", error.hints);
    assert!(error.hints[0].contains("`debian-keyring`"), "{:?}", error.hints);
    write(&folder.path().join("sources.list"), "deb http://a.example s main\n");
    let error = refuse(&settings(folder.path()));
    assert_eq!(error.message, "there is no key for the archive `http://a.example`");
    assert!(error.hints[0].contains("`debian-keyring`"), "{:?}", error.hints);
}

#[test]
fn a_keyring_that_is_none_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("k.gpg");
    write(&key, "nothing");
    let source = format!("deb [signed-by={}] http://a.example s main\n", key.display());
    write(&folder.path().join("sources.list"), &source);
    let origins = host::origins(&settings(folder.path()), "s", "amd64").unwrap();
    let error = origins[0].keyring().unwrap_err();
    assert!(matches!(&error, Error::Keyring { path, .. } if *path == key), "{error}");
}
