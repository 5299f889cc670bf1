//! Refuses documents that would cost too much, before anything recurses over them.
//!
//! The nesting is counted in the raw text, the size after all fragments are spread is computed from
//! the tree without spreading anything. Both are linear in the text.

use super::Refusal;
use bluejay_core::AsIter as _;
use bluejay_core::executable::{Selection as _, SelectionReference};
use bluejay_parser::ast::executable::{ExecutableDocument, SelectionSet};
use std::collections::{HashMap, HashSet};

/// Deepest nesting of brackets in the text, and of selections once fragments are spread. The stack
/// of the reader is sized for it, and a chain of 1,000 calls must fit.
pub(super) const MAX_DEPTH: usize = 1024;
/// Most tokens of one document: bounds the memory of its tree.
pub(super) const MAX_TOKENS: usize = 250_000;
/// Most selections once fragments are spread: bounds a fragment bomb.
const MAX_SELECTIONS: usize = 50_000;
/// Most fragments: the validator looks for cycles in cubic time.
const MAX_FRAGMENTS: usize = 500;
/// Most selections times depth where response keys may meet: the validator compares what is below
/// them again at every level.
const MAX_MERGES: usize = 2_000_000;

/// Counts brackets in the text, leaving out strings and comments, and gives how deep they nest.
pub(super) fn check_nesting(text: &str) -> Result<usize, Refusal> {
    let bytes = text.as_bytes();
    let (mut depth, mut deepest, mut index) = (0usize, 0, 0);
    while let Some(byte) = bytes.get(index) {
        match byte {
            b'{' | b'[' | b'(' => depth += 1,
            b'}' | b']' | b')' => depth = depth.saturating_sub(1),
            b'#' => index = skip_comment(bytes, index),
            b'"' => index = skip_string(bytes, index),
            _ => {}
        }
        deepest = deepest.max(depth);
        if depth > MAX_DEPTH {
            let refusal = Refusal::new(format!("the document is nested deeper than {MAX_DEPTH}"));
            return Err(refusal.at(text, index));
        }
        index += 1;
    }
    Ok(deepest)
}

/// The index of the end of the line.
fn skip_comment(bytes: &[u8], from: usize) -> usize {
    let rest = bytes[from..].iter().position(|byte| matches!(byte, b'\n' | b'\r'));
    rest.map_or(bytes.len(), |length| from + length)
}

/// The index of the last byte of a string, plain or in three quotes.
fn skip_string(bytes: &[u8], from: usize) -> usize {
    let block = bytes[from..].starts_with(b"\"\"\"");
    let mut index = from + if block { 3 } else { 1 };
    while let Some(byte) = bytes.get(index) {
        match byte {
            b'\\' if !block => index += 1,
            b'\\' if bytes[index..].starts_with(b"\\\"\"\"") => index += 3,
            b'"' if !block => return index,
            b'"' if bytes[index..].starts_with(b"\"\"\"") => return index + 2,
            b'\n' if !block => return index,
            _ => {}
        }
        index += 1;
    }
    bytes.len()
}

/// One operation or fragment by itself.
#[derive(Default)]
struct Local<'a> {
    selections: usize,
    depth: usize,
    /// Fragments that it spreads, with the depth where it does.
    spreads: Vec<(&'a str, usize)>,
    /// Whether a response key comes twice in one set.
    repeats: bool,
}

/// Checks the size that the document has once all fragments are spread.
pub(super) fn check_size(document: &ExecutableDocument<'_>) -> Result<(), Refusal> {
    let fragments = document.fragment_definitions();
    if fragments.len() > MAX_FRAGMENTS {
        return Err(Refusal::new(format!("the document has more than {MAX_FRAGMENTS} fragments")));
    }
    let locals: HashMap<&str, Local<'_>> = fragments
        .iter()
        .map(|fragment| (fragment.name().as_str(), local(fragment.selection_set())))
        .collect();
    let mut sizes: HashMap<&str, (usize, usize)> = HashMap::new();
    for fragment in fragments {
        measure(fragment.name().as_str(), &locals, &mut sizes)?;
    }
    for operation in document.operation_definitions() {
        let own = local(operation.selection_set());
        let (selections, depth) = spread(&own, &sizes);
        check_total(selections, depth, own.repeats || !fragments.is_empty())?;
    }
    sizes.values().try_for_each(|(selections, depth)| check_total(*selections, *depth, true))
}

fn check_total(selections: usize, depth: usize, merges: bool) -> Result<(), Refusal> {
    if depth > MAX_DEPTH {
        return Err(Refusal::new(format!("the document is nested deeper than {MAX_DEPTH}")));
    }
    if selections > MAX_SELECTIONS || (merges && selections.saturating_mul(depth) > MAX_MERGES) {
        return Err(Refusal::new(format!(
            "the document selects more than {MAX_SELECTIONS} fields"
        )));
    }
    Ok(())
}

