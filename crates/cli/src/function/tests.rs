//! Words in, documents, results, pages and errors out.

use super::chain::{Chain, ChainError, Outside, parse};
use super::fixture::schema;
use super::plan::Plan;
use super::{answer, page, table};
use clap::{Arg, ArgAction, Command};
use serde_json::{Value, json};
use tui::Paint;

const PLAIN: Paint = Paint { colour: false };

fn command() -> Command {
    let inherited = "INHERITED OPTIONS";
    Command::new("core")
        .about("Call a core function")
        .arg(
            Arg::new("json")
                .short('j')
                .long("json")
                .action(ArgAction::SetTrue)
                .help("Present the result as JSON"),
        )
        .arg(
            Arg::new("output").short('o').long("output").value_name("path").help("Save the result"),
        )
        .arg(
            Arg::new("silent")
                .short('s')
                .long("silent")
                .action(ArgAction::SetTrue)
                .help_heading(inherited)
                .help("Show no progress at all"),
        )
        .arg(
            Arg::new("progress")
                .long("progress")
                .default_value("auto")
                .value_name("string")
                .help_heading(inherited)
                .help("Progress format"),
        )
}

fn words(line: &str) -> Vec<String> {
    line.split(' ').filter(|word| !word.is_empty()).map(|word| word.replace('␣', " ")).collect()
}

