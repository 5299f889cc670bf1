//! Actions: work that outlives a session and is shared between sessions.

use crate::fixture::ops::Probe;
use crate::fixture::{Client, World};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::Ordering;

const QUERY: &str = "{ container { action(key: \"k\") } }";

/// Lets the work of an action end once it began.
async fn release(probe: &Probe) {
    probe.started.notified().await;
    probe.gate.notify_one();
}

async fn run(client: &Client, query: &str) -> serde_json::Value {
    client.data(query).await["container"]["action"].clone()
}

#[tokio::test]
async fn a_result_outlives_its_session_and_the_graph() {
    let world = World::new();
    let one = world.client("one");
    let (made, ()) = futures::join!(run(&one, QUERY), release(&one.probe));
    assert_eq!(made, json!("k"));
    let restarted = World::over(world.memo.clone());
    for client in [world.client("two"), restarted.client("three")] {
        assert_eq!(run(&client, QUERY).await, json!("k"));
        assert_eq!(client.probe.counted("work"), 0);
        let spans = client.events.spans();
        let span = spans.iter().find(|(name, _)| name.starts_with("container.action")).unwrap();
        assert_eq!(span.1, "Cached");
    }
}

#[tokio::test]
async fn two_sessions_share_one_flight() {
    let world = World::new();
    let probe = Arc::new(Probe::default());
    let one = world.client_with("one", probe.clone());
    let two = world.client_with("two", probe.clone());
    let both = async { futures::join!(run(&one, QUERY), run(&two, QUERY)) };
    let ready = async {
        probe.started.notified().await;
        while probe.counted("action") < 2 {
            tokio::task::yield_now().await;
        }
        probe.gate.notify_one();
    };
    let (made, ()) = futures::join!(both, ready);
    assert_eq!(made, (json!("k"), json!("k")));
    assert_eq!(probe.counted("work"), 1);
}

#[tokio::test]
async fn an_unusable_result_is_forgotten_and_made_again() {
    let world = World::new();
    let one = world.client("one");
    futures::join!(run(&one, QUERY), release(&one.probe));
    let two = world.client("two");
    let unusable = "{ container { action(key: \"k\", usable: false) } }";
    let (made, ()) = futures::join!(run(&two, unusable), release(&two.probe));
    assert_eq!(made, json!("k"));
    assert_eq!(two.probe.counted("work"), 1);
}

#[tokio::test]
async fn a_failure_is_not_stored() {
    let world = World::new();
    let client = world.client("one");
    let failing = "{ container { action(key: \"k\", fail: true) } }";
    let (error, ()) = futures::join!(client.error(failing), release(&client.probe));
    assert_eq!(error, "the work failed");
    assert!(world.memo.actions.lock().unwrap().is_empty());
    let (made, ()) = futures::join!(run(&client, QUERY), release(&client.probe));
    assert_eq!(made, json!("k"));
}

#[tokio::test]
async fn the_last_waiter_takes_the_work_with_it() {
    let world = World::new();
    let probe = Arc::new(Probe::default());
    let spawn = |id: &str| {
        let client = world.client_with(id, probe.clone());
        tokio::spawn(async move { run(&client, QUERY).await })
    };
    let (one, two) = (spawn("one"), spawn("two"));
    probe.started.notified().await;
    while probe.counted("action") < 2 {
        tokio::task::yield_now().await;
    }
    one.abort();
    assert!(one.await.unwrap_err().is_cancelled());
    assert_eq!(probe.dropped.load(Ordering::SeqCst), 0);
    two.abort();
    assert!(two.await.unwrap_err().is_cancelled());
    assert_eq!(probe.dropped.load(Ordering::SeqCst), 1);
    assert_eq!(probe.counted("work"), 1);
}
