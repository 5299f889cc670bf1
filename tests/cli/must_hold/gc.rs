//! Collecting all the time beside everything else: no wrong result, no missing file, limits held.

use serde_json::Value;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use testkit::{Random, Session, State, rounds};

/// Queries in all at 20 rounds.
const QUERIES_A_ROUND: u32 = 25;
/// Who asks at the same time.
const CLIENTS: u32 = 4;
const USED: &str = "{ engine { localCache { entrySet { diskSpaceBytes } } } }";
const LIMIT: u64 = 60_000_000;

#[test]
fn collecting_beside_mixed_queries_loses_nothing_that_is_in_use() {
    let state = State::with_config(&format!(
        "max-used-space = \"{LIMIT}B\"\nreserved-space = \"1B\"\nkeep-duration = \"0s\""
    ));
    let seed = Random::new("gc").next_number();
    let stop = AtomicBool::new(false);
    let pruned = AtomicU32::new(0);
    std::thread::scope(|scope| {
        let collector = scope.spawn(|| {
            let session = Session::start(&state);
            let mut random = Random::from_seed(seed);
            while !stop.load(Ordering::Relaxed) {
                let limits = ["", "(maxUsedSpace: \"20MB\")", "(useDefaultPolicy: true)"];
                let limits = random.pick(&limits);
                session.query(&format!("{{ engine {{ localCache {{ prune{limits} }} }} }}"));
                pruned.fetch_add(1, Ordering::Relaxed);
                let used = session.leaf(USED);
                assert!(used.as_u64().unwrap() <= LIMIT, "{used} of {LIMIT}");
            }
        });
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let state = &state;
                scope.spawn(move || {
                    let mut random = Random::from_seed(seed ^ u64::from(client + 1) << 32);
                    let mut session = Session::start(state);
                    for _ in 0..QUERIES_A_ROUND * rounds() / CLIENTS {
                        if random.below(10) == 0 {
                            session = Session::start(state);
                        }
                        ask(&session, &mut random);
                    }
                })
            })
            .collect();
        let failed = clients.into_iter().filter_map(|client| client.join().err()).next();
        stop.store(true, Ordering::Relaxed);
        let collected = collector.join();
        if let Some(panic) = failed {
            std::panic::resume_unwind(panic);
        }
        collected.unwrap();
    });
    assert!(pruned.load(Ordering::Relaxed) > 5, "{pruned:?} collections");
}

/// One query out of a small set, so that many hit what others made; its answer is known.
fn ask(session: &Session, random: &mut Random) {
    let (number, other) = (random.below(12), random.below(12));
    match random.below(5) {
        0 => {
            // A chain: each step needs the layers of those before.
            let steps = 1 + random.below(6);
            let chain: String = (0..steps)
                .map(|step| {
                    format!(r#"withExec(args: ["sh", "-c", "echo {number}.{step} >> /log"]) {{"#)
                })
                .collect();
            let close = " }".repeat(steps as usize);
            let document = format!(r#"{chain} file(path: "/log") {{ contents }}{close}"#);
            let expected: String = (0..steps).map(|step| format!("{number}.{step}\n")).collect();
            assert_eq!(session.container(&document), expected);
        }
        1 => {
            let script = format!("head -c 1500000 /dev/zero | tr '\\0' {} > /f", other % 10);
            let document = format!(
                r#"withExec(args: ["sh", "-c", {}]) {{ withExec(args: ["sh", "-c", "tr -d {} < /f | wc -c; wc -c < /f"]) {{ stdout }} }}"#,
                Value::from(script),
                other % 10
            );
            assert_eq!(session.container(&document), "0\n1500000\n");
        }
        2 => {
            let text = format!("text {number}").repeat(200);
            let document = format!(
                r#"{{ directory {{ withNewFile(path: "a/{number}", contents: "{text}") {{ withNewFile(path: "b", contents: "{other}") {{ file(path: "a/{number}") {{ contents }} }} }} }} }}"#
            );
            assert_eq!(session.leaf(&document), text);
        }
        3 => {
            // A stream that is long enough to be a blob.
            let script = format!("yes {number} | head -n 20000");
            assert_eq!(session.shell(&script), format!("{number}\n").repeat(20000));
        }
        _ => {
            let directory = session
                .leaf(&format!(
                    r#"{{ directory {{ withNewFile(path: "f", contents: "{number}") {{ id }} }} }}"#
                ))
                .to_string();
            let document = format!(
                r#"withMountedDirectory(path: "/m", source: {directory}, readOnly: true) {{
                    withDirectory(path: "/copy", source: {directory}) {{
                        withExec(args: ["sh", "-c", "cat /m/f /copy/f"]) {{ stdout }} }} }}"#
            );
            assert_eq!(session.container(&document), format!("{number}{number}"));
        }
    }
}
