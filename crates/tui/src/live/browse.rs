//! [`Browse`]: going through the steps with keys.

use super::{Scene, line, pager};
use crate::keys::Key;
use crate::terminal::FrameLine;
use crate::text::{cut, width};
use crate::tree;
use line::Mark;
use protocol::SpanId;
use std::collections::HashMap;
use telemetry::Span;

/// Most lines of output under the selected step.
const MAX_LOG_LINES: usize = 6;

/// What the keys do, for who asks.
const HELP: &[&str] = &[
    "↑ ↓ PgUp PgDn Home End   move            / n N   search, next, previous",
    "→ ←                      open, close     e       next failure",
    "Enter                    zoom in         o       output of the step",
    "Esc                      back            + -     show more, less",
];

/// Where a user is.
#[derive(Debug, Default)]
pub(crate) struct Browse {
    place: Place,
    selected: Option<SpanId>,
    /// Steps that were opened or closed by hand.
    opened: HashMap<SpanId, bool>,
    /// Steps that were zoomed into, the last one innermost.
    zoom: Vec<SpanId>,
    search: String,
    is_typing: bool,
    help: bool,
    /// First row of the window.
    top: usize,
    /// Lines of output below the window of the pager.
    below: usize,
}

/// What is looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    /// Whatever happens.
    #[default]
    Follow,
    /// The tree of steps.
    Tree,
    /// The output of one step.
    Output,
}

/// What a key asks of the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// A new frame.
    Draw,
    /// More steps.
    More,
    /// Fewer steps.
    Less,
    /// The end of the display.
    Leave,
}

/// A row of the tree that can be gone through.
struct TreeRow<'a> {
    span: &'a Span,
    depth: usize,
    /// Steps inside it that are not shown.
    folded: usize,
}

impl Browse {
    /// Begins to go through the tree, at the last step.
    pub(super) fn begin(&mut self, scene: &Scene<'_>) {
        self.place = Place::Tree;
        if self.selected.is_none() {
            let failure = scene.trace.causes().find(|span| scene.look.shows(span));
            let rows = self.rows(scene);
            let running = rows.iter().rev().find(|row| row.span.is_running());
            let start = running.or(rows.last()).map(|row| row.span.id);
            self.selected = failure.map(|span| span.id).or(start);
        }
    }

    /// Takes a key.
    pub(super) fn key(&mut self, key: Key, scene: &Scene<'_>) -> Wish {
        if self.is_typing {
            self.type_search(key, scene);
            return Wish::Draw;
        }
        match key {
            Key::Character('+' | '=') => return Wish::More,
            Key::Character('-') => return Wish::Less,
            Key::Character('?') => self.help = !self.help,
            Key::Character('q') if scene.over => return Wish::Leave,
            Key::Character('q') => {
                let opened = std::mem::take(&mut self.opened);
                *self = Self { opened, ..Self::default() };
            }
            _ if self.place == Place::Output => self.output_key(key, scene),
            _ => self.tree_key(key, scene),
        }
        Wish::Draw
    }

    fn tree_key(&mut self, key: Key, scene: &Scene<'_>) {
        let following = self.place == Place::Follow;
        if key == Key::Escape {
            self.back(scene);
            return;
        }
        self.begin(scene);
        let page = scene.room() as isize / 2;
        match key {
            // The first arrow only shows where one is.
            Key::Up | Key::Down | Key::Character('k' | 'j') if following => {}
            Key::Up | Key::Character('k') => self.step(scene, -1),
            Key::Down | Key::Character('j') => self.step(scene, 1),
            Key::PageUp => self.step(scene, -page),
            Key::PageDown => self.step(scene, page),
            Key::Home | Key::Character('g') => self.step(scene, isize::MIN),
            Key::End | Key::Character('G') => self.step(scene, isize::MAX),
            Key::Right | Key::Character('l') => self.open(scene),
            Key::Left | Key::Character('h') => self.close(scene),
            Key::Character(' ') => self.toggle(scene),
            Key::Enter if self.zoom.last() != self.selected.as_ref() => {
                self.zoom.extend(self.selected);
            }
            Key::Character('o') => {
                self.place = Place::Output;
                self.below = 0;
            }
            Key::Character('e') => self.next_failure(scene),
            Key::Character('n') => self.find(scene, Direction::Next),
            Key::Character('N') => self.find(scene, Direction::Previous),
            Key::Character('/') => {
                self.is_typing = true;
                self.search.clear();
            }
            _ => {}
        }
    }

