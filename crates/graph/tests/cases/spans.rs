//! Each call that is forced is one span.

use crate::fixture::{Client, Silence, World};
use graph::{Event, Extensions, Request, SpanId};
use std::sync::Arc;

fn names(client: &Client) -> Vec<(String, String)> {
    client.events.spans()
}

fn expect(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, end)| ((*name).to_owned(), (*end).to_owned())).collect()
}

#[tokio::test]
async fn forced_calls_have_spans_and_remembered_ones_no_second() {
    let client = Client::new();
    let query = r#"{ container { withExec(args: ["true"]) { stdout } } }"#;
    client.data(query).await;
    let all = expect(&[
        ("container", "Done"),
        ("container.withExec(args: [\"true\"])", "Done"),
        ("container.stdout", "Done"),
    ]);
    assert_eq!(names(&client), all);
    client.data(query).await;
    assert_eq!(names(&client), all);
}

#[tokio::test]
async fn ids_open_no_spans() {
    let client = Client::new();
    client.data("{ container { id } }").await;
    assert!(names(&client).is_empty());
}

#[tokio::test]
async fn failures_and_cancellations_are_told() {
    let client = Arc::new(Client::new());
    client.error("{ container { failExec } }").await;
    assert_eq!(names(&client)[1].1, "Failed(\"command failed: exit code: 1\")");
    let waiting = client.clone();
    let request =
        tokio::spawn(async move { waiting.data("{ container { hang(name: \"a\") } }").await });
    client.probe.started.notified().await;
    request.abort();
    assert!(request.await.is_err());
    assert_eq!(names(&client)[2], ("container.hang(name: \"a\")".into(), "Cancelled".into()));
}

#[tokio::test]
async fn spans_have_the_parent_of_the_request_and_their_call() {
    let client = Client::new();
    let request = Request {
        query: "{ version }".into(),
        parent_span: Some(SpanId(99)),
        ..Request::default()
    };
    client.request(request).await;
    let version = protocol::Call::new(None, "version", vec![], "String", None);
    let all = client.events.all();
    assert!(
        matches!(&all[0], Event::Started { parent: Some(SpanId(99)), call: Some(call), at, .. }
        if call == version.digest() && *at > 1_600_000_000_000_000)
    );
}

#[tokio::test]
async fn nothing_is_told_when_nobody_listens() {
    let world = World::new();
    let mut extensions = Extensions::new();
    extensions.insert(Arc::new(crate::fixture::ops::Probe::default()));
    let session = world.graph.session("one".into(), extensions, Arc::new(Silence));
    let request = Request { query: "{ container { count } }".into(), ..Request::default() };
    assert_eq!(session.execute(request).await, br#"{"data":{"container":{"count":0}}}"#);
}
