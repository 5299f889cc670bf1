//! How work with git ends: cancelled, killed, and without root.

use super::git::Remote;
use std::io::Write as _;
use std::net::TcpListener;
use std::time::Duration;
use testkit::git::{Guard, HttpServer, work};
use testkit::process::wait_until;
use testkit::{Session, State, User};

/// A server that takes connections and says nothing.
fn silent() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/r", listener.local_addr().unwrap());
    (listener, url)
}

#[test]
fn what_waits_for_a_silent_server_ends_with_its_caller_and_with_the_engine() {
    let state = State::new();
    let (listener, url) = silent();
    let pause = Duration::from_secs(60);
    let asking = || !testkit::process::with_argument(&url).is_empty();
    let mut caller = state.cli(["core", "git", "--url", &url, "head", "commit"]).spawn();
    let connected = listener.accept().unwrap();
    assert!(wait_until(pause, asking), "git asks the server");
    caller.signal(rustix::process::Signal::INT);
    caller.close_stdin();
    assert_ne!(caller.wait().code(), 0);
    let gone = || {
        let programs = testkit::process::with_argument(&url);
        programs.iter().all(|process| !process.arguments().starts_with("git"))
    };
    assert!(wait_until(pause, gone), "nothing asks any more");
    drop(connected);
    let again = state.cli(["core", "git", "--url", &url, "head", "commit"]).spawn();
    let _connected = listener.accept().unwrap();
    assert!(wait_until(pause, asking), "git asks the server");
    state.kill_engine();
    assert!(wait_until(pause, gone), "nothing outlives the engine");
    assert_ne!(again.wait().code(), 0);
}

#[test]
fn a_fetch_that_was_killed_leaves_a_mirror_that_works() {
    let remote = Remote::new(Guard::Nobody);
    let tree = remote.on("head { tree(discardGitDir: true) { entries } }");
    Session::start(&remote.state).leaf(&tree);
    remote.state.kill_engine();
    // What a killed git leaves in the mirror.
    let mirrors = work(&remote.state.store(), "find volumes -name shallow.git");
    assert_eq!(mirrors.lines().count(), 1, "{mirrors}");
    let mirror = remote.state.store().join(&mirrors);
    for left in ["shallow.lock", "packed-refs.lock", "objects/pack/tmp_pack_x"] {
        std::fs::File::create(mirror.join(left)).unwrap().write_all(b"x").unwrap();
    }
    remote.work("echo four > h; git add h; git commit -qm four");
    let entries = Session::start(&remote.state).leaf(&tree);
    assert!(entries.to_string().contains("\"h\""), "{entries}");
    assert!(!mirror.join("objects/pack/tmp_pack_x").exists());
}

#[test]
fn an_engine_without_root_has_git_too() {
    let state = State::of_user(User::with_ids(), "network = \"none\"");
    let folder = state.another();
    let folder = folder.workdir();
    work(&folder, "git init -q r; cd r; echo one > f; git add f; git commit -qm one");
    let server = HttpServer::smart(&folder, Guard::Nobody);
    let session = Session::start(&state);
    let url = server.url("r/.git");
    let found =
        session.leaf(&format!("{{ git(url: \"{url}\") {{ head {{ tree {{ entries }} }} }} }}"));
    assert_eq!(found, serde_json::json!([".git/", "f"]));
}