    fn output_key(&mut self, key: Key, scene: &Scene<'_>) {
        let page = scene.room().saturating_sub(2).max(1);
        match key {
            Key::Up | Key::Character('k') => self.below += 1,
            Key::Down | Key::Character('j') => self.below = self.below.saturating_sub(1),
            Key::PageUp => self.below += page,
            Key::PageDown | Key::Character(' ') => self.below = self.below.saturating_sub(page),
            Key::Home | Key::Character('g') => self.below = usize::MAX / 2,
            Key::End | Key::Character('G') => self.below = 0,
            Key::Escape | Key::Left | Key::Character('o' | 'h') => self.place = Place::Tree,
            _ => {}
        }
    }

    fn type_search(&mut self, key: Key, scene: &Scene<'_>) {
        match key {
            Key::Character(character) => self.search.push(character),
            Key::Backspace => {
                self.search.pop();
            }
            Key::Enter => self.is_typing = false,
            Key::Escape => {
                self.is_typing = false;
                self.search.clear();
            }
            _ => {}
        }
        self.find(scene, Direction::Here);
    }

    /// One level out: of the help, of what was zoomed into, of the tree.
    fn back(&mut self, scene: &Scene<'_>) {
        if std::mem::take(&mut self.help) {
            return;
        }
        match self.zoom.pop() {
            Some(zoomed) => self.selected = Some(zoomed),
            None if scene.over => {}
            None => {
                self.place = Place::Follow;
                self.selected = None;
            }
        }
    }

    /// Moves so many rows, as far as there are any.
    fn step(&mut self, scene: &Scene<'_>, by: isize) {
        let rows = self.rows(scene);
        let Some(last) = rows.len().checked_sub(1) else { return };
        let target = self.index(&rows).saturating_add_signed(by).min(last);
        self.selected = Some(rows[target].span.id);
    }

