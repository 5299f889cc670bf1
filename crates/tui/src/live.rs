//! The view for terminals: what runs now, as a tree that is redrawn in place.
//!
//! A frame shows running and failed steps, those that ended within the last second, and the end of
//! the output of what runs. It never fills the screen, and it does not appear at all for work that
//! is over in a blink.

use crate::display::{End, Shown, View};
use crate::look::Look;
use crate::terminal::{FrameLine, Painter, Size};
use crate::text::{clean, cut, duration, moved_parts, progress, progress_parts, step_name, width};
use crate::tree::{self, Row};
use std::time::Duration;
use telemetry::{Change, Span, Trace};

/// How often durations move on.
const TICK: Duration = Duration::from_millis(100);
/// How long nothing is drawn, so that quick work leaves the screen alone.
const QUIET: u64 = 150_000;
/// How long an ended step stays.
const LINGER: u64 = 1_000_000;
/// Most lines of output under one step.
const MAX_LOG_LINES: usize = 6;
/// Where the size of the terminal is not known.
const FALLBACK: Size = Size { columns: 80, rows: 24 };

pub(crate) struct Live {
    look: Look,
    size: Box<dyn Fn() -> Option<Size> + Send>,
    painter: Painter,
    began: Option<u64>,
}

impl Live {
    pub(crate) fn new(look: Look, size: Box<dyn Fn() -> Option<Size> + Send>) -> Self {
        Self { look, size, painter: Painter::default(), began: None }
    }

    fn size(&self) -> Size {
        (self.size)().unwrap_or(FALLBACK)
    }
}

impl View for Live {
    fn change(&mut self, _: &Trace, _: &Change, now: u64, _: &mut String) {
        // Drawing waits for the tick: a burst of changes is one frame.
        self.began.get_or_insert(now);
    }

    fn tick(&mut self, trace: &Trace, now: u64, out: &mut String) {
        let Some(began) = self.began else { return };
        if now.saturating_sub(began) < QUIET {
            return;
        }
        let size = self.size();
        let frame = frame(trace, &self.look, size, began, now);
        self.painter.draw(frame, size.columns, out);
    }

    fn finish(&mut self, end: End<'_>, out: &mut String) -> Shown {
        self.step_aside(out);
        if end.failed || self.look.level >= 1 || self.look.debug {
            return tree::write_final(end, &self.look, out);
        }
        Shown::default()
    }

    fn interval(&self) -> Option<Duration> {
        Some(TICK)
    }

    fn step_aside(&mut self, out: &mut String) {
        self.painter.erase(self.size().columns, out);
    }
}

/// The lines of one frame, none wider than the terminal, fewer than its rows.
pub(crate) fn frame(
    trace: &Trace,
    look: &Look,
    size: Size,
    began: u64,
    now: u64,
) -> Vec<FrameLine> {
    let columns = size.columns.saturating_sub(1).max(1);
    let room = size.rows.saturating_sub(2).max(1);
    let rows = live_rows(trace, look, room, now);
    if rows.is_empty() {
        return vec![];
    }
    let hidden = rows.len().saturating_sub(room);
    let rows = &rows[hidden..];
    let log_lines = log_lines(rows, room - rows.len());
    let mut lines = vec![];
    for row in rows {
        lines.push(step_line(row, look, columns, now));
        if row.span.is_running() {
            lines.extend(log_tail(row, look, columns, log_lines));
        }
    }
    lines.push(summary(trace, look, (hidden, columns), (began, now)));
    lines
}

fn live_rows<'a>(trace: &'a Trace, look: &Look, room: usize, now: u64) -> Vec<Row<'a>> {
    let matters = |span: &Span| span.is_running() || (span.failure().is_some() && look.level >= 0);
    let lingers =
        |span: &Span| span.ended.as_ref().is_some_and(|(at, _)| now.saturating_sub(*at) < LINGER);
    let rows = tree::rows(trace, look, |span| matters(span) || lingers(span));
    if rows.len() <= room {
        return rows;
    }
    tree::rows(trace, look, matters)
}

/// How many lines of output each running step may show.
fn log_lines(rows: &[Row<'_>], room: usize) -> usize {
    let talking =
        rows.iter().filter(|row| row.span.is_running() && !row.span.log.is_empty()).count();
    room.checked_div(talking).unwrap_or(0).min(MAX_LOG_LINES)
}

fn step_line(row: &Row<'_>, look: &Look, columns: usize, now: u64) -> FrameLine {
    let time = duration(row.span.elapsed(now));
    let parts = match row.span.progress {
        Some(progress) if row.span.is_running() => progress_parts(&progress.at(now)),
        _ => moved_parts(row.span),
    };
    let left = width(&row.guide) + 2;
    let name = step_name(&row.span.name);
    let named = width(&name).clamp(7, (columns / 2).max(7));
    let right = fitting(parts, &time, columns.saturating_sub(left + named + 1));
    let room = columns.saturating_sub(left + width(&right) + 1);
    let name = cut(&name, room);
    let plain = format!("{}? {name} {right}", row.guide);
    if width(&plain) > columns {
        let plain = cut(&plain, columns);
        return FrameLine::new(&plain, plain.clone());
    }
    let painted = format!(
        "{}{} {name} {}",
        look.paint.faint(&row.guide),
        look.icon(row.span),
        look.paint.faint(&right)
    );
    FrameLine::new(&plain, painted)
}

/// As many parts of the progress as there is room for, the first ones first, and the time.
fn fitting(mut parts: Vec<String>, time: &str, room: usize) -> String {
    while !parts.is_empty() {
        let right = format!("{}  {time}", parts.join(", "));
        if width(&right) <= room {
            return right;
        }
        parts.pop();
    }
    time.to_owned()
}

fn log_tail(row: &Row<'_>, look: &Look, columns: usize, count: usize) -> Vec<FrameLine> {
    let indent = " ".repeat(width(&row.guide));
    let skipped = row.span.log.lines().len().saturating_sub(count);
    let lines = row.span.log.lines().skip(skipped);
    lines
        .map(|line| {
            let plain = cut(&format!("{indent}┃ {}", clean(&line.text, false)), columns);
            let painted = look.paint.faint(&plain);
            FrameLine::new(&plain, painted)
        })
        .collect()
}

/// The last line: how long, how many, and how far all of it is where not everything is shown.
fn summary(
    trace: &Trace,
    look: &Look,
    cut_to: (usize, usize),
    (began, now): (u64, u64),
) -> FrameLine {
    let (hidden, columns) = cut_to;
    let counts = trace.counts();
    let parts = [
        (counts.running, "running"),
        (counts.done, "done"),
        (counts.cached, "cached"),
        (counts.failed, "failed"),
        (hidden, "not shown"),
    ];
    let mut text = duration(now.saturating_sub(began));
    for (count, what) in parts.iter().filter(|(count, _)| *count > 0) {
        text.push_str(&format!(" · {count} {what}"));
    }
    if let Some(pace) = trace.pace(now).filter(|_| hidden > 0) {
        text.push_str(&format!(" · {}", progress(&pace)));
    }
    let plain = cut(&text, columns);
    let painted = look.paint.faint(&plain);
    FrameLine::new(&plain, painted)
}
