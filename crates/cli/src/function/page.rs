//! The help page of a chain: what its last function takes, and which functions may follow.

use super::chain::{Chain, ROOT, object_type};
use super::flag::{ValueKind, flag_type, impossible_arguments, is_required};
use super::name::kebab;
use crate::help::{Page, Row, Section, command};
use protocol::schema::{Argument, Field, Schema};

/// Functions of the root that are of use to programs only.
const HIDDEN_AT_ROOT: &[&str] = &[
    "builtinContainer",
    "cacheVolume",
    "currentEnv",
    "currentFunctionCall",
    "currentModule",
    "currentNode",
    "currentTypeDefs",
    "currentWorkspace",
    "env",
    "error",
    "function",
    "generatedCode",
    "module",
    "moduleSource",
    "node",
    "schema",
    "setSecret",
    "sourceMap",
    "typeDef",
];

/// The page of a chain after a command such as `ci-tool core`.
pub(crate) fn page(
    schema: &Schema,
    chain: &Chain<'_>,
    name: &str,
    command: &clap::Command,
) -> Page {
    let path = chain.path(name);
    let functions = functions(schema, chain.end());
    let arguments =
        chain.steps.last().map(|step| arguments(schema, step.field)).unwrap_or_default();
    let mut usage = path.clone();
    usage.push_str(if arguments.is_empty() { " [options]" } else { " [arguments]" });
    usage.push_str(if functions.is_empty() { "" } else { " <function>" });
    let hint = (!functions.is_empty()).then(|| {
        format!("Use \"{path} <function> --help\" for more information about a function.")
    });
    let rows = functions.iter().map(|field| function_row(field)).collect();
    let mut sections = vec![
        Section { title: "AVAILABLE FUNCTIONS", rows },
        Section { title: "ARGUMENTS", rows: arguments },
    ];
    sections.extend(command::options(command));
    Page { about: about(chain, command), usage, sections, hint, ..Page::default() }
}

/// Functions of a type that a user may want, by name.
pub(crate) fn functions<'s>(schema: &'s Schema, type_name: &str) -> Vec<&'s Field> {
    let Some(owner) = object_type(schema, type_name) else { return vec![] };
    let mut fields: Vec<&Field> = owner
        .fields
        .iter()
        .filter(|field| is_listed(type_name, field))
        .filter(|field| impossible_arguments(schema, field).is_empty())
        .collect();
    fields.sort_by(|a, b| a.name.cmp(&b.name));
    fields
}

/// Functions of a type that a user may want and cannot call from the command line.
pub(crate) fn skipped<'s>(schema: &'s Schema, type_name: &str) -> Vec<&'s Field> {
    let Some(owner) = object_type(schema, type_name) else { return vec![] };
    let fields = owner.fields.iter().filter(|field| is_listed(type_name, field));
    fields.filter(|field| !impossible_arguments(schema, field).is_empty()).collect()
}

fn is_listed(type_name: &str, field: &Field) -> bool {
    let loads = field.name.starts_with("load") && field.name.ends_with("FromID");
    let hidden = type_name == ROOT && HIDDEN_AT_ROOT.contains(&field.name.as_str());
    field.implemented
        && !field.deprecated
        && field.name != "id"
        && !field.name.starts_with('_')
        && !loads
        && !hidden
}

/// The first line of a description.
pub(crate) fn summary(description: &str) -> &str {
    description.trim().lines().next().unwrap_or_default()
}

fn about(chain: &Chain<'_>, command: &clap::Command) -> String {
    match chain.steps.last() {
        Some(step) => step.field.description.clone(),
        None => command.get_about().map(ToString::to_string).unwrap_or_default(),
    }
}

fn function_row(field: &Field) -> Row {
    Row { left: kebab(&field.name), right: summary(&field.description).to_owned() }
}

fn arguments(schema: &Schema, field: &Field) -> Vec<Row> {
    let (required, optional): (Vec<&Argument>, Vec<&Argument>) =
        field.args.iter().partition(|argument| is_required(argument));
    required
        .into_iter()
        .chain(optional)
        .filter_map(|argument| argument_row(schema, argument))
        .collect()
}

fn argument_row(schema: &Schema, argument: &Argument) -> Option<Row> {
    let flag = flag_type(schema, argument)?;
    if matches!(flag.kind, ValueKind::Later(_)) {
        return None;
    }
    let label = flag.label().map(|label| format!(" {label}")).unwrap_or_default();
    let mut right = summary(&argument.description).to_owned();
    let mut add = |note: &str| {
        right.push_str(if right.is_empty() { "" } else { " " });
        right.push_str(note);
    };
    match &argument.default {
        Some(default) if !matches!(default.as_str(), "\"\"" | "[]" | "false" | "null") => {
            add(&format!("(default {default})"));
        }
        _ => {}
    }
    if is_required(argument) {
        add("[required]");
    }
    Some(Row { left: format!("--{}{label}", kebab(&argument.name)), right })
}
