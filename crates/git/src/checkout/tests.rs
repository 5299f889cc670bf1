//! Mirrors and checkouts against the real git, on repositories of the test's own.

use super::*;
use crate::history::{self, Range};
use crate::run::tests::git;
use crate::{Access, Commit, Mirror, Refs, Spelled, Url, modules};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// Runs git as a user would.
fn user(folder: &Path, line: &str) -> String {
    let mut command = Command::new("sh");
    command.arg("-ec").arg(line).current_dir(folder).env_clear();
    let who = [
        ("PATH", "/usr/local/bin:/usr/bin:/bin"),
        ("HOME", "/nonexistent"),
        ("GIT_AUTHOR_NAME", "A"),
        ("GIT_AUTHOR_EMAIL", "a@x"),
        ("GIT_COMMITTER_NAME", "C"),
        ("GIT_COMMITTER_EMAIL", "c@x"),
        ("GIT_CONFIG_COUNT", "2"),
        ("GIT_CONFIG_KEY_0", "init.defaultBranch"),
        ("GIT_CONFIG_VALUE_0", "main"),
        ("GIT_CONFIG_KEY_1", "protocol.file.allow"),
        ("GIT_CONFIG_VALUE_1", "always"),
    ];
    let done = command.envs(who).output().unwrap();
    assert!(done.status.success(), "{line}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap().trim().to_owned()
}

/// A folder with a repository `r` that a server gives, and the server's url of it.
struct Served {
    folder: TempDir,
    server: Child,
    url: Url,
}

impl Served {
    fn new(script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        user(folder.path(), "git init -q r");
        user(&folder.path().join("r"), script);
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        // The program itself: `git daemon` starts it as a child, which would outlive the kill.
        let program = Path::new(&user(folder.path(), "git --exec-path")).join("git-daemon");
        let mut server = Command::new(program)
            .args(["--export-all", "--reuseaddr", "--listen=127.0.0.1"])
            .arg(format!("--base-path={}", folder.path().display()))
            .arg(format!("--port={port}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(server.try_wait().unwrap().is_none(), "the server ended");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let Spelled::Url(url, _) = Spelled::parse(&format!("git://127.0.0.1:{port}/r")).unwrap()
        else {
            panic!("a url")
        };
        Self { folder, server, url }
    }

    fn user(&self, line: &str) -> String {
        user(&self.folder.path().join("r"), line)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

const THREE: &str = "for n in 1 2 3; do echo $n > f; git add f; git commit -qm $n; done; \
                     git tag -am note v1.0.0 HEAD~1; git branch old HEAD~2";

#[tokio::test]
async fn a_checkout_is_like_that_of_a_clone() {
    let served = Served::new(THREE);
    let (git, access) = (git(), Access::default());
    let remote = (&git, &served.url, &access);
    let refs = Refs::of_remote(&git, &served.url, &access).await.unwrap();
    let head = refs.at_head().unwrap();
    assert_eq!(head.name, "refs/heads/main");
    let mirror = Mirror::at(&served.path("mirror"));
    for (depth, commits) in [(Depth::Commits(1), "1"), (Depth::Commits(2), "2"), (Depth::Full, "3")]
    {
        // A tag brings its own ancestors.
        let tags: Vec<(&str, &str)> = refs.tagged().filter(|_| commits != "2").collect();
        let wanted: Vec<&str> =
            tags.iter().map(|(_, commit)| *commit).chain([&*head.commit]).collect();
        let repository = mirror.fetch(remote, (&refs, &wanted), depth, None).await.unwrap();
        let folder = served.path(&format!("out-{commits}"));
        fs::create_dir(&folder).unwrap();
        let checkout = Checkout { repository: &repository, commit: &head.commit, folder: &folder };
        let url = served.url.to_string();
        let beside = Beside {
            at: folder.join(".git"),
            branch: Some(&head.name),
            origin: Some(&url),
            work_tree: None,
            depth,
            tags: tags.clone(),
        };
        checkout.repository(&git, &beside).await.unwrap();
        checkout.files(&git, &folder.join(".git/index")).await.unwrap();
        checkout.refresh(&git, &beside.at).await.unwrap();
        assert_eq!(fs::read_to_string(folder.join("f")).unwrap(), "3\n");
        let out = |line: &str| user(&folder, line);
        assert_eq!(out("git status --porcelain; git diff-index --name-only HEAD"), "", "{depth:?}");
        assert_eq!(out("git rev-list --count HEAD"), commits);
        assert_eq!(
            out("git symbolic-ref HEAD; git remote get-url origin; git tag"),
            format!("refs/heads/main\n{url}\n{}", if tags.is_empty() { "" } else { "v1.0.0" })
                .trim()
        );
        out("git fsck --strict");
    }
}

#[tokio::test]
async fn what_is_there_is_not_fetched_again_and_what_is_hidden_is_found() {
    let served = Served::new(THREE);
    let hidden = served.user(
        "git commit -q --allow-empty -m hidden; git rev-parse HEAD; git reset -q --hard HEAD~1",
    );
    let (git, access) = (git(), Access::default());
    let refs = Refs::of_remote(&git, &served.url, &access).await.unwrap();
    let mirror = Mirror::at(&served.path("mirror"));
    let one = Depth::Commits(1);
    let remote = (&git, &served.url, &access);
    let found = mirror.fetch(remote, (&refs, &[&*hidden]), one, None).await.unwrap();
    assert_eq!(Commit::read(&git, &found, &hidden).await.unwrap().message, "hidden\n");
    let nowhere = "1".repeat(40);
    let error = mirror.fetch(remote, (&refs, &[&*nowhere]), one, None).await.unwrap_err();
    assert!(error.to_string().contains("repository does not contain commit"), "{error}");
    // A mirror that a killed process left its locks in works on, and what it has needs no server.
    fs::write(found.join("shallow.lock"), "").unwrap();
    let head = refs.at_head().unwrap().commit;
    mirror.fetch(remote, (&refs, &[&*head]), one, None).await.unwrap();
    let Spelled::Url(gone, _) = Spelled::parse("git://127.0.0.1:1/r").unwrap() else { panic!() };
    mirror.fetch((&git, &gone, &access), (&refs, &[&*head]), one, None).await.unwrap();
    let error = mirror.fetch((&git, &gone, &access), (&refs, &[&*head]), Depth::Full, None).await;
    assert!(error.unwrap_err().to_string().starts_with("git error: "));
}

#[tokio::test]
async fn a_depth_is_that_of_every_parent_of_a_merge() {
    let served = Served::new(
        "c() { git commit -q --allow-empty -m $1; }; c 1; c 2; c 3; git checkout -q -b side; c s1; c s2; c s3; \
         git checkout -q main; c 4; git merge -q --no-ff -m merge side",
    );
    let (git, access) = (git(), Access::default());
    let remote = (&git, &served.url, &access);
    let refs = Refs::of_remote(&git, &served.url, &access).await.unwrap();
    let (head, side) = (refs.at_head().unwrap().commit, refs.branch("side").unwrap().commit);
    let mirror = Mirror::at(&served.path("mirror"));
    let three = Depth::Commits(3);
    let repository = mirror.fetch(remote, (&refs, &[&*head]), three, None).await.unwrap();
    let count = || user(&repository, &format!("git rev-list --count {head}"));
    // The merge, `4` and `s3`, `3` and `s2`.
    assert_eq!(count(), "5");
    assert!(mirror.find(&git, &[&head], three).await.unwrap().is_some());
    assert!(mirror.find(&git, &[&head], Depth::Commits(4)).await.unwrap().is_none());
    // Somebody else wants but one commit of the other branch, and its ancestors are forgotten.
    mirror.fetch(remote, (&refs, &[&*side]), Depth::Commits(1), None).await.unwrap();
    assert_eq!(count(), "4");
    assert!(mirror.find(&git, &[&head], three).await.unwrap().is_none());
    assert!(mirror.find(&git, &[&head], Depth::Commits(2)).await.unwrap().is_some());
    mirror.fetch(remote, (&refs, &[&*head]), three, None).await.unwrap();
    assert_eq!(count(), "5");
}

#[tokio::test]
async fn a_hostile_repository_runs_nothing() {
    let served = Served::new(THREE);
    served.user(
        "printf '#!/bin/sh\\ntouch ../hooked\\n' > .git/hooks/post-checkout; chmod +x .git/hooks/*; \
         git config filter.x.smudge 'touch ../smudged; cat'; git config core.fsmonitor 'touch ../monitored'; \
         echo '* filter=x' > .gitattributes; git add .; git commit -qm x",
    );
    let git = git();
    let refs = Refs::of_repository(&git, &served.path("r/.git")).await.unwrap();
    let mirror = Mirror::at(&served.path("mirror"));
    let (access, head) = (Access::default(), refs.at_head().unwrap().commit);
    let remote = (&git, &served.url, &access);
    let one = Depth::Commits(1);
    let repository = mirror.fetch(remote, (&refs, &[&*head]), one, None).await.unwrap();
    let folder = served.path("out");
    fs::create_dir(&folder).unwrap();
    let checkout = Checkout { repository: &repository, commit: &head, folder: &folder };
    fs::remove_file(served.path("smudged")).ok();
    fs::remove_file(served.path("monitored")).ok();
    checkout.files(&git, &served.path("index")).await.unwrap();
    for sign in ["hooked", "smudged", "monitored"] {
        assert!(!served.path(sign).exists(), "{sign}");
    }
}

#[tokio::test]
async fn submodules_are_listed_with_their_commits() {
    let served = Served::new(THREE);
    let commit = served.user("git rev-parse HEAD");
    user(
        served.folder.path(),
        "git init -q super; cd super; git submodule --quiet add ../r lib/r; \
         git commit -qm with; mkdir x; git config -f .gitmodules submodule.gone.path gone; git add .; git commit -qm gone",
    );
    let git = git();
    let refs = Refs::of_repository(&git, &served.path("super/.git")).await.unwrap();
    let head = refs.at_head().unwrap().commit;
    let found = modules(&git, &served.path("super/.git"), &head).await.unwrap();
    let expect =
        crate::Module { name: "lib/r".into(), path: "lib/r".into(), url: "../r".into(), commit };
    assert_eq!(found, [expect]);
    let none = served.user("git rev-parse HEAD");
    assert!(modules(&git, &served.path("r/.git"), &none).await.unwrap().is_empty());
}

/// How many objects of each kind a repository has.
fn kinds(repository: &Path) -> String {
    let list = "git cat-file --batch-all-objects --batch-check='%(objecttype)' | sort | uniq -c";
    user(repository, &format!("{list} | tr -s ' \\n' ' '")).trim().to_owned()
}

#[tokio::test]
async fn questions_about_histories_are_answered_without_files() {
    let served = Served::new(THREE);
    let (git, access) = (git(), Access::default());
    let remote = (&git, &served.url, &access);
    let refs = Refs::of_remote(&git, &served.url, &access).await.unwrap();
    let (head, old) = (refs.at_head().unwrap().commit, refs.branch("old").unwrap().commit);
    // A server that cannot leave anything out sends all, and the answer is the same.
    for able in ["false", "true"] {
        served.user(&format!("git config uploadpack.allowFilter {able}"));
        let mirror = Mirror::at(&served.path(&format!("mirror-{able}")));
        let words = mirror.fetch(remote, (&refs, &[&*head]), Depth::Words, None).await.unwrap();
        assert_eq!(Commit::read(&git, &words, &head).await.unwrap().message, "3\n");
        let commits = mirror.fetch(remote, (&refs, &[&*head]), Depth::History, None).await.unwrap();
        let range = Range { repository: &commits, other: None };
        let log = history::log(&git, &range, (&head, None), (9, &[])).await.unwrap().unwrap();
        assert_eq!((log.len(), &log[0], &log[2]), (3, &head, &old));
        let common = history::common_ancestor(&git, &range, &head, &old).await.unwrap();
        assert_eq!(common.as_ref(), Some(&old));
        let names = mirror.fetch(remote, (&refs, &[&*head]), Depth::Names, None).await.unwrap();
        let (range, paths) = (Range { repository: &names, other: None }, ["f".to_owned()]);
        let log =
            history::log(&git, &range, (&head, Some(&old)), (9, &paths)).await.unwrap().unwrap();
        assert_eq!(log.len(), 2);
        if able == "true" {
            assert_eq!(kinds(&words), "1 commit");
            assert_eq!(kinds(&commits), "3 commit");
            assert_eq!(kinds(&names), "3 commit 3 tree");
        }
        // What is known needs no server, and trees are whole for who wants them.
        let Spelled::Url(gone, _) = Spelled::parse("git://127.0.0.1:1/r").unwrap() else {
            panic!()
        };
        let away = (&git, &gone, &access);
        mirror.fetch(away, (&refs, &[&*old]), Depth::History, None).await.unwrap();
        mirror.fetch(away, (&refs, &[&*old]), Depth::Words, None).await.unwrap();
        let full = mirror.fetch(remote, (&refs, &[&*head]), Depth::Full, None).await.unwrap();
        assert_eq!(kinds(&full), "3 blob 3 commit 3 tree");
    }
}

#[tokio::test]
async fn the_newest_commits_are_fetched_alone_and_nobody_cuts_them_off() {
    let served = Served::new(
        "git config uploadpack.allowFilter true; \
         c() { echo $1 > f$(($1 % 5)); git add .; GIT_COMMITTER_DATE=\"$((1700000000 + $1)) +0000\" git commit -qm $1; }; \
         for n in $(seq 1 30); do c $n; done; git checkout -q -b side HEAD~9; for n in 31 32 33; do c $n; done; \
         git checkout -q main; git merge -q -s ours -m merge side",
    );
    let (git, access) = (git(), Access::default());
    let remote = (&git, &served.url, &access);
    let refs = Refs::of_remote(&git, &served.url, &access).await.unwrap();
    let (head, side) = (refs.at_head().unwrap().commit, refs.branch("side").unwrap().commit);
    let mirror = Mirror::at(&served.path("mirror"));
    let expected = |words: &str| -> Vec<String> {
        served.user(&format!("git rev-list {words}")).lines().map(str::to_owned).collect()
    };
    for count in [1, 3, 5] {
        let last = Depth::Last(count);
        let found = mirror.fetch(remote, (&refs, &[&*head]), last, None).await.unwrap();
        let range = Range { repository: &found, other: None };
        let log = history::log(&git, &range, (&head, None), (count, &[])).await.unwrap();
        assert_eq!(log.unwrap(), expected(&format!("--max-count={count} main")));
        // Further than that, there is no answer; a wrong one least of all.
        let log = history::log(&git, &range, (&head, None), (30, &[])).await.unwrap();
        assert_eq!(log, None);
        let message = Commit::read(&git, &found, &head).await.unwrap().message;
        assert_eq!(message, "merge\n");
    }
    // The merge, five of each branch and no tree.
    let repository = served.path("mirror/words.git");
    assert_eq!(kinds(&repository), "11 commit");
    // Who wants the words of one commit cuts off its ancestors there, but not for who reads them.
    user(&repository, &format!("git fetch -q --depth=1 {} {side}", served.url));
    let five = mirror.find(&git, &[&head], Depth::Last(5)).await.unwrap().unwrap();
    let range = Range { repository: &five, other: None };
    let log = history::log(&git, &range, (&head, None), (5, &[])).await.unwrap();
    assert_eq!(log.unwrap(), expected("--max-count=5 main"));
    // A path was changed longer ago than what is there.
    let paths = ["f1".to_owned()];
    for (count, there) in [(2, false), (14, true)] {
        let names = Depth::LastNames(count);
        let found = mirror.fetch(remote, (&refs, &[&*head]), names, None).await.unwrap();
        let range = Range { repository: &found, other: None };
        let log = history::log(&git, &range, (&head, None), (2, &paths)).await.unwrap();
        assert_eq!(log, there.then(|| expected("--max-count=2 main -- f1")));
    }
    assert!(!kinds(&served.path("mirror/recent.git")).contains("blob"));
    // A history that ends before is whole.
    let all = Depth::Last(99);
    let found = mirror.fetch(remote, (&refs, &[&*head]), all, None).await.unwrap();
    let range = Range { repository: &found, other: None };
    let log = history::log(&git, &range, (&head, None), (99, &[])).await.unwrap();
    assert_eq!(log.unwrap(), expected("main"));
    assert!(!served.path("mirror/commits.git").exists());
}
