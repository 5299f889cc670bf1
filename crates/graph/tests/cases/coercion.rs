//! What clients write against what the schema declares.

use crate::fixture::Client;
use serde_json::{Value as Json, json};

/// What `probe` saw of an argument.
async fn seen(arguments: &str) -> String {
    let data = Client::new().data(&format!("{{ probe({arguments}) }}")).await;
    data["probe"].as_str().unwrap().to_owned()
}

async fn check(arguments: &str, expect: &str) {
    let seen = seen(arguments).await;
    assert!(seen.contains(expect), "{arguments}: {seen}");
}

async fn check_error(arguments: &str, expect: &str) {
    let error = Client::new().error(&format!("{{ probe({arguments}) }}")).await;
    assert_eq!(error, expect, "{arguments}");
}

#[tokio::test]
async fn literals_are_taken_as_they_are_meant() {
    for (arguments, expect) in [
        ("flag: true", "flag: Some(true)"),
        ("flag: \"true\"", "flag: Some(true)"),
        ("flag: \"false\"", "flag: Some(false)"),
        ("flag: null", "flag: None"),
        ("int: 80", "int: Some(80)"),
        ("int: \"80\"", "int: Some(80)"),
        ("int: -9007199254740993", "int: Some(-9007199254740993)"),
        ("float: 1.5", "float: Some(1.5)"),
        ("float: 2", "float: Some(2.0)"),
        ("float: \"2.25\"", "float: Some(2.25)"),
        ("text: \"a\\u00fc\\n\"", "text: Some(\"aü\\n\")"),
        ("text: \"\"\"block\"\"\"", "text: Some(\"block\")"),
        ("mode: FAILURE", "mode: Some(Failure)"),
        ("mode: \"FAILURE\"", "mode: Some(Failure)"),
        ("mode: ALL", "mode: Some(Any)"),
        ("platform: \"linux/arm64\"", "platform: Some(Platform(\"linux/arm64\"))"),
        ("list: [\"a\", \"b\"]", "list: Some([\"a\", \"b\"])"),
        ("list: \"a\"", "list: Some([\"a\"])"),
        ("list: []", "list: Some([])"),
        ("numbers: [\"1\", 2]", "numbers: Some([1, 2])"),
        ("numbers: 3", "numbers: Some([3])"),
        ("port: {backend: 1}", "Port { backend: 1, frontend: None, protocol: Tcp }"),
        ("port: {protocol: \"UDP\", backend: \"2\"}", "frontend: None, protocol: Udp"),
        ("port: {backend: 1, frontend: 3, protocol: null}", "frontend: Some(3), protocol: Tcp"),
        ("ports: {backend: 5}", "ports: [Port { backend: 5"),
        ("ports: null", "ports: []"),
        ("int: 1", "ports: []"),
        ("required: null", "int: None"),
    ] {
        check(arguments, expect).await;
    }
}

#[tokio::test]
async fn what_is_unknown_or_unfit_is_named() {
    for (arguments, expect) in [
        ("nope: 1", "field `probe` does not define an argument named `nope`"),
        ("mode: NOPE", "argument `mode`: `NOPE` is no value of `Mode`"),
        ("mode: 3", "argument `mode`: expected `Mode`, got a number"),
        ("int: \"x\"", "argument `int`: expected `Int`, got a string"),
        ("int: 1.5", "argument `int`: expected `Int`, got a number"),
        ("int: 9223372036854775808", "argument `int`: expected `Int`, got a number"),
        ("int: [1]", "argument `int`: expected `Int`, got a list"),
        ("float: \"NaN\"", "argument `float`: expected `Float`, got a string"),
        ("flag: \"yes\"", "argument `flag`: expected `Boolean`, got a string"),
        ("text: 1", "argument `text`: expected `String`, got a number"),
        ("list: [null]", "argument `list`: expected `String!`, got null"),
        ("list: [[\"a\"]]", "argument `list`: expected `String`, got a list"),
        ("port: {}", "argument `port`: field `backend`: expected `Int!`"),
        ("port: {backend: 1, nope: 2}", "argument `port`: `PortForward` has no field `nope`"),
        (
            "port: {backend: 1, backend: 2}",
            "argument `port`: the field `backend` of `PortForward` is given twice",
        ),
        (
            "ports: [{backend: 1, protocol: \"ICMP\"}]",
            "argument `ports`: field `protocol`: `ICMP` is no value of `NetworkProtocol`",
        ),
        ("required: 8", "argument `required` of `Query.probe` is not implemented yet"),
    ] {
        check_error(arguments, expect).await;
    }
}

