//! Deep chains work, and what would cost too much is refused at once.

use crate::fixture::{Client, World};
use serde_json::{Value as Json, json};
use std::time::{Duration, Instant};

pub(super) fn chain(depth: usize, leaf: &str) -> String {
    let mut query = String::from("{ container { ");
    for index in 0..depth {
        query += &format!("withEnvVariable(name: \"N{index}\", value: \"v\") {{ ");
    }
    query + leaf + " " + &"} ".repeat(depth + 2)
}

fn at_depth(data: &Json, depth: usize) -> &Json {
    (0..depth).fold(&data["container"], |at, _| &at["withEnvVariable"])
}

/// The reply is read at its end only: a JSON parser recurses.
#[tokio::test]
async fn a_chain_of_900_calls_is_one_document() {
    let client = Client::new();
    let text = client.text(&chain(900, "count")).await;
    assert!(text.contains(r#"{"count":900}"#), "{}", &text[..200]);
    assert_eq!(client.probe.counted("withEnvVariable"), 900);
    assert!(client.text(&chain(1000, "id")).await.starts_with("{\"data\":"));
}

#[tokio::test]
async fn a_chain_of_100_000_calls_by_id() {
    let world = World::new();
    let mut call = protocol::Call::new(None, "container", vec![], "Container", None);
    for index in 0..100_000 {
        let args = vec![
            ("name".into(), graph::Value::String(index.to_string().into())),
            ("value".into(), graph::Value::String("v".into())),
        ];
        call = protocol::Call::new(Some(call), "withEnvVariable", args, "Container", None);
    }
    let records = call.closure(&|_| false);
    let records = records.iter().map(|call| (*call.digest(), call.record())).collect();
    graph::Memo::put_calls(&*world.memo, records).unwrap();
    let id = protocol::Id { handle: call.digest().handle(), type_name: "Container".into() };
    let client = world.client("one");
    let data = client.data(&format!("{{ loadContainerFromID(id: \"{id}\") {{ count }} }}")).await;
    assert_eq!(data, json!({"loadContainerFromID": {"count": 100_000}}));
    let query = format!(
        "{{ loadContainerFromID(id: \"{id}\") {{ withExec(args: [\"a\"]) {{ count id }} }} }}"
    );
    let data = client.data(&query).await;
    assert_eq!(data["loadContainerFromID"]["withExec"]["count"], json!(100_001));
}

/// The error to a hostile document, which must come at once.
async fn refused(query: String) -> String {
    let client = Client::new();
    let begin = Instant::now();
    let error = client.error(&query).await;
    let took = begin.elapsed();
    assert!(took < Duration::from_secs(20), "{took:?} for {error}");
    assert_eq!(client.probe.total(), 0);
    error
}

#[tokio::test]
async fn absurd_depth_is_refused() {
    assert_eq!(refused(chain(20_000, "id")).await, "the document is nested deeper than 1024");
    assert_eq!(refused(chain(1_025, "id")).await, "the document is nested deeper than 1024");
    let lists = format!("{{ probe(list: {}{}) }}", "[".repeat(1_000_000), "]".repeat(1_000_000));
    assert_eq!(refused(lists).await, "the document is nested deeper than 1024");
    let lists = format!("{{ probe(list: {}{}) }}", "[".repeat(1_000), "]".repeat(1_000));
    assert_eq!(refused(lists).await, "argument `list`: expected `String`, got a list");
}

#[tokio::test]
async fn cycles_and_bombs_of_fragments_are_refused() {
    let cycle = "{ container { ...A } } fragment A on Container { step { ...B } } \
                 fragment B on Container { step { ...A } }";
    assert!(refused(cycle.into()).await.contains("includes itself"));
    let mut bomb = String::from("{ container { ...F0 } }");
    for index in 0..40 {
        let next = index + 1;
        bomb += &format!(
            " fragment F{index} on Container {{ a: step {{ ...F{next} }} b: step {{ ...F{next} }} }}"
        );
    }
    bomb += " fragment F40 on Container { count }";
    assert_eq!(refused(bomb).await, "the document selects more than 50000 fields");
    let many: String =
        (0..600).map(|index| format!(" fragment F{index} on Query {{ version }}")).collect();
    assert_eq!(
        refused(format!("{{ version }}{many}")).await,
        "the document has more than 500 fragments"
    );
    let mut long = String::from("{ ...F0 }");
    for index in 0..499 {
        long += &format!(" fragment F{index} on Query {{ ...F{} }}", index + 1);
    }
    long += " fragment F499 on Query { version }";
    let client = Client::new();
    assert_eq!(client.data(&long).await, json!({"version": "v1"}));
}

#[tokio::test]
async fn huge_flat_documents_are_refused() {
    let fields = "version ".repeat(200_000);
    assert!(refused(format!("{{ {fields} }}")).await.contains("selects more than 50000 fields"));
    let tokens = "1 ".repeat(2_000_000);
    let error = refused(format!("{{ probe(numbers: [{tokens}]) }}")).await;
    assert!(error.contains("token"), "{error}");
}

#[tokio::test]
async fn a_tree_of_equal_keys_is_refused_before_it_is_compared() {
    // Every level repeats the key of a subtree that repeats keys again.
    let mut tree = String::from("count");
    for level in 0..300 {
        let side =
            format!("{}count{}", "step {".repeat(level.min(150)), "}".repeat(level.min(150)));
        tree = format!("step {{ {tree} }} step {{ {side} }}");
    }
    let error = refused(format!("{{ container {{ {tree} }} }}")).await;
    assert!(error.contains("selects more than"), "{error}");
}

#[tokio::test]
async fn a_long_text_is_no_problem() {
    let client = Client::new();
    let text = "x".repeat(8 << 20);
    let data = client.data(&format!("{{ container {{ export(path: \"{text}\") }} }}")).await;
    assert_eq!(data["container"]["export"].as_str().unwrap().len(), text.len());
}

#[tokio::test]
async fn depth_is_counted_where_it_is() {
    let client = Client::new();
    let data = client.data(&chain(100, "count")).await;
    assert_eq!(at_depth(&data, 100)["count"], json!(100));
}

#[tokio::test]
async fn everything_that_can_nest_fits_the_stack() {
    let client = Client::new();
    let fragments = format!("{{ {} version {} }}", "... {".repeat(1000), "}".repeat(1000));
    assert_eq!(client.data(&fragments).await, json!({"version": "v1"}));
    let steps = format!("{} count {}", "sync {".repeat(900), "}".repeat(900));
    let twins = format!("{{ container {{ {steps} {steps} }} }}");
    assert!(client.text(&twins).await.starts_with("{\"data\":"));
    let chains =
        chain(900, "count").replacen("{ container", "{ container { __typename } container", 1);
    assert!(client.text(&chains).await.starts_with("{\"data\":"));
    let doubled = chain(900, "count");
    let inner = &doubled[1..doubled.rfind('}').unwrap()];
    assert!(client.text(&format!("{{ {inner} {inner} }}")).await.starts_with("{\"data\":"));
    for (open, close) in [("{backend: ", "}"), ("[", "]")] {
        let value = format!("{}$v{}", open.repeat(1000), close.repeat(1000));
        let query = format!("query ($v: Int) {{ probe(port: {value}) }}");
        let error = client.error(&query).await;
        assert!(error.starts_with("argument `port`"), "{error}");
    }
}
