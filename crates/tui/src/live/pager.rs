//! The output of one step, as much of it as is kept, a screen at a time.

use super::{Scene, line};
use crate::terminal::FrameLine;
use crate::text::{clean, wrap};
use crate::tree::Row;
use telemetry::Span;

/// The frame with so many lines of output below it; more than there are is put right.
pub(super) fn frame(span: &Span, scene: &Scene<'_>, below: &mut usize) -> Vec<FrameLine> {
    let (paint, columns) = (scene.look.paint, scene.columns());
    let output = span.log.tail(usize::MAX);
    let wrapped = output.iter().flat_map(|text| wrap(&clean(text, paint.colour), columns));
    let text: Vec<FrameLine> = wrapped.map(|(text, columns)| FrameLine { text, columns }).collect();
    let room = scene.room().saturating_sub(1).max(1);
    *below = (*below).min(text.len().saturating_sub(room));
    let end = text.len() - *below;
    let begin = end.saturating_sub(room);
    let mut lines = vec![line::step(&Row { span, guide: String::new() }, scene, None)];
    lines.extend_from_slice(&text[begin..end]);
    let mut last = match text.len() {
        0 if span.log.dropped() > 0 => "the output is not kept any more".to_owned(),
        0 => "no output".to_owned(),
        count => format!("{}-{end} of {count}", begin + 1),
    };
    if !text.is_empty() && span.log.dropped() > 0 {
        last.push_str(&format!(", {} earlier lines dropped", span.log.dropped()));
    }
    lines.push(line::faint(&format!("{last} · ↑↓ scroll · Esc back"), scene));
    lines
}