/// Sizes a fragment and all it spreads, in a loop: fragments may follow each other for long.
fn measure<'a>(
    name: &'a str,
    locals: &HashMap<&'a str, Local<'a>>,
    sizes: &mut HashMap<&'a str, (usize, usize)>,
) -> Result<(), Refusal> {
    let mut open = HashSet::new();
    let mut stack = vec![(name, false)];
    while let Some((name, ready)) = stack.pop() {
        let Some(local) = locals.get(name).filter(|_| !sizes.contains_key(name)) else { continue };
        if ready {
            sizes.insert(name, spread(local, sizes));
            open.remove(name);
            continue;
        }
        if !open.insert(name) {
            return Err(Refusal::new(format!("the fragment `{name}` includes itself")));
        }
        stack.push((name, true));
        let next: HashSet<&str> = local.spreads.iter().map(|(name, _)| *name).collect();
        for name in next {
            if open.contains(name) {
                return Err(Refusal::new(format!("the fragment `{name}` includes itself")));
            }
            stack.push((name, false));
        }
    }
    Ok(())
}

/// Selections and depth with all spreads counted in.
fn spread(local: &Local<'_>, sizes: &HashMap<&str, (usize, usize)>) -> (usize, usize) {
    let mut total = (local.selections, local.depth);
    for (name, at) in &local.spreads {
        let (selections, depth) = sizes.get(name).copied().unwrap_or_default();
        total.0 = total.0.saturating_add(selections);
        total.1 = total.1.max(at.saturating_add(depth));
    }
    total
}

/// Counts one definition; its own nesting was checked in the text.
fn local<'a>(set: &'a SelectionSet<'a>) -> Local<'a> {
    let mut found = Local::default();
    let mut stack = vec![(set, 1)];
    while let Some((set, depth)) = stack.pop() {
        found.depth = found.depth.max(depth);
        let mut keys = HashSet::new();
        for selection in set.iter() {
            found.selections += 1;
            match selection.as_ref() {
                SelectionReference::Field(field) => {
                    found.repeats |= !keys.insert(field.response_key());
                    stack.extend(field.selection_set().map(|set| (set, depth + 1)));
                }
                SelectionReference::InlineFragment(fragment) => {
                    found.repeats = true;
                    stack.push((fragment.selection_set(), depth + 1));
                }
                SelectionReference::FragmentSpread(spread) => {
                    found.spreads.push((spread.name().as_str(), depth));
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use bluejay_parser::ast::Parse as _;

    fn nesting(text: &str) -> bool {
        check_nesting(text).is_ok()
    }

    fn size(text: &str) -> Result<(), String> {
        let document = ExecutableDocument::parse(text).result.unwrap();
        check_size(&document).map_err(|refusal| refusal.error.message)
    }

    #[test]
    fn counts_brackets_but_not_those_in_strings_and_comments() {
        let deep = "{a".repeat(MAX_DEPTH) + &"}".repeat(MAX_DEPTH);
        assert!(nesting(&deep));
        assert!(!nesting(&format!("{{a{deep}}}")));
        let brackets = "{".repeat(2 * MAX_DEPTH);
        assert!(nesting(&format!("{{ a(b: \"{brackets}\") }}")));
        assert!(nesting(&format!("{{ a(b: \"\\\"{brackets}\") }}")));
        assert!(nesting(&format!("{{ a(b: \"\"\"\n\"\\\"\"\"{brackets}\n\"\"\") }}")));
        assert!(nesting(&format!("{{ a #{brackets}\n }}")));
        assert!(!nesting(&format!("{{ a(b: \"x\"){brackets}")));
    }

    #[test]
    fn says_where_it_is_too_deep() {
        let text = format!("{{\n{}", "{".repeat(MAX_DEPTH));
        assert_eq!(check_nesting(&text).unwrap_err().location, Some((2, MAX_DEPTH)));
    }

    #[test]
    fn a_bomb_of_fragments_is_measured_without_spreading_it() {
        let mut text = String::from("{ ...F0 }");
        for index in 0..60 {
            let next = index + 1;
            text += &format!(" fragment F{index} on Q {{ ...F{next} a: x ...F{next} }}");
        }
        text += " fragment F60 on Q { x }";
        assert!(size(&text).unwrap_err().contains("selects more than"));
    }

    #[test]
    fn cycles_are_named() {
        let cycle = "{ ...A } fragment A on Q { x { ...B } } fragment B on Q { x { ...A } }";
        assert!(size(cycle).unwrap_err().contains("includes itself"));
        assert!(size("{ ...A } fragment A on Q { ...A }").unwrap_err().contains("`A`"));
        size("{ ...A ...B } fragment A on Q { ...B } fragment B on Q { x }").unwrap();
    }

    #[test]
    fn depth_adds_up_through_fragments() {
        let mut text = String::from("{ ...F0 }");
        for index in 0..30 {
            let (open, close) = ("x {".repeat(50), "}".repeat(50));
            text += &format!(" fragment F{index} on Q {{ {open} ...F{} {close} }}", index + 1);
        }
        text += " fragment F30 on Q { x }";
        assert!(size(&text).unwrap_err().contains("nested deeper"));
    }

    #[test]
    fn many_plain_siblings_are_fine() {
        let siblings: String = (0..10_000).map(|index| format!("a{index}: x ")).collect();
        size(&format!("{{ {siblings} }}")).unwrap();
    }
}
