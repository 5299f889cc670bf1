//! `ci-tool core engine`: what the engine keeps, and getting rid of it.

use serde_json::Value;
use testkit::{Session, State};

const ENTRIES: &str = "{ engine { localCache { entrySet { entryCount diskSpaceBytes entries {
    description diskSpaceBytes createdTimeUnixNano mostRecentUseTimeUnixNano activelyUsed committed
    recordType recordTypes dagqlCall } } } } }";
const PRUNE: &str = "{ engine { localCache { prune } } }";

fn entry_set(session: &Session) -> Value {
    session.query(ENTRIES)["engine"]["localCache"]["entrySet"].clone()
}

fn entries(session: &Session) -> Vec<Value> {
    entry_set(session)["entries"].as_array().unwrap().clone()
}

fn execs(session: &Session) -> Vec<Value> {
    entries(session).into_iter().filter(|entry| entry["recordType"] == "exec").collect()
}

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or_else(|| panic!("{value} is a number"))
}

#[test]
fn results_are_listed_with_what_they_take() {
    let state = State::new();
    let session = Session::start(&state);
    session.shell("head -c 1000000 /dev/urandom > /large");
    session.shell("echo small > /small");
    session.end();
    let session = Session::start(&state);
    let set = entry_set(&session);
    let listed = set["entries"].as_array().unwrap();
    assert_eq!(number(&set["entryCount"]), listed.len() as i64);
    let sum: i64 = listed.iter().map(|entry| number(&entry["diskSpaceBytes"])).sum();
    assert_eq!(number(&set["diskSpaceBytes"]), sum);
    let large = listed.iter().find(|e| e["description"].as_str().unwrap().contains("/large"));
    let large = large.unwrap_or_else(|| panic!("{set:#}"));
    assert!(number(&large["diskSpaceBytes"]) >= 1_000_000, "{large}");
    assert_eq!((&large["committed"], &large["activelyUsed"]), (&true.into(), &false.into()));
    assert_eq!(large["recordTypes"], serde_json::json!(["exec"]));
    assert_eq!(large["dagqlCall"], "Container.withExec");
    let used = number(&large["mostRecentUseTimeUnixNano"]);
    assert!(used >= number(&large["createdTimeUnixNano"]) && used > 1_600_000_000_000_000_000);
    let small = execs(&session).into_iter().find(|e| e["description"] != large["description"]);
    assert!(number(&small.unwrap()["diskSpaceBytes"]) < 100_000);
}

#[test]
fn limits_name_and_clients_are_told() {
    let state = State::with_config("max-used-space = \"5GB\"\nreserved-space = \"1GB\"");
    let (one, _two) = (Session::start(&state), Session::start(&state));
    let engine = one.query(
        "{ engine { name clients localCache {
            keepBytes maxUsedSpace reservedSpace minFreeSpace targetSpace } } }",
    )["engine"]
        .clone();
    let cache = &engine["localCache"];
    assert_eq!(cache["maxUsedSpace"], 5_000_000_000_i64);
    assert_eq!(cache["keepBytes"], 5_000_000_000_i64);
    assert_eq!(cache["reservedSpace"], 1_000_000_000_i64);
    assert!(number(&cache["minFreeSpace"]) > 0 && number(&cache["targetSpace"]) > 0, "{cache}");
    assert!(engine["name"].as_str().unwrap().starts_with("ci-tool-"), "{engine}");
    assert_eq!(engine["clients"].as_array().unwrap().len(), 2, "{engine}");
}

