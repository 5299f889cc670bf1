//! A full disk: a clear error, an engine that answers, a prune that works, and then all is well.

use serde_json::Value;
use std::io::Write as _;
use testkit::process::wait_until;
use testkit::registry::Registry;
use testkit::{Random, Session, State, rounds};

/// Size of the disk in MiB; what each test writes is more than half of it.
const DISK: u64 = 96;
const MIB: u64 = 1 << 20;
/// No limit but the disk.
const WHOLE_DISK: &str = "max-used-space = \"100%\"";

/// Fills the disk from outside until so many bytes are free.
fn fill(state: &State, leave: u64) -> std::path::PathBuf {
    let path = state.dir().join("filler");
    let mut file = std::fs::File::create(&path).unwrap();
    let piece = vec![0x5a; 256 << 10];
    while state.disk().free() > leave + (piece.len() as u64) {
        if file.write_all(&piece).is_err() {
            break;
        }
    }
    let _ = file.sync_all();
    path
}

/// What the error must say, and what must work after it.
#[track_caller]
fn recovers(state: &State, session: &Session, error: &str, again: &str) {
    let clear = error.contains("is full") || error.contains("No space left");
    assert!(clear, "{error}");
    assert_eq!(session.leaf("{ version }"), session.leaf("{ version }"), "the engine answers");
    session.query("{ engine { localCache { prune } } }");
    let answer = session.send(again).json();
    assert!(answer.get("errors").is_none(), "{answer:#}\n{}", state.log());
}

fn error_of(session: &Session, document: &str) -> String {
    let json = session.send(document).json();
    assert!(json.get("errors").is_some(), "it must not succeed: {json:#}");
    json["errors"].to_string()
}

#[test]
fn in_the_middle_of_an_exec() {
    let state = State::on_disk(DISK, WHOLE_DISK);
    let session = Session::start(&state);
    let writes = |mebibytes: u64| {
        let script = format!("head -c {} /dev/zero > /big && echo done", mebibytes * MIB);
        session.on_container(&format!(
            r#"withExec(args: ["sh", "-c", {}]) {{ stdout }}"#,
            Value::from(script)
        ))
    };
    let error = error_of(&session, &writes(2 * DISK));
    recovers(&state, &session, &error, &writes(DISK / 4));
    // The command line also says the way out.
    let root = testkit::busybox();
    let told = state
        .cli(["core", "container", "with-rootfs", "--directory", root.to_str().unwrap()])
        .args(["with-exec", "--args=sh,-c,cat /dev/zero > /f", "stdout"])
        .run();
    assert!(!told.status.success() && told.stderr.contains("is full"), "{}", told.stderr);
    assert!(told.stderr.contains("local-cache prune"), "{}", told.stderr);
}

