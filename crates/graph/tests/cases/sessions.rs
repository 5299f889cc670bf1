//! What is a session's own stays its own: host objects and sensitive texts.

use crate::fixture::World;
use serde_json::json;

const PLAINTEXT: &str = "correct-horse-battery";

#[tokio::test]
async fn what_another_session_owns_is_refused_by_name() {
    let world = World::new();
    let one = world.client("one");
    let query = "{ host { directory(path: \"src\") { id name } } }";
    let id = one.id(query, "/host/directory/id").await;
    assert_eq!(one.data(query).await["host"]["directory"]["name"], json!("src"));
    let two = world.client("two");
    let load = format!("{{ loadDirectoryFromID(id: \"{id}\") {{ name }} }}");
    let expect = "`host.directory(path: \"src\")` belongs to another session";
    assert_eq!(two.error(&load).await, expect);
    // Also where it is only part of something else, and also when it was evaluated just now.
    one.data(&load).await;
    let part =
        format!("{{ container {{ withDirectory(path: \"/\", source: \"{id}\") {{ count }} }} }}");
    assert_eq!(two.error(&part).await, expect);
    // Naming it is no use of it.
    let named = format!("{{ loadDirectoryFromID(id: \"{id}\") {{ id }} }}");
    assert_eq!(two.data(&named).await["loadDirectoryFromID"]["id"], json!(id));
    // A second session has an object of its own under its own id.
    assert_ne!(two.id(query, "/host/directory/id").await, id);
}

#[tokio::test]
async fn a_unique_call_is_evaluated_on_every_use_and_its_id_stands_for_one() {
    let world = World::new();
    let client = world.client("one");
    let query = "{ host { directory(path: \"src\", noCache: true) { id name } } }";
    let first = client.id(query, "/host/directory/id").await;
    let second = client.id(query, "/host/directory/id").await;
    assert_ne!(first, second);
    assert_eq!(client.probe.counted("directory again"), 2);
    let load = format!("{{ loadDirectoryFromID(id: \"{first}\") {{ name }} }}");
    assert_eq!(client.data(&load).await["loadDirectoryFromID"]["name"], json!("src"));
    assert_eq!(client.probe.counted("directory again"), 2, "the id stands for what was read");
    let names: Vec<_> = client.events.spans().into_iter().map(|(name, _)| name).collect();
    let expect = "host.directory(noCache: true, path: \"src\")";
    assert!(names.contains(&expect.to_owned()), "{names:?}");
}

#[tokio::test]
async fn sensitive_text_reaches_the_op_and_nothing_else() {
    let world = World::new();
    let client = world.client("one");
    let query =
        format!("{{ setSecret(name: \"n\", plaintext: \"{PLAINTEXT}\") {{ id name length }} }}");
    let reply = client.text(&query).await;
    assert!(reply.contains(&format!("\"length\":{}", PLAINTEXT.len())), "{reply}");
    let everything =
        format!("{reply} {:?} {:?}", client.events.all(), world.memo.calls.lock().unwrap());
    assert!(!everything.contains(PLAINTEXT), "{everything}");
    let names: Vec<_> = client.events.spans().into_iter().map(|(name, _)| name).collect();
    assert!(names.contains(&"setSecret(name: \"n\", plaintext: ***)".to_owned()), "{names:?}");
    let id = client.id(&query, "/setSecret/id").await;
    let error = world
        .client("two")
        .error(&format!("{{ node(id: \"{id}\") {{ ... on Secret {{ name }} }} }}"))
        .await;
    assert!(error.contains("belongs to another session") && !error.contains(PLAINTEXT), "{error}");
}

#[tokio::test]
async fn sensitive_text_is_part_of_the_identity_under_the_key() {
    let world = World::new();
    let client = world.client("one");
    let id = |plaintext: &str| {
        let query = format!("{{ setSecret(name: \"n\", plaintext: \"{plaintext}\") {{ id }} }}");
        let client = &client;
        async move { client.id(&query, "/setSecret/id").await }
    };
    assert_eq!(id("a").await, id("a").await);
    assert_ne!(id("a").await, id("b").await);
    let memo = std::sync::Arc::new(crate::fixture::memo::MemoryMemo::default());
    let other = crate::fixture::builder().build(memo, [8; 32]).unwrap();
    let other = crate::fixture::World { graph: other, memo: world.memo.clone() }.client("one");
    let query = "{ setSecret(name: \"n\", plaintext: \"a\") { id } }";
    assert_ne!(other.id(query, "/setSecret/id").await, id("a").await);
}

#[tokio::test]
async fn sensitive_text_by_variable_and_in_errors() {
    let world = World::new();
    let client = world.client("one");
    let query = "query ($p: String!) { setSecret(name: \"n\", plaintext: $p) { length } }";
    let data = client.data_with(query, json!({ "p": PLAINTEXT })).await;
    assert_eq!(data["setSecret"]["length"], json!(PLAINTEXT.len()));
    for query in [
        format!("{{ setSecret(name: [], plaintext: \"{PLAINTEXT}\") {{ id }} }}"),
        format!("{{ setSecret(name: \"n\", plaintext: [\"{PLAINTEXT}\"]) {{ id }} }}"),
        format!("{{ setSecret(name: \"n\", plaintext: \"{PLAINTEXT}\") {{ nope }} }}"),
        format!("{{ setSecret(name: \"n\", plaintext: \"{PLAINTEXT}\" {{ nope }} }}"),
        format!("{{ setSecret(name: \"n\", plaintext: \"{PLAINTEXT}) {{ nope }} }}"),
    ] {
        let error = client.error(&query).await;
        assert!(!error.contains(PLAINTEXT), "{error}");
    }
}

/// What is kept for a while goes when many others came, unless it is asked for in between.
#[tokio::test]
async fn recent_results_are_kept_while_they_are_asked_for() {
    let world = World::new();
    let client = world.client("one");
    let probe = |number: i32| format!("{{ probe(int: {number}) }}");
    client.data(&probe(-1)).await;
    client.data(&probe(-1)).await;
    client.data(&probe(-2)).await;
    assert_eq!(client.probe.counted("probe"), 2);
    for number in 0..400 {
        client.data(&probe(number)).await;
        client.data(&probe(-1)).await;
    }
    assert_eq!(client.probe.counted("probe"), 402, "what was asked for all the time ran once");
    client.data(&probe(-2)).await;
    assert_eq!(client.probe.counted("probe"), 403, "what nobody asked for ran again");
}
