//! `Directory.asGit` and addresses: repositories in directories, of the caller's machine and elsewhere.

use super::git::Remote;
use serde_json::{Value, json};
use std::path::Path;
use testkit::git::{Guard, work};
use testkit::{Session, State};

pub(super) fn as_git(session: &Session, folder: &Path, chain: &str) -> Value {
    let id = json!(session.host_directory(folder));
    session.leaf(&format!("{{ node(id: {id}) {{ ... on Directory {{ asGit {{ {chain} }} }} }} }}"))
}

fn as_git_error(session: &Session, folder: &Path) -> String {
    let id = json!(session.host_directory(folder));
    session.error(&format!(
        "{{ node(id: {id}) {{ ... on Directory {{ asGit {{ head {{ commit }} }} }} }} }}"
    ))
}

#[test]
fn a_directory_is_a_repository_in_each_of_its_forms() {
    let state = State::new();
    let folder = state.workdir();
    work(
        &folder,
        "git init -q r; cd r; echo one > f; git add f; git commit -qm one; git tag -am x v1.0.0; git branch side; cd ..; \
         git clone -q --bare r bare; git -C r pack-refs --all; git -C r gc -q; \
         mkdir both; git clone -q r both/r; git -C both/r worktree add -q ../w side; \
         sed -i 's,gitdir: .*/both/,gitdir: ../,' both/w/.git; mkdir none",
    );
    let session = Session::start(&state);
    let id = json!(work(&folder.join("r"), "git rev-parse HEAD"));
    for name in ["r", "bare"] {
        let at = |chain: &str| as_git(&session, &folder.join(name), chain);
        assert_eq!(at("head { commit }"), id, "{name}");
        assert_eq!(at("tags"), json!(["v1.0.0"]), "{name}");
        assert_eq!(at("url"), Value::Null, "{name}");
        assert_eq!(at("head { tree(discardGitDir: true) { entries } }"), json!(["f"]), "{name}");
        assert_eq!(at(r#"tag(name: "v1.0.0") { message }"#), json!("one\n"), "{name}");
    }
    let both = json!(session.host_directory(&folder.join("both")));
    let chain = r#"directory(path: "w") { asGit { head { ref } } }"#;
    let found =
        session.leaf(&format!("{{ node(id: {both}) {{ ... on Directory {{ {chain} }} }} }}"));
    assert_eq!(found, json!("refs/heads/side"));
    // A tree of its own has no remote.
    let out = json!(folder.join("out").display().to_string());
    as_git(&session, &folder.join("r"), &format!("head {{ tree {{ export(path: {out}) }} }}"));
    let said =
        work(&folder.join("out"), "git status --porcelain; git remote; git symbolic-ref HEAD");
    assert_eq!(said, "refs/heads/main");
    assert!(as_git_error(&session, &folder.join("none")).contains("not a git repository"));
}

#[test]
fn a_hostile_repository_runs_and_reads_nothing() {
    let state = State::new();
    let folder = state.workdir();
    let sign = folder.join("sign");
    work(
        &folder,
        &format!(
            "git init -q r; cd r; echo '* filter=x' > .gitattributes; echo one > f; git add .; git commit -qm one; \
             git config filter.x.smudge 'touch {0}; cat'; git config core.fsmonitor 'touch {0}'; \
             git config core.sshCommand 'touch {0}'; git config core.alternateRefsCommand 'touch {0}'; \
             printf '#!/bin/sh\\ntouch {0}\\n' > .git/hooks/post-checkout; chmod +x .git/hooks/post-checkout; \
             rm -f {0}; cp -r ../r ../links; cd ../links; mv .git/objects ../objects; ln -s \"$PWD/../objects\" .git/objects; \
             cp -r ../r ../borrows; echo /srv/objects > ../borrows/.git/objects/info/alternates; \
             echo two > ../r/f",
            sign.display()
        ),
    );
    let session = Session::start(&state);
    let files =
        as_git(&session, &folder.join("r"), "head { tree { file(path: \"f\") { contents } } }");
    assert_eq!(files, json!("one\n"));
    let changed = as_git(&session, &folder.join("r"), "uncommitted { modifiedPaths }");
    assert_eq!(changed, json!(["f"]));
    assert!(!sign.exists(), "nothing of the repository was run");
    assert!(as_git_error(&session, &folder.join("links")).contains("not a git repository"));
    assert!(as_git_error(&session, &folder.join("borrows")).contains("borrows objects"));
}

#[test]
fn addresses_name_repositories_references_and_what_is_in_them() {
    let remote = Remote::new(Guard::Nobody);
    let session = Session::start(&remote.state);
    let url = remote.server.url("r/.git");
    let at = |address: &str, chain: &str| {
        session.leaf(&format!("{{ address(value: {}) {{ {chain} }} }}", json!(address)))
    };
    let error = |address: &str, chain: &str| {
        session.error(&format!("{{ address(value: {}) {{ {chain} }} }}", json!(address)))
    };
    let id = |name: &str| json!(remote.work(&format!("git rev-parse '{name}^{{commit}}'")));
    assert_eq!(at(&url, "gitRepository { head { commit } }"), id("main"));
    assert_eq!(at("r", "gitRepository { head { commit } }"), id("main"));
    assert_eq!(at(&url, "gitRef { ref }"), json!("refs/heads/main"));
    assert_eq!(at(&format!("{url}#v0.1.0"), "gitRef { commit }"), id("v0.1.0"));
    assert_eq!(at("./r#side", "gitRef { commit }"), id("side"));
    assert_eq!(at(&format!("{url}#v0.1.0:d"), "directory { entries }"), json!(["f"]));
    assert_eq!(
        at(&format!("{url}#main"), "directory(exclude: [\"d\"]) { entries }"),
        json!(["g", "link", "run"])
    );
    assert_eq!(at(&format!("{url}#v0.1.0:d/f"), "file { contents }"), json!("one\n"));
    assert_eq!(at("r", "directory(include: [\"d\"]) { entries }"), json!(["d/"]));
    assert_eq!(at("r/d/f", "file { contents }"), json!("two\n"));
    assert_eq!(
        at(
            &format!("file://{}", remote.state.workdir().join("r/g").display()),
            "file { contents }"
        ),
        json!("three\n")
    );
    assert!(
        error(&format!("{url}#main"), "gitRepository { url }").contains("more than a repository")
    );
    assert!(error(&format!("{url}#main:d"), "gitRef { ref }").contains("not a reference"));
    assert!(error(&format!("{url}#main"), "file { contents }").contains("expected path"));
    assert!(
        error(&format!("{url}#main:nope"), "directory { entries }")
            .contains("no such file or directory")
    );
    // A url of the caller's own machine is read by the caller's client.
    let file = format!("file://{}", remote.state.workdir().join("r").display());
    let document = format!("{{ git(url: {}) {{ url head {{ commit }} }} }}", json!(file));
    let found = session.query(&document);
    assert_eq!(found["git"], json!({ "url": file, "head": { "commit": id("main") } }));
    // What is none is named as it was typed, in one error.
    work(&remote.state.workdir(), "mkdir none; git clone -q --bare r bare");
    let open = |url: &str| format!("{{ git(url: {}) {{ head {{ commit }} }} }}", json!(url));
    assert_eq!(session.leaf(&open("./bare")), id("main"));
    let said = session.error(&open("./none"));
    assert!(said.contains("not a git repository: `./none`"), "{said}");
    let said = session.error(&open("./nowhere"));
    assert!(said.contains("./nowhere: no such file or directory"), "{said}");
}
