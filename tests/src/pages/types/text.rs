//! The text of the pages about types.

use super::{FOLDER, ROOT, Shown, functions};
use protocol::schema::{Argument, Field, Type, TypeKind, TypeRef};

/// Headings of the index, in the order of what one looks for.
const SECTIONS: &[(&str, &[TypeKind])] = &[
    ("Objects", &[TypeKind::Object]),
    ("Interfaces", &[TypeKind::Interface]),
    ("Inputs, enums and scalars", &[TypeKind::Input, TypeKind::Enum, TypeKind::Scalar]),
];

/// The page that lists the others.
pub(super) fn index(shown: &Shown<'_>) -> String {
    let mut page = format!(
        "# Functions\n\nWhat can be called by `core`, `api call` or in a GraphQL document, a page a type. \
         Every chain begins with a\nfunction of [{ROOT}]({FOLDER}/{ROOT}.md). On the command line names \
         are written with dashes: `withExec` is `with-exec`, its\nargument `redirectStdout` is \
         `--redirect-stdout`.\n\nAn object has an `id`: `node(id)`, or `load<Type>FromID(id)`, makes the \
         object of it again, in every session.\n",
    );
    for (heading, kinds) in SECTIONS {
        page += &format!("\n## {heading}\n\n| type | what it is |\n|---|---|\n");
        for name in &shown.names {
            let kind = &shown.schema.types[*name];
            if kinds.contains(&kind.kind) {
                let first = kind.description.split("\n\n").next().unwrap_or_default();
                page += &format!("| [{name}]({FOLDER}/{name}.md) | {} |\n", one_line(first));
            }
        }
    }
    page
}

/// The page of a type.
pub(super) fn page(shown: &Shown<'_>, name: &str) -> String {
    let kind = &shown.schema.types[name];
    let mut page = format!("# {name}\n");
    if !kind.description.is_empty() {
        page += &format!("\n{}\n", kind.description.trim());
    }
    page += &givers(shown, name);
    page += &members(kind);
    if !kind.inputs.is_empty() {
        page.push('\n');
        kind.inputs.iter().for_each(|input| page += &argument(shown, input));
    }
    functions(kind).for_each(|field| page += &function(shown, field));
    page += &later(kind);
    page
}

/// Where objects of a type come from.
fn givers(shown: &Shown<'_>, name: &str) -> String {
    let givers = shown.givers(name);
    if givers.is_empty() || shown.schema.types[name].kind != TypeKind::Object {
        return String::new();
    }
    let links = givers.iter().map(|(owner, field)| {
        format!("[{owner}.{field}]({owner}.md#{})", field.to_ascii_lowercase())
    });
    format!("\nGiven by {}.\n", links.collect::<Vec<_>>().join(", "))
}

fn members(kind: &Type) -> String {
    let mut text = String::new();
    for member in &kind.members {
        let what = match &member.stands_for {
            Some(base) => format!("Another name for `{base}`."),
            None => one_line(&member.description),
        };
        text += &format!("- `{}`: {what}\n", member.name);
    }
    if text.is_empty() { text } else { format!("\n{text}") }
}

/// A function with its arguments.
fn function(shown: &Shown<'_>, field: &Field) -> String {
    let mut text = format!("\n## {}\n\n", field.name);
    if !field.description.is_empty() {
        text += &format!("{}\n\n", field.description.trim());
    }
    let null = if field.returns.is_required() { "" } else { " or null" };
    text += &format!("Gives {}{null}.\n", several(shown, &field.returns, field.returns.base()));
    if field.deprecated {
        text += "Kept for older programs.\n";
    }
    if !field.args.is_empty() {
        text.push('\n');
    }
    field.args.iter().for_each(|one| text += &argument(shown, one));
    text
}

fn argument(shown: &Shown<'_>, argument: &Argument) -> String {
    let base = argument.expected.as_deref().unwrap_or(argument.type_ref.base());
    let kind = several(shown, &argument.type_ref, base);
    let mut line = format!("- `{}`: {kind}", argument.name);
    line += &match &argument.default {
        Some(default) => format!(", default `{default}`"),
        None if argument.type_ref.is_required() => ", required".to_owned(),
        None => ", optional".to_owned(),
    };
    if !argument.description.is_empty() {
        line += &format!(". {}", one_line(&argument.description));
    }
    line.push('\n');
    line
}

/// A type for people, and whether there are several of it.
fn several(shown: &Shown<'_>, type_ref: &TypeRef, base: &str) -> String {
    let name = match shown.has(base) {
        true => format!("[{base}]({base}.md)"),
        false => format!("`{base}`"),
    };
    if type_ref.is_list() { format!("a list of {name}") } else { name }
}

/// What of the type answers with an error.
fn later(kind: &Type) -> String {
    let missing = kind.fields.iter().filter(|field| !field.implemented);
    let names: Vec<String> = missing.map(|field| format!("`{}`", field.name)).collect();
    if names.is_empty() {
        return String::new();
    }
    format!(
        "\n## Not implemented yet\n\nThese answer with an error that says so: {}.\n",
        names.join(", ")
    )
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
