//! The table of `functions`: names and what they do.

use super::name::kebab;
use super::page::{functions, skipped, summary};
use protocol::schema::Schema;
use std::fmt::Write as _;
use tui::Paint;

/// Columns between the two columns of the table.
const GUTTER: usize = 3;

/// The functions of a type as a table; none if it has none.
pub(crate) fn table(schema: &Schema, type_name: &str, paint: Paint) -> Option<String> {
    let listed = functions(schema, type_name);
    let skipped = skipped(schema, type_name);
    if listed.is_empty() && skipped.is_empty() {
        return None;
    }
    let rows: Vec<(String, String)> = listed
        .iter()
        .map(|field| (kebab(&field.name), summary(&field.description)))
        .map(|(name, text)| (name, if text.is_empty() { "-".into() } else { text }))
        .collect();
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0).max("Name".len());
    let mut out = String::new();
    let gap = " ".repeat(width - "Name".len() + GUTTER);
    let _ = writeln!(out, "{}{gap}{}", paint.bold("Name"), paint.bold("Description"));
    for (name, text) in rows {
        let _ = writeln!(out, "{name:<width$}{}{text}", " ".repeat(GUTTER));
    }
    if !skipped.is_empty() {
        let names: Vec<String> = skipped.iter().map(|field| kebab(&field.name)).collect();
        let note = format!("Skipped, with arguments of unsupported types: {}", names.join(", "));
        let _ = writeln!(out, "\n{}", paint.faint(&note));
    }
    Some(out)
}
