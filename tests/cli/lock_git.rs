//! `--lock` with git: what branches, tags and HEAD of remotes were, in `ci-tool.lock`.

use serde_json::{Value, json};
use std::path::PathBuf;
use testkit::git::{Guard, HttpServer, work};
use testkit::{Output, State};

/// A project, and a remote with a branch and a tag.
struct World {
    server: HttpServer,
    state: State,
}

impl World {
    fn new() -> Self {
        let state = State::new();
        std::fs::create_dir(state.workdir().join(".git")).unwrap();
        let folder = state.workdir();
        work(
            &folder,
            "git init -q r; cd r; echo 1 > f; git add f; git commit -qm 1; git tag v1; git branch side",
        );
        let server = HttpServer::smart(&folder, Guard::Nobody);
        Self { server, state }
    }

    fn work(&self, line: &str) -> String {
        work(&self.state.workdir().join("r"), line)
    }

    /// One more commit, and all names at it.
    fn moved(&self) -> String {
        self.work(
            "echo more >> f; git commit -qam more; git tag -f v1 > /dev/null; git branch -qf side; git rev-parse HEAD",
        )
    }

    fn url(&self) -> String {
        self.server.url("r/.git")
    }

    fn run(&self, mode: &str, words: &[&str]) -> Output {
        let (mode, url) = (format!("--lock={mode}"), format!("--url={}", self.url()));
        self.state.cli([&mode, "core", "git", &url]).args(words).run()
    }

    fn file(&self) -> PathBuf {
        self.state.workdir().join("ci-tool.lock")
    }

    fn entries(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.file()).unwrap_or_default();
        text.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

const HEAD: &[&str] = &["head", "commit-sha"];
const BRANCH: &[&str] = &["branch", "--name=side", "commit-sha"];
const TAG: &[&str] = &["tag", "--name=v1", "commit-sha"];
const REF: &[&str] = &["ref", "--name=refs/tags/v1", "commit-sha"];

#[test]
fn names_are_recorded_with_the_policy_of_their_kind() {
    let world = World::new();
    let first = world.work("git rev-parse HEAD");
    for words in [HEAD, BRANCH, TAG, REF] {
        assert_eq!(world.run("disabled", words).ok().trim(), first);
        let said = world.run("frozen", words);
        let said = said.fails(1);
        assert!(said.contains("`ci-tool.lock` has no entry for git."), "{said}");
        assert!(said.contains(&world.url()) && said.contains("--lock=pinned"), "{said}");
    }
    let commit = ["commit", &format!("--id={first}"), "sha"];
    assert_eq!(world.run("frozen", &commit).ok().trim(), first, "a commit is its own record");
    assert!(!world.file().exists());
    for words in [HEAD, BRANCH, TAG, REF] {
        assert_eq!(world.run("pinned", words).ok().trim(), first);
    }
    let url = world.url();
    assert_eq!(
        world.entries(),
        [
            json!(["", "git.branch", [url, "side"], first, "float"]),
            json!(["", "git.head", [url], first, "float"]),
            json!(["", "git.ref", [url, "refs/tags/v1"], first, "pin"]),
            json!(["", "git.tag", [url, "v1"], first, "pin"]),
        ]
    );
    let before = std::fs::read_to_string(world.file()).unwrap();
    let second = world.moved();
    for words in [HEAD, BRANCH, TAG, REF] {
        assert_eq!(world.run("frozen", words).ok().trim(), first, "{words:?}");
        assert_eq!(world.run("disabled", words).ok().trim(), second, "{words:?}");
    }
    assert_eq!(std::fs::read_to_string(world.file()).unwrap(), before);
    for (words, expect) in [(HEAD, &second), (BRANCH, &second), (TAG, &first), (REF, &first)] {
        assert_eq!(world.run("pinned", words).ok().trim(), expect, "{words:?}");
    }
    for words in [TAG, REF] {
        assert_eq!(world.run("live", words).ok().trim(), second);
        assert_eq!(world.run("frozen", words).ok().trim(), second);
    }
    let kinds: Vec<Value> = world.entries().iter().map(|entry| entry[4].clone()).collect();
    assert_eq!(kinds, ["float", "float", "pin", "pin"], "policies stay");
}

#[test]
fn what_is_recorded_holds_though_the_remote_has_it_no_more() {
    let world = World::new();
    let first = world.work("git rev-parse HEAD");
    let tree = ["tree", "--discard-git-dir", "file", "--path=f", "contents"];
    let branch = [&["branch", "--name=side"][..], &tree].concat();
    let tag = [&["tag", "--name=v1"][..], &tree].concat();
    for words in [&branch, &tag] {
        assert_eq!(world.run("live", words).ok(), "1\n");
    }
    world.work("git branch -qD side; git tag -d v1 > /dev/null");
    for words in [&branch, &tag] {
        assert!(world.run("disabled", words).fails(1).contains("repository does not contain"));
        assert_eq!(world.run("frozen", words).ok(), "1\n");
    }
    assert_eq!(world.run("pinned", &tag).ok(), "1\n");
    assert!(world.run("pinned", &branch).fails(1).contains("repository does not contain branch"));
    // Which commit it is needs nobody.
    world.server.guard(Guard::Basic("nobody", "knows"));
    for (words, name) in [(BRANCH, "refs/heads/side"), (TAG, "refs/tags/v1")] {
        assert_eq!(world.run("frozen", words).ok().trim(), first);
        let words = [&words[..2], &["ref"]].concat();
        assert_eq!(world.run("frozen", &words).ok().trim(), name);
    }
    assert!(world.run("frozen", &tag).fails(1).contains("authentication failed"));
}

#[test]
fn a_damaged_record_is_named() {
    let world = World::new();
    let first = world.run("pinned", TAG).ok().trim().to_owned();
    let text = std::fs::read_to_string(world.file()).unwrap();
    std::fs::write(world.file(), text.replace(&first, "main")).unwrap();
    let said = world.run("frozen", TAG);
    let said = said.fails(1);
    assert!(said.contains("what `ci-tool.lock` says of git.tag of"), "{said}");
    assert!(said.contains("is no commit: `main`") && said.contains("--lock=live"), "{said}");
    assert_eq!(world.run("live", TAG).ok().trim(), first);
    // Repositories of the machine itself are never recorded.
    let url = format!("--url=file://{}", world.state.workdir().join("r").display());
    let before = std::fs::read_to_string(world.file()).unwrap();
    let said = world.state.cli(["--lock=frozen", "core", "git", &url, "head", "commit-sha"]).run();
    assert_eq!(said.ok().trim(), first);
    assert_eq!(std::fs::read_to_string(world.file()).unwrap(), before);
}