#[test]
fn pruning_removes_what_no_session_uses_and_nothing_else() {
    let state = State::new();
    let session = Session::start(&state);
    let once = |session: &Session| session.shell("cat /proc/sys/kernel/random/uuid");
    let before = once(&session);
    session.query(PRUNE);
    assert_eq!(once(&session), before, "a live session keeps what it has");
    assert_eq!(execs(&session).len(), 1);
    session.end();
    let session = Session::start(&state);
    assert_eq!(once(&session), before, "and so does the next one");
    session.end();
    let session = Session::start(&state);
    session.query(PRUNE);
    let trash = std::fs::read_dir(state.store().join("trash")).unwrap().count();
    assert_eq!(trash, 0, "what was pruned is gone when the answer comes");
    assert!(execs(&session).is_empty(), "{:?}", entries(&session));
    assert_ne!(once(&session), before, "it has run again");
}

#[test]
fn pruning_takes_limits_with_units_and_shares() {
    let state = State::new();
    let session = Session::start(&state);
    for number in 0..4 {
        session.shell(&format!("head -c 1000000 /dev/zero | tr '\\0' {number} > /f"));
    }
    session.end();
    let session = Session::start(&state);
    let prune = |args: &str| format!("{{ engine {{ localCache {{ prune({args}) }} }} }}");
    session.query(&prune("useDefaultPolicy: true"));
    session.query(&prune(r#"maxUsedSpace: "100%""#));
    session.query(&prune(r#"maxUsedSpace: "0", reservedSpace: "1TB""#));
    assert_eq!(execs(&session).len(), 4, "no limit is reached");
    let all = number(&entry_set(&session)["diskSpaceBytes"]);
    session.query(&prune(&format!(r#"maxUsedSpace: "{}""#, all - 500_000)));
    let left = execs(&session);
    assert!(!left.is_empty() && left.len() < 4, "{:#?}", entries(&session));
    let newest = left.iter().any(|e| e["description"].as_str().unwrap().contains("tr '\\0' 3"));
    assert!(newest, "the oldest went first: {left:?}");
    for (name, bad) in [
        ("maxUsedSpace", "many"),
        ("reservedSpace", "-1"),
        ("minFreeSpace", "101%"),
        ("targetSpace", "1XB"),
    ] {
        let error = session.error(&prune(&format!(r#"{name}: "{bad}""#)));
        assert!(error.contains(&format!("invalid {name} value")), "{error}");
    }
}

#[test]
fn the_command_line_lists_and_prunes() {
    let state = State::new();
    let session = Session::start(&state);
    session.shell("echo listed > /f");
    session.end();
    let words = ["core", "engine", "local-cache", "entry-set", "entries", "description"];
    let listed = state.cli(words).run();
    assert!(listed.status.success(), "{listed:?}");
    assert!(listed.stdout.contains("echo listed"), "{listed:?}");
    let pruned = state.cli(["core", "engine", "local-cache", "prune"]).run();
    assert!(pruned.status.success(), "{pruned:?}");
    let listed = state.cli(words).run();
    assert!(!listed.stdout.contains("echo listed"), "{listed:?}");
}

#[test]
fn a_directory_that_was_copied_is_not_copied_again_by_the_next_session() {
    let state = State::new();
    let file = state.file("project/src/main.c", "one");
    let read = |session: &Session| {
        let source = session.host_directory(&state.workdir().join("project"));
        let copy = format!(
            r#"{{ directory {{ withDirectory(path: "copy", source: "{source}") {{
                file(path: "copy/src/main.c") {{ contents }} }} }} }}"#
        );
        let contents = session.leaf(&copy);
        let copies = entries(session).into_iter().filter(|entry| entry["recordType"] == "copy");
        let created = copies.map(|entry| number(&entry["createdTimeUnixNano"]));
        (contents, created.collect::<Vec<_>>())
    };
    let session = Session::start(&state);
    let first = read(&session);
    assert_eq!((&first.0, first.1.len()), (&"one".into(), 1));
    session.end();
    let session = Session::start(&state);
    assert_eq!(read(&session), first, "it was not written a second time");
    session.end();
    std::fs::write(file, "two!").unwrap();
    let session = Session::start(&state);
    assert_eq!(read(&session).0, "two!");
}
