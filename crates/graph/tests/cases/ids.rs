//! Ids: stable, typed, alive in other sessions and after a restart.

use crate::fixture::{Client, World};
use serde_json::json;
use std::sync::atomic::Ordering;

const CHAIN: &str = r#"{ container { withEnvVariable(name: "a", value: "1") { id env { id } } } }"#;

#[tokio::test]
async fn the_same_chain_has_the_same_id() {
    let client = Client::new();
    let one = client.data(CHAIN).await;
    assert_eq!(one, client.data(CHAIN).await);
    assert_eq!(one, World::new().client("two").data(CHAIN).await);
}

#[tokio::test]
async fn an_id_is_a_handle_with_a_type() {
    let client = Client::new();
    let id = client.id(CHAIN, "/container/withEnvVariable/id").await;
    let id: protocol::Id = id.parse().unwrap();
    assert_eq!(id.type_name, "Container");
    assert!(id.handle > 0);
}

#[tokio::test]
async fn ids_load_through_node_and_load() {
    let client = Client::new();
    let id = client.id(CHAIN, "/container/withEnvVariable/id").await;
    let query = format!(
        "{{ a: node(id: \"{id}\") {{ id __typename ... on Container {{ count }} \
           ... on Directory {{ name }} }} \
           b: loadContainerFromID(id: \"{id}\") {{ id count }} \
           c: loadNodeFromID(id: \"{id}\") {{ id }} \
           d: loadSyncerFromID(id: \"{id}\") {{ sync }} \
           e: node(id: \"{id}\") {{ ... on Directory {{ name }} }} }}"
    );
    assert_eq!(
        client.data(&query).await,
        json!({
            "a": {"id": id, "__typename": "Container", "count": 1},
            "b": {"id": id, "count": 1},
            "c": {"id": id},
            "d": {"sync": id},
            "e": {},
        })
    );
}

#[tokio::test]
async fn the_wrong_type_is_refused() {
    let client = Client::new();
    let id = client.id("{ directory { id } }", "/directory/id").await;
    for (query, expect) in [
        (
            "loadContainerFromID(id: \"ID\") { id }",
            "expected the id of a `Container`, got a `Directory`",
        ),
        ("loadSyncerFromID(id: \"ID\") { id }", "expected the id of a `Syncer`, got a `Directory`"),
        ("loadContainerFromID(id: \"nonsense\") { id }", "malformed id"),
        ("loadContainerFromID(id: \"\") { id }", "malformed id"),
    ] {
        let error =
            client.error(&format!("{{ {} }}", query.replace("ID\"", &format!("{id}\"")))).await;
        assert_eq!(error, expect, "{query}");
    }
    let container = client.id("{ container { id } }", "/container/id").await;
    let query = format!(
        "{{ container {{ withDirectory(path: \"/\", source: \"{container}\") {{ id }} }} }}"
    );
    let error = client.error(&query).await;
    assert_eq!(error, "argument `source`: expected the id of a `Directory`, got a `Container`");
}

#[tokio::test]
async fn an_id_with_another_type_name_is_malformed() {
    let client = Client::new();
    let id = client.id("{ directory { id } }", "/directory/id").await;
    let mut id: protocol::Id = id.parse().unwrap();
    id.type_name = "Container".into();
    let error = client.error(&format!("{{ loadContainerFromID(id: \"{id}\") {{ id }} }}")).await;
    assert_eq!(error, "malformed id");
}

#[tokio::test]
async fn an_unknown_id_is_said_to_be_unknown() {
    let id = protocol::Id { handle: 12345, type_name: "Container".into() };
    let error = Client::new().error(&format!("{{ node(id: \"{id}\") {{ id }} }}")).await;
    assert_eq!(error, "the object behind this id is not known here");
}

#[tokio::test]
async fn ids_work_in_a_new_session_and_in_a_new_graph() {
    let world = World::new();
    let data = world.client("one").data(CHAIN).await;
    let id = data["container"]["withEnvVariable"]["id"].as_str().unwrap();
    let element = data["container"]["withEnvVariable"]["env"][0]["id"].as_str().unwrap();
    let query = format!(
        "{{ loadContainerFromID(id: \"{id}\") {{ count id }} \
            node(id: \"{element}\") {{ ... on EnvVariable {{ value id }} }} }}"
    );
    let expect = json!({
        "loadContainerFromID": {"count": 1, "id": id},
        "node": {"value": "1", "id": element},
    });
    assert_eq!(world.client("two").data(&query).await, expect);
    let restarted = World::over(world.memo.clone());
    assert_eq!(restarted.client("three").data(&query).await, expect);
}

