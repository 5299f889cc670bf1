//! The schema about itself, as modern clients ask.

use crate::fixture::{Client, World};
use graph::TypeRef;
use serde_json::{Value as Json, json};

/// What the widespread client libraries send.
const STANDARD: &str = "
query IntrospectionQuery {
  __schema {
    queryType { name kind }
    mutationType { name kind }
    subscriptionType { name kind }
    types { ...FullType }
    directives { name description locations isRepeatable args(includeDeprecated: true) { ...InputValue } }
  }
}
fragment FullType on __Type {
  kind name description specifiedByURL
  fields(includeDeprecated: true) {
    name description
    args(includeDeprecated: true) { ...InputValue }
    type { ...TypeRef }
    isDeprecated deprecationReason
  }
  inputFields(includeDeprecated: true) { ...InputValue }
  interfaces { ...TypeRef }
  enumValues(includeDeprecated: true) { name description isDeprecated deprecationReason }
  possibleTypes { ...TypeRef }
}
fragment InputValue on __InputValue {
  name description
  type { ...TypeRef }
  defaultValue isDeprecated deprecationReason
}
fragment TypeRef on __Type {
  kind name
  ofType { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name
    ofType { kind name ofType { kind name ofType { kind name ofType { kind name } } } } } } } } }
}";

fn find<'a>(list: &'a Json, name: &str) -> &'a Json {
    let items = list.as_array().unwrap();
    items.iter().find(|item| item["name"] == json!(name)).unwrap_or_else(|| panic!("no {name}"))
}

#[tokio::test]
async fn the_standard_question_is_answered() {
    let client = Client::new();
    let data = client.data(STANDARD).await;
    let schema = &data["__schema"];
    assert_eq!(schema["queryType"], json!({"name": "Query", "kind": "OBJECT"}));
    assert_eq!(schema["mutationType"], Json::Null);
    let container = find(&schema["types"], "Container");
    assert_eq!(container["interfaces"][1]["name"], json!("Syncer"));
    let old = find(&container["fields"], "old");
    assert_eq!(
        (&old["isDeprecated"], &old["deprecationReason"]),
        (&json!(true), &json!("use `count`"))
    );
    let exec = find(&container["fields"], "withExec");
    let args = find(&exec["args"], "args");
    assert_eq!(
        args["type"],
        json!({"kind": "NON_NULL", "name": null, "ofType": {"kind": "LIST", "name": null,
            "ofType": {"kind": "NON_NULL", "name": null,
                "ofType": {"kind": "SCALAR", "name": "String", "ofType": null}}}})
    );
    let expect = find(&exec["args"], "expect");
    assert_eq!(
        (&expect["defaultValue"], &expect["isDeprecated"]),
        (&json!("SUCCESS"), &json!(false))
    );
    let node = find(&schema["types"], "Node");
    assert_eq!(node["description"], json!("Something with an id."));
    assert!(node["possibleTypes"].as_array().unwrap().len() >= 8);
    for name in ["String", "Int", "Float", "Boolean", "ID", "__Type", "__InputValue", "ContainerID"]
    {
        find(&schema["types"], name);
    }
    for name in ["skip", "include", "deprecated", "specifiedBy", "expectedType"] {
        find(&schema["directives"], name);
    }
}

#[tokio::test]
async fn documentation_comes_from_the_ops() {
    let client = Client::new();
    let data = client.data(STANDARD).await;
    let query = find(&data["__schema"]["types"], "Query");
    let container = find(&query["fields"], "container");
    assert_eq!(container["description"], json!("A new container."));
    assert_eq!(find(&container["args"], "platform")["description"], json!("For which platform."));
    let mode = find(&data["__schema"]["types"], "Mode");
    assert_eq!(mode["description"], json!("What counts as success."));
    assert_eq!(find(&mode["enumValues"], "SUCCESS")["description"], json!("Zero."));
    let port = find(&data["__schema"]["types"], "PortForward");
    assert_eq!(find(&port["inputFields"], "backend")["description"], json!("Inside."));
    assert_eq!(find(&port["inputFields"], "protocol")["defaultValue"], json!("TCP"));
}

#[tokio::test]
async fn deprecated_fields_are_hidden_unless_asked() {
    let client = Client::new();
    let query = "{ a: __type(name: \"Container\") { fields { name } } \
        b: __type(name: \"Container\") { fields(includeDeprecated: true) { name } } }";
    let data = client.data(query).await;
    let has_old = |key: &str| {
        data[key]["fields"].as_array().unwrap().iter().any(|field| field["name"] == json!("old"))
    };
    assert!(!has_old("a") && has_old("b"));
}

#[tokio::test]
async fn single_types_and_unknown_ones() {
    let client = Client::new();
    let query =
        "query ($n: String!) { __type(name: $n) { __typename kind isOneOf ofType { name } } }";
    let data = client.data_with(query, json!({"n": "PortForward"})).await;
    assert_eq!(
        data["__type"],
        json!({"__typename": "__Type", "kind": "INPUT_OBJECT", "isOneOf": false, "ofType": null})
    );
    assert_eq!(client.data_with(query, json!({"n": "Nope"})).await, json!({"__type": null}));
    let data = client.data("{ __schemaVersion version __typename }").await;
    assert_eq!(data["__schemaVersion"], json!(protocol::VERSION));
}

#[tokio::test]
async fn a_repeated_question_is_answered_from_memory() {
    let world = World::new();
    let first = world.client("one").text(STANDARD).await;
    assert_eq!(world.client("two").text(STANDARD).await, first);
    // The same text with something that runs is not kept.
    let client = world.client("three");
    for _ in 0..2 {
        client.data("{ __typename container { export(path: \"a\") } }").await;
    }
    assert_eq!(client.probe.counted("export"), 2);
}

#[tokio::test]
async fn our_own_view_says_what_works() {
    let world = World::new();
    let schema = world.graph.schema();
    let field = |owner: &str, name: &str| {
        let fields = &schema.types[owner].fields;
        fields.iter().find(|field| field.name == name).unwrap().clone()
    };
    assert!(field("Query", "container").implemented);
    assert!(!field("Query", "later").implemented);
    for (owner, name) in
        [("Query", "node"), ("Query", "loadNodeFromID"), ("Container", "id"), ("Syncer", "sync")]
    {
        assert!(field(owner, name).implemented, "{owner}.{name}");
    }
    let with = field("Container", "withDirectory");
    assert_eq!(with.args[2].expected.as_deref(), Some("Directory"));
    assert_eq!(with.args[1].expected.as_deref(), Some("Directory"));
    assert_eq!(with.args[3].default.as_deref(), Some("false"));
    assert!(field("Container", "old").deprecated);
    let forward = &schema.types["PortForward"].inputs;
    let frontend = forward.iter().find(|input| input.name == "frontend").unwrap();
    assert_eq!(frontend.type_ref, TypeRef::Named("Int".into()));
    let members = schema.types["Mode"].members.iter();
    let members: Vec<_> =
        members.map(|member| (member.name.as_str(), member.stands_for.as_deref())).collect();
    let alone = |name| (name, None);
    assert_eq!(members[..3], ["SUCCESS", "FAILURE", "ANY"].map(alone));
    assert_eq!(members[3], ("ALL", Some("ANY")));
    assert!(!schema.types.contains_key("__Type"));
}
