//! The functions of the API that work, type by type, and the list of those that do not yet.

use graph::{Graph, NoMemo};
use protocol::schema::{Argument, Field, Schema, TypeKind};
use std::fmt::Write as _;
use std::io;
use std::sync::Arc;

/// The page.
pub(super) fn page() -> io::Result<String> {
    let mut page = String::from(
        "# Functions\n\nWhat can be called by `core`, `api call` or in a GraphQL document. On the command \
         line names are\nwritten with dashes: `withExec` is `with-exec`, its argument `redirectStdout` is \
         `--redirect-stdout`.\n",
    );
    for (name, kind) in &schema()?.types {
        // Loading by id is for programs, and there is one such field a type.
        let shown = |field: &&Field| field.implemented && !field.name.starts_with("load");
        let fields: Vec<&Field> = kind.fields.iter().filter(shown).collect();
        // A type that only has an id is one that nothing makes yet, or that is only passed on.
        let has_more = fields.iter().any(|field| field.name != "id");
        if kind.kind != TypeKind::Object || !has_more || name.starts_with("__") {
            continue;
        }
        write!(page, "\n## {name}\n\n{}", paragraph(&kind.description))
            .map_err(io::Error::other)?;
        for field in fields {
            write!(page, "{}", function(field)).map_err(io::Error::other)?;
        }
    }
    Ok(page)
}

/// Fields that answer "not implemented yet", as `Type.field`.
pub fn missing() -> io::Result<Vec<String>> {
    let schema = schema()?;
    let types = schema.types.iter().filter(|(_, kind)| kind.kind == TypeKind::Object);
    let fields = types.flat_map(|(name, kind)| {
        let missing = kind.fields.iter().filter(|field| !field.implemented);
        missing.map(move |field| format!("{name}.{}", field.name))
    });
    Ok(fields.collect())
}

fn paragraph(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("{}\n\n", text.trim()) }
}

/// A function with its arguments.
fn function(field: &Field) -> String {
    let mut text = format!("- **`{}`** → `{}`", field.name, field.returns);
    if !field.description.is_empty() {
        text += &format!(": {}", one_line(&field.description));
    }
    text.push('\n');
    for argument in &field.args {
        text += &argument_line(argument);
    }
    text
}

fn argument_line(argument: &Argument) -> String {
    let kind = match &argument.expected {
        Some(object) => format!("{object} ({})", argument.type_ref),
        None => argument.type_ref.to_string(),
    };
    let mut line = format!("  - `{}`: `{kind}`", argument.name);
    if let Some(default) = &argument.default {
        line += &format!(", default `{default}`");
    }
    if !argument.description.is_empty() {
        line += &format!(". {}", one_line(&argument.description));
    }
    line.push('\n');
    line
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn schema() -> io::Result<Schema> {
    let mut builder = Graph::builder(api::SCHEMA).map_err(io::Error::other)?;
    api::install(&mut builder);
    let graph = builder.build(Arc::new(NoMemo), [0; 32]).map_err(io::Error::other)?;
    Ok(graph.schema().clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_works_is_on_the_page_and_what_does_not_is_on_the_list() {
        let (page, missing) = (page().unwrap(), missing().unwrap());
        assert!(page.contains("**`withExec`**") && page.contains("`redirectStdout`"));
        assert!(missing.contains(&"Container.asService".to_owned()));
        assert!(!missing.contains(&"Container.withExec".to_owned()));
        assert!(!page.contains("**`asService`**"));
    }
}
