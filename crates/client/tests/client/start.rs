//! Starting an engine of one's own. Shell scripts stand in for the program.

use crate::fake::{FakeEngine, surroundings};
use client::{ClientEnvironment, Error, SessionOptions, connect};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;

/// Surroundings whose program is this script; `$4` in it is the state folder.
fn script(dir: &TempDir, text: &str) -> ClientEnvironment {
    let program = dir.path().join("program");
    testkit::write_program(&program, format!("#!/bin/sh\n{text}\n"));
    ClientEnvironment { program, ..surroundings(dir.path()) }
}

fn pipe(path: &Path) {
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, 0o600.into(), 0)
        .unwrap();
}

#[tokio::test]
async fn ten_clients_start_one_engine() {
    let dir = Arc::new(tempfile::tempdir().unwrap());
    for name in ["started", "end"] {
        pipe(&dir.path().join(name));
    }
    // Opening a pipe waits for the other end, so nothing here depends on time.
    let text = "echo \"$@\" >> \"$4/starts\"; echo > \"$4/started\"; read line < \"$4/end\"";
    let environment = script(&dir, text);
    // Left behind by an engine that was killed.
    drop(std::os::unix::net::UnixListener::bind(dir.path().join("engine.sock")).unwrap());
    let clients: Vec<_> = (0..10)
        .map(|_| {
            let environment = environment.clone();
            tokio::spawn(async move { connect(&environment, SessionOptions::default()).await })
        })
        .collect();
    let started = dir.path().join("started");
    tokio::task::spawn_blocking(move || fs::read(started).unwrap()).await.unwrap();
    fs::remove_file(dir.path().join("engine.sock")).unwrap();
    let _engine = FakeEngine::in_state(dir.clone());
    for client in clients {
        client.await.unwrap().unwrap();
    }
    let starts = fs::read_to_string(dir.path().join("starts")).unwrap();
    assert_eq!(starts, format!("engine serve --state-dir {}\n", dir.path().display()));
    let end = dir.path().join("end");
    tokio::task::spawn_blocking(move || fs::write(end, "\n").unwrap()).await.unwrap();
}

#[tokio::test]
async fn settings_and_log_filter_are_passed_on() {
    let dir = tempfile::tempdir().unwrap();
    let mut environment = script(&dir, "echo \"$@\" > \"$4/arguments\"; exit 1");
    fs::create_dir_all(dir.path().join(".config/ci-tool")).unwrap();
    let default = dir.path().join(".config/ci-tool/engine.toml");
    let named = dir.path().join("named.toml");
    let arguments = || fs::read_to_string(dir.path().join("arguments")).unwrap();
    let serve = format!("engine serve --state-dir {}", dir.path().display());

    fs::write(&default, "").unwrap();
    connect(&environment, SessionOptions::default()).await.unwrap_err();
    assert_eq!(arguments(), format!("{serve} --config {}\n", default.display()));

    environment.variables.engine_config = Some(named.clone());
    environment.log = "debug".into();
    connect(&environment, SessionOptions::default()).await.unwrap_err();
    assert_eq!(arguments(), format!("{serve} --config {} --log debug\n", named.display()));
}

#[tokio::test]
async fn an_engine_that_dies_shows_its_last_words() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("engine.log"), "an old line\n").unwrap();
    let text = "i=0; while [ $i -lt 30 ]; do echo \"line $i\" >&2; i=$((i+1)); done; exit 3";
    let error = connect(&script(&dir, text), SessionOptions::default()).await.unwrap_err();
    let Error::Died { status, log, .. } = &error else { panic!("{error}") };
    assert_eq!(status, "exit status: 3");
    assert_eq!((log.len(), log[11].as_str()), (12, "line 29"));
    let error = protocol::Error::from(error);
    assert!(error.message.contains("\n  line 29") && !error.message.contains("old"), "{error}");
    assert!(error.hints[0].contains("engine.log"));
}

#[tokio::test]
async fn an_engine_that_ends_in_order_before_it_answers_is_started_again() {
    let dir = tempfile::tempdir().unwrap();
    let text = "echo start >> \"$4/starts\"; test $(wc -l < \"$4/starts\") -lt 3 || exit 3";
    let error = connect(&script(&dir, text), SessionOptions::default()).await.unwrap_err();
    assert!(matches!(&error, Error::Died { status, .. } if status == "exit status: 3"), "{error}");
    assert_eq!(fs::read_to_string(dir.path().join("starts")).unwrap().lines().count(), 3);
    // Not for ever.
    let error = connect(&script(&dir, "exit 0"), SessionOptions::default()).await.unwrap_err();
    assert!(matches!(&error, Error::Died { status, .. } if status == "exit status: 0"), "{error}");
}

#[tokio::test]
async fn a_program_that_cannot_run_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let error = connect(&surroundings(dir.path()), SessionOptions::default()).await.unwrap_err();
    assert!(error.to_string().contains("`/nonexistent/ci-tool`"), "{error}");
}

#[tokio::test]
async fn a_file_where_a_folder_belongs_is_named_with_a_way_out() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("file"), "").unwrap();
    for path in ["file", "file/state"] {
        let environment = surroundings(&dir.path().join(path));
        let error = connect(&environment, SessionOptions::default()).await.unwrap_err();
        assert!(matches!(&error, Error::State { .. }), "{error}");
        let error = protocol::Error::from(error);
        assert!(error.message.contains(&format!("{path}`")), "{error}");
        assert!(error.hints[0].starts_with("a file is where a folder belongs"), "{error:?}");
    }
}