async fn with_variable(declared: &str, value: Json, arguments: &str) -> String {
    let query = format!("query ($v: {declared}) {{ probe({arguments}) }}");
    let data = Client::new().data_with(&query, json!({ "v": value })).await;
    data["probe"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn variables_are_as_lenient() {
    for (declared, value, arguments, expect) in [
        ("Int", json!(1), "int: $v", "int: Some(1)"),
        ("Int", json!("80"), "int: $v", "int: Some(80)"),
        ("Int", json!(9_007_199_254_740_993_i64), "int: $v", "int: Some(9007199254740993)"),
        ("Int", json!(3), "float: $v", "float: Some(3.0)"),
        ("String", json!("FAILURE"), "mode: $v", "mode: Some(Failure)"),
        ("Mode", json!("ANY"), "mode: $v", "mode: Some(Any)"),
        ("String!", json!("a"), "list: $v", "list: Some([\"a\"])"),
        ("String!", json!("a"), "list: [$v, \"b\"]", "list: Some([\"a\", \"b\"])"),
        ("[String!]", json!(["a", "b"]), "list: $v", "list: Some([\"a\", \"b\"])"),
        ("[String!]", json!("a"), "list: $v", "list: Some([\"a\"])"),
        ("Int!", json!(7), "port: {backend: $v}", "backend: 7"),
        ("PortForward", json!({"backend": 7}), "port: $v", "backend: 7"),
        ("[PortForward!]", json!({"backend": 7}), "ports: $v", "backend: 7"),
        ("[PortForward!]", Json::Null, "ports: $v", "ports: []"),
        ("Int", Json::Null, "int: $v", "int: None"),
        ("Platform", json!("linux/amd64"), "platform: $v", "linux/amd64"),
        ("NetworkProtocol", Json::Null, "port: {backend: 1, protocol: $v}", "protocol: Tcp"),
    ] {
        let seen = with_variable(declared, value, arguments).await;
        assert!(seen.contains(expect), "{declared} {arguments}: {seen}");
    }
}

#[tokio::test]
async fn variables_have_defaults_and_may_be_missing() {
    let client = Client::new();
    let data = client.data("query ($v: Int = 5) { probe(int: $v) }").await;
    assert!(data["probe"].as_str().unwrap().contains("int: Some(5)"), "{data}");
    let data = client.data("query ($v: Int) { probe(int: $v) }").await;
    assert!(data["probe"].as_str().unwrap().contains("int: None"), "{data}");
    let error = client.error("query ($v: Int!) { probe(int: $v) }").await;
    assert_eq!(error, "variable `$v` of type `Int!` was not given");
    let error = client.error_with("query ($v: Int!) { probe(int: $v) }", json!({"v": null})).await;
    assert_eq!(error, "variable `$v`: expected `Int!`, got null");
    let error = client.error_with("query ($v: Int) { probe(int: $v) }", json!({"v": "x"})).await;
    assert_eq!(error, "variable `$v`: expected `Int`, got a string");
    let error = client.error("query ($v: Int = \"x\") { probe(int: $v) }").await;
    assert_eq!(error, "default of variable `$v`: expected `Int`, got a string");
}

#[tokio::test]
async fn equal_meaning_is_an_equal_call() {
    let client = Client::new();
    let id = |arguments: &str| {
        let query = format!("{{ container {{ withExec({arguments}) {{ id }} }} }}");
        let client = &client;
        async move { client.id(&query, "/container/withExec/id").await }
    };
    let plain = id("args: [\"a\"]").await;
    for same in [
        "args: [\"a\"], expect: SUCCESS",
        "expect: \"SUCCESS\", args: \"a\"",
        "args: [\"a\"], expect: null",
    ] {
        assert_eq!(id(same).await, plain, "{same}");
    }
    let any = id("args: [\"a\"], expect: ANY").await;
    assert_ne!(any, plain);
    assert_eq!(id("args: [\"a\"], expect: ALL").await, any);
    assert_ne!(id("args: [\"b\"]").await, plain);
}
