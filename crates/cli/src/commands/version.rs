//! `ci-tool version`. It must answer in milliseconds, so it asks no engine and starts no runtime.

use super::Typed;
use crate::environment::{Build, Environment};
use crate::error::Error;
use crate::exit::Exit;
use crate::globals::{GlobalArgs, SharedArgs};
use clap::Args;
use config::paths::StateFiles;
use protocol::VERSION;

/// Print the version
#[derive(Args, Debug)]
pub(crate) struct VersionArgs {
    /// Check for updates
    #[arg(long)]
    check: bool,
    /// Print only the canonical build identifier
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    shared: SharedArgs,
}

pub(crate) fn run(args: &VersionArgs, typed: Typed) -> Result<Exit, Error> {
    let context = typed.context(GlobalArgs { shared: args.shared.clone(), quiet: 0 })?;
    let text = text(args, &context.environment);
    context.output.result(&text)?;
    if args.check {
        return Err(no_release_server());
    }
    Ok(Exit::SUCCESS)
}

fn text(args: &VersionArgs, environment: &Environment) -> String {
    let build = environment.build;
    if args.quiet {
        return format!("{}\n", identifier(build));
    }
    let address = engine_address(environment);
    let platform = platform();
    if environment.is_legacy() {
        return format!("ci-tool v{VERSION} ({address}) {platform}\n");
    }
    let dirty = if build.dirty { "yes" } else { "no" };
    let commit = commit(build).unwrap_or("unknown");
    format!(
        "version:     v{VERSION}\n\
         commit:      {commit}\n\
         dirty:       {dirty}\n\
         platform:    {platform}\n\
         runner-host: {address}\n"
    )
}

fn identifier(build: Build) -> String {
    match (commit(build), build.dirty) {
        (Some(commit), true) => format!("v{VERSION}+{commit}.dirty"),
        (Some(commit), false) => format!("v{VERSION}+{commit}"),
        (None, _) => format!("v{VERSION}"),
    }
}

/// The first eight digits of the commit.
fn commit(build: Build) -> Option<&'static str> {
    build.commit.and_then(|commit| commit.get(..8))
}

fn platform() -> String {
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    format!("{}/{architecture}", std::env::consts::OS)
}

fn engine_address(environment: &Environment) -> String {
    let client = &environment.client;
    if !client.engine.is_empty() {
        return client.engine.clone();
    }
    match client.variables.state_dir(&client.workdir) {
        Ok(dir) => format!("unix://{}", StateFiles::new(dir).socket().display()),
        Err(_) => "unknown".into(),
    }
}

fn no_release_server() -> Error {
    Error::environment("cannot check for updates: there is no release server yet")
        .with_hint("compare with the releases where you got the program")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        args: VersionArgs,
    }

    fn print(words: &[&str], build: Build, legacy: bool) -> String {
        let mut environment = Environment { build, ..Environment::default() };
        environment.client.engine = "unix:///run/engine.sock".into();
        environment.command_set = if legacy { "legacy".into() } else { String::new() };
        let args = Command::parse_from(std::iter::once(&"version").chain(words)).args;
        text(&args, &environment).replace(VERSION, "1.2.3").replace(&platform(), "linux/amd64")
    }

    const BUILD: Build = Build { commit: Some("0123456789abcdef"), dirty: true };

    #[test]
    fn five_lines() {
        insta::assert_snapshot!(print(&[], BUILD, false), @r#"
        version:     v1.2.3
        commit:      01234567
        dirty:       yes
        platform:    linux/amd64
        runner-host: unix:///run/engine.sock
        "#);
        assert!(print(&[], Build::default(), false).contains("commit:      unknown\n"));
    }

    #[test]
    fn quiet_is_the_identifier() {
        assert_eq!(print(&["-q"], BUILD, false), "v1.2.3+01234567.dirty\n");
        let clean = Build { dirty: false, ..BUILD };
        assert_eq!(print(&["--quiet"], clean, true), "v1.2.3+01234567\n");
        assert_eq!(print(&["-q", "-s"], Build::default(), false), "v1.2.3\n");
    }

    #[test]
    fn one_line_for_the_older_command_set() {
        let expected = "ci-tool v1.2.3 (unix:///run/engine.sock) linux/amd64\n";
        assert_eq!(print(&[], BUILD, true), expected);
    }
}
