//! Steps as a tree: rows with connectors, and the tree that stays when everything is over.
//!
//! Chains may be many thousand steps deep, so nothing here recurses and the indent is bounded.

use crate::display::{End, Shown};
use crate::look::Look;
use crate::text::{clean, duration, moved_parts};
use protocol::{Outcome, SpanId};
use std::collections::HashSet;
use std::fmt::Write as _;
use telemetry::{Span, Trace};

/// Deeper steps are drawn at this depth.
const MAX_DEPTH: usize = 12;

/// Most rows of the final tree. Failed steps come on top of these.
const MAX_FINAL_ROWS: usize = 200;

/// A step and what stands left of it.
pub(crate) struct Row<'a> {
    pub(crate) span: &'a Span,
    pub(crate) guide: String,
}

/// The shown steps that `keep` wants, with all steps around them, in the order of a tree.
pub(crate) fn rows<'a>(
    trace: &'a Trace,
    look: &Look,
    keep: impl Fn(&Span) -> bool,
) -> Vec<Row<'a>> {
    let mut kept = HashSet::new();
    let mut flat = flat(trace, look);
    for (span, _) in flat.iter().filter(|(span, _)| keep(span)) {
        keep_with_ancestors(trace, span, &mut kept);
    }
    flat.retain(|(span, _)| kept.contains(&span.id));
    with_guides(&flat)
}

/// All shown steps in the order of a tree, each with its depth.
pub(crate) fn flat<'a>(trace: &'a Trace, look: &Look) -> Vec<(&'a Span, usize)> {
    let mut flat: Vec<(&Span, usize)> = vec![];
    let mut stack: Vec<(&Span, usize)> = trace.roots().map(|span| (span, 0)).collect();
    stack.reverse();
    while let Some((span, depth)) = stack.pop() {
        let shown = look.shows(span);
        if shown {
            flat.push((span, depth));
        }
        let below = stack.len();
        stack.extend(trace.children(span).map(|child| (child, depth + usize::from(shown))));
        stack[below..].reverse();
    }
    flat
}

fn keep_with_ancestors(trace: &Trace, span: &Span, kept: &mut HashSet<SpanId>) {
    let mut next = Some(span.id);
    while let Some(id) = next {
        if !kept.insert(id) {
            return;
        }
        next = trace.span(id).and_then(|span| span.parent);
    }
}

/// Connectors are known only from below: a row is the last of its siblings if no row at its depth
/// follows before a shallower one.
pub(crate) fn with_guides<'a>(flat: &[(&'a Span, usize)]) -> Vec<Row<'a>> {
    let mut open = [false; MAX_DEPTH + 1];
    let mut rows: Vec<Row<'_>> = flat
        .iter()
        .rev()
        .map(|(span, depth)| {
            let depth = (*depth).min(MAX_DEPTH);
            let mut guide = String::new();
            for level in open.iter().take(depth).skip(1) {
                guide.push_str(if *level { "│ " } else { "  " });
            }
            if depth > 0 {
                guide.push_str(if open[depth] { "├╴" } else { "╰╴" });
            }
            open[depth] = true;
            open[depth + 1..].fill(false);
            Row { span, guide }
        })
        .collect();
    rows.reverse();
    rows
}

/// Writes the tree that stays, failed steps with their output and reason.
pub(crate) fn write_final(end: End<'_>, look: &Look, out: &mut String) -> Shown {
    let mut shown = Shown::default();
    if look.level < 0 && !look.debug {
        return shown;
    }
    let everything = look.level >= 1 || look.debug;
    let causes: HashSet<SpanId> = end.trace.causes().map(|span| span.id).collect();
    let (rows, missing) = final_rows(end.trace, look, everything);
    for row in &rows {
        let _ = writeln!(out, "{}{}", look.paint.faint(&row.guide), line(row.span, look, end.now));
        let indent = " ".repeat(row.guide.chars().count());
        let expanded = causes.contains(&row.span.id) || look.expands();
        for line in row.span.log.lines().filter(|_| expanded) {
            let bar = look.paint.faint("┃");
            let _ = writeln!(out, "{indent}{bar} {}", clean(&line.text, look.paint.colour));
        }
        let Some(reason) = row.span.failure().filter(|_| causes.contains(&row.span.id)) else {
            continue;
        };
        shown.output |= !row.span.log.is_empty();
        shown.reasons.push(reason.to_owned());
        for line in reason.lines() {
            let _ = writeln!(out, "{indent}{} {}", look.paint.red("!"), clean(line, false));
        }
    }
    if missing > 0 {
        let _ = writeln!(out, "{}", look.paint.faint(&format!("… {missing} more steps")));
    }
    shown
}

fn final_rows<'a>(trace: &'a Trace, look: &Look, everything: bool) -> (Vec<Row<'a>>, usize) {
    let failed = |span: &Span| span.failure().is_some();
    if !everything {
        return (rows(trace, look, failed), 0);
    }
    let all = rows(trace, look, |_| true);
    if all.len() <= MAX_FINAL_ROWS {
        return (all, trace.counts().forgotten);
    }
    let first: HashSet<SpanId> = all.iter().take(MAX_FINAL_ROWS).map(|row| row.span.id).collect();
    let some = rows(trace, look, |span| first.contains(&span.id) || failed(span));
    let missing = all.len() - some.len() + trace.counts().forgotten;
    (some, missing)
}

fn line(span: &Span, look: &Look, now: u64) -> String {
    let verdict = match span.outcome() {
        Some(Outcome::Failed(_)) => look.paint.red(" ERROR"),
        Some(Outcome::Cached) => look.paint.blue(" CACHED"),
        Some(Outcome::Cancelled) => look.paint.faint(" CANCELLED"),
        Some(Outcome::Done) | None => String::new(),
    };
    let time = duration(span.elapsed(now));
    let moved = moved_parts(span).join(", ");
    let right = if moved.is_empty() { time } else { format!("{moved}  {time}") };
    format!("{} {} {}{verdict}", look.icon(span), look.name(span), look.paint.faint(&right))
}