    fn selected_span<'a>(&self, scene: &Scene<'a>) -> Option<&'a Span> {
        scene.trace.span(self.selected?)
    }

    /// Opens the selected step, or goes to the first step inside.
    fn open(&mut self, scene: &Scene<'_>) {
        let Some(span) = self.selected_span(scene) else { return };
        if self.is_open(span, scene) {
            self.step(scene, isize::from(!span.children.is_empty()));
        }
        self.opened.insert(span.id, true);
    }

    /// Closes the selected step, or goes to the one around it.
    fn close(&mut self, scene: &Scene<'_>) {
        let Some(span) = self.selected_span(scene) else { return };
        if self.is_open(span, scene) && !span.children.is_empty() {
            self.opened.insert(span.id, false);
            return;
        }
        let shown = |span: &&Span| scene.look.shows(span);
        if let Some(around) = scene.trace.around(span).find(shown) {
            self.selected = Some(around.id);
        }
    }

    fn toggle(&mut self, scene: &Scene<'_>) {
        if let Some(span) = self.selected_span(scene) {
            self.opened.insert(span.id, !self.is_open(span, scene));
        }
    }

    /// Goes to the next step that failed by itself.
    fn next_failure(&mut self, scene: &Scene<'_>) {
        let causes = || scene.trace.causes().filter(|span| scene.look.shows(span));
        let after = causes().find(|span| Some(span.id) > self.selected);
        if let Some(span) = after.or_else(|| causes().next()) {
            self.reveal(scene, span);
        }
    }

    /// Selects a step and opens all around it.
    fn reveal(&mut self, scene: &Scene<'_>, span: &Span) {
        self.selected = Some(span.id);
        self.opened.extend(scene.trace.around(span).map(|around| (around.id, true)));
        let inside = |zoomed: &SpanId| {
            *zoomed == span.id || scene.trace.around(span).any(|around| around.id == *zoomed)
        };
        self.zoom.retain(inside);
    }

    /// Goes to a step whose name has the text that was searched for.
    fn find(&mut self, scene: &Scene<'_>, direction: Direction) {
        if self.search.is_empty() {
            return;
        }
        let text = self.search.to_lowercase();
        let all = tree::flat(scene.trace, &scene.look);
        let matches = |span: &Span| span.name.to_lowercase().contains(&text);
        let from = all.iter().position(|(span, _)| Some(span.id) == self.selected).unwrap_or(0);
        let (before, after) = all.split_at(from);
        let ring = || after.iter().chain(before).map(|(span, _)| *span);
        let found = match direction {
            Direction::Here => ring().find(|span| matches(span)),
            Direction::Next => ring().skip(1).chain(ring().take(1)).find(|span| matches(span)),
            Direction::Previous => {
                let mut ring: Vec<&Span> = ring().skip(1).chain(ring().take(1)).collect();
                // The one that is selected comes last.
                let own = ring.pop();
                ring.reverse();
                ring.into_iter().chain(own).find(|span| matches(span))
            }
        };
        if let Some(span) = found {
            self.reveal(scene, span);
        }
    }

    /// Whether the steps inside a step are shown.
    fn is_open(&self, span: &Span, scene: &Scene<'_>) -> bool {
        let by_itself = || span.is_running() || span.failure().is_some() || scene.look.expands();
        self.opened.get(&span.id).copied().unwrap_or_else(by_itself)
    }

    /// All rows that can be gone through.
    fn rows<'a>(&self, scene: &Scene<'a>) -> Vec<TreeRow<'a>> {
        let (trace, look) = (scene.trace, &scene.look);
        let zoomed = self.zoom.last().and_then(|id| trace.span(*id));
        let mut stack: Vec<(&Span, usize)> = match zoomed {
            Some(span) => vec![(span, 0)],
            None => trace.roots().map(|span| (span, 0)).collect(),
        };
        stack.reverse();
        let mut rows = vec![];
        while let Some((span, depth)) = stack.pop() {
            let shown = look.shows(span);
            let is_top = zoomed.is_some_and(|zoomed| zoomed.id == span.id);
            let open = !shown || is_top || self.is_open(span, scene);
            if shown || is_top {
                let folded = if open { 0 } else { span.children.len() };
                rows.push(TreeRow { span, depth, folded });
            }
            if open {
                let below = stack.len();
                let inside =
                    trace.children(span).map(|c| (c, depth + usize::from(shown || is_top)));
                stack.extend(inside);
                stack[below..].reverse();
            }
        }
        rows
    }

    /// Where the selected step is; one that is not there any more was at the end.
    fn index(&self, rows: &[TreeRow<'_>]) -> usize {
        let selected = rows.iter().position(|row| Some(row.span.id) == self.selected);
        selected.unwrap_or(rows.len().saturating_sub(1))
    }

    /// The frame, unless the work is to be followed.
    pub(super) fn frame(&mut self, scene: &Scene<'_>) -> Option<Vec<FrameLine>> {
        let selected = self.selected_span(scene);
        let mut lines = match (self.place, selected) {
            (Place::Follow, _) if !self.help => return None,
            (Place::Follow, _) => super::follow::frame(scene),
            (Place::Output, Some(span)) => pager::frame(span, scene, &mut self.below),
            (Place::Tree | Place::Output, _) => self.tree_frame(scene),
        };
        if self.help {
            let help = HELP.iter().map(|text| line::faint(text, scene));
            let at = lines.len().saturating_sub(1);
            lines.splice(at..at, help);
        }
        Some(lines)
    }

    fn tree_frame(&mut self, scene: &Scene<'_>) -> Vec<FrameLine> {
        let rows = self.rows(scene);
        let index = self.index(&rows);
        let Some(current) = rows.get(index) else { return vec![self.last_line(scene)] };
        let room = scene.room();
        let wanted = if self.zoom.is_empty() { MAX_LOG_LINES.min(room / 3) } else { room };
        let wanted = wanted.min(room.saturating_sub(rows.len()).max(MAX_LOG_LINES.min(room / 3)));
        let flat: Vec<_> = rows.iter().map(|row| (row.span, row.depth)).collect();
        let guided = tree::with_guides(&flat);
        let indent = width(&guided[index].guide) + 2;
        let mut below: Vec<FrameLine> =
            line::reason(current.span, scene, indent).into_iter().collect();
        below.extend(line::output(current.span, scene, indent, wanted.saturating_sub(below.len())));
        self.scroll_to(index, rows.len(), room - below.len().min(room - 1));
        let mut lines = vec![];
        for (at, row) in guided.iter().enumerate().skip(self.top) {
            let mark = Mark { selected: at == index, folded: rows[at].folded };
            lines.push(line::step(row, scene, Some(mark)));
            if at == index {
                lines.append(&mut below);
            }
        }
        lines.truncate(room);
        lines.push(self.last_line(scene));
        lines
    }

    /// Moves the window no further than it must to show a row.
    fn scroll_to(&mut self, index: usize, rows: usize, room: usize) {
        let lowest = (index + 1).saturating_sub(room);
        self.top = self.top.clamp(lowest, index).min(rows.saturating_sub(room).max(lowest));
    }

    fn last_line(&self, scene: &Scene<'_>) -> FrameLine {
        if self.is_typing {
            return line::faint(&format!("/{}", self.search), scene);
        }
        let leave = if scene.over { "q leave" } else { "Esc follow" };
        let back = if self.zoom.is_empty() { leave } else { "Esc back" };
        let found = match self.search.as_str() {
            "" => String::new(),
            text => format!("/{} n next · ", cut(text, 20)),
        };
        line::summary(scene, 0, &format!("{found}{back} · ? keys"))
    }
}

/// Which way a search goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Here,
    Next,
    Previous,
}
