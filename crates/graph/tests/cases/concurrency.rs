//! Siblings run side by side, equal calls run once, and what nobody waits for stops.

use crate::fixture::{Client, World};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::Ordering;

#[tokio::test]
async fn siblings_run_side_by_side() {
    let client = Client::new();
    // Each waits for the other at a barrier of two.
    let data = client.data("{ container { a: meet(name: \"a\") b: meet(name: \"b\") } }").await;
    assert_eq!(data, json!({"container": {"a": "a", "b": "b"}}));
}

#[tokio::test]
async fn branches_far_apart_run_side_by_side() {
    let client = Client::new();
    let data = client
        .data(
            r#"{ a: container { withExec(args: ["a"]) { meet(name: "a") } }
                b: container { withExec(args: ["b"]) { meet(name: "b") } } }"#,
        )
        .await;
    assert_eq!(data["b"]["withExec"]["meet"], json!("b"));
}

#[tokio::test]
async fn requests_of_a_session_run_side_by_side() {
    let client = Client::new();
    let one = client.data("{ container { meet(name: \"a\") } }");
    let two = client.data("{ container { meet(name: \"b\") } }");
    let (one, two) = futures::join!(one, two);
    assert_eq!(
        (one, two),
        (json!({"container": {"meet": "a"}}), json!({"container": {"meet": "b"}}))
    );
}

#[tokio::test]
async fn equal_calls_in_flight_share_one_evaluation() {
    let client = Arc::new(Client::new());
    let query = "{ container { hang(name: \"a\") } }";
    let requests = (0..10).map(|_| client.data(query));
    let release = async {
        client.probe.started.notified().await;
        client.probe.gate.notify_one();
    };
    let (replies, ()) = futures::join!(futures::future::join_all(requests), release);
    assert!(replies.iter().all(|reply| *reply == json!({"container": {"hang": "a"}})));
    assert_eq!(client.probe.counted("hang"), 1);
}

#[tokio::test]
async fn dropping_the_only_waiter_cancels() {
    let client = Arc::new(Client::new());
    let waiting = client.clone();
    let request =
        tokio::spawn(async move { waiting.data("{ container { hang(name: \"a\") } }").await });
    client.probe.started.notified().await;
    assert_eq!(client.probe.dropped.load(Ordering::SeqCst), 0);
    request.abort();
    assert!(request.await.unwrap_err().is_cancelled());
    assert_eq!(client.probe.dropped.load(Ordering::SeqCst), 1);
    // The next who asks begins anew.
    let release = async {
        client.probe.started.notified().await;
        client.probe.gate.notify_one();
    };
    let (data, ()) = futures::join!(client.data("{ container { hang(name: \"a\") } }"), release);
    assert_eq!(data["container"]["hang"], json!("a"));
    assert_eq!(client.probe.counted("hang"), 2);
}

#[tokio::test]
async fn work_goes_on_while_one_of_two_still_waits() {
    let client = Arc::new(Client::new());
    let spawn = || {
        let client = client.clone();
        tokio::spawn(async move { client.data("{ container { hang(name: \"a\") } }").await })
    };
    let first = spawn();
    client.probe.started.notified().await;
    let second = spawn();
    // The document is known by now, so that the second waits after its first turn on the one
    // thread of this runtime.
    tokio::task::yield_now().await;
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    client.probe.gate.notify_one();
    assert_eq!(second.await.unwrap()["container"]["hang"], json!("a"));
    assert_eq!(client.probe.counted("hang"), 1);
}

#[tokio::test]
async fn arguments_are_evaluated_side_by_side() {
    let client = Client::new();
    let data =
        client.data("{ a: meeting(name: \"a\") { id } b: meeting(name: \"b\") { id } }").await;
    let (a, b) = (&data["a"]["id"], &data["b"]["id"]);
    let query = format!("{{ container {{ withDirectories(sources: [{a}, {b}]) {{ stdout }} }} }}");
    let data = client.data(&query).await;
    assert_eq!(data["container"]["withDirectories"]["stdout"], json!("0 steps, 2 directories"));
}

#[tokio::test]
async fn an_error_cancels_the_siblings() {
    let client = Client::new();
    let query = "{ container { hang(name: \"a\") failExec } }";
    assert_eq!(client.error(query).await, "command failed: exit code: 1");
    let started = client.probe.counted("hang");
    assert_eq!(client.probe.dropped.load(Ordering::SeqCst), started);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_thousand_requests_at_once() {
    let world = World::new();
    let client = Arc::new(world.client("one"));
    let requests: Vec<_> = (0..1000)
        .map(|index| {
            let client = client.clone();
            tokio::spawn(async move {
                let step = index % 10;
                let query = format!(
                    "{{ container {{ withExec(args: [\"{step}\"]) {{ step(by: {index}) {{ count }} }} }} }}"
                );
                client.data(&query).await["container"]["withExec"]["step"]["count"].clone()
            })
        })
        .collect();
    for (index, request) in requests.into_iter().enumerate() {
        assert_eq!(request.await.unwrap(), json!(index + 1));
    }
    assert_eq!(client.probe.counted("container"), 1);
    assert_eq!(client.probe.counted("withExec"), 10);
}
