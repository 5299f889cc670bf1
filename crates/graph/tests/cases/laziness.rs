//! Nothing runs before a leaf is asked for, and then it runs once.

use crate::fixture::Client;
use serde_json::json;

const CHAIN: &str = r#"container { withEnvVariable(name: "a", value: "1") { withExec(args: ["x"])"#;

#[tokio::test]
async fn ids_and_type_names_need_no_evaluation() {
    let client = Client::new();
    let data = client.data(&format!("{{ {CHAIN} {{ id __typename }} }} }} }}")).await;
    assert_eq!(data["container"]["withEnvVariable"]["withExec"]["__typename"], json!("Container"));
    assert_eq!(client.probe.total(), 0);
}

#[tokio::test]
async fn eager_checks_run_when_only_the_id_is_asked() {
    let client = Client::new();
    let error = client.error("{ container(platform: \"nonsense\") { id } }").await;
    assert_eq!(error, "unknown operating system or architecture `nonsense`");
    assert_eq!(client.probe.total(), 0);
}

#[tokio::test]
async fn an_eager_op_runs_when_only_its_id_is_asked() {
    let client = Client::new();
    let error = client.error("{ checked(fails: true) { id } }").await;
    assert_eq!(error, "it cannot be made");
    let id = client.id("{ checked { id } }", "/checked/id").await;
    assert_eq!(client.probe.counted("checked"), 2);
    // Its id is that of the call, and what it came to is remembered.
    let data = client.data(&format!("{{ loadDirectoryFromID(id: \"{id}\") {{ name }} }}")).await;
    assert_eq!(data["loadDirectoryFromID"]["name"], json!("checked"));
    assert_eq!(client.probe.counted("checked"), 2);
}

#[tokio::test]
async fn a_leaf_forces_its_chain_once_a_session() {
    let client = Client::new();
    for _ in 0..3 {
        client.data(&format!("{{ {CHAIN} {{ stdout }} }} }} }}")).await;
    }
    client.data(&format!("{{ {CHAIN} {{ count }} }} }} }}")).await;
    for (op, expect) in
        [("container", 1), ("withEnvVariable", 1), ("withExec", 1), ("stdout", 1), ("count", 1)]
    {
        assert_eq!(client.probe.counted(op), expect, "{op}");
    }
}

#[tokio::test]
async fn sync_forces_and_other_branches_stay_asleep() {
    let client = Client::new();
    client.data(r#"{ container { sync a: withExec(args: ["a"]) { id } } }"#).await;
    assert_eq!(client.probe.counted("container"), 1);
    assert_eq!(client.probe.counted("withExec"), 0);
}

#[tokio::test]
async fn what_acts_on_the_world_acts_each_time() {
    let client = Client::new();
    for _ in 0..2 {
        client.data("{ container { export(path: \"a\") } }").await;
    }
    assert_eq!(client.probe.counted("export"), 2);
    assert_eq!(client.probe.counted("container"), 1);
}

#[tokio::test]
async fn what_is_looked_at_anew_is_looked_at_once_a_request() {
    let client = Client::new();
    for round in 1..3 {
        let fields = r#"a: export(path: "a") again: export(path: "a") b: export(path: "b")"#;
        client.data(&format!("{{ container {{ fresh {{ {fields} }} }} }}")).await;
        assert_eq!(client.probe.counted("export"), 2 * round);
        assert_eq!(client.probe.counted("fresh"), round);
    }
}

#[tokio::test]
async fn object_arguments_are_evaluated_before_their_user() {
    let client = Client::new();
    let id = client.id("{ directory { id } }", "/directory/id").await;
    assert_eq!(client.probe.total(), 0);
    let query = format!(
        "{{ container {{ withDirectory(path: \"/\", source: \"{id}\") \
         {{ withDirectories(sources: [\"{id}\", \"{id}\"]) {{ stdout }} }} }} }}"
    );
    let data = client.data(&query).await;
    let stdout = &data["container"]["withDirectory"]["withDirectories"]["stdout"];
    assert_eq!(stdout, &json!("0 steps, 3 directories"));
    assert_eq!(client.probe.counted("directory"), 1);
}

#[tokio::test]
async fn elements_of_a_list_are_not_evaluated_again() {
    let client = Client::new();
    let query =
        r#"{ container { withEnvVariable(name: "a", value: "1") { env { id name value } } } }"#;
    let id = client.id(query, "/container/withEnvVariable/env/0/id").await;
    let query = format!("{{ node(id: \"{id}\") {{ ... on EnvVariable {{ value }} }} }}");
    assert_eq!(client.data(&query).await, json!({"node": {"value": "1"}}));
    assert_eq!(client.probe.counted("env"), 1);
    assert_eq!(client.probe.counted("value"), 1);
}
