//! `git`: what a repository elsewhere has, and its trees, from a real server over http.

use serde_json::{Value, json};
use testkit::git::{Guard, HttpServer, work};
use testkit::{Session, State};

/// A repository `r` with three commits, a branch, tags of releases and a commit that nothing leads to, and its server.
pub(super) struct Remote {
    pub(super) state: State,
    pub(super) server: HttpServer,
}

impl Remote {
    pub(super) fn new(guard: Guard) -> Self {
        let state = State::new();
        let folder = state.workdir();
        work(
            &folder,
            "git init -q r; cd r; mkdir d; echo one > d/f; printf '#!/bin/sh\\n' > run; chmod 755 run; ln -s d/f link; \
             git add .; git commit -qm 'One more\n\nwith a body'; git tag v0.1.0; \
             echo two > d/f; git commit -qam two; git tag -am note v0.2.0; git branch side; \
             echo three > g; git add g; git commit -qm three; git tag v0.3.0-rc1; git tag other; \
             git commit -q --allow-empty -m hidden; git rev-parse HEAD > ../hidden; git reset -q --hard HEAD~1",
        );
        let server = HttpServer::smart(&folder, guard);
        Self { state, server }
    }

    pub(super) fn work(&self, line: &str) -> String {
        work(&self.state.workdir().join("r"), line)
    }

    /// The document of a chain of fields on the repository.
    pub(super) fn on(&self, chain: &str) -> String {
        format!("{{ git(url: {}) {{ {chain} }} }}", json!(self.server.url("r/.git")))
    }
}

/// What a shell script writes where a directory was exported to.
fn in_tree(remote: &Remote, session: &Session, directory: &Value, script: &str) -> String {
    let folder = remote.state.workdir().join("exported");
    let path = json!(folder.display().to_string());
    session.leaf(&format!(
        "{{ node(id: {directory}) {{ ... on Directory {{ export(path: {path}, wipe: true) }} }} }}"
    ));
    work(&folder, script)
}

