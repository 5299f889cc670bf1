//! `ADD` of git repositories, from a real server.

use super::{World, with};
use serde_json::json;
use testkit::git::{Guard, HttpServer, work};

const BASE: &str = "ARG BASE\nFROM $BASE\n";

/// A repository `r.git` with a branch, a tag and a folder, served to whom the guard lets in.
fn served(world: &World, guard: Guard) -> HttpServer {
    let folder = world.state.workdir();
    work(
        &folder,
        "git init -q r; cd r; mkdir -p d/e; echo one > d/f; echo deep > d/e/g; echo top > top; git add .; git commit -qm one; \
         git tag v1; echo two > d/f; git commit -qam two; git checkout -q -b side; echo side > d/f; git commit -qam side; \
         git checkout -q main; cd ..; git clone -q --bare r r.git",
    );
    HttpServer::smart(&folder, guard)
}

#[test]
fn references_and_folders_are_named_in_the_address() {
    let world = World::new();
    let url = served(&world, Guard::Nobody).url("r.git");
    let added = |source: &str, script: &str| {
        world.shell(&format!("{BASE}ADD {source} /to/\n"), &[], &format!("cd /to; {script}"))
    };
    let all = "ls -A . && cat d/f";
    assert_eq!(added(&url, all), "d\ntop\ntwo\n");
    for (address, contents) in [
        (format!("{url}#v1"), "one"),
        (format!("{url}#side"), "side"),
        (format!("{url}#refs/heads/side"), "side"),
        (format!("{url}?ref=v1"), "one"),
        (format!("{url}?branch=side"), "side"),
        (format!("{url}?tag=v1"), "one"),
    ] {
        assert_eq!(added(&address, "cat d/f"), format!("{contents}\n"), "{address}");
    }
    assert_eq!(added(&format!("{url}#v1:d"), "find . -type f | sort | xargs cat"), "deep\none\n");
    assert_eq!(added(&format!("{url}?subdir=d/e"), "ls -A"), "g\n");
    let flags = "--chown=7:8 --chmod=700 --exclude=d/e";
    assert_eq!(
        added(&format!("{flags} {url}"), "stat -c '%n %u %g %a' top; ls d"),
        "top 7 8 700\nf\n"
    );
    // Beside files of the context, and by a variable.
    let dockerfile = format!("{BASE}ARG AT=v1\nADD {url}#$AT own /to/\n");
    assert_eq!(world.shell(&dockerfile, &[("own", "x")], "cat /to/d/f /to/own"), "one\nx");
    let error = world.error(&format!("{BASE}ADD {url}#nope /to/\n"), &[]);
    assert!(error.contains("repository does not contain ref `nope`"), "{error}");
    let error = world.error(&format!("{BASE}ADD {url}#v1:nope /to/\n"), &[]);
    assert!(error.contains("nope: no such file or directory"), "{error}");
    assert!(error.contains("Dockerfile:3"), "{error}");
}

#[test]
fn the_repository_stays_where_it_is_asked_for_and_commits_are_checked() {
    let world = World::new();
    let url = served(&world, Guard::Nobody).url("r.git");
    let entries = |source: &str| {
        let dockerfile = format!("{BASE}ADD {source} /to/\n");
        world.built(&dockerfile, &[], r#"directory(path: "/to") { entries }"#)
    };
    assert_eq!(entries(&url), json!(["d/", "top"]));
    assert_eq!(entries(&format!("--keep-git-dir=true {url}")), json!([".git/", "d/", "top"]));
    assert_eq!(entries(&format!("{url}?keep-git-dir=1")), json!([".git/", "d/", "top"]));
    let commit = work(&world.state.workdir().join("r"), "git rev-parse v1");
    let short = &commit[..9];
    for source in [
        format!("--checksum={commit} {url}#v1"),
        format!("--checksum={short} {url}#v1"),
        format!("{url}?tag=v1&checksum={short}"),
    ] {
        assert_eq!(entries(&source), json!(["d/", "top"]), "{source}");
    }
    let error = world.error(&format!("{BASE}ADD --checksum={commit} {url}#side /to/\n"), &[]);
    assert!(error.contains(&format!("expected checksum to match {commit}, got")), "{error}");
    let error = world.error(&format!("{BASE}ADD --checksum=sha256:00 {url} /to/\n"), &[]);
    assert!(error.contains("invalid checksum"), "{error}");
}

#[test]
fn a_build_opens_repositories_with_its_own_secrets() {
    let world = World::new();
    let server = served(&world, Guard::Basic("x-access-token", "hunter22"));
    let dockerfile = format!("{BASE}ADD {} /to/\n", server.url("r.git"));
    let error = world.error(&dockerfile, &[]);
    assert!(error.contains("authentication failed"), "{error}");
    let secret = |name: &str, text: &str| {
        let made =
            format!("{{ setSecret(name: {}, plaintext: {}) {{ id }} }}", json!(name), json!(text));
        world.session.leaf(&made)
    };
    let built = |secrets: &str| {
        let options = format!("secrets: [{secrets}]");
        let chain = r#"file(path: "/to/top") { contents }"#;
        world.session.leaf(&world.document(&with(&dockerfile, &[]), &options, chain))
    };
    let token = secret("GIT_AUTH_TOKEN", "hunter22");
    assert_eq!(built(&token.to_string()), json!("top\n"));
    let wrong = secret("GIT_AUTH_TOKEN", "wrong");
    let own = secret(&format!("GIT_AUTH_TOKEN.{}", server.host()), "hunter22");
    assert_eq!(built(&format!("{wrong}, {own}")), json!("top\n"));
    server.guard(Guard::Header("Bearer abc"));
    let header = secret("GIT_AUTH_HEADER", "Bearer abc");
    assert_eq!(built(&header.to_string()), json!("top\n"));
}
