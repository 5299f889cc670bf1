//! JSON, errors and schemas as values.

use serde_json::{Value, json};
use testkit::{Session, State};

#[test]
fn json_is_looked_into_and_built() {
    let state = State::new();
    let session = Session::start(&state);
    let text = json!(r#"{"user": {"name": "Ada", "age": 36, "tags": [1, "two", true, null]}}"#);
    let data = session.query(&format!(
        r#"{{ json {{ contents withContents(contents: {text}) {{
            fields
            itself: field(path: []) {{ contents }}
            name: field(path: ["user", "name"]) {{ asString }}
            age: field(path: ["user", "age"]) {{ asInteger contents }}
            tags: field(path: ["user", "tags"]) {{ asArray {{ contents }} }}
            pretty: field(path: ["user", "tags"]) {{ contents(pretty: true, indent: " ") }}
        }} }} }}"#
    ));
    let made = &data["json"]["withContents"];
    assert_eq!(data["json"]["contents"], "null");
    assert_eq!(made["fields"], json!(["user"]));
    assert_eq!(
        made["itself"]["contents"],
        r#"{"user":{"age":36,"name":"Ada","tags":[1,"two",true,null]}}"#
    );
    assert_eq!((&made["name"]["asString"], &made["age"]["asInteger"]), (&json!("Ada"), &json!(36)));
    let tags = made["tags"]["asArray"].as_array().unwrap();
    let tags: Vec<&str> = tags.iter().map(|tag| tag["contents"].as_str().unwrap()).collect();
    assert_eq!(tags, ["1", "\"two\"", "true", "null"]);
    assert_eq!(made["pretty"]["contents"], "[\n 1,\n \"two\",\n true,\n null\n]");

    let id = |query: &str| session.leaf(&format!("{{ json {{ {query} {{ id }} }} }}"));
    let (word, number) = (id(r#"newString(value: "a\nb")"#), id("newInteger(value: -12345678901)"));
    let flag = id("newBoolean(value: true)");
    let built = session.leaf(&format!(
        r#"{{ json {{ withField(path: ["a", "b"], value: {word}) {{
            withField(path: ["a", "c"], value: {number}) {{
            withField(path: ["d"], value: {flag}) {{ contents }} }} }} }} }}"#
    ));
    assert_eq!(built, r#"{"a":{"b":"a\nb","c":-12345678901},"d":true}"#);
    let flag = session.leaf("{ json { newBoolean(value: false) { asBoolean } } }");
    assert_eq!(flag, false);
}

#[test]
fn json_of_another_kind_is_an_error() {
    let state = State::new();
    let session = Session::start(&state);
    for (query, expect) in [
        (r#"withContents(contents: "{") { contents }"#, "invalid JSON"),
        (r#"withContents(contents: "1.5") { asInteger }"#, "is a number, not an integer"),
        (r#"withContents(contents: "[]") { asString }"#, "is an array, not a string"),
        (r#"withContents(contents: "\"x\"") { asBoolean }"#, "is a string, not a boolean"),
        (r#"withContents(contents: "{}") { asArray { id } }"#, "is an object, not an array"),
        ("fields", "is null, not an object"),
        (r#"withContents(contents: "{}") { field(path: ["a"]) { contents } }"#, "no field `a`"),
    ] {
        let said = session.error(&format!("{{ json {{ {query} }} }}"));
        assert!(said.contains(expect), "{query}: {said}");
    }
    let file = |text: &str| format!("{{ file(name: \"x.json\", contents: {}) ", json!(text));
    let read = session.leaf(&format!("{}{{ asJSON {{ contents }} }} }}", file("{\"a\": 1}\n")));
    assert_eq!(read, r#"{"a":1}"#);
    let said = session.error(&format!("{}{{ asJSON {{ contents }} }} }}", file("{a}")));
    assert!(said.contains("file `x.json`: invalid JSON"), "{said}");
}

#[test]
fn errors_are_values_and_can_be_raised() {
    let state = State::new();
    let session = Session::start(&state);
    let data = session.query(
        r#"{ error(message: "it broke") { message withValue(name: "code", value: "{\"n\": 1}") {
            withValue(name: "why", value: "\"no\"") { withValue(name: "code", value: "2") {
            values { name value } } } } } }"#,
    );
    assert_eq!(data["error"]["message"], "it broke");
    let values = &data["error"]["withValue"]["withValue"]["withValue"]["values"];
    let expected = json!([{ "name": "code", "value": "2" }, { "name": "why", "value": "\"no\"" }]);
    assert_eq!(*values, expected);
    let said = session
        .error(r#"{ error(message: "x") { withValue(name: "a", value: "{") { id message } } }"#);
    assert!(said.contains("invalid JSON"), "{said}");

    for kind in ["container", "directory"] {
        let id = session.leaf(&format!("{{ {kind} {{ withError(err: \"it broke\") {{ id }} }} }}"));
        assert!(id.is_string(), "naming it runs nothing");
        let said =
            session.error(&format!("{{ {kind} {{ withError(err: \"it broke\") {{ sync }} }} }}"));
        assert_eq!(said, "it broke");
        session.query(&format!("{{ {kind} {{ withError(err: \"\") {{ sync }} }} }}"));
    }
}

#[test]
fn a_modules_types_are_merged_into_a_schema() {
    let state = State::new();
    let session = Session::start(&state);
    let schema = session.query("{ __schema { types { name kind fields { name } } } }");
    let module = json!({ "name": "echo", "objects": [{ "name": "Echo", "functions": [
        { "name": "say", "returnType": { "kind": "SCALAR", "name": "String" } },
    ] }] });
    let (schema, module) = (json!(schema.to_string()), json!(module.to_string()));
    let merge =
        |rest: &str| format!(r#"merge(moduleTypes: {module}, moduleName: "echo") {{ {rest} }}"#);
    let once = session.leaf(&format!("{{ schema(json: {schema}) {{ {} }} }}", merge("contents")));
    let twice = merge(&merge("contents"));
    assert_eq!(once, session.leaf(&format!("{{ schema(json: {schema}) {{ {twice} }} }}")));
    let merged: Value = serde_json::from_str(once.as_str().unwrap()).unwrap();
    let types = merged["__schema"]["types"].as_array().unwrap();
    assert!(types.iter().any(|type_| type_["name"] == "Echo"));
    let query = types.iter().find(|type_| type_["name"] == "Query").unwrap();
    assert!(query["fields"].as_array().unwrap().iter().any(|field| field["name"] == "echo"));
    let taken = json!(json!({ "objects": [{ "name": "Container" }] }).to_string());
    let said = session.error(&format!(
        r#"{{ schema(json: {schema}) {{ merge(moduleTypes: {taken}, moduleName: "x") {{ contents }} }} }}"#
    ));
    assert!(said.contains("type `Container` is in the schema already"), "{said}");
}