#[tokio::test]
async fn records_are_stored_once_and_before_the_reply() {
    let world = World::new();
    let client = world.client("one");
    client.data("{ container { withExec(args: [\"a\"]) { id } } }").await;
    assert_eq!(world.memo.puts.load(Ordering::Relaxed), 2);
    client
        .data("{ container { withExec(args: [\"a\"]) { id withExec(args: [\"b\"]) { id } } } }")
        .await;
    assert_eq!(world.memo.puts.load(Ordering::Relaxed), 3);
    client.data("{ container { withExec(args: [\"c\"]) { count } } }").await;
    assert_eq!(world.memo.puts.load(Ordering::Relaxed), 3);
    world.memo.broken.store(true, Ordering::Relaxed);
    let error = client.error("{ container { withExec(args: [\"d\"]) { id } } }").await;
    assert_eq!(error, "the disk is full");
}

#[tokio::test]
async fn loading_an_id_does_not_store_it_again() {
    let world = World::new();
    let id = world.client("one").id(CHAIN, "/container/withEnvVariable/id").await;
    let puts = world.memo.puts.load(Ordering::Relaxed);
    let query = format!("{{ node(id: \"{id}\") {{ id }} }}");
    world.client("two").data(&query).await;
    assert_eq!(world.memo.puts.load(Ordering::Relaxed), puts);
}

#[tokio::test]
async fn the_root_has_an_id() {
    let client = Client::new();
    let id = client.id("{ id }", "/id").await;
    let query = format!(
        "{{ loadQueryFromID(id: \"{id}\") {{ version id container {{ id }} }} container {{ id }} }}"
    );
    let data = client.data(&query).await;
    assert_eq!(data["loadQueryFromID"]["id"], json!(id));
    assert_eq!(data["loadQueryFromID"]["version"], json!("v1"));
    assert_eq!(data["loadQueryFromID"]["container"], data["container"]);
}

#[tokio::test]
async fn an_element_that_is_gone_is_an_error() {
    let world = World::new();
    let client = world.client("one");
    client.data("{ container { env { id } id } }").await;
    let container = client.id("{ container { id } }", "/container/id").await;
    let list = protocol::Call::new(None, "container", vec![], "Container", None);
    assert_eq!(container.parse::<protocol::Id>().unwrap().handle, list.digest().handle());
    let list = protocol::Call::new(Some(list), "env", vec![], "EnvVariable", None);
    let element = protocol::Call::new(Some(list.clone()), "#3", vec![], "EnvVariable", None);
    let records = [&list, &element].map(|call| (*call.digest(), call.record()));
    graph::Memo::put_calls(&*world.memo, records.to_vec()).unwrap();
    let id = protocol::Id { handle: element.digest().handle(), type_name: "EnvVariable".into() };
    let query = format!("{{ node(id: \"{id}\") {{ ... on EnvVariable {{ name }} }} }}");
    assert_eq!(client.error(&query).await, "`container.env` has no element 3 any more");
}

#[tokio::test]
async fn null_objects_cannot_be_used_by_id() {
    let client = Client::new();
    let container = protocol::Call::new(None, "container", vec![], "Container", None);
    let args = vec![("path".into(), graph::Value::String("missing".into()))];
    let stat = protocol::Call::new(Some(container.clone()), "stat", args, "Stat", None);
    let world = World::new();
    let records = [&container, &stat].map(|call| (*call.digest(), call.record()));
    graph::Memo::put_calls(&*world.memo, records.to_vec()).unwrap();
    drop(client);
    let id = protocol::Id { handle: stat.digest().handle(), type_name: "Stat".into() };
    let query = format!("{{ node(id: \"{id}\") {{ ... on Stat {{ size }} }} }}");
    let error = world.client("one").error(&query).await;
    assert_eq!(error, "`container.stat(path: \"missing\")` is null");
}
