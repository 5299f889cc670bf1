//! Documents and values as published clients write them.

use serde_json::json;
use testkit::{Session, State};

/// Sends a document with variables and gives the reply.
fn send(session: &Session, query: &str, variables: serde_json::Value) -> serde_json::Value {
    let body = json!({ "query": query, "variables": variables }).to_string();
    session.endpoint.send(&session.endpoint.request(body)).unwrap().json()
}

#[test]
fn every_style_of_document_is_read() {
    let state = State::new();
    let session = Session::start(&state);
    for document in [
        r#"{ directory { withNewFile: withNewFile(path: "a", contents: "b") { entries: entries } } }"#,
        "\n  { directory { withNewFile (path: \"a\", contents: \"b\") { entries } } }\n",
        r#"query{directory{withNewFile(contents:"b",path:"a"){entries}}}"#,
        r#"query Named { ...top } fragment top on Query { directory { withNewFile(path: "a", contents: "b") { entries } } }"#,
        "# a comment\nquery { directory { ... on Directory { withNewFile(path: \"a\", contents: \"b\") { entries } } } }",
    ] {
        assert_eq!(session.leaf(document), json!(["a"]), "{document}");
    }
}

#[test]
fn siblings_and_aliases_stand_side_by_side() {
    let state = State::new();
    let session = Session::start(&state);
    let data = session.query(
        r#"{ one: file(name: "a", contents: "1") { contents } two: file(name: "a", contents: "2") { contents size }
             directory { a: withNewFile(path: "x", contents: "") { entries } b: entries } }"#,
    );
    assert_eq!(
        data,
        json!({"one": {"contents": "1"}, "two": {"contents": "2", "size": 1}, "directory": {"a": {"entries": ["x"]}, "b": []}})
    );
}

#[test]
fn lenient_values_are_taken() {
    let state = State::new();
    let session = Session::start(&state);
    let quoted = session.container(r#"withExec(args: ["false"], expect: "ANY") { sync }"#);
    assert!(!quoted.is_empty(), "a quoted enum");
    assert_eq!(
        session.leaf(r#"{ file(name: "a", contents: "x", permissions: "420") { contents } }"#),
        "x"
    );
    assert_eq!(
        session.container(r#"withExec(args: "true") { stdout }"#),
        "",
        "one value for a list"
    );
    let id = session.leaf(r#"{ directory { id } }"#);
    let reply = send(
        &session,
        "query($id: DirectoryID!) { loadDirectoryFromID(id: $id) { entries } }",
        json!({ "id": id }),
    );
    assert_eq!(reply["data"]["loadDirectoryFromID"]["entries"], json!([]), "{reply}");
    assert!(
        !session.error(r#"{ file(name: "a", contents: "x", nothing: 1) { contents } }"#).is_empty()
    );
    assert!(
        !session.error(r#"{ file(name: "a") { contents } }"#).is_empty(),
        "a required argument"
    );
    assert!(!session.error(r#"{ file(name: 5, contents: "x") { contents } }"#).is_empty());
}

#[test]
fn skip_and_include_are_honoured() {
    let state = State::new();
    let session = Session::start(&state);
    let query =
        "query($yes: Boolean!) { version @skip(if: $yes) defaultPlatform @include(if: $yes) }";
    let reply = send(&session, query, json!({ "yes": true }));
    let keys: Vec<&String> = reply["data"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["defaultPlatform"]);
}

#[test]
fn text_of_every_sort_comes_back_as_it_was() {
    let state = State::new();
    let session = Session::start(&state);
    for text in
        ["", "a\nb\r\n\t", "\"quoted\" \\ back", "ümlaut 漢字 🦀 \u{2028}", "$HOME ${x} %s {}"]
    {
        let reply = send(
            &session,
            "query($text: String!) { file(name: \"f\", contents: $text) { contents } }",
            json!({ "text": text }),
        );
        assert_eq!(reply["data"]["file"]["contents"], text);
        let literal = serde_json::Value::from(text);
        assert_eq!(
            session.leaf(&format!("{{ file(name: \"f\", contents: {literal}) {{ contents }} }}")),
            text
        );
    }
}

#[test]
fn errors_have_the_shape_that_clients_read() {
    let state = State::new();
    let session = Session::start(&state);
    let reply = session.send(r#"{ version directory { file(path: "none") { contents } } }"#).json();
    assert!(reply["data"].is_null(), "all or nothing: {reply}");
    let error = &reply["errors"][0];
    assert_eq!(error["path"], json!(["directory", "file", "contents"]), "{reply}");
    assert!(error.get("extensions").is_none(), "only exec errors have extensions: {reply}");

    let document = session.on_container(
        r#"withExec(args: ["sh", "-c", "echo out; echo err >&2; exit 3"]) { stdout }"#,
    );
    let reply = session.send(&document).json();
    let extensions = reply["errors"][0]["extensions"].as_object().unwrap();
    let mut keys: Vec<&String> = extensions.keys().collect();
    keys.sort();
    assert_eq!(keys, ["_type", "cmd", "exitCode", "stderr", "stdout"]);
    assert_eq!(extensions["cmd"], json!(["sh", "-c", "echo out; echo err >&2; exit 3"]));
    assert_eq!(
        (&extensions["exitCode"], &extensions["stdout"], &extensions["stderr"]),
        (&json!(3), &json!("out"), &json!("err"))
    );
    let message = reply["errors"][0]["message"].as_str().unwrap();
    assert!(message.contains("exit code: 3") && !message.contains("err\n"), "{message}");
}

#[test]
fn long_output_of_a_failure_keeps_its_end() {
    let state = State::new();
    let session = Session::start(&state);
    let document = session.on_container(
        r#"withExec(args: ["sh", "-c", "yes 0123456789abcde | head -c 200000; echo; echo END; exit 1"]) { stdout }"#,
    );
    let error = session.exec_error(&document);
    assert!(error.stdout.starts_with("[omitting "), "{}", &error.stdout[..60]);
    assert!(error.stdout.ends_with("END"), "the tail is kept");
    assert_eq!(error.stdout.len(), 102_400);
}

#[test]
fn a_chain_of_900_fields_is_answered() {
    let state = State::new();
    let session = Session::start(&state);
    // The answer is as deep as the question, deeper than the JSON reader of the tests goes.
    let answer = |document: &str| {
        let reply = session.send(document);
        assert_eq!(reply.status, 200);
        String::from_utf8(reply.body).unwrap()
    };
    let mut document = "entries".to_owned();
    for index in 0..900 {
        document =
            format!("withNewFile(path: \"f{}\", contents: \"\") {{ {document} }}", index % 3);
    }
    let text = answer(&format!("{{ directory {{ {document} }} }}"));
    assert!(text.contains(r#""entries":["f0","f1","f2"]"#), "{text:.300}");
    let mut document = "envVariable(name: \"N\")".to_owned();
    for index in 0..900 {
        document = format!("withEnvVariable(name: \"N\", value: \"{index}\") {{ {document} }}");
    }
    let text = answer(&format!("{{ container {{ {document} }} }}"));
    assert!(text.contains(r#""envVariable":"0""#), "{text:.300}");
}
