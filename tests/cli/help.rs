//! Help screens, and what happens to words that are no command.

use testkit::State;

#[test]
fn the_bare_program_and_help_show_usage() {
    let state = State::new();
    for args in [&[][..], &["--help"], &["help"], &["-h"]] {
        let output = state.cli(args).run();
        let text = output.ok();
        assert!(text.to_uppercase().contains("USAGE"), "{args:?}: {text}");
        for command in ["api", "version"] {
            assert!(text.contains(command), "{args:?}: no `{command}` in {text}");
        }
    }
    assert!(testkit::leftovers::engines(&state.dir()).is_empty(), "help needs no engine");
}

#[test]
fn hidden_commands_have_help_of_their_own() {
    let state = State::new();
    for command in ["core", "query", "run", "session"] {
        let output = state.cli([command, "--help"]).run();
        let usage = format!("USAGE\n  ci-tool {command}");
        assert!(output.ok().contains(&usage), "{output:#?}");
    }
}

#[test]
fn core_help_lists_what_works_and_hides_what_does_not() {
    let state = State::new();
    let output = state.cli(["core", "--help"]).run();
    let text = output.ok();
    for function in ["container", "directory", "host", "version", "default-platform"] {
        assert!(text.contains(function), "no `{function}` in {text}");
    }
    for hidden in ["load-container-from-id", "llm", "current-module"] {
        assert!(!text.contains(hidden), "`{hidden}` in {text}");
    }
}

#[test]
fn function_help_shows_arguments_and_what_follows() {
    let state = State::new();
    let output = state.cli(["core", "container", "--help"]).run();
    let text = output.ok();
    for word in ["from", "with-exec", "with-new-file", "stdout", "platform"] {
        assert!(text.contains(word), "no `{word}` in {text}");
    }
    let output = state.cli(["core", "directory", "--help"]).run();
    assert!(!output.ok().contains("as-module"), "not built yet: {output:#?}");
    let output = state.cli(["core", "container", "from", "--help"]).run();
    let text = output.ok();
    assert!(text.contains("--address") && text.contains("[required]"), "{text}");
}

#[test]
fn unknown_words_are_errors_with_suggestions() {
    let state = State::new();
    let output = state.cli(["qeury"]).run();
    let said = output.fails(1);
    assert!(said.contains("qeury") && said.contains("query"), "{said}");
    assert!(output.stdout.is_empty(), "{output:#?}");
    let output = state.cli(["core", "contaner"]).run();
    let said = output.fails(1);
    assert!(said.contains("contaner") && said.contains("container"), "{said}");
}

#[test]
fn wrong_flags_are_errors_that_name_them() {
    let state = State::new();
    for (args, expected) in [
        (&["query", "--no-such-flag"][..], "no-such-flag"),
        (&["core", "container", "from", "--adress=x"], "adress"),
        (&["core", "container", "from", "stdout"], "address"),
        (&["core", "--progress", "loud", "version"], "loud"),
        (&["core", "container", "with-mounted-temp", "--path=/t", "--size=big", "sync"], "big"),
        (&["core", "container", "with-exec", "--args=true", "--expect=maybe", "sync"], "maybe"),
        (&["query", "--var", "name"], "name"),
        (&["query", "--var-json", "{"], "var-json"),
    ] {
        let output = state.cli(args).stdin("{ version }").run();
        let said = output.fails(1);
        assert!(said.contains(expected), "{args:?}: no `{expected}` in {said}");
        assert!(said.contains("Error: "), "{args:?}: {said}");
    }
}
