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

/// The first sentence of a description.
pub(crate) fn summary(description: &str) -> String {
    let paragraph = first_paragraph(description);
    let ends = |position: &usize| {
        let after = paragraph[position + 2..].chars().next();
        after.is_some_and(char::is_uppercase)
    };
    let end = paragraph.match_indices(". ").map(|(position, _)| position).find(ends);
    end.map_or(paragraph.clone(), |end| paragraph[..=end].to_owned())
}

/// The first paragraph of a description, on one line.
fn first_paragraph(description: &str) -> String {
    let lines = description.trim().lines().take_while(|line| !line.trim().is_empty());
    lines.map(str::trim).collect::<Vec<_>>().join(" ")
}

/// A description with one line a paragraph. Lists and indented lines stay as they are.
fn unwrapped(description: &str) -> String {
    let mut out = String::new();
    for line in description.trim().lines() {
        let own_line = line.is_empty() || line.starts_with([' ', '-', '*']);
        let joins = !own_line && !out.is_empty() && !out.ends_with('\n');
        out.push_str(if joins { " " } else { "" });
        if own_line && !out.is_empty() && !out.ends_with('\n') {
            out.push('\n');
        }
        out.push_str(line);
        if own_line {
            out.push('\n');
        }
    }
    out
}

fn about(chain: &Chain<'_>, command: &clap::Command) -> String {
    match chain.steps.last() {
        Some(step) => unwrapped(&step.field.description),
        None => command.get_about().map(ToString::to_string).unwrap_or_default(),
    }
}

fn function_row(field: &Field) -> Row {
    Row { left: kebab(&field.name), right: summary(&field.description) }
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
    let mut right = first_paragraph(&argument.description);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_one_sentence() {
        for (description, expected) in [
            ("", ""),
            ("One line", "One line"),
            ("Cut by\nan editor. And more.\n\nSecond.", "Cut by an editor."),
            ("Labels, e.g. name and version.", "Labels, e.g. name and version."),
            ("Reads /a. Then /b.", "Reads /a."),
        ] {
            assert_eq!(summary(description), expected);
        }
    }

    #[test]
    fn paragraphs_are_joined_and_lists_are_not() {
        let text = "Cut by\nan editor.\n\nSecond\nparagraph:\n- one\n- two";
        assert_eq!(unwrapped(text), "Cut by an editor.\n\nSecond paragraph:\n- one\n- two\n");
    }
}
