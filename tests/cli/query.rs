//! `ci-tool query`: a GraphQL document in, JSON out.

use testkit::State;

const TWO: &str = r#"
query Build($name: String!) { file(name: "f", contents: $name) { contents } }
query Other { version }
"#;

#[test]
fn a_document_is_read_from_standard_input() {
    let state = State::new();
    let output = state.cli(["query"]).stdin("{ version }").run();
    assert_eq!(output.ok(), format!("{{\n    \"version\": \"{}\"\n}}\n", protocol::VERSION));
}

#[test]
fn a_document_is_read_from_a_file_with_operation_and_variables() {
    let state = State::new();
    state.file("q.graphql", TWO);
    let doc = ["query", "--doc", "q.graphql"];
    let run = |rest: &[&str]| state.cli(doc.iter().chain(rest).copied()).run();

    let output = run(&["Build", "--var", "name=x"]);
    assert_eq!(output.ok(), "{\n    \"file\": {\n        \"contents\": \"x\"\n    }\n}\n");
    let output = run(&["Build", "--var", "name=a=b"]);
    assert!(output.ok().contains("\"a=b\""), "{output:#?}");
    let output = run(&["Build", "--var", "name=x", "--var-json", r#"{"name":"y"}"#]);
    assert!(output.ok().contains("\"y\""), "JSON wins: {output:#?}");
    assert!(run(&["Other"]).ok().contains("version"));
    let output = run(&["Missing"]);
    assert!(output.fails(1).contains("Missing"), "{output:#?}");
    let output = run(&[]);
    assert!(!output.fails(1).is_empty(), "two operations and none named: {output:#?}");
}

#[test]
fn any_error_leaves_standard_output_empty() {
    let state = State::new();
    for (document, expected) in [
        ("{ nothing }", "nothing"),
        ("{ container }", "container"),
        ("{", ""),
        ("", ""),
        (r#"{ version directory { file(path: "/none") { contents } } }"#, "no such file"),
    ] {
        let output = state.cli(["query"]).stdin(document).run();
        let said = output.fails(1);
        assert!(said.contains(expected), "{document}: {said}");
        assert_eq!(output.stdout, "", "{document}");
    }
    let output = state.cli(["query", "--doc", "missing.graphql"]).run();
    assert!(output.fails(1).contains("missing.graphql"), "{output:#?}");
}

#[test]
fn mutations_and_subscriptions_are_refused() {
    let state = State::new();
    for document in ["mutation { version }", "subscription { version }"] {
        let output = state.cli(["query"]).stdin(document).run();
        assert!(!output.fails(1).is_empty(), "{document}");
    }
}
