//! `cargo xtask test`: everything that CI checks, and all that one needs at home.

use crate::clients;
use crate::command::{exists, line, quietly, run as show};
use crate::image::{Image, enter};
use crate::packages::{Purpose, require};
use crate::project::Project;
use crate::selection::{EVERYTHING, build, cargo};
use crate::tidy;
use anyhow::{Context as _, Result, bail};
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Adds what is not part of every run.
const FULL: &str = "--full";
/// What filters say that mean the tests of client libraries.
const CLIENTS: &[&str] = &["client", "guide"];
/// The tests of client libraries that only `--full` runs.
const OLDEST_CLIENTS: &str = "clients::oldest::";

/// How often a command without output is asked whether it still runs.
const GLANCE: Duration = Duration::from_secs(1);
/// How long output may still come from a command that has ended.
const LINGER: Duration = Duration::from_secs(5);

/// Tests counted over all programs that ran.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Tally {
    passed: u32,
    failed: u32,
    ignored: u32,
}

/// Runs the checks that need no container, then the tests in a mount namespace of their own.
pub(crate) fn run(project: &Project, words: &[&str]) -> Result<()> {
    let full = words.contains(&FULL);
    let filters: Vec<&str> = words.iter().copied().filter(|word| *word != FULL).collect();
    if let Some(option) = filters.iter().find(|word| word.starts_with('-')) {
        bail!("unknown option `{option}`: cargo xtask test [--full] [filter]");
    }
    require(Purpose::Test)?;
    if filters.is_empty() {
        show(cargo(project, "fmt").args(["--all", "--check"]))?;
        tidy::run(project)?;
        show(cargo(project, "clippy").args(EVERYTHING).args(["--", "-D", "warnings"]))?;
    }
    build(project)?;
    if wants_clients(words) {
        clients::prepare(project, if full { clients::ALL } else { clients::USUAL })?;
    }
    if full {
        extras(project)?;
    }
    enter(&[&["test"], words].concat())
}

/// The part of the task that runs in the namespace.
pub(crate) fn inside(project: &Project, words: &[&str]) -> Result<()> {
    let image = Image::mount(project, "test")?;
    let mut suite = Suite::prepare(project, &image)?;
    let filter = words.iter().find(|word| **word != FULL).copied();
    let mut tally = suite.run(filter)?;
    if words.contains(&FULL) && wants_clients(words) {
        suite.run_ignored();
        let oldest = suite.run(Some(OLDEST_CLIENTS))?;
        tally.passed += oldest.passed;
        tally.failed += oldest.failed;
    }
    report(tally)
}

/// Whether the tests of client libraries are among those that run.
fn wants_clients(words: &[&str]) -> bool {
    let mut filters = words.iter().filter(|word| **word != FULL).peekable();
    filters.peek().is_none()
        || filters.any(|filter| CLIENTS.iter().any(|word| filter.contains(word)))
}

/// Prints the last line of a run; a failed test is an error.
pub(crate) fn report(tally: Tally) -> Result<()> {
    let ignored =
        if tally.ignored == 0 { String::new() } else { format!(", {} ignored", tally.ignored) };
    println!("\n{} passed, {} failed{ignored}", tally.passed, tally.failed);
    if tally.failed > 0 {
        bail!("{} failed", if tally.failed == 1 { "a test" } else { "tests" });
    }
    Ok(())
}

/// Checks that are not part of every run.
fn extras(project: &Project) -> Result<()> {
    show(cargo(project, "test").args(["--workspace", "--doc", "--quiet"]))?;
    for (program, word, arguments) in [
        ("cargo-deny", "deny", &["check", "bans", "licenses", "sources"][..]),
        ("cargo-machete", "machete", &[][..]),
    ] {
        if exists(program) {
            show(cargo(project, word).args(arguments))?;
        } else {
            println!("{program} is not installed: left out");
        }
    }
    if exists("typos") {
        show(Command::new("typos").current_dir(&project.root))?;
    }
    Ok(())
}

/// The tests with the surroundings that they find.
pub(crate) struct Suite<'a> {
    project: &'a Project,
    variables: Vec<(&'static str, PathBuf)>,
    options: Vec<&'static str>,
}

impl<'a> Suite<'a> {
    /// Sets up the surroundings: the program under test, a file system, Debian packages.
    pub(crate) fn prepare(project: &'a Project, image: &Image) -> Result<Self> {
        let cache = project.debian_cache();
        std::fs::create_dir_all(&cache)?;
        let suite = Self {
            project,
            variables: vec![
                ("TESTKIT_BIN", project.pin(&project.program("ci-tool"))?),
                ("TESTKIT_STATE", image.path.clone()),
                ("TESTKIT_DEBIAN_CACHE", cache),
                ("TESTKIT_CLIENTS", clients::programs(project)?),
            ],
            options: Vec::new(),
        };
        suite.seed()?;
        Ok(suite)
    }

    /// Sets one more variable for the tests.
    pub(crate) fn set(&mut self, name: &'static str, value: &str) {
        self.variables.push((name, value.into()));
    }

    /// Runs only tests that every other run leaves out.
    pub(crate) fn run_ignored(&mut self) {
        self.options.push("--ignored");
    }

    /// Shows what tests say even if they pass: seeds, above all.
    pub(crate) fn show_output(&mut self) {
        self.options.push("--nocapture");
    }

