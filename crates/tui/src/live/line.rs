//! Single lines of a frame: a step, its output, the sum of it all.

use super::Scene;
use crate::terminal::FrameLine;
use crate::text::{
    clean, cut, cut_coloured, duration, moved_parts, progress, progress_parts, width,
};
use crate::tree::Row;
use telemetry::Span;

/// How a step stands in a list that can be gone through.
#[derive(Clone, Copy, Default)]
pub(super) struct Mark {
    /// Whether it is the one that keys speak of.
    pub(super) selected: bool,
    /// Steps inside it that are not shown.
    pub(super) folded: usize,
}

/// A step with its sign, name, progress and time.
pub(super) fn step(row: &Row<'_>, scene: &Scene<'_>, mark: Option<Mark>) -> FrameLine {
    let (look, now, columns) = (&scene.look, scene.now, scene.columns());
    let time = duration(row.span.elapsed(now));
    let mut parts = match row.span.progress {
        Some(progress) if row.span.is_running() => progress_parts(&progress.at(now)),
        _ => moved_parts(row.span),
    };
    if let Some(folded) = mark.map(|mark| mark.folded).filter(|folded| *folded > 0) {
        parts.insert(0, format!("+{folded}"));
    }
    let pointer = match mark {
        None => "",
        Some(Mark { selected: true, .. }) => "▸ ",
        Some(_) => "  ",
    };
    let left = width(pointer) + width(&row.guide) + 2;
    let name = look.name(row.span);
    let named = width(&name).clamp(7, (columns / 2).max(7));
    let right = fitting(parts, &time, columns.saturating_sub(left + named + 1));
    let name = cut(&name, columns.saturating_sub(left + width(&right) + 1));
    let plain = format!("{pointer}{}? {name} {right}", row.guide);
    if width(&plain) > columns {
        let plain = cut(&plain, columns);
        return FrameLine::new(&plain, plain.clone());
    }
    let bold = mark.is_some_and(|mark| mark.selected);
    let painted = format!(
        "{}{}{} {} {}",
        look.paint.bold(pointer),
        look.paint.faint(&row.guide),
        look.icon(row.span),
        if bold { look.paint.bold(&name) } else { name },
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

/// The last lines of a step's output, so many columns to the right.
pub(super) fn output(
    span: &Span,
    scene: &Scene<'_>,
    indent: usize,
    count: usize,
) -> Vec<FrameLine> {
    let lines = span.log.tail(count);
    lines.iter().map(|line| bar(line, scene, indent)).collect()
}

/// One line of output behind a bar.
fn bar(text: &str, scene: &Scene<'_>, indent: usize) -> FrameLine {
    let paint = scene.look.paint;
    let columns = scene.columns();
    let lead = cut(&format!("{}┃ ", " ".repeat(indent)), columns);
    let room = columns - width(&lead);
    let (text, taken) = cut_coloured(&clean(text, paint.colour), room);
    FrameLine { text: format!("{}{text}", paint.faint(&lead)), columns: width(&lead) + taken }
}

/// Why a step failed: the first line of it.
pub(super) fn reason(span: &Span, scene: &Scene<'_>, indent: usize) -> Option<FrameLine> {
    let first = clean(span.failure()?.lines().next()?, false);
    let plain = cut(&format!("{}! {first}", " ".repeat(indent)), scene.columns());
    let painted = scene.look.paint.red(&plain);
    Some(FrameLine::new(&plain, painted))
}

/// The last line: how long, how many, and how far all of it is where not everything is shown.
pub(super) fn summary(scene: &Scene<'_>, hidden: usize, hint: &str) -> FrameLine {
    let counts = scene.trace.counts();
    let parts = [
        (counts.running, "running"),
        (counts.done, "done"),
        (counts.cached, "cached"),
        (counts.failed, "failed"),
        (hidden, "not shown"),
    ];
    let mut text = duration(scene.now.saturating_sub(scene.began));
    for (count, what) in parts.iter().filter(|(count, _)| *count > 0) {
        text.push_str(&format!(" · {count} {what}"));
    }
    if let Some(pace) = scene.trace.pace(scene.now).filter(|_| hidden > 0) {
        text.push_str(&format!(" · {}", progress(&pace)));
    }
    if scene.keys && !hint.is_empty() {
        text.push_str(&format!(" · {hint}"));
    }
    faint(&text, scene)
}

/// A line of little weight.
pub(super) fn faint(text: &str, scene: &Scene<'_>) -> FrameLine {
    let plain = cut(text, scene.columns());
    let painted = scene.look.paint.faint(&plain);
    FrameLine::new(&plain, painted)
}
