//! The fixed parser: usage errors and help screens.

use super::*;

fn parse_words(line: &str) -> Result<Parsed, Error> {
    let words: Vec<OsString> =
        line.split(' ').filter(|word| !word.is_empty()).map(Into::into).collect();
    parse(&words, &Output::new(true))
}

fn error(line: &str) -> String {
    match parse_words(line) {
        Ok(_) => "no error".into(),
        Err(error) => output::describe(&error, tui::Paint { colour: false }),
    }
}

fn page(line: &str) -> String {
    match parse_words(line) {
        Ok(Parsed::Help(text)) => text,
        Ok(Parsed::Command(_)) => "no help".into(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn the_tree_of_commands_is_sound() {
    Cli::command().debug_assert();
}

#[test]
fn every_command_of_both_sets_that_exists_parses() {
    for line in [
        "",
        "-s core container from --address=x stdout",
        "core -j -o out container",
        "api call -M container stdout",
        "-m core api call container",
        "api call -m core --allow-llm=a,b container",
        "call container",
        "functions -m core container",
        "api functions container from",
        "query --doc q.graphql Build --var name=x --var-json {}",
        "api query -M --var a=1 --var b=2",
        "run -- python3 pipeline.py --flag",
        "run python3 -c x --flag",
        "api exec --focus --cleanup-timeout=1m30s make -j8",
        "session --label a:b --project /p --anything",
        "version -q",
        "version --check -vv --debug",
        "engine",
        "engine status",
        "api",
        "api -s query --doc x",
        "engine stop --force",
        "help core container",
        "core --help",
        "core container --help",
        "-q -vv --progress report -w -y --org=x -E -i version",
    ] {
        assert!(matches!(parse_words(line), Ok(Parsed::Command(_))), "{line}: {}", error(line));
    }
}

#[test]
fn usage_errors_by_family() {
    insta::assert_snapshot!(error("query --vra x"), @r#"
    USAGE
      ci-tool query [options] [operation]

    Error: unknown flag: --vra

    hint: run `ci-tool query --help` for usage
    "#);
    insta::assert_snapshot!(error("api query -z"), @r#"
    USAGE
      ci-tool api query [options] [operation]

    Error: unknown shorthand flag: 'z' in -z

    hint: run `ci-tool api query --help` for usage
    "#);
    insta::assert_snapshot!(error("query --progress=fancy"), @r#"
    USAGE
      ci-tool query [options] [operation]

    Error: invalid argument "fancy" for "--progress" flag: value should be one of auto,plain,tty,dots,logs,report

    hint: run `ci-tool query --help` for usage
    "#);
    insta::assert_snapshot!(error("query --doc"), @r#"
    USAGE
      ci-tool query [options] [operation]

    Error: flag needs an argument: --doc

    hint: run `ci-tool query --help` for usage
    "#);
    insta::assert_snapshot!(error("run"), @r#"
    USAGE
      ci-tool run [options] <command>...

    Error: requires at least 1 arg(s), only received 0

    hint: run `ci-tool run --help` for usage
    "#);
    insta::assert_snapshot!(error("run --cleanup-timeout=soon true"), @r#"
    USAGE
      ci-tool run [options] <command>...

    Error: invalid argument "soon" for "--cleanup-timeout" flag: `soon` is no duration, which is written like `90s`, `10m` or `1h30m`

    hint: run `ci-tool run --help` for usage
    "#);
    insta::assert_snapshot!(error("version now"), @r#"
    USAGE
      ci-tool version [options]

    Error: accepts no further arguments, received "now"

    hint: run `ci-tool version --help` for usage
    "#);
    insta::assert_snapshot!(error("version --check=yes"), @r#"
    USAGE
      ci-tool version [options]

    Error: invalid argument "yes" for "--check" flag: it takes no value

    hint: run `ci-tool version --help` for usage
    "#);
}

#[test]
fn usage_errors_about_commands() {
    insta::assert_snapshot!(error("api cal"), @r#"
    USAGE
      ci-tool api [options] [command]

    Error: unknown command "cal" for "ci-tool api"

    Did you mean this?
    	call

    hint: run `ci-tool api --help` for usage
    "#);
    insta::assert_snapshot!(error("qurey"), @r#"
    USAGE
      ci-tool [options] [subcommand | file...]

    Error: "qurey" is neither a command of "ci-tool" nor a file

    Did you mean this?
    	query

    hint: run `ci-tool --help` for usage
    "#);
    insta::assert_snapshot!(error("cor version"), @r#"
    USAGE
      ci-tool [options] [subcommand | file...]

    Error: "cor" is neither a command of "ci-tool" nor a file

    Did you mean this?
    	core

    hint: run `ci-tool --help` for usage
    "#);
    insta::assert_snapshot!(error("--version"), @r#"
    USAGE
      ci-tool [options] [subcommand | file...]

    Error: unknown flag: --version

    Did you mean this?
    	version

    hint: run `ci-tool --help` for usage
    "#);
    insta::assert_snapshot!(error("api query -M -m core"), @r#"
    USAGE
      ci-tool api query [options] [operation]

    Error: flags exclude each other and were both set: --no-load-module, --load-module

    hint: run `ci-tool api query --help` for usage
    "#);
}

#[test]
fn what_is_said_twice_holds_as_it_was_said_last() {
    for line in ["core -j -j version", "query --doc a --doc b", "-s -s version", "version -s -s"] {
        assert!(parse_words(line).is_ok(), "{line}");
    }
}

#[test]
fn what_is_still_to_come_says_so() {
    insta::assert_snapshot!(error("check go:lint"), @"Error: `ci-tool check` is not available yet");
    insta::assert_snapshot!(error("api client list"), @"Error: `ci-tool api client` is not available yet");
    insta::assert_snapshot!(error("Cargo.toml"), @"Error: running the file `Cargo.toml` in the shell is not available yet");
}

#[test]
fn help_of_the_program() {
    insta::assert_snapshot!(page("--help"), @r#"
    Run pipelines in containers, anywhere

    USAGE
      ci-tool [options] [subcommand | file...]

    EXAMPLES
      ci-tool api call -m core container from --address=deb://bookworm \
          with-exec --args=uname,-a stdout
      echo '{ version }' | ci-tool api query
      ci-tool api exec python3 pipeline.py

    AVAILABLE COMMANDS
      api       Use the API directly
      help      Show help about a command
      version   Print the version

    OPTIONS
          --allow-llm strings    URLs of remote modules that may use LLM APIs, or
                                 `all`
      -c, --command string       Execute a shell command
          --eager-runtime        Load the module runtime eagerly
      -m, --load-module string   Use a one-off module (local path or git
                                 reference); `core` is the core API
          --model string         LLM model to use
      -M, --no-load-module       Load no module: use the core API

    INHERITED OPTIONS
      -y, --auto-apply                   Apply changes without asking when a
                                         changeset is returned
      -d, --debug                        Show debug logs and full verbosity
          --env string                   Apply the named workspace environment
                                         overlay
      -i, --interactive                  Spawn a terminal when a container exec
                                         fails
          --interactive-command string   Command of that terminal (default
                                         "/bin/sh")
          --lock string                  Lock lookup mode: disabled, live, pinned
                                         or frozen (default "disabled")
      -E, --no-exit                      Leave the display running after completion
          --org string                   Cloud org of cloud commands
          --progress string              Progress format: auto, plain, tty, dots,
                                         logs or report (default "auto")
      -q, --quiet                        Reduce verbosity (show progress, clean up
                                         at the end)
      -s, --silent                       Show no progress at all
      -v, --verbose                      Increase verbosity (-vv or -vvv for more)
      -w, --web                          Open the trace in a web browser
      -W, --workspace string             Workspace location (local path or git
                                         reference)
          --x-release string             Run an experimental release from a git
                                         reference

    Use "ci-tool [command] --help" for more information about a command.
    "#);
}

#[test]
fn help_of_a_group_and_a_command() {
    insta::assert_snapshot!(page("api --help"), @r#"
    Use the API directly

    USAGE
      ci-tool api [options] [command]

    AVAILABLE COMMANDS
      call        Call one or more functions, chained into a pipeline
      exec        Run a command with a live API session attached
      functions   List the available functions
      query       Send a GraphQL document to the engine

    INHERITED OPTIONS
      -y, --auto-apply                   Apply changes without asking when a
                                         changeset is returned
      -d, --debug                        Show debug logs and full verbosity
          --env string                   Apply the named workspace environment
                                         overlay
      -i, --interactive                  Spawn a terminal when a container exec
                                         fails
          --interactive-command string   Command of that terminal (default
                                         "/bin/sh")
          --lock string                  Lock lookup mode: disabled, live, pinned
                                         or frozen (default "disabled")
      -E, --no-exit                      Leave the display running after completion
          --org string                   Cloud org of cloud commands
          --progress string              Progress format: auto, plain, tty, dots,
                                         logs or report (default "auto")
      -q, --quiet                        Reduce verbosity (show progress, clean up
                                         at the end)
      -s, --silent                       Show no progress at all
      -v, --verbose                      Increase verbosity (-vv or -vvv for more)
      -w, --web                          Open the trace in a web browser
      -W, --workspace string             Workspace location (local path or git
                                         reference)
          --x-release string             Run an experimental release from a git
                                         reference

    Use "ci-tool api [command] --help" for more information about a command.
    "#);
    insta::assert_snapshot!(page("--progress plain query -h"), @r#"
    Send a GraphQL document to the engine

    USAGE
      ci-tool query [options] [operation]

    OPTIONS
          --allow-llm strings    URLs of remote modules that may use LLM APIs, or
                                 `all`
          --doc path             Read the document from a file (default standard
                                 input)
          --eager-runtime        Load the module runtime eagerly
      -m, --load-module string   Use a one-off module (local path or git
                                 reference); `core` is the core API
      -M, --no-load-module       Load no module: use the core API
          --var strings          Variables in key=value form
          --var-json string      Variables as a JSON object; wins over --var

    INHERITED OPTIONS
      -y, --auto-apply                   Apply changes without asking when a
                                         changeset is returned
      -d, --debug                        Show debug logs and full verbosity
          --env string                   Apply the named workspace environment
                                         overlay
      -i, --interactive                  Spawn a terminal when a container exec
                                         fails
          --interactive-command string   Command of that terminal (default
                                         "/bin/sh")
          --lock string                  Lock lookup mode: disabled, live, pinned
                                         or frozen (default "disabled")
      -E, --no-exit                      Leave the display running after completion
          --org string                   Cloud org of cloud commands
          --progress string              Progress format: auto, plain, tty, dots,
                                         logs or report (default "auto")
      -q, --quiet                        Reduce verbosity (show progress, clean up
                                         at the end)
      -s, --silent                       Show no progress at all
      -v, --verbose                      Increase verbosity (-vv or -vvv for more)
      -w, --web                          Open the trace in a web browser
      -W, --workspace string             Workspace location (local path or git
                                         reference)
          --x-release string             Run an experimental release from a git
                                         reference
    "#);
}