#[test]
fn in_the_middle_of_an_exec_that_writes_to_a_cache_volume() {
    let state = State::on_disk(DISK, WHOLE_DISK);
    let session = Session::start(&state);
    let writes = |mebibytes: u64| {
        let script = format!("head -c {} /dev/zero > /cache/big && echo done", mebibytes * MIB);
        let volume = session.leaf(r#"{ cacheVolume(key: "k") { id } }"#);
        session.on_container(&format!(
            r#"withMountedCache(path: "/cache", cache: {volume}) {{ withExec(args: ["sh", "-c", {}]) {{ stdout }} }}"#,
            Value::from(script)
        ))
    };
    let error = error_of(&session, &writes(2 * DISK));
    recovers(&state, &session, &error, &writes(DISK / 4));
}

#[test]
fn in_the_middle_of_an_import() {
    let state = State::on_disk(DISK, WHOLE_DISK);
    let session = Session::start(&state);
    let folder = state.workdir().join("tree");
    std::fs::create_dir_all(&folder).unwrap();
    for number in 0..2 * DISK {
        std::fs::write(folder.join(number.to_string()), vec![number as u8; MIB as usize]).unwrap();
    }
    let import = |filter: &str| {
        let path = Value::from(folder.to_str().unwrap());
        format!("{{ host {{ directory(path: {path}{filter}) {{ entries }} }} }}")
    };
    let error = error_of(&session, &import(""));
    recovers(&state, &session, &error, &import(r#", include: ["1*"], exclude: ["1?", "1??"]"#));
}

#[test]
fn in_the_middle_of_a_pull() {
    let state = State::on_disk(DISK, WHOLE_DISK);
    let registry = Registry::start();
    let publisher = state.another();
    let session = Session::start(&publisher);
    for (name, mebibytes) in [("large", 2 * DISK), ("small", DISK / 4)] {
        let script = format!("head -c {} /dev/urandom > /big", mebibytes * MIB);
        let address = format!("{}/{name}:1", registry.address());
        session.container(&format!(
            r#"withExec(args: ["sh", "-c", {}]) {{ publish(address: {}) }}"#,
            Value::from(script),
            Value::from(address)
        ));
    }
    session.end();
    let pull = |name: &str| {
        let address = Value::from(format!("{}/{name}:1", registry.address()));
        format!("{{ container {{ from(address: {address}) {{ rootfs {{ entries }} }} }} }}")
    };
    let session = Session::start(&state);
    let error = error_of(&session, &pull("large"));
    recovers(&state, &session, &error, &pull("small"));
}

#[test]
fn at_a_commit_and_at_the_end_of_a_session() {
    let state = State::on_disk(DISK, WHOLE_DISK);
    let session = Session::start(&state);
    let kept = session.shell("cat /proc/sys/kernel/random/uuid");
    session.end();
    let session = Session::start(&state);
    let filler = fill(&state, 0);
    let writes = |session: &Session| {
        let script = r#"["sh", "-c", "head -c 3000000 /dev/zero > /f"]"#;
        session.on_container(&format!("withExec(args: {script}) {{ stdout }}"))
    };
    let error = error_of(&session, &writes(&session));
    session.end();
    let session = Session::start(&state);
    assert_eq!(session.leaf("{ version }").as_str().map(str::is_empty), Some(false));
    std::fs::remove_file(filler).unwrap();
    recovers(&state, &session, &error, &writes(&session));
    session.end();
    let next = Session::start(&state);
    assert_ne!(next.shell("cat /proc/sys/kernel/random/uuid"), kept, "it was pruned");
}

#[test]
fn an_engine_starts_on_a_full_disk_and_prunes_it() {
    let state = State::on_disk(DISK, "");
    let session = Session::start(&state);
    session.shell("head -c 20000000 /dev/zero > /f");
    session.end();
    state.stop();
    let filler = fill(&state, 0);
    let before = state.disk().free();
    let session = Session::start(&state);
    session.query("{ engine { localCache { prune } } }");
    // Somebody may still be reading what was pruned.
    let freed = || state.disk().free() > before + 19_000_000;
    assert!(wait_until(state.remaining(), freed), "{} of {before}", state.disk().free());
    session.shell("echo more > /g");
    std::fs::remove_file(filler).unwrap();
}

#[test]
fn the_quota_stops_a_command_before_the_disk_is_full() {
    let state = State::on_disk(2 * DISK, "max-used-space = \"40MiB\"");
    let session = Session::start(&state);
    let script = r#"withExec(args: ["sh", "-c", "while :; do head -c 1000000 /dev/zero >> /big; sleep 0.02; done"]) { stdout }"#;
    let error = error_of(&session, &session.on_container(script));
    assert!(error.contains("was stopped") && error.contains("is full"), "{error}");
    assert!(state.disk().free() > DISK * MIB, "{}", state.disk().free());
    recovers(
        &state,
        &session,
        &error,
        &session.on_container(r#"withExec(args: ["true"]) { stdout }"#),
    );
}

#[test]
fn what_is_to_stay_free_stops_a_command_and_an_import() {
    let config = "max-used-space = \"100%\"\nmin-free-space = \"96MiB\"\nreserved-space = \"1MiB\"";
    let state = State::on_disk(2 * DISK, config);
    let session = Session::start(&state);
    let script = r#"withExec(args: ["sh", "-c", "while :; do head -c 1000000 /dev/zero >> /big; sleep 0.02; done"]) { stdout }"#;
    let error = error_of(&session, &session.on_container(script));
    assert!(error.contains("was stopped") && error.contains("`min-free-space` is"), "{error}");
    let own_reserve = 8 * MIB;
    assert!(state.disk().free() > DISK * MIB - own_reserve, "{}", state.disk().free());
    let folder = state.workdir().join("tree");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("large"), vec![7; (3 * DISK / 2 * MIB) as usize]).unwrap();
    let import = format!(
        "{{ host {{ directory(path: {}) {{ sync }} }} }}",
        Value::from(folder.to_str().unwrap())
    );
    let refused = error_of(&session, &import);
    assert!(refused.contains("`min-free-space` is"), "{refused}");
    let small = session.on_container(r#"withExec(args: ["true"]) { stdout }"#);
    recovers(&state, &session, &error, &small);
}

#[test]
fn again_and_again_whatever_fills_it() {
    let mut random = Random::new("disk full");
    let state = State::on_disk(DISK, WHOLE_DISK);
    let folder = state.workdir().join("tree");
    std::fs::create_dir_all(&folder).unwrap();
    for number in 0..DISK {
        std::fs::write(folder.join(number.to_string()), vec![number as u8; MIB as usize]).unwrap();
    }
    let path = Value::from(folder.to_str().unwrap());
    for round in 0..rounds() {
        let session = Session::start(&state);
        let volume = session.leaf(r#"{ cacheVolume(key: "k") { id } }"#);
        let exec = |file: &str, bytes: u64| {
            let script = Value::from(format!("head -c {bytes} /dev/zero > {file} # {round}"));
            session.on_container(&format!(
                r#"withMountedCache(path: "/cache", cache: {volume}) {{ withExec(args: ["sh", "-c", {script}]) {{ stdout }} }}"#
            ))
        };
        let small = exec("/small", 1000);
        let filler = fill(&state, random.below(30 * MIB));
        let document = match random.below(3) {
            0 => exec("/big", DISK * MIB),
            1 => exec("/cache/big", DISK * MIB),
            _ => format!("{{ host {{ directory(path: {path}) {{ entries }} }} }}"),
        };
        let error = error_of(&session, &document);
        // Without a filler that is not ours to prune there is room for the next run.
        std::fs::remove_file(filler).unwrap();
        recovers(&state, &session, &error, &small);
        assert_eq!(session.end(), 0, "round {round}\n{}", state.log());
    }
}
