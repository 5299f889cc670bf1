//! [`Plan`]: what is asked of the engine for a chain, and where in the reply the result is.
//!
//! The chain becomes one document. Values that only the engine can make (a container from an
//! address, a directory of the host) are looked up before in one document of their own, all at once.

use super::chain::{Chain, Step, object_type};
use super::literal::Literal;
use super::name::kebab;
use super::value::{Gathered, LookUp, read};
use protocol::schema::{Field, Schema};
use serde_json::Value;
use std::fmt::Write as _;

/// What is asked of the engine for a chain.
#[derive(Debug)]
pub(crate) struct Plan {
    /// What has to be asked first.
    pub(crate) look_ups: Vec<LookUp>,
    /// What the user should know.
    pub(crate) warnings: Vec<String>,
    /// Response keys from the root to the result.
    pub(crate) path: Vec<String>,
    /// What the result is.
    pub(crate) end: End,
    /// Whether the last call applies changes, of which there may be none.
    pub(crate) applies: bool,
    /// Whether the last call goes on until somebody stops it.
    pub(crate) goes_on: bool,
    calls: Vec<(String, Vec<(String, Literal)>)>,
}

/// A flag of a function has a value that it cannot have.
#[derive(Debug)]
pub(crate) struct Misused {
    /// What is wrong.
    pub(crate) message: String,
    /// How many functions there are up to that one.
    pub(crate) functions: usize,
}

/// What the result of a chain is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// No function was given.
    Root,
    /// A value, or a list of them.
    Value,
    /// Nothing.
    Void,
    /// An object of this type, told by its id, or a list of them.
    Object(String),
    /// The path of what was written to the host.
    Export,
}

impl Plan {
    /// The plan for a chain. With `export_to` the last object is written to that absolute path.
    pub(crate) fn new(
        schema: &Schema,
        chain: &Chain<'_>,
        export_to: Option<&str>,
    ) -> Result<Self, Misused> {
        let mut gathered = Gathered::default();
        let mut calls = vec![];
        for (before, step) in chain.steps.iter().enumerate() {
            let mut arguments = vec![];
            for given in &step.given {
                let flag = kebab(&given.argument.name);
                let literal = read(&flag, &given.flag, &given.values, &mut gathered)
                    .map_err(|message| Misused { message, functions: before + 1 })?;
                arguments.push((given.argument.name.clone(), literal));
            }
            calls.push((step.field.name.clone(), arguments));
        }
        let end = end(schema, chain, export_to, &mut calls);
        let applies = applies(chain, &end);
        let last = chain.steps.last().map(|step| &*step.field.name);
        let goes_on = end == End::Void && last == Some("up");
        let path = calls.iter().map(|(name, _)| name.clone()).collect();
        let Gathered { look_ups, warnings } = gathered;
        Ok(Self { look_ups, warnings, path, end, applies, goes_on, calls })
    }

    /// The document for the look-ups, if there are any.
    pub(crate) fn look_up_document(&self) -> Option<String> {
        if self.look_ups.is_empty() {
            return None;
        }
        let mut document = String::from("{");
        for (index, look_up) in self.look_ups.iter().enumerate() {
            let _ = write!(
                document,
                "{}a{index}: {}",
                if index == 0 { "" } else { " " },
                look_up.selection
            );
        }
        document.push('}');
        Some(document)
    }

    /// The answers to the look-ups, out of the reply to their document.
    pub(crate) fn look_up_answers(&self, data: &Value) -> Vec<String> {
        (0..self.look_ups.len())
            .map(|index| innermost(&data[format!("a{index}")]).to_owned())
            .collect()
    }

    /// The document for the chain.
    pub(crate) fn document(&self, answers: &[String]) -> String {
        let mut document = String::new();
        for (position, (name, arguments)) in self.calls.iter().enumerate() {
            let is_last = position + 1 == self.calls.len();
            let beside = if is_last && self.applies { "isEmpty " } else { "" };
            let _ = write!(document, "{{{beside}{name}");
            for (index, (argument, literal)) in arguments.iter().enumerate() {
                let _ = write!(document, "{}{argument}: ", if index == 0 { "(" } else { ", " });
                literal.write(answers, &mut document);
            }
            if !arguments.is_empty() {
                document.push(')');
            }
        }
        document.extend(std::iter::repeat_n('}', self.calls.len()));
        document
    }
}

/// Whether the last call writes what a changeset holds to the host.
fn applies(chain: &Chain<'_>, end: &End) -> bool {
    const TYPE: &str = "Changeset";
    let returns =
        |step: Option<&Step<'_>>| step.is_some_and(|step| step.field.returns.base() == TYPE);
    match (end, chain.steps.as_slice()) {
        (End::Export, steps) => returns(steps.last()),
        (_, [.., of, last]) => last.field.name == "export" && returns(Some(of)),
        _ => false,
    }
}

/// Adds the call that turns the last object into something that can be told.
fn end(
    schema: &Schema,
    chain: &Chain<'_>,
    export_to: Option<&str>,
    calls: &mut Vec<(String, Vec<(String, Literal)>)>,
) -> End {
    let Some(last) = chain.steps.last() else { return End::Root };
    let name = last.field.returns.base();
    let Some(object) = object_type(schema, name) else {
        return if name == "Void" { End::Void } else { End::Value };
    };
    let has = |field: &str| object.fields.iter().find(|candidate| candidate.name == field);
    let exported = export_to.zip(has("export")).filter(|_| !last.field.returns.is_list());
    if let Some((path, export)) = exported {
        calls.push(("export".into(), export_arguments(export, path)));
        return End::Export;
    }
    let takes_nothing =
        |field: &&Field| field.args.iter().all(|argument| !super::flag::is_required(argument));
    let leaf = match has("sync").filter(takes_nothing) {
        Some(_) => "sync",
        None if has("id").is_some() => "id",
        None => "__typename",
    };
    calls.push((leaf.into(), vec![]));
    End::Object(name.to_owned())
}

fn export_arguments(export: &Field, path: &str) -> Vec<(String, Literal)> {
    let mut arguments = vec![("path".to_owned(), Literal::Text(path.to_owned()))];
    // A file may be written into an existing directory under its own name.
    if export.args.iter().any(|argument| argument.name == "allowParentDirPath") {
        arguments.push(("allowParentDirPath".into(), Literal::Bool(true)));
    }
    arguments
}

/// The text at the bottom of an answer with one field a level.
fn innermost(mut value: &Value) -> &str {
    while let Value::Object(fields) = value {
        let Some(only) = fields.values().next() else { return "" };
        value = only;
    }
    value.as_str().unwrap_or_default()
}

/// The name of a flag for messages, e.g. `--source`.
pub(crate) fn look_up_flag(plan: &Plan, path: &[protocol::PathSegment]) -> Option<String> {
    let Some(protocol::PathSegment::Key(key)) = path.first() else { return None };
    let index: usize = key.strip_prefix('a')?.parse().ok()?;
    Some(format!("--{}", plan.look_ups.get(index)?.flag))
}
