//! One's own engine where an engine of another version is in the way.

use crate::fake::surroundings;
use client::{ClientEnvironment, Error, Notices, SessionOptions, connect};
use protocol::VERSION;
use protocol::session::{
    EngineVersion, Greeting, Hello, NEWER_STATE_EXIT, Purpose, Refusal, Welcome,
};
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;

/// What an engine that only greets does when it is asked to end.
#[derive(Clone, Copy)]
enum Asked {
    /// It ends at once.
    Ends,
    /// It has sessions and goes on.
    GoesOn,
}

/// Purposes that an engine saw, in short.
type Seen = Arc<Mutex<Vec<&'static str>>>;

/// Listens in a state folder as an engine of this version. Ends with what is given back.
fn engine(folder: &Path, version: &'static str, asked: Asked) -> (Seen, JoinSet<()>) {
    fs::create_dir_all(folder).unwrap();
    let socket = folder.join("engine.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let (seen, mut serving) = (Seen::default(), JoinSet::new());
    let sees = seen.clone();
    serving.spawn(async move {
        let mut held = vec![];
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let (stream, hello) = greet(stream, version).await;
            let stop = matches!(hello.purpose, Purpose::Stop { when_idle: true, force: false });
            sees.lock().unwrap().push(if stop { "stop" } else { "other" });
            held.push(stream);
            if stop && matches!(asked, Asked::Ends) {
                fs::remove_file(&socket).unwrap();
                return;
            }
        }
    });
    (seen, serving)
}

async fn greet(stream: UnixStream, version: &'static str) -> (BufReader<UnixStream>, Hello) {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.read_line(&mut line).await.unwrap();
    let hello: Hello = serde_json::from_str(&line).unwrap();
    let refused = version != VERSION && !matches!(hello.purpose, Purpose::Stop { .. });
    let greeting = if refused {
        let engine = EngineVersion { version: version.into(), wire: 1, pid: 42 };
        let error = protocol::Error::environment("another version");
        Greeting::Refused(Refusal { error, engine: Some(engine) })
    } else {
        let notices = vec!["words of the engine".into()];
        Greeting::Welcome(Welcome { version: version.into(), session: "s".into(), notices })
    };
    let answer = serde_json::to_string(&greeting).unwrap() + "\n";
    stream.write_all(answer.as_bytes()).await.unwrap();
    (stream, hello)
}

/// A client whose own engines cannot be started unless `script` does it.
fn client(dir: &TempDir, script: &str) -> ClientEnvironment {
    let program = dir.path().join("program");
    testkit::write_program(&program, format!("#!/bin/sh\n{script}\n"));
    ClientEnvironment {
        program,
        give_way_limit: Duration::from_secs(600),
        ..surroundings(&dir.path().join("state"))
    }
}

/// Connects, and gives the version of the engine with what was told meanwhile.
async fn reach(environment: &ClientEnvironment) -> (Result<String, Error>, Vec<String>) {
    let told = Arc::new(Mutex::new(vec![]));
    let listener = told.clone();
    let notices = Notices::to(move |notice| listener.lock().unwrap().push(notice.to_owned()));
    let session = connect(environment, SessionOptions { notices, ..Default::default() }).await;
    let version = session.map(|session| session.engine_version().to_owned());
    let told = told.lock().unwrap().clone();
    (version, told)
}

#[tokio::test]
async fn an_older_engine_that_is_idle_is_succeeded() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    let (seen, _older) = engine(&state, "0.0.1", Asked::Ends);
    let environment = client(&dir, "echo \"$@\" > \"$4/started\"; exit 1");
    let (error, told) = reach(&environment).await;
    // That it was started on the folder itself is all that matters here.
    assert!(matches!(error, Err(Error::Died { .. })), "{error:?}");
    let started = fs::read_to_string(state.join("started")).unwrap();
    assert_eq!(started, format!("engine serve --state-dir {}\n", state.display()));
    assert_eq!(*seen.lock().unwrap(), ["other", "stop"]);
    // How long it takes to end, and so whether somebody is told of a wait, is up to the machine.
    assert!(!told.iter().any(|word| word.contains("busy")), "{told:?}");
}

/// An engine that has the folder: version, what it does, whether it is to be left alone. Then why somebody else
/// runs beside it, and what it saw of that.
type InTheWay = (&'static str, Asked, bool, &'static str, &'static [&'static str]);

#[tokio::test]
async fn who_cannot_have_the_folder_runs_beside_it() {
    let cases: [InTheWay; 4] = [
        ("0.0.1", Asked::GoesOn, false, "the engine of version 0.0.1 is busy", &["other", "stop"]),
        ("0.0.1", Asked::Ends, true, "an engine of version 0.0.1 runs here", &["other"]),
        ("999.0.0", Asked::Ends, false, "an engine of version 999.0.0 runs here", &["other"]),
        ("odd", Asked::Ends, false, "an engine of version odd runs here", &["other"]),
    ];
    for case in cases {
        let mut limit = Duration::from_millis(20);
        // A slow machine takes longer than that to ask.
        while !runs_beside(case, limit).await {
            limit *= 2;
            assert!(limit < Duration::from_secs(60), "it never asks");
        }
    }
}

/// False when the limit was over before the engine in the way had heard all.
async fn runs_beside(
    (version, asked, leave_old_engine, reason, seen_by_other): InTheWay,
    give_way_limit: Duration,
) -> bool {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    let (seen, _other) = engine(&state, version, asked);
    let beside = state.join("beside").join(VERSION);
    let (_, _own) = engine(&beside, VERSION, Asked::GoesOn);
    let environment =
        ClientEnvironment { leave_old_engine, give_way_limit, ..client(&dir, "exit 1") };
    let (reached, mut told) = reach(&environment).await;
    assert_eq!(reached.unwrap(), VERSION);
    let seen = seen.lock().unwrap();
    if seen.len() < seen_by_other.len() {
        return false;
    }
    assert_eq!(*seen, seen_by_other, "{version}");
    told.retain(|word| !word.starts_with("waiting for the older engine"));
    let word = format!(
        "{reason}: this command runs on version {VERSION}, with a cache of its own in `{}`",
        beside.display()
    );
    assert_eq!(told, [word, "words of the engine".into()]);
    true
}

#[tokio::test]
async fn a_folder_of_a_newer_version_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    let (_, _own) = engine(&state.join("beside").join(VERSION), VERSION, Asked::GoesOn);
    let (reached, told) = reach(&client(&dir, &format!("exit {NEWER_STATE_EXIT}"))).await;
    assert_eq!(reached.unwrap(), VERSION);
    assert!(told[0].starts_with("a newer version keeps its cache here: "), "{told:?}");
}

#[tokio::test]
async fn stopping_ends_the_engine_beside_too() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    for folder in [state.clone(), state.join("beside").join(VERSION)] {
        fs::create_dir_all(&folder).unwrap();
        let listener = UnixListener::bind(folder.join("engine.sock")).unwrap();
        tokio::spawn(async move {
            let (mut stream, hello) = greet(listener.accept().await.unwrap().0, VERSION).await;
            assert_eq!(hello.purpose, Purpose::Stop { force: true, when_idle: false });
            stream.shutdown().await.unwrap();
            let _ = stream.read(&mut [0]).await;
        });
    }
    let environment = client(&dir, "exit 1");
    assert!(client::stop(&environment, true).await.unwrap());
    assert!(!client::stop(&environment, true).await.unwrap(), "both have ended");
}
