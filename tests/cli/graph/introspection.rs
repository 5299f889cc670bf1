//! The whole schema is served from the start.

use testkit::{Session, State};

const FULL: &str = include_str!("introspection.graphql");

#[test]
fn the_query_of_published_clients_is_answered() {
    let state = State::new();
    let session = Session::start(&state);
    let data = session.query(FULL);
    let types = data["__schema"]["types"].as_array().unwrap();
    assert!(types.len() > 190, "the superset has 199 named types: {}", types.len());
    let query = types.iter().find(|kind| kind["name"] == "Query").unwrap();
    let fields = query["fields"].as_array().unwrap();
    for name in ["container", "git", "loadContainerFromID", "node", "llm"] {
        assert!(fields.iter().any(|field| field["name"] == name), "{name}");
    }
    assert_eq!(data["__schema"]["queryType"]["name"], "Query");
    assert!(data["__schema"]["mutationType"].is_null());
    let container = types.iter().find(|kind| kind["name"] == "Container").unwrap();
    let exec = container["fields"].as_array().unwrap();
    let exec = exec.iter().find(|field| field["name"] == "withExec").unwrap();
    assert!(exec["description"].as_str().is_some_and(|text| !text.is_empty()), "{exec}");
    let expect =
        exec["args"].as_array().unwrap().iter().find(|arg| arg["name"] == "expect").unwrap();
    assert_eq!(expect["defaultValue"], "SUCCESS");
}

#[test]
fn one_type_can_be_asked_for() {
    let state = State::new();
    let session = Session::start(&state);
    let data = session.query(r#"{ __type(name: "File") { kind name fields { name } } none: __type(name: "Nope") { name } }"#);
    assert_eq!(data["__type"]["kind"], "OBJECT");
    assert!(data["none"].is_null());
    assert_eq!(session.leaf("{ __typename }"), "Query");
    assert_eq!(session.leaf("{ directory { __typename } }"), "Directory");
}

#[test]
fn a_field_that_is_not_built_says_so() {
    let state = State::new();
    let session = Session::start(&state);
    for document in [
        "{ llm { model } }",
        "{ directory { asModule { name } } }",
        r#"{ moduleSource(refString: ".") { kind } }"#,
    ] {
        let said = session.error(document);
        assert!(said.contains("not implemented yet"), "{document}: {said}");
    }
}