#[test]
fn references_are_found_by_their_kind_of_name() {
    let remote = Remote::new(Guard::Nobody);
    let session = Session::start(&remote.state);
    let id = |name: &str| json!(remote.work(&format!("git rev-parse '{name}^{{commit}}'")));
    let leaf = |chain: &str| session.leaf(&remote.on(chain));
    for (chain, name, commit) in [
        ("head", "refs/heads/main", "main"),
        (r#"branch(name: "side")"#, "refs/heads/side", "side"),
        (r#"branch(name: "refs/heads/side")"#, "refs/heads/side", "side"),
        (r#"tag(name: "v0.2.0")"#, "refs/tags/v0.2.0", "v0.2.0"),
        (r#"ref(name: "refs/tags/v0.1.0")"#, "refs/tags/v0.1.0", "v0.1.0"),
        (r#"ref(name: "side")"#, "refs/heads/side", "side"),
        ("latestVersion", "refs/tags/v0.3.0-rc1", "v0.3.0-rc1"),
    ] {
        assert_eq!(leaf(&format!("{chain} {{ ref }}")), json!(name), "{chain}");
        assert_eq!(leaf(&format!("{chain} {{ commit }}")), id(commit), "{chain}");
    }
    assert_eq!(leaf("tags"), json!(["other", "v0.1.0", "v0.2.0", "v0.3.0-rc1"]));
    assert_eq!(leaf(r#"tags(patterns: ["v0.1*", "refs/tags/o*"])"#), json!(["other", "v0.1.0"]));
    assert_eq!(leaf("branches"), json!(["main", "side"]));
    assert_eq!(leaf("url"), json!(remote.server.url("r/.git")));
    let error = |chain: &str| session.error(&remote.on(chain));
    for chain in [r#"branch(name: "v0.1.0")"#, r#"tag(name: "main")"#, r#"ref(name: "nope")"#] {
        assert!(error(&format!("{chain} {{ commit }}")).contains("repository does not contain"));
    }
    assert!(error(r#"commit(id: "main") { sha }"#).contains("invalid commit SHA"));
    let nowhere = "12".repeat(20);
    let chain = format!(r#"commit(id: "{nowhere}") {{ tree {{ entries }} }}"#);
    assert!(error(&chain).contains("repository does not contain"), "{}", error(&chain));
    // A name that was looked up stays what it was; the next session sees what it is.
    let before = leaf(r#"branch(name: "side") { commit }"#);
    remote.work("git branch -qf side main");
    assert_eq!(leaf(r#"branch(name: "refs/heads/side") { commit }"#), before);
    let later = Session::start(&remote.state);
    assert_eq!(later.leaf(&remote.on(r#"branch(name: "side") { commit }"#)), id("main"));
    let old = Session::start_with(&remote.state, &["--version", "0.18.2"]);
    for chain in [r#"branch(name: "v0.1.0")"#, r#"tag(name: "main")"#, r#"commit(id: "side")"#] {
        old.leaf(&remote.on(&format!("{chain} {{ commit }}")));
    }
}

#[test]
fn commits_say_what_they_are() {
    let remote = Remote::new(Guard::Nobody);
    let session = Session::start(&remote.state);
    let first = remote.work("git rev-parse v0.1.0");
    let fields = "sha shortSha message messageHeadline messageBody authorName authorEmail authoredDate \
                  committerName committerEmail committedDate parentShas releaseTag { ref } ancestorReleaseTag { ref }";
    let expect = json!({
        "sha": first,
        "shortSha": first[..7],
        "message": "One more\n\nwith a body\n",
        "messageHeadline": "One more",
        "messageBody": "with a body",
        "authorName": "Ann",
        "authorEmail": "ann@example.com",
        "authoredDate": "2023-11-14T23:13:20+01:00",
        "committerName": "Carl",
        "committerEmail": "carl@example.com",
        "committedDate": "2023-11-14T22:13:21Z",
        "parentShas": [],
        "releaseTag": { "ref": "refs/tags/v0.1.0" },
        "ancestorReleaseTag": null,
    });
    let said = session.query(&remote.on(&format!(r#"tag(name: "v0.1.0") {{ {fields} }}"#)));
    assert_eq!(said["git"]["tag"], expect);
    let said = session
        .query(&remote.on(&format!(r#"tag(name: "v0.1.0") {{ targetCommit {{ {fields} }} }}"#)));
    assert_eq!(said["git"]["tag"]["targetCommit"], expect);
    // One answers for the other where clients of different times ask.
    let id = session.leaf(&remote.on(&format!(r#"commit(id: "{first}") {{ id }}"#)));
    let node = format!("{{ node(id: {id}) {{ ... on GitCommit {{ sha }} }} }}");
    assert_eq!(session.query(&node)["node"]["sha"], json!(first));
    let leaf = |chain: &str| session.leaf(&remote.on(chain));
    assert_eq!(leaf("head { releaseTag { ref } }"), Value::Null);
    assert_eq!(
        leaf("head { releaseTag(includePreRelease: true) { ref } }"),
        json!("refs/tags/v0.3.0-rc1")
    );
    assert_eq!(leaf("head { ancestorReleaseTag { ref } }"), json!("refs/tags/v0.2.0"));
}

#[test]
fn histories_are_read_and_compared() {
    let remote = Remote::new(Guard::Nobody);
    remote.work(
        "git checkout -q side; echo s > s; git add s; git commit -qm on-side; git checkout -q main",
    );
    let session = Session::start(&remote.state);
    let leaf = |chain: &str| session.query(&remote.on(chain));
    let log = |chain: &str| -> Vec<String> {
        let found = leaf(&format!("head {{ {chain} {{ messageHeadline }} }}"));
        let commits = found["git"]["head"]["log"].as_array().unwrap();
        commits
            .iter()
            .map(|commit| commit["messageHeadline"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(log("log"), ["three", "two", "One more"]);
    assert_eq!(log("log(limit: 1)"), ["three"]);
    assert_eq!(log(r#"log(paths: ["d"])"#), ["two", "One more"]);
    assert_eq!(log(r#"log(paths: ["/g", "nope"])"#), ["three"]);
    assert!(
        session
            .error(&remote.on("head { log(limit: 0) { sha } }"))
            .contains("limit must be at least 1")
    );
    let side = session.leaf(&remote.on(r#"branch(name: "side") { id }"#));
    assert_eq!(log(&format!("log(base: {side})")), ["three"]);
    let common =
        session.leaf(&remote.on(&format!("head {{ commonAncestor(other: {side}) {{ ref }} }}")));
    assert_eq!(common, json!(remote.work("git rev-parse v0.2.0^{commit}")));
    // The other may be of another repository.
    work(
        &remote.state.workdir(),
        "git clone -q r fork; cd fork; git checkout -q -b more v0.1.0; git commit -q --allow-empty -m fork",
    );
    let fork = json!(remote.server.url("fork/.git"));
    let other =
        session.leaf(&format!(r#"{{ git(url: {fork}) {{ branch(name: "more") {{ id }} }} }}"#));
    let common = session
        .leaf(&remote.on(&format!("head {{ commonAncestor(other: {other}) {{ commit }} }}")));
    assert_eq!(common, json!(remote.work("git rev-parse v0.1.0")));
    assert_eq!(log(&format!("log(base: {other})")), ["three", "two"]);
}

/// Kinds of repositories of a mirror, and how many commits each has.
fn mirrored(remote: &Remote) -> String {
    work(
        &remote.state.store(),
        "for found in $(find volumes -name '*.git' | sort); do \
         printf '%s ' $(basename $found) $(git -C $found cat-file --batch-all-objects --batch-check='%(objecttype)' | grep -c commit); done",
    )
}

#[test]
fn no_more_of_a_history_is_fetched_than_is_looked_at() {
    let remote = Remote::new(Guard::Nobody);
    remote.work("for n in $(seq 1 120); do git commit -q --allow-empty -m $n; done; git config uploadpack.allowFilter true");
    let session = Session::start(&remote.state);
    let log = |chain: &str| -> Vec<Value> {
        let found = session.query(&remote.on(&format!("head {{ {chain} {{ messageHeadline }} }}")));
        let commits = found["git"]["head"]["log"].as_array().unwrap().iter();
        commits.map(|commit| commit["messageHeadline"].clone()).collect()
    };
    assert_eq!(log("log(limit: 2)"), ["120", "119"]);
    assert_eq!(mirrored(&remote), "words.git 3");
    assert_eq!(log("log(limit: 4)"), ["120", "119", "118", "117"]);
    assert_eq!(mirrored(&remote), "words.git 5");
    // Nobody changed this path for so long that more is needed, and in the end all.
    assert_eq!(log(r#"log(limit: 1, paths: ["g"])"#), ["three"]);
    assert_eq!(mirrored(&remote), "recent.git 123 words.git 6");
    assert_eq!(log(r#"log(limit: 2, paths: ["g"])"#), ["three"]);
    assert_eq!(log("log(limit: 5000)").len(), 123);
    // One that is cut off itself has no more than that.
    work(&remote.state.workdir(), "git clone -q --depth=2 file://$PWD/r cut");
    let cut = json!(remote.server.url("cut/.git"));
    let document = format!("{{ git(url: {cut}) {{ head {{ log {{ sha }} }} }} }}");
    for session in [session, Session::start(&remote.state)] {
        let found = session.query(&document);
        assert_eq!(found["git"]["head"]["log"].as_array().unwrap().len(), 2);
    }
}

#[test]
fn a_tree_has_the_files_alone_or_a_repository_around_them() {
    let remote = Remote::new(Guard::Nobody);
    let session = Session::start(&remote.state);
    let leaf = |chain: &str| session.leaf(&remote.on(chain));
    assert_eq!(leaf("head { tree { entries } }"), json!([".git/", "d/", "g", "link", "run"]));
    assert_eq!(
        leaf("head { tree(discardGitDir: true) { entries } }"),
        json!(["d/", "g", "link", "run"])
    );
    assert_eq!(
        leaf(r#"head { tree(discardGitDir: true) { file(path: "link") { contents } } }"#),
        json!("two\n")
    );
    let hidden = std::fs::read_to_string(remote.state.workdir().join("hidden")).unwrap();
    let chain = format!(
        r#"commit(id: "{}") {{ tree {{ file(path: "g") {{ contents }} }} }}"#,
        hidden.trim()
    );
    assert_eq!(leaf(&chain), json!("three\n"));
    let url = json!(remote.server.url("r/.git"));
    let old =
        format!("{{ git(url: {url}, keepGitDir: false) {{ head {{ tree {{ entries }} }} }} }}");
    assert_eq!(session.leaf(&old), json!(["d/", "g", "link", "run"]));
    // Times are the same whenever it is made, and modes are those of the commit.
    let id = leaf("head { tree(discardGitDir: true) { id } }");
    let listed = session.leaf(&format!(
        "{{ container {{ withRootfs(directory: {}) {{ withMountedDirectory(path: \"/src\", source: {id}) {{ \
         withExec(args: [\"stat\", \"-c\", \"%n %a %u %Y\", \"/src/run\", \"/src/g\", \"/src/d\"]) {{ stdout }} }} }} }} }}",
        json!(session.busybox())
    ));
    assert_eq!(
        listed,
        json!("/src/run 755 0 315532800\n/src/g 644 0 315532800\n/src/d 755 0 315532800\n")
    );
}

#[test]
fn a_repository_around_a_tree_is_like_that_of_a_clone() {
    let remote = Remote::new(Guard::Nobody);
    let session = Session::start(&remote.state);
    let url = remote.server.url("r/.git");
    let script = "git status --porcelain; git fsck --strict 2>/dev/null; git rev-list --count HEAD; \
                  git symbolic-ref -q HEAD || echo detached; git remote get-url origin; git tag";
    for (reference, tree, expect) in [
        ("head", "tree", "1\nrefs/heads/main\nURL"),
        (r#"branch(name: "side")"#, "tree(depth: 2)", "2\nrefs/heads/side\nURL"),
        (
            r#"tag(name: "v0.2.0")"#,
            "tree(depth: -1, includeTags: true)",
            "2\ndetached\nURL\nother\nv0.1.0\nv0.2.0\nv0.3.0-rc1",
        ),
    ] {
        let id = session.leaf(&remote.on(&format!("{reference} {{ {tree} {{ id }} }}")));
        assert_eq!(in_tree(&remote, &session, &id, script), expect.replace("URL", &url), "{tree}");
    }
}

#[test]
fn parts_of_a_history_that_are_wanted_at_once_are_whole() {
    let remote = Remote::new(Guard::Nobody);
    // A large file makes copying take longer than fetching what it comes with; a submodule is of the same remote.
    remote.work(
        "head -c 16000000 /dev/urandom > large; git add large; git commit -qm large; \
         for n in $(seq 16); do git commit -q --allow-empty -m $n; done; \
         printf '[submodule \"self\"]\\n\\tpath = self\\n\\turl = ../.git\\n' > .gitmodules; git add .gitmodules; \
         git update-index --add --cacheinfo 160000,$(git rev-parse HEAD~8),self; git commit -qm self",
    );
    let session = Session::start(&remote.state);
    // Those with one commit cut histories off in the middle of what the first one has.
    let wanted = remote.work("git rev-list --max-count=6 HEAD");
    let wanted = wanted.lines().enumerate().map(|(number, commit)| {
        let depth = if number == 0 { 8 } else { 1 };
        format!(
            r#"t{number}: commit(id: "{commit}") {{ tree(depth: {depth}) {{ export(path: "trees/{number}") }} }}"#
        )
    });
    session.query(&remote.on(&wanted.collect::<Vec<_>>().join(" ")));
    for (number, expected) in ["8", "1", "1", "1", "1", "1"].iter().enumerate() {
        let folder = remote.state.workdir().join(format!("trees/{number}"));
        assert_eq!(work(&folder, "git rev-list --count HEAD"), *expected, "tree {number}");
    }
    assert!(remote.state.workdir().join("trees/0/self/g").exists());
}

#[test]
fn a_commit_is_fetched_once_and_checked_out_once() {
    let remote = Remote::new(Guard::Nobody);
    let fetches =
        || remote.server.requests().iter().filter(|line| line.starts_with("POST")).count();
    let tree = remote.on("head { tree(discardGitDir: true) { entries } }");
    let first = Session::start(&remote.state);
    first.leaf(&tree);
    let asked = fetches();
    first.leaf(
        &remote.on(
            r#"branch(name: "main") { tree(discardGitDir: true) { file(path: "g") { size } } }"#,
        ),
    );
    assert_eq!(fetches(), asked, "one session asks once");
    let before = remote.server.requests().len();
    let second = Session::start(&remote.state);
    second.leaf(&tree);
    // The next session asks what is there, in one go, and for nothing that is known.
    assert_eq!(remote.server.requests().len(), before + 1, "{:#?}", remote.server.requests());
    assert_eq!(fetches(), asked, "{:#?}", remote.server.requests());
    // The mirror is cache: it is shown, and it goes when the cache is pruned.
    let shown = "{ engine { localCache { entrySet { entries { description } } } } }";
    let url = remote.server.url("r/.git");
    let text = second.query(shown).to_string();
    assert!(text.contains(&format!("mirror of {url}")), "{text}");
}
