//! Changesets and patches: what differs between two directories, and the same done elsewhere.

mod export;
mod git;
mod listing;
mod merge;
mod patch;
mod preview;

use serde_json::Value;
use testkit::Session;

/// A step that a directory is made by.
enum Step<'a> {
    /// Path and contents.
    File(&'a str, &'a str),
    /// The same, to be run.
    Program(&'a str, &'a str),
    Directory(&'a str),
    Gone(&'a str),
}

use Step::{Directory, File, Gone, Program};

/// The id of a directory, as a literal: another one with some steps done to it.
#[track_caller]
fn made(session: &Session, from: Option<&str>, steps: &[Step<'_>]) -> String {
    let start = match from {
        None => "directory".to_owned(),
        Some(id) => format!("loadDirectoryFromID(id: {id})"),
    };
    let text = |text: &str| Value::from(text);
    let chain: Vec<String> = steps
        .iter()
        .map(|step| match step {
            File(path, contents) => {
                format!("withNewFile(path: {}, contents: {})", text(path), text(contents))
            }
            Program(path, contents) => {
                let (path, contents) = (text(path), text(contents));
                format!("withNewFile(path: {path}, contents: {contents}, permissions: 493)")
            }
            Directory(path) => {
                format!("withNewDirectory(path: {}, permissions: 493)", text(path))
            }
            Gone(path) => format!("withoutDirectory(path: {})", text(path)),
        })
        .collect();
    chained(session, &start, &chain)
}

/// The id, as a literal, of what a chain of fields leads to.
#[track_caller]
fn chained(session: &Session, start: &str, chain: &[String]) -> String {
    let mut document = format!("{{ {start} ");
    chain.iter().for_each(|field| document.push_str(&format!("{{ {field} ")));
    document.push_str("{ id }");
    document.push_str(&" }".repeat(chain.len() + 1));
    session.leaf(&document).to_string()
}

/// The id of a changeset, as a literal.
#[track_caller]
fn changes(session: &Session, before: &str, after: &str) -> String {
    let start = format!("loadDirectoryFromID(id: {after})");
    chained(session, &start, &[format!("changes(from: {before})")])
}

/// One value of a changeset.
#[track_caller]
fn of_changes(session: &Session, changeset: &str, field: &str) -> Value {
    session.leaf(&format!("{{ loadChangesetFromID(id: {changeset}) {{ {field} }} }}"))
}

/// One value of a directory.
#[track_caller]
fn of_directory(session: &Session, directory: &str, field: &str) -> Value {
    session.leaf(&format!("{{ loadDirectoryFromID(id: {directory}) {{ {field} }} }}"))
}

/// Paths of all that is in a directory.
#[track_caller]
fn tree(session: &Session, directory: &str) -> Value {
    let empty = session.leaf("{ directory { id } }");
    of_directory(session, directory, &format!("changes(from: {empty}) {{ addedPaths }}"))
}

/// What is in a file of a directory.
#[track_caller]
fn contents(session: &Session, directory: &str, path: &str) -> String {
    let path = Value::from(path);
    let said = of_directory(session, directory, &format!("file(path: {path}) {{ contents }}"));
    said.as_str().expect("contents are text").to_owned()
}
