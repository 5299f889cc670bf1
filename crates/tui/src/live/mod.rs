//! The view for terminals: what runs now, as a tree that is redrawn in place.
//!
//! Without a key pressed a frame follows the work: running and failed steps, those that ended last
//! as far as there is room, and the end of the output of what runs. With keys a user goes through
//! the whole tree, opens and closes steps, zooms, searches and reads output ([`browse`]). A frame
//! never fills the screen, and none appears for work that is over in a blink.

mod browse;
mod follow;
mod line;
mod pager;

use crate::display::{Answer, End, Shown, View};
use crate::keys::Key;
use crate::look::Look;
use crate::terminal::{BEGIN_UPDATE, END_UPDATE, FrameLine, Painter, Size};
use crate::tree;
pub(crate) use browse::Browse;
use browse::Wish;
use std::time::Duration;
use telemetry::{Change, Trace};

/// How often durations move on.
const TICK: Duration = Duration::from_millis(100);
/// How long nothing is drawn, so that quick work leaves the screen alone.
const QUIET: u64 = 150_000;
/// Where the size of the terminal is not known.
const FALLBACK: Size = Size { columns: 80, rows: 24 };

pub(crate) struct Live {
    look: Look,
    size: Box<dyn Fn() -> Option<Size> + Send>,
    painter: Painter,
    browse: Browse,
    began: Option<u64>,
    /// Whether there is a keyboard.
    keys: bool,
    /// When the work was over and the display stayed.
    over: Option<u64>,
    /// Whether the frame is away for a moment.
    makes_room: bool,
}

/// What a frame is made of.
#[derive(Clone, Copy)]
pub(crate) struct Scene<'a> {
    pub(crate) trace: &'a Trace,
    pub(crate) look: Look,
    pub(crate) size: Size,
    pub(crate) began: u64,
    pub(crate) now: u64,
    /// Whether there is a keyboard.
    pub(crate) keys: bool,
    /// Whether the work is over and the display stays until somebody leaves it.
    pub(crate) over: bool,
}

impl Scene<'_> {
    /// Columns that a line may take.
    fn columns(&self) -> usize {
        self.size.columns.saturating_sub(1).max(1)
    }

    /// Lines of a frame above its last one.
    fn room(&self) -> usize {
        self.size.rows.saturating_sub(2).max(1)
    }
}

impl Live {
    pub(crate) fn new(look: Look, size: Box<dyn Fn() -> Option<Size> + Send>, keys: bool) -> Self {
        let (painter, browse) = (Painter::default(), Browse::default());
        Self { look, size, painter, browse, began: None, keys, over: None, makes_room: false }
    }

    fn size(&self) -> Size {
        (self.size)().unwrap_or(FALLBACK)
    }

    fn scene<'a>(&self, trace: &'a Trace, now: u64) -> Scene<'a> {
        Scene {
            trace,
            look: self.look,
            size: self.size(),
            began: self.began.unwrap_or(now),
            now: self.over.unwrap_or(now),
            keys: self.keys,
            over: self.over.is_some(),
        }
    }

    fn draw(&mut self, trace: &Trace, now: u64, out: &mut String) {
        let scene = self.scene(trace, now);
        let frame = frame(&mut self.browse, &scene);
        self.painter.draw(frame, scene.size, out);
    }
}

impl View for Live {
    fn change(&mut self, _: &Trace, _: &Change, now: u64, _: &mut String) {
        // Drawing waits for the tick: a burst of changes is one frame.
        self.began.get_or_insert(now);
    }

    fn tick(&mut self, trace: &Trace, now: u64, out: &mut String) {
        let quiet = self.began.is_none_or(|began| now.saturating_sub(began) < QUIET);
        if !quiet || self.over.is_some() {
            self.draw(trace, now, out);
        }
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

    fn make_room(&mut self, out: &mut String) {
        self.makes_room = self.painter.is_drawn();
        if self.makes_room {
            out.push_str(BEGIN_UPDATE);
            self.step_aside(out);
        }
    }

    fn come_back(&mut self, trace: &Trace, now: u64, out: &mut String) {
        if std::mem::take(&mut self.makes_room) {
            self.draw(trace, now, out);
            out.push_str(END_UPDATE);
        }
    }

    fn key(&mut self, trace: &Trace, key: Key, now: u64, out: &mut String) -> Answer {
        let scene = self.scene(trace, now);
        match self.browse.key(key, &scene) {
            Wish::Draw => {}
            Wish::More => self.look.level += 1,
            Wish::Less => self.look.level -= 1,
            Wish::Leave => return Answer::Leave,
        }
        if self.painter.is_drawn() {
            self.draw(trace, now, out);
        }
        Answer::Stay
    }

    fn stay(&mut self, trace: &Trace, now: u64, out: &mut String) -> bool {
        self.over = Some(now);
        self.keys = true;
        self.browse.begin(&self.scene(trace, now));
        self.draw(trace, now, out);
        true
    }

    fn is_drawn(&self) -> bool {
        self.painter.is_drawn()
    }

    fn abandon(&mut self, out: &mut String) {
        self.painter.show_cursor(out);
    }
}

/// The lines of one frame, none wider than the terminal, fewer than its rows.
pub(crate) fn frame(browse: &mut Browse, scene: &Scene<'_>) -> Vec<FrameLine> {
    let mut lines = match browse.frame(scene) {
        Some(lines) => lines,
        None => follow::frame(scene),
    };
    lines.drain(..lines.len().saturating_sub(scene.room() + 1));
    lines
}

#[cfg(test)]
mod tests;
