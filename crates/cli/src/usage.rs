//! What was typed wrongly, told in our words.
//!
//! The parser library finds the error; its message families and ours differ, so each kind is put
//! into the form that users of both command sets know.

use crate::error::Error;
use crate::suggest;
use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::error::Error as _;
use std::ffi::OsString;

/// Commands of both command sets that are still to come.
const LATER: &[&str] = &[
    "activity",
    "billing",
    "check",
    "client",
    "cloud",
    "config",
    "develop",
    "generate",
    "init",
    "install",
    "installed",
    "listen",
    "llm",
    "login",
    "logout",
    "module",
    "org",
    "sdk",
    "search",
    "settings",
    "setup",
    "shell",
    "uninstall",
    "up",
    "update",
    "workspace",
];

/// The parser's error as ours. `path` is the command, `usage` its usage line.
pub(crate) fn explain(error: &clap::Error, path: &str, usage: &str) -> Error {
    if error.kind() == ErrorKind::InvalidSubcommand
        && let Some(later) = not_yet(error, path)
    {
        return later;
    }
    Error::usage(message(error, path), usage).with_hint(format!("run `{path} --help` for usage"))
}

/// The command that words mean, as far as they mean one. `root` was built.
pub(crate) fn find<'c>(root: &'c Command, words: &[OsString], error: &clap::Error) -> &'c Command {
    // What follows a word that is no command means nothing.
    let unknown = text(error, ContextKind::InvalidSubcommand).map(OsString::from);
    let mut command = root;
    for word in words.iter().take_while(|word| Some(*word) != unknown.as_ref()) {
        // What is no command may be the value of a flag.
        let Some(below) = command.find_subcommand(word) else { continue };
        command = below;
    }
    command
}

fn message(error: &clap::Error, path: &str) -> String {
    let argument = flag_name(&text(error, ContextKind::InvalidArg).unwrap_or_default());
    let value = text(error, ContextKind::InvalidValue).unwrap_or_default();
    match error.kind() {
        ErrorKind::UnknownArgument => unknown(error, &argument),
        ErrorKind::InvalidValue if value.is_empty() => {
            format!("flag needs an argument: {argument}")
        }
        ErrorKind::InvalidValue => {
            let valid = texts(error, ContextKind::ValidValue).join(",");
            invalid(&value, &argument, &format!("value should be one of {valid}"))
        }
        ErrorKind::ValueValidation => {
            let reason = error.source().map(ToString::to_string).unwrap_or_default();
            invalid(&value, &argument, &reason)
        }
        ErrorKind::TooManyValues => invalid(&value, &argument, "it takes no value"),
        ErrorKind::MissingRequiredArgument => missing(error),
        ErrorKind::ArgumentConflict => {
            let others = texts(error, ContextKind::PriorArg);
            let others: Vec<String> = others.iter().map(|other| flag_name(other)).collect();
            format!("flags exclude each other and were both set: {argument}, {}", others.join(", "))
        }
        ErrorKind::InvalidSubcommand => unknown_command(error, path),
        _ => {
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default();
            first.trim_start_matches("error: ").to_owned()
        }
    }
}

fn unknown(error: &clap::Error, argument: &str) -> String {
    // A command here, and a flag nearly everywhere else.
    if ["--version", "-V"].contains(&argument) {
        return format!("unknown flag: {argument}{}", suggest::list(&["version".to_owned()]));
    }
    let similar = suggest::list(&texts(error, ContextKind::SuggestedArg));
    if argument.starts_with("--") {
        return format!("unknown flag: {argument}{similar}");
    }
    match argument.strip_prefix('-').and_then(|rest| rest.chars().next()) {
        Some(short) => format!("unknown shorthand flag: '{short}' in {argument}"),
        None => format!("accepts no further arguments, received \"{argument}\""),
    }
}

fn invalid(value: &str, flag: &str, reason: &str) -> String {
    format!("invalid argument \"{value}\" for \"{flag}\" flag: {reason}")
}

fn missing(error: &clap::Error) -> String {
    let missing = texts(error, ContextKind::InvalidArg);
    let flags: Vec<String> = missing
        .iter()
        .filter(|name| name.starts_with('-'))
        .map(|name| format!("\"{}\"", flag_name(name).trim_start_matches('-')))
        .collect();
    if flags.is_empty() {
        return format!("requires at least {} arg(s), only received 0", missing.len());
    }
    format!("required flag(s) {} not set", flags.join(", "))
}

fn unknown_command(error: &clap::Error, path: &str) -> String {
    let word = text(error, ContextKind::InvalidSubcommand).unwrap_or_default();
    let similar = suggest::list(&texts(error, ContextKind::SuggestedSubcommand));
    if path.contains(' ') {
        return format!("unknown command \"{word}\" for \"{path}\"{similar}");
    }
    format!("\"{word}\" is neither a command of \"{path}\" nor a file{similar}")
}

/// Words that mean something in a program that is not complete yet.
fn not_yet(error: &clap::Error, path: &str) -> Option<Error> {
    let word = text(error, ContextKind::InvalidSubcommand)?;
    let known = !path.contains(' ') && LATER.contains(&word.as_str());
    let client = path.ends_with(" api") && word == "client";
    if known || client {
        return Some(Error::not_available(format_args!("`{path} {word}`")));
    }
    let is_script = !path.contains(' ') && std::path::Path::new(&word).is_file();
    is_script.then(|| Error::not_available(format_args!("running the file `{word}` in the shell")))
}

/// `--progress <string>` without its value.
fn flag_name(text: &str) -> String {
    text.split([' ', '=']).next().unwrap_or_default().to_owned()
}

fn text(error: &clap::Error, kind: ContextKind) -> Option<String> {
    texts(error, kind).into_iter().next()
}

fn texts(error: &clap::Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(texts)) => texts.clone(),
        _ => vec![],
    }
}
