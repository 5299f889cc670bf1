//! `ci-tool version`.

use testkit::State;

#[test]
fn version_is_five_aligned_lines() {
    let state = State::new();
    let output = state.cli(["version"]).run();
    let lines: Vec<&str> = output.ok().lines().collect();
    let names: Vec<&str> = lines.iter().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(names, ["version:", "commit:", "dirty:", "platform:", "runner-host:"]);
    let columns: Vec<usize> = lines
        .iter()
        .map(|line| {
            line.find(' ').map_or(0, |at| at + line[at..].len() - line[at..].trim_start().len())
        })
        .collect();
    assert!(columns.windows(2).all(|pair| pair[0] == pair[1]), "{lines:#?}");
    assert!(lines[0].ends_with(protocol::VERSION), "{lines:#?}");
    assert!(lines[3].contains("linux/"), "{lines:#?}");
}

#[test]
fn quiet_version_is_one_word() {
    let state = State::new();
    let output = state.cli(["version", "-q"]).run();
    let line = output.ok();
    assert!(line.starts_with(&format!("v{}", protocol::VERSION)), "{line}");
    assert_eq!(line.lines().count(), 1);
    assert!(!line.trim_end().contains(' '), "{line}");
}

#[test]
fn the_legacy_command_set_prints_one_line() {
    let state = State::new();
    let output = state.cli(["version"]).env("CITOOL_COMMAND_SET", "legacy").run();
    let line = output.ok();
    assert!(line.starts_with(&format!("ci-tool v{} (unix://", protocol::VERSION)), "{line}");
    assert!(line.contains(") linux/"), "{line}");
    assert_eq!(line.lines().count(), 1, "{line}");
}

#[test]
fn version_starts_no_engine() {
    let state = State::new();
    state.cli(["version"]).run().ok();
    assert!(testkit::leftovers::engines(&state.dir()).is_empty());
}