    /// Makes the state folder with Debian images that tests start from. This is the one step that
    /// needs the network, and only when packages are not in the cache yet.
    fn seed(&self) -> Result<()> {
        let mut command = Command::new(self.project.program("seed"));
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        let started = Instant::now();
        for pause in [5, 20, 60] {
            match quietly(&mut command) {
                Ok(()) => {
                    println!(
                        "Debian images for the tests: {:.1} s",
                        started.elapsed().as_secs_f64()
                    );
                    return Ok(());
                }
                Err(error) => println!("{error:#}; trying again in {pause} s"),
            }
            std::thread::sleep(Duration::from_secs(pause));
        }
        quietly(&mut command).context("cannot make the Debian images that tests start from")
    }

    /// Runs the tests, shows what is worth reading, counts.
    pub(crate) fn run(&self, filter: Option<&str>) -> Result<Tally> {
        let mut command = cargo(self.project, "test");
        command.args(EVERYTHING).args(["--no-fail-fast", "--"]);
        command.args(&self.options).args(filter);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        println!("$ {}", line(&command));
        command.stdout(Stdio::piped());
        let mut child = command.spawn().context("cannot start cargo")?;
        let output = child.stdout.take().context("the output was asked for")?;
        let mut tally = Tally::default();
        let status = follow(&mut child, output, |text| {
            tally.add(text);
            if worth_reading(text) {
                println!("{text}");
            }
        })?;
        if !status.success() && tally.failed == 0 {
            bail!("the tests did not run to their end: {status}");
        }
        Ok(tally)
    }
}

/// Hands on the lines of a command until it has ended and all its output is read. A process that it left behind with
/// that output in its hands is an error: to wait for it could last for ever.
fn follow(
    child: &mut Child,
    output: ChildStdout,
    mut each: impl FnMut(&str),
) -> Result<ExitStatus> {
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        BufReader::new(output).lines().try_for_each(|text| sender.send(text)).ok();
    });
    let mut ended = None;
    loop {
        match lines.recv_timeout(if ended.is_some() { LINGER } else { GLANCE }) {
            Ok(text) => each(&text?),
            Err(RecvTimeoutError::Disconnected) => return Ok(child.wait()?),
            Err(RecvTimeoutError::Timeout) if ended.is_some() => {
                bail!("a test left a process running that holds the tests' output")
            }
            Err(RecvTimeoutError::Timeout) => ended = child.try_wait()?,
        }
    }
}

impl Tally {
    /// Adds the counts of one line: `test result: ok. 3 passed; 0 failed; 0 ignored; ...`, or
    /// `3 passed, 0 failed` of a program that runs its tests itself.
    fn add(&mut self, text: &str) {
        let own = text.starts_with(|c: char| c.is_ascii_digit()) && text.ends_with(" failed");
        let counts = text.strip_prefix("test result: ").or(own.then_some(text));
        for part in counts.unwrap_or_default().split([';', '.', ',']) {
            let mut words = part.split_whitespace();
            let (Some(count), Some(what)) = (words.next(), words.next()) else { continue };
            let Ok(count) = count.parse::<u32>() else { continue };
            match what {
                "passed" => self.passed += count,
                "failed" => self.failed += count,
                "ignored" => self.ignored += count,
                _ => {}
            }
        }
    }
}

/// Passed tests are only counted; a program without tests says nothing.
fn worth_reading(text: &str) -> bool {
    let passed = text.starts_with("test ") && text.ends_with(" ... ok");
    let empty = text.starts_with("test result: ok. 0 passed");
    let heading =
        text.starts_with("running ") && (text.ends_with(" tests") || text.ends_with(" test"));
    !(passed || empty || heading || text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_summed_over_programs() {
        let mut tally = Tally::default();
        for text in [
            "running 3 tests",
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.1s",
            "a line that says 7 failed",
            "2 passed, 1 failed",
            "test result: FAILED. 2 passed; 4 failed; 0 ignored; 0 measured; 9 filtered out; finished in 1s",
        ] {
            tally.add(text);
        }
        assert_eq!(tally, Tally { passed: 7, failed: 5, ignored: 1 });
        assert!(report(tally).is_err());
        assert!(report(Tally { failed: 0, ..tally }).is_ok());
    }

    /// Follows a shell command to its end.
    fn followed(script: &str) -> (Result<ExitStatus>, Vec<String>) {
        let mut command = Command::new("sh");
        let mut child = command.args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap();
        let output = child.stdout.take().unwrap();
        let mut lines = Vec::new();
        let status = follow(&mut child, output, |text| lines.push(text.to_owned()));
        (status, lines)
    }

    #[test]
    fn a_process_that_holds_the_output_is_an_error_and_not_a_wait_for_ever() {
        let (status, lines) = followed("echo a; echo b; exit 3");
        assert_eq!((status.unwrap().code(), lines), (Some(3), vec!["a".into(), "b".into()]));
        let (status, lines) = followed("sleep 20 & echo $!");
        let error = status.unwrap_err();
        assert!(error.to_string().contains("left a process running"), "{error}");
        quietly(Command::new("kill").args(&lines)).unwrap();
    }

    #[test]
    fn only_what_is_worth_reading_is_shown() {
        for hidden in
            ["", "running 2 tests", "test a::b ... ok", "test result: ok. 0 passed; 0 failed"]
        {
            assert!(!worth_reading(hidden), "{hidden}");
        }
        for shown in
            ["test a ... FAILED", "test result: ok. 2 passed; 0 failed", "---- a stdout ----"]
        {
            assert!(worth_reading(shown), "{shown}");
        }
    }
}
