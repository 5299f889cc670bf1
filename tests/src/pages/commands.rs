//! The help of every command, as the program prints it.

use std::fmt::Write as _;
use std::io;
use std::path::Path;
use std::process::Command;

/// Commands that help does not list: older names, and what only programs call.
const HIDDEN: &[&str] = &["core", "query", "run", "engine"];

/// Line under which help lists what may follow.
const LIST: &str = "AVAILABLE COMMANDS";

/// The page.
pub(super) fn page(binary: &Path) -> io::Result<String> {
    let mut page = String::from(
        "# Commands\n\nThe help of every command. `core`, `query` and `run` are older names of `api \
         call -M`, `api query` and\n`api exec`, and `engine` is for a look at one's own engine: help does \
         not list them. `session` is for client\nlibraries, which start it with flags of their own. \
         What `core` and `api call` can call is in [functions](functions.md).\n",
    );
    let mut pending: Vec<Vec<String>> = vec![vec![]];
    pending.extend(HIDDEN.iter().map(|name| vec![(*name).to_owned()]));
    pending.reverse();
    while let Some(words) = pending.pop() {
        let help = help(binary, &words)?;
        let heading = [&["ci-tool".to_owned()], words.as_slice()].concat().join(" ");
        write!(page, "\n## `{heading}`\n\n```text\n{}\n```\n", help.trim_end())
            .expect("writing to a string does not fail");
        let children = listed(&help).into_iter().filter(|name| name != "help");
        let children = children.map(|name| [words.as_slice(), &[name]].concat());
        pending.extend(children.collect::<Vec<_>>().into_iter().rev());
    }
    Ok(page)
}

/// What the program prints for `<words> --help`, at the width it uses without a terminal.
fn help(binary: &Path, words: &[String]) -> io::Result<String> {
    let mut command = Command::new(binary);
    command.args(words).arg("--help").env_clear().env("NO_COLOR", "1");
    // Nothing here may start an engine.
    command.env(protocol::env::ENGINE, "unix:///dev/null");
    // Help of `core` asks the engine which functions work; that list is a page of its own.
    if words.first().is_some_and(|word| word == "core") || words.ends_with(&["call".to_owned()]) {
        return Ok(format!("see `{} --help`", words.join(" ")));
    }
    let output = command.output()?;
    if !output.status.success() {
        return Err(io::Error::other(format!("`{} --help` failed", words.join(" "))));
    }
    String::from_utf8(output.stdout).map_err(io::Error::other)
}

/// Names in the list of commands of a help text.
fn listed(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != LIST).skip(1);
    // Blank lines divide the list into blocks; the next heading ends it.
    let lines = lines.take_while(|line| line.is_empty() || line.starts_with("  "));
    let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_from_the_list_alone() {
        let help = "USAGE\n  ci-tool x\n\nAVAILABLE COMMANDS\n  one   First\n  two   Second, whose text goes\n        on\n\n  three   Third\n\nOPTIONS\n  -a, --all\n";
        assert_eq!(listed(help), ["one", "two", "three"]);
        assert!(listed("OPTIONS\n  -a\n").is_empty());
    }
}
