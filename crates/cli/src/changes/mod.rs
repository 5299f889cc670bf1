//! What becomes of the changes that a chain ends in: they are shown, asked about, and applied to the disk.

mod prompt;
mod summary;

use crate::context::{Context, Work};
use crate::error::Error;
use serde_json::Value;
use std::fmt::Write as _;
use std::path::Path;
use summary::Summary;
use tui::Mode;

/// Widest summary.
const WIDEST: usize = 80;
/// What is asked about a changeset.
const FIELDS: &str = "{ id isEmpty addedPaths removedPaths diffStats { path kind oldPath addedLines removedLines } }";

/// What became of the changes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// There were none.
    None,
    /// The user does not want them.
    Discarded,
    /// They are on the disk, at this path.
    Applied(String),
}

impl Outcome {
    /// What the user is told.
    pub(crate) fn note(&self) -> String {
        match self {
            Outcome::None => "no changes to apply".to_owned(),
            Outcome::Discarded => "The changes were discarded: nothing was written.".to_owned(),
            Outcome::Applied(path) => format!("Applied to \"{path}\"."),
        }
    }
}

/// Where changes go.
#[derive(Clone, Copy)]
pub(crate) enum Target<'a> {
    /// To a path that was named for it.
    Named(&'a Path),
    /// To the working directory, if the user wants that.
    Here(&'a Path),
}

/// Shows changes, asks whether they are to be applied, and applies them. `changesets` are the ids; several are
/// put together first.
pub(crate) async fn settle(
    context: &Context,
    work: &mut Work,
    changesets: &[String],
    target: Target<'_>,
) -> Result<Outcome, Error> {
    let found = work.interrupt.or(work.session.query(&look(changesets), None, None)).await?;
    let found = innermost(&found);
    if found["isEmpty"] == Value::Bool(true) {
        return Ok(Outcome::None);
    }
    let path = match target {
        Target::Named(path) => path,
        Target::Here(path) => {
            if !wanted(context, work, &Summary::of(found)).await? {
                return Ok(Outcome::Discarded);
            }
            path
        }
    };
    let path = path
        .to_str()
        .ok_or_else(|| Error::user(format!("`{}` is not valid UTF-8", path.display())))?;
    let (id, path) = (&found["id"], Value::from(path));
    let document = format!("{{ loadChangesetFromID(id: {id}) {{ export(path: {path}) }} }}");
    let applied = work.interrupt.or(work.session.query(&document, None, None)).await?;
    let place = applied["loadChangesetFromID"]["export"].as_str().unwrap_or_default();
    Ok(Outcome::Applied(place.to_owned()))
}

/// Shows the changes, and asks about them unless the user has said it before.
async fn wanted(context: &Context, work: &mut Work, summary: &Summary) -> Result<bool, Error> {
    let columns = context.output.columns().unwrap_or(WIDEST).min(WIDEST);
    let text = summary.render(columns, context.output.paint());
    if context.globals.applies_changes() {
        work.say(&text).await;
        return Ok(true);
    }
    let output = &context.output;
    // A report is for who is not there.
    let asks = output.stdin_is_terminal()
        && output.stderr_is_terminal()
        && context.display_choice(0)?.mode != Mode::Report;
    if !asks {
        work.say(&text).await;
        return Err(Error::user("there are changes to apply, and nobody can be asked here")
            .with_hint(
                "run it again with `-y` to apply them, or end it with a function, e.g. `as-patch`",
            ));
    }
    work.aside(prompt::ask(&text)).await
}

/// The document that asks for all that is to be known.
fn look(changesets: &[String]) -> String {
    let mut document = String::from("{ ");
    let ids: Vec<Value> = changesets.iter().map(|id| Value::from(id.as_str())).collect();
    // Writing to a text cannot fail.
    let _ = match ids.as_slice() {
        [id] => write!(document, "loadChangesetFromID(id: {id}) {FIELDS} }}"),
        ids => {
            let ids = Value::from(ids);
            write!(document, "changeset {{ withChangesets(changes: {ids}) {FIELDS} }} }}")
        }
    };
    document
}

/// What was asked about the changeset.
fn innermost(mut found: &Value) -> &Value {
    for name in ["loadChangesetFromID", "changeset", "withChangesets"] {
        found = found.get(name).unwrap_or(found);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn one_changeset_is_looked_at_and_several_are_put_together() {
        let one = look(&["a\"b".to_owned()]);
        assert!(one.starts_with(r#"{ loadChangesetFromID(id: "a\"b") { id isEmpty"#), "{one}");
        let two = look(&["a".to_owned(), "b".to_owned()]);
        assert!(two.contains(r#"changeset { withChangesets(changes: ["a","b"]) { id"#), "{two}");
        for document in [one, two] {
            assert_eq!(document.matches('{').count(), document.matches('}').count());
        }
        let found = json!({ "changeset": { "withChangesets": { "id": "x" } } });
        assert_eq!(innermost(&found)["id"], "x");
        assert_eq!(innermost(&json!({ "loadChangesetFromID": { "id": "y" } }))["id"], "y");
    }
}
