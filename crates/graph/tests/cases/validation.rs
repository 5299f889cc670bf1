//! What published clients send although a strict server refuses it, and what stays refused.

use crate::fixture::Client;
use serde_json::json;

#[tokio::test]
async fn the_five_leniencies() {
    let client = Client::new();
    // A quoted enum in an input object.
    client.data(r#"{ probe(port: {backend: 1, protocol: "UDP"}) }"#).await;
    // A number in quotes.
    client.data(r#"{ probe(int: "80") }"#).await;
    // Another name for the type of an id.
    let id = client.id("{ container { id } }", "/container/id").await;
    let query = "query ($i: ContainerID!) { loadContainerFromID(id: $i) { count } }";
    let data = client.data_with(query, json!({ "i": id })).await;
    assert_eq!(data, json!({"loadContainerFromID": {"count": 0}}));
    // A fragment on a type that another answers for.
    let data = client.data("{ git { ref ... on GitCommit { sha } } }").await;
    assert_eq!(data, json!({"git": {"ref": "main", "sha": "c0ffee"}}));
    // A selection from a leaf that is the id of an object.
    let data = client.data("{ container { step(by: 3) { count } } }").await;
    assert_eq!(data, json!({"container": {"step": {"count": 3}}}));
    let data = client.data("{ container { sync { count sync } } }").await;
    assert_eq!(data["container"]["sync"]["count"], json!(0));
}

#[tokio::test]
async fn an_id_leaf_without_selection_is_the_id_of_what_it_made() {
    let client = Client::new();
    let data = client.data("{ container { id sync step } }").await;
    assert_eq!(data["container"]["id"], data["container"]["sync"]);
    let made = data["container"]["step"].as_str().unwrap();
    let query = format!("{{ loadContainerFromID(id: \"{made}\") {{ id count }} }}");
    let loaded = client.data(&query).await;
    assert_eq!(loaded["loadContainerFromID"], json!({"id": made, "count": 1}));
}

#[tokio::test]
async fn what_is_wrong_is_refused_before_anything_runs() {
    for (query, expect) in [
        ("{ nope }", "field `nope` does not exist on type `Query`"),
        ("{ container { nope } }", "field `nope` does not exist on type `Container`"),
        ("{ container { step { nope } } }", "field `nope` does not exist on type `Container`"),
        ("{ container }", "field `container` of type `Container!` needs a selection of its fields"),
        ("{ version { x } }", "field `version` of type `String!` has no fields"),
        ("{ container { id { x } } }", "field `id` of type `ID!` has no fields"),
        ("{ container { withExec { id } } }", "field `withExec` missing argument(s): args"),
        (
            "{ container { sync { withExec { id } } } }",
            "field `withExec` needs the argument `args`",
        ),
        ("{ container { sync { count(a: 1) } } }", "field `count` has no argument `a`"),
        (
            "{ container { ... on Directory { name } } }",
            "a fragment on `Directory` can never apply to `Container`",
        ),
        (
            "{ directory { ... on Syncer { sync } } }",
            "a fragment on `Syncer` can never apply to `Directory`",
        ),
        (
            "{ container { ...F } } fragment F on Directory { name }",
            "a fragment on `Directory` can never apply to `Container`",
        ),
        ("{ version ...F }", "no fragment defined with name `F`"),
        ("{ version } fragment F on Query { version }", "fragment definition `F` is unused"),
        ("query ($a: Int) { version }", "variable definition $a not used"),
        ("{ probe(int: $a) }", "variable $a not defined in anonymous operation"),
        (
            "query ($a: Boolean) { probe(text: $a) }",
            "variable `$a` is `Boolean`, expected `String`",
        ),
        (
            "query ($a: PortForward) { probe(text: $a) }",
            "variable `$a` is `PortForward`, expected `String`",
        ),
        ("query ($a: [Int]) { probe(int: $a) }", "variable `$a` is `[Int]`, expected `Int`"),
        (
            "query ($a: String) { setSecret(name: $a, plaintext: \"\") { id } }",
            "variable `$a` is `String`, expected `String!`",
        ),
        (
            "query ($a: Boolean) { ...F } fragment F on Query { probe(numbers: [$a]) }",
            "variable `$a` is `Boolean`, expected `Int!`",
        ),
        (
            "query ($a: Container) { probe(text: $a) }",
            "type of variable $a, Container, is not an input type",
        ),
        (
            "{ container { clash(a: 1) clash(a: 2) } }",
            "fields in selection set do not merge due to unequal arguments",
        ),
        (
            "{ a: version a: __typename }",
            "fields in selection set do not merge due to unequal field names",
        ),
        ("{ version @nope }", "no directive definition with name `@nope`"),
        ("{ version @skip(if: 3) }", "`@skip`: expected `Boolean`, got a number"),
        ("{ version ", "parse error: unexpected EOF"),
        ("", "document does not contain any definitions"),
        ("mutation { version }", "schema does not define a mutation root"),
        ("subscription { version }", "schema does not define a subscription root"),
    ] {
        let client = Client::new();
        let error = client.error(query).await;
        assert!(error.to_lowercase().contains(&expect.to_lowercase()), "{query}: {error}");
        assert_eq!(client.probe.total(), 0, "{query}");
    }
}

#[tokio::test]
async fn errors_in_a_document_say_where() {
    let client = Client::new();
    assert_eq!(
        client.text("{\n  nope\n}").await,
        "{\"errors\":[{\"message\":\"field `nope` does not exist on type `Query`\",\
         \"locations\":[{\"line\":2,\"column\":3}]}],\"data\":null}"
    );
    assert_eq!(
        client.text("{ probe(\n int: \"x\") }").await,
        "{\"errors\":[{\"message\":\"argument `int`: expected `Int`, got a string\",\
         \"locations\":[{\"line\":2,\"column\":2}]}],\"data\":null}"
    );
}