fn with_chain<T>(line: &str, then: impl FnOnce(&Chain<'_>) -> T) -> Result<T, ChainError> {
    let schema = schema();
    parse(&schema, "ci-tool core", &words(line), &Outside::of(&command())).map(|chain| then(&chain))
}

/// The document for a line, with the look-ups before it.
fn document(line: &str) -> String {
    document_to(line, None)
}

fn document_to(line: &str, export_to: Option<&str>) -> String {
    let planned = with_chain(line, |chain| Plan::new(&schema(), chain, export_to));
    let plan = match planned {
        Ok(Ok(plan)) => plan,
        Ok(Err(misused)) => return misused.message,
        Err(error) => return error.to_string(),
    };
    let answers: Vec<String> = (0..plan.look_ups.len()).map(|index| format!("ID{index}")).collect();
    let mut lines: Vec<String> = plan.look_up_document().into_iter().collect();
    lines.push(plan.document(&answers));
    lines.join("\n")
}

fn error(line: &str) -> String {
    with_chain(line, |chain| format!("no error: {chain:?}"))
        .unwrap_or_else(|error| format!("{}: {error}", error.path))
}

#[test]
fn a_wrong_value_is_told_with_its_function() {
    let line = "container with-exec --args=a --expect=maybe stdout";
    let path = with_chain(line, |chain| {
        let misused = Plan::new(&schema(), chain, None).unwrap_err();
        chain.path_of("ci-tool core", misused.functions)
    });
    assert_eq!(path.unwrap(), "ci-tool core container with-exec");
}

#[test]
fn a_chain_is_one_document() {
    insta::assert_snapshot!(
        document("container from --address=deb://bookworm with-exec --args=sh,-c,echo␣hi stdout"),
        @r#"
    {container{from(address: "deb://bookworm"){withExec(args: ["sh", "-c", "echo hi"]){stdout}}}}
    "#
    );
}

#[test]
fn names_are_accepted_in_any_casing_and_values_in_either_form() {
    let expected = document("container from --address=x with-exec --args=a --no-init stdout");
    for line in [
        "container from --address x withExec --args a --noInit stdout",
        "Container FROM --Address=x with_exec --ARGS=a --no-init=true stdout",
        "container from --address=x with-exec --args=a --noinit=1 -- stdout",
    ] {
        assert_eq!(document(line), expected, "{line}");
    }
}

#[test]
fn values_become_literals() {
    insta::assert_snapshot!(
        document("container --platform=linux/arm64 with-exec --args=a --args=b,\"c,d\" --stdin=x\"y --expect=any --no-init=false up --ports=80:8080,81:8081"),
        @r#"
    {container(platform: "linux/arm64"){withExec(args: ["a", "b", "c,d"], stdin: "x\"y", expect: ANY, noInit: false){up(ports: [{frontend: 80, backend: 8080}, {frontend: 81, backend: 8081}])}}}
    "#
    );
    insta::assert_snapshot!(document("container with-exec --args= exit-code"), @"{container{withExec(args: []){exitCode}}}");
    insta::assert_snapshot!(document("container with-exec --args a --expect=maybe"), @r#"
    invalid argument "maybe" for "--expect" flag: value should be one of SUCCESS,FAILURE,ANY
    "#);
}

#[test]
fn objects_are_looked_up_first_all_at_once() {
    insta::assert_snapshot!(
        document("container --platform=current with-mounted-directory --path=/src --source=./src with-secret-variable --name=T --secret=env://TOKEN stdout"),
        @r#"
    {a0: defaultPlatform a1: host{directory(path: "./src"){sync}} a2: secret(uri: "env://TOKEN"){id}}
    {container(platform: "ID0"){withMountedDirectory(path: "/src", source: "ID1"){withSecretVariable(name: "T", secret: "ID2"){stdout}}}}
    "#
    );
}

#[test]
fn an_object_at_the_end_is_synced_or_named_by_its_id() {
    insta::assert_snapshot!(document("container from --address=x"), @r#"
    {container{from(address: "x"){sync}}}
    "#);
    insta::assert_snapshot!(document("container file --path=/a"), @r#"
    {container{file(path: "/a"){id}}}
    "#);
    insta::assert_snapshot!(document("container env-variables"), @"{container{envVariables{id}}}");
    insta::assert_snapshot!(document("container labels"), @"{container{labels{__typename}}}");
    assert_eq!(document(""), "");
}

#[test]
fn what_can_be_exported_is_exported() {
    insta::assert_snapshot!(document_to("container file --path=/a", Some("/out")), @r#"
    {container{file(path: "/a"){export(path: "/out", allowParentDirPath: true)}}}
    "#);
    insta::assert_snapshot!(document_to("container rootfs", Some("/out")), @r#"
    {container{rootfs{export(path: "/out")}}}
    "#);
    insta::assert_snapshot!(document_to("container stdout", Some("/out")), @"{container{stdout}}");
}

#[test]
fn flags_of_the_command_may_stand_anywhere_unless_a_function_has_them() {
    let outside = |line: &str| with_chain(line, |chain| chain.outside.join(" ")).unwrap();
    assert_eq!(outside("container -js from --address=x --output /o stdout"), "-j -s --output /o");
    assert_eq!(outside("-o=/o container --progress=plain stdout -s"), "-o /o --progress=plain -s");
    assert_eq!(outside("container with-output --output=mine --json stdout -ofile"), "-o file");
}

#[test]
fn help_asks_for_no_required_flags() {
    let help = |line: &str| with_chain(line, |chain| (chain.help, chain.names())).unwrap();
    assert_eq!(help("--help"), (true, vec![]));
    assert_eq!(help("container from --help"), (true, vec!["container".into(), "from".into()]));
    assert_eq!(help("container from -h"), (true, vec!["container".into(), "from".into()]));
}

#[test]
fn what_is_wrong_is_named() {
    insta::assert_snapshot!(error("contaner"), @r#"
    ci-tool core: unknown command "contaner" for "ci-tool core"

    Did you mean this?
    	container
    "#);
    insta::assert_snapshot!(error("container wit"), @r#"
    ci-tool core container: unknown command "wit" for "ci-tool core container"

    Did you mean this?
    	with-odd
    	with-exec
    	with-output
    	with-secret-variable
    	with-service-binding
    	with-mounted-directory
    "#);
    insta::assert_snapshot!(error("container from"), @r#"
    ci-tool core container from: required flag(s) "address" not set for "from"
    "#);
    insta::assert_snapshot!(error("container with-mounted-directory --owner=x stdout"), @r#"
    ci-tool core container with-mounted-directory stdout: required flag(s) "path", "source" not set for "with-mounted-directory"
    "#);
    insta::assert_snapshot!(error("container from --addres=x"), @r#"
    ci-tool core container from: unknown flag: --addres

    Did you mean this?
    	--address
    "#);
    insta::assert_snapshot!(error("container from -x"), @"ci-tool core container from: unknown shorthand flag: 'x' in -x");
    insta::assert_snapshot!(error("container from --address"), @"ci-tool core container from: flag needs an argument: --address");
    insta::assert_snapshot!(error("container stdout length"), @r#"
    ci-tool core container stdout: unknown command "length" for "ci-tool core container stdout": it gives String, which has no functions
    "#);
    insta::assert_snapshot!(error("load-container-from-id --id=x"), @r#"
    ci-tool core: function "load-container-from-id" needs arguments that cannot be given on the command line: id
    "#);
    insta::assert_snapshot!(error("container with-exec --settings=x"), @"ci-tool core container with-exec: unknown flag: --settings");
    insta::assert_snapshot!(error("--address=x container"), @"ci-tool core: unknown flag: --address");
    insta::assert_snapshot!(document("container with-service-binding --alias=a --ref=x"), @r#"
    invalid argument "x" for "--ref" flag: values of type Module are not available yet
    "#);
}

fn print(line: &str, data: &Value, json: bool) -> String {
    with_chain(line, |chain| {
        let plan = Plan::new(&schema(), chain, None).unwrap();
        if json { answer::json(&plan, data) } else { answer::text(&plan, data) }
    })
    .unwrap()
}

#[test]
fn results_by_type() {
    let text = |line: &str, data: Value| print(line, &json!({ "container": data }), false);
    assert_eq!(text("container stdout", json!({"stdout": "hi\n"})), "hi\n");
    assert_eq!(text("container exit-code", json!({"exitCode": 3})), "3");
    assert_eq!(text("container entrypoint", json!({"entrypoint": ["a", "b"]})), "a\nb\n");
    assert_eq!(text("container env-variable --name=X", json!({"envVariable": null})), "");
    assert_eq!(text("container up", json!({"up": null})), "");
    let variables = json!({"envVariables": [{"name": "A"}, {"name": "B"}]});
    assert_eq!(text("container env-variables name", variables), "A\nB\n");
    assert_eq!(print("", &Value::Null, false), "Query");
    assert_eq!(print("nothing", &json!({"nothing": null}), false), "null");
}

#[test]
fn objects_are_told_by_type_and_digest() {
    let container = json!({"container": {"sync": "abc"}});
    let told = print("container", &container, false);
    assert_eq!(told, "Container@blake3:6437b3ac38465133");
    assert_eq!(print("container", &container, true), told, "objects have no JSON form");
    let list = json!({"container": {"envVariables": [{"id": "a"}, {"id": "b"}]}});
    insta::assert_snapshot!(print("container env-variables", &list, false), @r#"
    - EnvVariable@blake3:17762fddd969a453
    - EnvVariable@blake3:10e5cf3d3c8a4f9f
    "#);
}

#[test]
fn results_as_json() {
    let print = |line: &str, data: Value| print(line, &json!({ "container": data }), true);
    assert_eq!(print("container stdout", json!({"stdout": "<hi>\n"})), "\"<hi>\\n\"\n");
    insta::assert_snapshot!(print("container entrypoint", json!({"entrypoint": ["a", "b"]})), @r#"
    [
        "a",
        "b"
    ]
    "#);
    let variables = json!({"envVariables": [{"name": "A"}, {"name": "B"}]});
    insta::assert_snapshot!(print("container env-variables name", variables), @r#"
    [
        {
            "name": "A"
        },
        {
            "name": "B"
        }
    ]
    "#);
    assert_eq!(print("container env-variable --name=X", json!({"envVariable": null})), "null\n");
}

#[test]
fn json_has_sorted_keys_and_four_spaces() {
    insta::assert_snapshot!(answer::pretty(&json!({"b": {"d": [], "c": 1}, "a": null})), @r#"
    {
        "a": null,
        "b": {
            "c": 1,
            "d": []
        }
    }
    "#);
}

fn help(line: &str) -> String {
    with_chain(&format!("{line} --help"), |chain| {
        page::page(&schema(), chain, "ci-tool core", &command()).render(Some(80), PLAIN)
    })
    .unwrap()
}

#[test]
fn help_of_the_root() {
    insta::assert_snapshot!(help(""), @r#"
    Call a core function

    USAGE
      ci-tool core [options] <function>

    AVAILABLE FUNCTIONS
      container   Does container.
      directory   Does directory.
      nothing     Does nothing.
      version     Does version.

    OPTIONS
      -j, --json          Present the result as JSON
      -o, --output path   Save the result

    INHERITED OPTIONS
          --progress string   Progress format (default "auto")
      -s, --silent            Show no progress at all

    Use "ci-tool core <function> --help" for more information about a function.
    "#);
}

#[test]
fn help_of_a_function_that_gives_an_object() {
    insta::assert_snapshot!(help("container with-exec"), @r#"
    Does withExec.

    At length.

    USAGE
      ci-tool core container with-exec [arguments] <function>

    AVAILABLE FUNCTIONS
      entrypoint               Does entrypoint.
      env-variable             Does envVariable.
      env-variables            Does envVariables.
      exit-code                Does exitCode.
      file                     Does file.
      from                     Does from.
      labels                   Does labels.
      rootfs                   Does rootfs.
      stdout                   Does stdout.
      sync                     Does sync.
      up                       Does up.
      with-exec                Does withExec.
      with-mounted-directory   Does withMountedDirectory.
      with-output              Does withOutput.
      with-secret-variable     Does withSecretVariable.
      with-service-binding     Does withServiceBinding.

    ARGUMENTS
      --args strings                 The args to use. [required]
      --stdin string                 The stdin to use.
      --expect SUCCESS,FAILURE,ANY   The expect to use. (default SUCCESS)
      --no-init                      The noInit to use.

    OPTIONS
      -j, --json          Present the result as JSON
      -o, --output path   Save the result

    INHERITED OPTIONS
          --progress string   Progress format (default "auto")
      -s, --silent            Show no progress at all

    Use "ci-tool core container with-exec <function> --help" for more information about a function.
    "#);
}

#[test]
fn help_of_a_function_that_gives_a_value() {
    insta::assert_snapshot!(help("container stdout"), @r#"
    Does stdout.

    At length.

    USAGE
      ci-tool core container stdout [options]

    OPTIONS
      -j, --json          Present the result as JSON
      -o, --output path   Save the result

    INHERITED OPTIONS
          --progress string   Progress format (default "auto")
      -s, --silent            Show no progress at all
    "#);
}

#[test]
fn functions_as_a_table() {
    insta::assert_snapshot!(table::table(&schema(), "Container", PLAIN).unwrap(), @r#"
    Name                     Description
    entrypoint               Does entrypoint.
    env-variable             Does envVariable.
    env-variables            Does envVariables.
    exit-code                Does exitCode.
    file                     Does file.
    from                     Does from.
    labels                   Does labels.
    rootfs                   Does rootfs.
    stdout                   Does stdout.
    sync                     Does sync.
    up                       Does up.
    with-exec                Does withExec.
    with-mounted-directory   Does withMountedDirectory.
    with-output              Does withOutput.
    with-secret-variable     Does withSecretVariable.
    with-service-binding     Does withServiceBinding.

    Skipped, with arguments of unsupported types: with-odd
    "#);
    assert_eq!(table::table(&schema(), "String", PLAIN), None);
}

#[test]
fn replies_may_be_as_deep_as_chains_are_long() {
    let mut data = json!("end");
    for _ in 0..1000 {
        data = Value::Object([("withExec".to_owned(), data)].into_iter().collect());
    }
    let path = vec!["withExec".to_owned(); 1000];
    assert!(answer::pretty(&data).contains("\"withExec\": \"end\""));
    assert_eq!(answer::result(&data, &path), json!("end"));
}
