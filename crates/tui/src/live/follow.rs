//! A frame that follows the work by itself.
//!
//! Rows are found from what runs, failed or ended last, never by a walk through everything: the cost
//! of a frame does not grow with the number of steps that are over.

use super::{Scene, line};
use crate::terminal::FrameLine;
use crate::text::width;
use crate::tree::{self, Row};
use protocol::SpanId;
use std::collections::{HashMap, HashSet};
use telemetry::Span;

/// How long an ended step stays where ended steps do not stay anyway.
const LINGER: u64 = 1_000_000;
/// Most lines of output under one step.
const MAX_LOG_LINES: usize = 6;
/// Ended steps that are looked at for each row there is.
const LOOKED_AT: usize = 8;

pub(super) fn frame(scene: &Scene<'_>) -> Vec<FrameLine> {
    let room = scene.room();
    let kept = choose(scene, room);
    let rows = kept.rows(scene);
    if rows.is_empty() {
        return vec![];
    }
    let rows = &rows[rows.len().saturating_sub(room)..];
    let shown = rows.iter().filter(|row| row.span.is_running()).count();
    let mut spare = room - rows.len();
    let mut below = details(scene, rows, &mut spare);
    let mut lines = vec![];
    for (index, row) in rows.iter().enumerate() {
        lines.push(line::step(row, scene, None));
        lines.append(&mut below[index]);
    }
    let hint = "↑↓ browse · ? keys";
    lines.push(line::summary(scene, kept.running - shown, hint));
    lines
}

/// What stands below each row: reasons first, then output as far as there is room.
fn details(scene: &Scene<'_>, rows: &[Row<'_>], spare: &mut usize) -> Vec<Vec<FrameLine>> {
    let mut below: Vec<Vec<FrameLine>> = rows
        .iter()
        .map(|row| {
            let reason = line::reason(row.span, scene, width(&row.guide)).filter(|_| *spare > 0);
            *spare -= usize::from(reason.is_some());
            reason.into_iter().collect()
        })
        .collect();
    let talks = |row: &Row<'_>| row.span.is_running() && !row.span.log.is_empty();
    let talking = rows.iter().filter(|row| talks(row)).count();
    let each = spare.checked_div(talking).unwrap_or(0).clamp(1, MAX_LOG_LINES);
    for (row, below) in rows.iter().zip(&mut below).filter(|(row, _)| talks(row)) {
        let output = line::output(row.span, scene, width(&row.guide), each.min(*spare));
        *spare -= output.len();
        below.extend(output);
    }
    below
}

/// Steps that a frame shows.
struct Kept<'a> {
    spans: HashMap<SpanId, &'a Span>,
    /// Rows that they take.
    rows: usize,
    /// Steps that run and would be shown if there were room.
    running: usize,
}

fn choose<'a>(scene: &Scene<'a>, room: usize) -> Kept<'a> {
    let (trace, look) = (scene.trace, &scene.look);
    let (innermost, running) = innermost(scene);
    let mut kept = Kept { spans: HashMap::new(), rows: 0, running };
    for span in innermost.into_iter().take(room) {
        kept.add(scene, span);
    }
    if look.level >= 0 || look.debug {
        let failed = trace.failed().filter(|span| look.shows(span));
        failed.take(room / 2).for_each(|span| kept.add(scene, span));
    }
    // What runs and failed has more to say than that it does.
    let details = kept.spans.values().filter(|span| has_details(span)).count() * MAX_LOG_LINES;
    let limit = room - details.min(room / 3);
    let stays = look.level >= 1 || look.debug;
    let ended = |span: &Span| span.ended.as_ref().map_or(scene.now, |(at, _)| *at);
    let recent = |span: &&Span| stays || scene.now.saturating_sub(ended(span)) < LINGER;
    let finished = trace.finished().take(room * LOOKED_AT).take_while(recent);
    for span in finished.filter(|span| look.shows(span)) {
        if kept.rows + kept.cost(scene, span) <= limit {
            kept.add(scene, span);
        }
    }
    kept
}

fn has_details(span: &Span) -> bool {
    span.failure().is_some() || (span.is_running() && !span.log.is_empty())
}

/// Shown steps that run and have none such inside them, and how many run in all.
fn innermost<'a>(scene: &Scene<'a>) -> (Vec<&'a Span>, usize) {
    let shown = |span: &&Span| scene.look.shows(span);
    let running: Vec<&Span> = scene.trace.running().filter(shown).collect();
    let around = |span: &&'a Span| scene.trace.around(span).find(shown).map(|span| span.id);
    let outer: HashSet<SpanId> = running.iter().filter_map(around).collect();
    let count = running.len();
    let inner = running.into_iter().filter(|span| !outer.contains(&span.id));
    (inner.collect(), count)
}

impl<'a> Kept<'a> {
    /// Adds a step and all steps around it.
    fn add(&mut self, scene: &Scene<'a>, span: &'a Span) {
        for span in std::iter::once(span).chain(scene.trace.around(span)) {
            if self.spans.insert(span.id, span).is_some() {
                return;
            }
            self.rows += usize::from(scene.look.shows(span));
        }
    }

    /// How many rows a step would add.
    fn cost(&self, scene: &Scene<'a>, span: &'a Span) -> usize {
        let spans = std::iter::once(span).chain(scene.trace.around(span));
        let new = spans.take_while(|span| !self.spans.contains_key(&span.id));
        new.filter(|span| scene.look.shows(span)).count()
    }

    /// The rows in the order of a tree. Ids grow with time, so that is the order of ids.
    fn rows(&self, scene: &Scene<'a>) -> Vec<Row<'a>> {
        let mut spans: Vec<&Span> = self.spans.values().copied().collect();
        spans.sort_unstable_by_key(|span| std::cmp::Reverse(span.id));
        let mut inside: HashMap<Option<SpanId>, Vec<&Span>> = HashMap::new();
        for span in spans {
            inside.entry(span.parent).or_default().push(span);
        }
        let mut flat = vec![];
        let mut stack: Vec<(&Span, usize)> = vec![];
        let mut open = |around: Option<SpanId>, depth: usize, stack: &mut Vec<_>| {
            let inside = inside.remove(&around).unwrap_or_default();
            stack.extend(inside.into_iter().map(|span| (span, depth)));
        };
        open(None, 0, &mut stack);
        while let Some((span, depth)) = stack.pop() {
            let shown = scene.look.shows(span);
            if shown {
                flat.push((span, depth));
            }
            open(Some(span.id), depth + usize::from(shown), &mut stack);
        }
        tree::with_guides(&flat)
    }
}
