//! What a document can say: aliases, fragments, conditions, operations.

use crate::fixture::Client;
use graph::Request;
use serde_json::json;

async fn check(query: &str, expect: &str) {
    let text = Client::new().text(query).await;
    assert_eq!(text, format!("{{\"data\":{expect}}}"), "{query}");
}

#[tokio::test]
async fn replies_keep_the_order_of_the_document() {
    check("{ version }", r#"{"version":"v1"}"#).await;
    check(
        "{ z: version container { stdout a: count __typename } b: __typename }",
        concat!(
            r#"{"z":"v1","container":{"stdout":"0 steps, 0 directories","a":0,"#,
            r#""__typename":"Container"},"b":"Query"}"#
        ),
    )
    .await;
}

#[tokio::test]
async fn equal_keys_are_merged() {
    check(
        "{ container { count } version container { stdout } }",
        concat!(
            r#"{"container":{"count":0,"stdout":"0 steps, 0 directories"},"#,
            r#""version":"v1"}"#
        ),
    )
    .await;
    let many: String = (0..40).map(|index| format!("a{index}: version ")).collect();
    let query = format!("{{ {many} container {{ count }} a7: version container {{ old }} }}");
    let data = Client::new().data(&query).await;
    assert_eq!(data.as_object().unwrap().len(), 41);
    assert_eq!(data["container"], json!({"count": 0, "old": "old"}));
}

#[tokio::test]
async fn fragments_apply_by_type() {
    check(
        "{ ...F container { ... { count } ...G ... on Syncer { sync { __typename } } } } \
         fragment F on Query { version } fragment G on Node { __typename }",
        r#"{"version":"v1","container":{"count":0,"__typename":"Container","sync":{"__typename":"Container"}}}"#,
    )
    .await;
}

#[tokio::test]
async fn conditions_keep_or_drop() {
    let client = Client::new();
    let query = "query ($yes: Boolean!, $no: Boolean = false) { \
        a: version @include(if: $yes) b: version @skip(if: $yes) \
        c: version @include(if: $no) d: version @skip(if: $no) \
        e: version @skip(if: true) f: version @include(if: \"true\") \
        ... @include(if: $no) { g: version } ...F @skip(if: $yes) } \
        fragment F on Query { h: version }";
    let data = client.data_with(query, json!({"yes": true})).await;
    let keys: Vec<_> = data.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["a", "d", "f"]);
}

#[tokio::test]
async fn one_of_several_operations_is_named() {
    let client = Client::new();
    let query = "query A { version } query B { container { count } }";
    let run = |name: Option<&str>| {
        let operation_name = name.map(ToOwned::to_owned);
        client.request(Request { query: query.into(), operation_name, ..Request::default() })
    };
    assert_eq!(run(Some("A")).await, r#"{"data":{"version":"v1"}}"#);
    assert_eq!(run(Some("B")).await, r#"{"data":{"container":{"count":0}}}"#);
    assert!(run(Some("C")).await.contains("the document has no operation `C`"));
    for none in [None, Some("")] {
        assert!(run(none).await.contains("has several operations: name one to run"));
    }
    let single = Request {
        query: "query A { version }".into(),
        operation_name: Some(String::new()),
        ..Request::default()
    };
    assert_eq!(client.request(single).await, r#"{"data":{"version":"v1"}}"#);
}

#[tokio::test]
async fn lists_nulls_and_voids() {
    check(
        r#"{ container { void withEnvVariable(name: "a", value: "1") { withEnvVariable(name: "b", value: "2") { env { name value } } } } }"#,
        concat!(
            r#"{"container":{"void":null,"withEnvVariable":{"withEnvVariable":{"env":"#,
            r#"[{"name":"a","value":"1"},{"name":"b","value":"2"}]}}}}"#
        ),
    )
    .await;
    check(
        r#"{ container { a: stat(path: "missing") { size } b: stat(path: "abc") { size __typename } env { name } } }"#,
        r#"{"container":{"a":null,"b":{"size":3,"__typename":"Stat"},"env":[]}}"#,
    )
    .await;
}

#[tokio::test]
async fn a_repeated_document_gives_the_same_with_other_variables() {
    let client = Client::new();
    let query = "query ($n: Int) { container { step(by: $n) { count } } }";
    for number in [1, 2, 1] {
        let data = client.data_with(query, json!({ "n": number })).await;
        assert_eq!(data["container"]["step"]["count"], json!(number));
    }
}
