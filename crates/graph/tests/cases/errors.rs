//! The exact bytes of failures.

use crate::fixture::Client;
use graph::Request;
use serde_json::json;

async fn check(query: &str, error_kinds: bool, expect: &str) {
    let request = Request { query: query.into(), error_kinds, ..Request::default() };
    assert_eq!(Client::new().request(request).await, expect, "{query}");
}

#[tokio::test]
async fn a_plain_error_has_message_and_path_only() {
    check(
        "{ container { a: fail(message: \"no \\\"way\\\"\") { b: stdout } } }",
        false,
        r#"{"errors":[{"message":"no \"way\"","path":["container","a","b"]}],"data":null}"#,
    )
    .await;
}

#[tokio::test]
async fn a_failed_command_has_the_five_extensions() {
    check(
        r#"{ container { withExec(args: ["false", "x"]) { stdout } } }"#,
        false,
        concat!(
            r#"{"errors":[{"message":"command failed: exit code: 1","#,
            r#""path":["container","withExec","stdout"],"extensions":{"_type":"EXEC_ERROR","#,
            r#""cmd":["false","x"],"exitCode":1,"stdout":"out","stderr":"err"}}],"data":null}"#
        ),
    )
    .await;
}

#[tokio::test]
async fn who_asks_for_kinds_gets_them_with_hints() {
    check(
        "{ container { fail(message: \"no\") { count } } }",
        true,
        concat!(
            r#"{"errors":[{"message":"no","path":["container","fail","count"],"#,
            r#""extensions":{"_type":"USER","hints":["do not"]}}],"data":null}"#
        ),
    )
    .await;
    check(
        "{ later { id } }",
        true,
        concat!(
            r#"{"errors":[{"message":"`Query.later` is not implemented yet","path":["later"],"#,
            r#""extensions":{"_type":"NOT_IMPLEMENTED","hints":[]}}],"data":null}"#
        ),
    )
    .await;
    check(
        "{ container { failExec } }",
        true,
        concat!(
            r#"{"errors":[{"message":"command failed: exit code: 1","#,
            r#""path":["container","failExec"],"extensions":{"_type":"EXEC_ERROR","#,
            r#""cmd":["sh"],"exitCode":1,"stdout":"out","stderr":"err","hints":[]}}],"data":null}"#
        ),
    )
    .await;
}

#[tokio::test]
async fn a_panic_is_an_internal_error_and_harms_nobody_else() {
    let client = Client::new();
    let request = Request {
        query: "{ container { panics } }".into(),
        error_kinds: true,
        ..Request::default()
    };
    assert_eq!(
        client.request(request).await,
        concat!(
            r#"{"errors":[{"message":"`Container.panics` panicked","path":["container","panics"],"#,
            r#""extensions":{"_type":"INTERNAL","hints":[]}}],"data":null}"#
        )
    );
    assert_eq!(client.data("{ container { count } }").await, json!({"container": {"count": 0}}));
}

#[tokio::test]
async fn errors_in_lists_have_an_index() {
    let client = Client::new();
    let query = r#"{ container { withEnvVariable(name: "a", value: "1") { env { id } } } }"#;
    let id = client.id(query, "/container/withEnvVariable/env/0/id").await;
    let text = client.text(&format!("{{ loadContainerFromID(id: \"{id}\") {{ count }} }}")).await;
    assert_eq!(
        text,
        "{\"errors\":[{\"message\":\"expected the id of a `Container`, got a `EnvVariable`\",\
         \"path\":[\"loadContainerFromID\"]}],\"data\":null}"
    );
}

#[tokio::test]
async fn a_failure_is_not_remembered() {
    let client = Client::new();
    for _ in 0..2 {
        client.error("{ container { failExec } }").await;
    }
    assert_eq!(client.probe.counted("failExec"), 2);
}

#[tokio::test]
async fn config_after_a_failed_command_fails_and_its_id_does_not() {
    let client = Client::new();
    let query = r#"{ container { withExec(args: ["false"]) { withEnvVariable(name: "a", value: "b") { count } } } }"#;
    assert_eq!(client.error(query).await, "command failed: exit code: 1");
    client.data(&query.replace("count", "id")).await;
}
