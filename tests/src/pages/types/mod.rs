//! One page for each type of the API, an index of them, and the list of what does not work yet.
//!
//! A type has a page when something that works gives it, takes it or is a function of it. Loading by
//! id is for programs and exists for every type alike, so no page lists it.

mod text;

use crate::schema;
use protocol::schema::{Field, Schema, Type, TypeKind};
use std::collections::BTreeSet;
use std::io;

/// Folder of the pages, beside the other reference pages.
pub(super) const FOLDER: &str = "types";

/// Where all chains begin.
const ROOT: &str = "Query";

/// The index, as the page that was there before there were many.
const INDEX: &str = "functions.md";

/// Types that need no page: everybody knows them.
const PLAIN: &[&str] = &["String", "Int", "Float", "Boolean", "ID"];

/// The index and one page a type, with their paths in the folder of reference pages.
pub(super) fn pages() -> io::Result<Vec<(String, String)>> {
    let schema = schema()?;
    let shown = Shown::of(&schema);
    let mut pages = vec![(INDEX.to_owned(), text::index(&shown))];
    for name in &shown.names {
        pages.push((format!("{FOLDER}/{name}.md"), text::page(&shown, name)));
    }
    Ok(pages)
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

/// The types that have a page.
struct Shown<'a> {
    schema: &'a Schema,
    names: BTreeSet<&'a str>,
}

impl<'a> Shown<'a> {
    /// Everything that working functions lead to, from the root on.
    fn of(schema: &'a Schema) -> Self {
        let mut shown = Self { schema, names: BTreeSet::new() };
        let mut ahead = vec![ROOT];
        while let Some(name) = ahead.pop() {
            let Some((name, kind)) = schema.types.get_key_value(name) else { continue };
            if PLAIN.contains(&name.as_str()) || !shown.names.insert(name) {
                continue;
            }
            for field in functions(kind) {
                ahead.push(field.returns.base());
                for argument in &field.args {
                    ahead.push(argument.type_ref.base());
                    ahead.extend(argument.expected.as_deref());
                }
            }
            ahead.extend(kind.inputs.iter().map(|input| input.type_ref.base()));
        }
        shown
    }

    fn has(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// Functions of other types that give this one.
    fn givers(&self, wanted: &str) -> Vec<(&'a str, &'a str)> {
        let mut found = vec![];
        for name in self.names.iter().filter(|name| **name != wanted) {
            let gives = |field: &&Field| field.returns.base() == wanted;
            let fields = functions(&self.schema.types[*name]).filter(gives);
            found.extend(fields.map(|field| (*name, field.name.as_str())));
        }
        found
    }
}

/// The functions of a type that a page shows.
fn functions(kind: &Type) -> impl Iterator<Item = &Field> {
    let listed = |field: &&Field| !field.name.starts_with("load") || field.args.is_empty();
    kind.fields.iter().filter(|field| field.implemented).filter(listed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find<'a>(pages: &'a [(String, String)], name: &str) -> &'a str {
        let page = pages.iter().find(|(path, _)| path == name);
        &page.unwrap_or_else(|| panic!("there is no page {name}")).1
    }

    #[test]
    fn what_works_is_on_a_page_and_what_does_not_is_on_the_list() {
        let (pages, missing) = (pages().unwrap(), missing().unwrap());
        let container = find(&pages, "types/Container.md");
        assert!(container.contains("## withExec") && container.contains("`redirectStdout`"));
        assert!(container.contains("[ReturnType](ReturnType.md)"));
        assert!(find(&pages, "types/ReturnType.md").contains("`SUCCESS`"));
        assert!(find(&pages, INDEX).contains("[Container](types/Container.md)"));
        assert!(missing.contains(&"Query.llm".to_owned()));
        assert!(!missing.contains(&"Container.withExec".to_owned()));
        assert!(!find(&pages, "types/Query.md").contains("## llm"));
        assert!(!pages.iter().any(|(path, _)| path.contains("LLM")));
    }

    #[test]
    fn every_link_leads_to_a_page() {
        let pages = pages().unwrap();
        for (path, text) in &pages {
            let folder =
                path.rsplit_once('/').map_or(String::new(), |(folder, _)| folder.to_owned() + "/");
            for part in text.split("](").skip(1) {
                let target = part.split([')', '#']).next().unwrap();
                let target = format!("{folder}{target}");
                assert!(pages.iter().any(|(known, _)| *known == target), "{path}: {target}");
            }
        }
    }
}
