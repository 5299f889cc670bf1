//! Two versions of the program on one state folder: who takes over, who runs beside whom.
//!
//! The other version is a copy of the program in which the bytes of the version number are others.

use std::path::{Path, PathBuf};
use testkit::leftovers::engines;
use testkit::{Random, Running, State, busybox, rounds};

const OLDER: &str = "0.0.9";
const NEWER: &str = "0.9.0";

/// The program under test as another version of itself.
fn as_version(state: &State, version: &str) -> PathBuf {
    assert_eq!(version.len(), protocol::VERSION.len(), "only the bytes may differ");
    let mut program = std::fs::read(testkit::binary()).unwrap();
    let (from, to) = (protocol::VERSION.as_bytes(), version.as_bytes());
    let mut at = 0;
    while let Some(found) = program[at..].windows(from.len()).position(|bytes| bytes == from) {
        at += found;
        program[at..at + to.len()].copy_from_slice(to);
    }
    let path = state.workdir().join(format!("ci-tool-{version}"));
    testkit::write_program(&path, program);
    let said = state.program(&path).args(["version"]).run();
    assert!(said.ok().contains(version), "{said:#?}");
    path
}

/// Which version's engine runs on the state folder itself.
fn version_on_folder(state: &State, program: &Path) -> Option<String> {
    let status = state.program(program).args(["engine", "status"]).run();
    let text = format!("{}{}", status.stdout, status.stderr);
    [OLDER, protocol::VERSION, NEWER]
        .into_iter()
        .find(|version| {
            text.contains(&format!("version:  v{version}"))
                || text.contains(&format!("engine is version {version}"))
        })
        .map(str::to_owned)
}

fn beside(state: &State, version: &str) -> PathBuf {
    state.dir().join("beside").join(version)
}

/// A session of this program that stays open.
fn session(state: &State, program: &Path) -> Running {
    let mut running = state.program(program).args(["session"]).stdin_open().spawn();
    running.wait_for("session_token");
    running
}

fn end(mut session: Running) {
    session.close_stdin();
    session.wait().ok();
}

#[test]
fn a_newer_program_takes_over_from_an_idle_engine_and_keeps_its_cache() {
    let state = State::new();
    let older = as_version(&state, OLDER);
    let rootfs = format!("--directory={}", busybox().display());
    let chain =
        ["core", "container", "with-rootfs", &rootfs, "with-exec", "--args=echo,kept", "stdout"];
    state.program(&older).args(chain).run().ok();
    let engine = state.engine();
    let output = state.cli(["--progress=plain"]).args(chain).run();
    assert_eq!(output.ok(), "kept\n");
    assert!(output.stderr.contains("CACHED"), "{}", output.stderr);
    assert!(!output.stderr.contains("is busy"), "{}", output.stderr);
    assert!(!engine.is_alive());
    assert_ne!(state.engine(), engine);
    assert!(!beside(&state, protocol::VERSION).exists());
}

#[test]
fn a_newer_program_runs_beside_a_busy_engine_and_takes_over_later() {
    let state = State::new();
    let older = as_version(&state, OLDER);
    let busy = session(&state, &older);
    let engine = state.engine();
    let output = state.cli(["core", "version"]).run();
    output.ok();
    assert!(output.stderr.contains("waiting for the older engine"), "{}", output.stderr);
    assert!(output.stderr.contains("the engine of version 0.0.9 is busy"), "{}", output.stderr);
    let own = beside(&state, protocol::VERSION);
    assert!(output.stderr.contains(&own.display().to_string()), "{}", output.stderr);
    assert!(engine.is_alive() && own.join("engine.sock").exists());
    assert_eq!(engines(&state.dir()).len(), 2);
    end(busy);
    let output = state.cli(["core", "version"]).run();
    output.ok();
    // How long it takes to end, and so whether somebody is told of a wait, is up to the machine.
    assert!(!output.stderr.contains("is busy"), "{}", output.stderr);
    assert!(!engine.is_alive(), "it was idle");
    // The one beside ends with the one on the folder, and what it kept goes with the next start.
    state.stop();
    state.cli(["core", "version"]).run().ok();
    assert!(!own.exists(), "{}", state.log());
}

#[test]
fn an_older_program_leaves_a_newer_engine_alone() {
    let state = State::new();
    let newer = as_version(&state, NEWER);
    state.program(&newer).args(["core", "version"]).run().ok();
    let engine = state.engine();
    let output = state.cli(["core", "version"]).run();
    output.ok();
    assert!(output.stderr.contains("an engine of version 0.9.0 runs here"), "{}", output.stderr);
    assert!(engine.is_alive());
    let quiet = state.cli(["-s", "core", "version"]).run();
    assert_eq!((quiet.status.success(), quiet.stderr.as_str()), (true, ""));
    assert_eq!(engines(&state.dir()).len(), 2);
    // It is reached by name with an error that tells the way out.
    let address = format!("unix://{}/engine.sock", state.dir().display());
    let output = state.cli(["core", "version"]).env("CITOOL_ENGINE", address).run();
    assert!(output.fails(1).contains("hint: "), "{output:#?}");
    state.program(&newer).args(["core", "version"]).run().ok();
    assert!(engine.is_alive(), "nobody ended it");
}

#[test]
fn an_older_engine_is_left_alone_when_asked() {
    let state = State::new();
    let older = as_version(&state, OLDER);
    state.program(&older).args(["core", "version"]).run().ok();
    let engine = state.engine();
    let output = state.cli(["core", "version"]).env("CITOOL_LEAVE_OLD_ENGINE", "true").run();
    output.ok();
    assert!(output.stderr.contains("an engine of version 0.0.9 runs here"), "{}", output.stderr);
    assert!(engine.is_alive() && beside(&state, protocol::VERSION).exists());
    state.cli(["core", "version"]).run().ok();
    assert!(!engine.is_alive());
}

#[test]
fn two_versions_at_once_do_not_get_in_each_others_way() {
    let mut random = Random::new("versions");
    let state = State::new();
    let older = as_version(&state, OLDER);
    let programs = [testkit::binary(), older.clone()];
    for round in 0..rounds() {
        let running: Vec<_> = (0..4)
            .map(|_| random.pick::<PathBuf>(&programs))
            .map(|program| state.program(program).args(["core", "version"]).spawn())
            .collect();
        for command in running {
            let output = command.wait();
            assert!(output.status.success(), "round {round}: {output:#?}\n{}", state.log());
        }
    }
    state.cli(["core", "version"]).run().ok();
    let on_folder = version_on_folder(&state, &testkit::binary());
    assert_eq!(on_folder.as_deref(), Some(protocol::VERSION));
    state.program(&older).args(["engine", "stop", "--force"]).run().ok();
}

#[test]
fn a_folder_of_a_newer_format_is_left_alone() {
    let state = State::new();
    state.cli(["core", "version"]).run().ok();
    state.stop();
    let format = state.store().join("FORMAT");
    std::fs::write(&format, "999999\n").unwrap();
    for _ in 0..2 {
        let output = state.cli(["core", "version"]).run();
        output.ok();
        let word = "note: a newer version keeps its cache here";
        assert!(output.stderr.contains(word), "{}", output.stderr);
    }
    assert!(beside(&state, protocol::VERSION).join("store/FORMAT").exists());
    assert_eq!(std::fs::read_to_string(&format).unwrap(), "999999\n");
    assert_eq!(engines(&state.dir()).len(), 1, "the one beside serves both");
}

#[test]
fn a_folder_of_a_forgotten_format_is_begun_anew_with_a_word() {
    let state = State::new();
    state.cli(["core", "version"]).run().ok();
    state.stop();
    std::fs::write(state.store().join("FORMAT"), "0\n").unwrap();
    let output = state.cli(["core", "version"]).run();
    output.ok();
    let word = "note: the cache has an old format (0) and is begun anew";
    assert!(output.stderr.contains(word), "{}", output.stderr);
    let output = state.cli(["core", "version"]).run();
    assert!(output.stderr.is_empty() || !output.stderr.contains("begun anew"), "{output:#?}");
}

#[test]
fn a_damaged_database_is_begun_anew_with_a_word() {
    let state = State::new();
    state.cli(["core", "version"]).run().ok();
    state.stop();
    std::fs::write(state.store().join("db.sqlite"), "no database at all").unwrap();
    let output = state.cli(["core", "version"]).run();
    output.ok();
    let word = "note: the database of the cache cannot be used";
    assert!(output.stderr.contains(word), "{}", output.stderr);
    let output = state.cli(["core", "version"]).run();
    assert!(!output.stderr.contains("note:"), "{output:#?}");
}
