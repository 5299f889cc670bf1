//! The view for files and pipes: a line when a step begins, for each line of its output, and when
//! it ends, each after the number of the step.
//!
//! A step that prints keeps the floor for a while, so that the output of steps that run side by
//! side is not mixed line by line. What others have to say waits, within limits of time and lines.

use crate::display::{End, Shown, View};
use crate::look::Look;
use crate::text::{clean, duration, moved_parts, progress, short_name};
use protocol::{Outcome, SpanId};
use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt::Write as _;
use std::time::Duration;
use telemetry::{Change, Line, Pace, Span, Trace};

/// How often waiting lines are looked at.
const TICK: Duration = Duration::from_millis(50);
/// How long a step keeps the floor after its last line.
const FLOOR_IDLE: u64 = 1_000_000;
/// How long a step keeps the floor at most while others wait.
const FLOOR_MAX: u64 = 10_000_000;
/// How many lines may wait before the floor is taken away.
const MAX_WAITING: usize = 2_000;
/// How often the progress of one step is told.
const PROGRESS_EVERY: u64 = 2_000_000;
/// Most steps inside one step whose progress is told one by one.
const MAX_TOLD: usize = 4;

pub(crate) struct Plain {
    look: Look,
    /// Numbers of steps that run, and how many were given.
    numbers: HashMap<SpanId, usize>,
    numbered: usize,
    floor: Option<Floor>,
    /// Lines that wait for the floor, in the order they came.
    waiting: VecDeque<(SpanId, Said)>,
    /// When the progress of a step was told last.
    told: HashMap<SpanId, u64>,
    /// Steps whose output was printed.
    printed: HashSet<SpanId>,
    /// Why a step failed, if that was the last thing told.
    last_word: Option<String>,
    wrote: bool,
}

/// Lines that belong together.
struct Said {
    text: String,
    about: About,
}

/// What lines are about, as far as that decides what the last word was.
enum About {
    /// A step that failed by itself, for this reason.
    Cause(String),
    /// A step that failed because one inside it did.
    Consequence,
    /// Anything else.
    Work,
}

struct Floor {
    holder: SpanId,
    since: u64,
    last: u64,
}

impl Plain {
    pub(crate) fn new(look: Look) -> Self {
        Self {
            look,
            numbers: HashMap::new(),
            numbered: 0,
            floor: None,
            waiting: VecDeque::new(),
            told: HashMap::new(),
            printed: HashSet::new(),
            last_word: None,
            wrote: false,
        }
    }

    fn number(&mut self, id: SpanId) -> usize {
        *self.numbers.entry(id).or_insert_with(|| {
            self.numbered += 1;
            self.numbered
        })
    }

    fn prefix(&mut self, id: SpanId) -> String {
        let number = self.number(id);
        let debug = if self.look.debug { format!("{} ", id.0) } else { String::new() };
        self.look.paint.faint(&format!("{number:<4}{debug}:"))
    }

    fn started(&mut self, trace: &Trace, span: &Span) -> String {
        let indent = "  ".repeat(self.look.depth(trace, span).min(20));
        format!("{} {indent}{}\n", self.prefix(span.id), self.look.name(span))
    }

    fn lines(&mut self, span: &Span, lines: &[Line]) -> String {
        let prefix = self.prefix(span.id);
        let mut text = String::new();
        for line in lines {
            let time = duration(line.at.saturating_sub(span.started));
            let output = clean(&line.text, self.look.paint.colour);
            let _ = writeln!(text, "{prefix} [{time}] | {output}");
        }
        text
    }

    fn ended(&mut self, trace: &Trace, span: &Span) -> Said {
        let Some((at, outcome)) = &span.ended else { return Said::of_work(String::new()) };
        let paint = self.look.paint;
        let verdict = match outcome {
            Outcome::Done => paint.green("DONE"),
            Outcome::Cached => paint.blue("CACHED"),
            Outcome::Failed(_) => paint.red("ERROR"),
            Outcome::Cancelled => paint.faint("CANCELLED"),
        };
        let prefix = self.prefix(span.id);
        let name = short_name(&span.name);
        let mut text = format!("{prefix} {name} {verdict} [{}]", duration(span.elapsed(*at)));
        for (index, part) in moved_parts(span).iter().enumerate() {
            let _ = write!(text, "{} {part}", if index == 0 { "" } else { "," });
        }
        text.push('\n');
        self.numbers.remove(&span.id);
        let about = match span.failure() {
            Some(reason) if trace.is_cause(span) => About::Cause(reason.to_owned()),
            Some(_) => About::Consequence,
            None => About::Work,
        };
        if let About::Cause(reason) = &about {
            for line in reason.lines() {
                let _ = writeln!(text, "{prefix} {} {}", paint.red("!"), clean(line, false));
            }
        }
        Said { text, about }
    }

    /// Tells how far a step is, if that was not told just now. Many that run side by side are told as
    /// one, by the step around them.
    fn progressed(&mut self, trace: &Trace, span: &Span, now: u64) -> Option<(SpanId, String)> {
        let around = span.parent.and_then(|parent| trace.span(parent));
        let crowd = around.map(|around| (around, crowd(trace, around, now)));
        let crowd = crowd.filter(|(_, paces)| paces.len() > MAX_TOLD);
        let speaker = crowd.as_ref().map_or(span, |(around, _)| *around);
        let told = self.told.get(&speaker.id).copied().unwrap_or(speaker.started);
        if now.saturating_sub(told) < PROGRESS_EVERY {
            return None;
        }
        self.told.insert(speaker.id, now);
        let text = match crowd {
            None => progress(&span.progress?.at(now)),
            Some((_, paces)) => {
                format!("{} at once: {}", paces.len(), progress(&Pace::sum(paces)?))
            }
        };
        let time = duration(speaker.elapsed(now));
        Some((speaker.id, format!("{} [{time}] | {text}\n", self.prefix(speaker.id))))
    }

    /// Queues text of a step; only output of a running step takes the floor.
    fn say(&mut self, id: SpanId, said: Said, takes_floor: bool, now: u64, out: &mut String) {
        if said.text.is_empty() {
            return;
        }
        let mine = self.floor.as_ref().is_none_or(|floor| floor.holder == id);
        if !mine {
            self.waiting.push_back((id, said));
            return;
        }
        self.write(said, out);
        match &mut self.floor {
            Some(floor) => floor.last = now,
            None if takes_floor => self.floor = Some(Floor { holder: id, since: now, last: now }),
            None => {}
        }
    }

    fn write(&mut self, said: Said, out: &mut String) {
        out.push_str(&said.text);
        self.wrote = true;
        match said.about {
            About::Cause(reason) => self.last_word = Some(reason),
            About::Consequence => {}
            About::Work => self.last_word = None,
        }
    }

    /// Lets those who wait speak, one step after the other, until one of them has more to say.
    fn pass_floor(&mut self, trace: &Trace, now: u64, out: &mut String) {
        self.floor = None;
        while let Some((next, _)) = self.waiting.front() {
            let next = *next;
            let (spoken, rest): (VecDeque<_>, _) =
                std::mem::take(&mut self.waiting).into_iter().partition(|(id, _)| *id == next);
            self.waiting = rest;
            spoken.into_iter().for_each(|(_, said)| self.write(said, out));
            let speaks = |span: &Span| span.is_running() && !span.log.is_empty();
            if trace.span(next).is_some_and(speaks) {
                self.floor = Some(Floor { holder: next, since: now, last: now });
                return;
            }
        }
    }

    fn only_failures(&self) -> bool {
        self.look.level < 0 && !self.look.debug
    }
}

impl Said {
    fn of_work(text: String) -> Self {
        Self { text, about: About::Work }
    }

    /// The same after some other lines.
    fn after(self, before: String) -> Self {
        Self { text: before + &self.text, ..self }
    }
}

/// How far everything is that runs right inside a step.
fn crowd(trace: &Trace, around: &Span, now: u64) -> Vec<Pace> {
    let running = trace.children(around).filter(|span| span.is_running());
    running.filter_map(|span| Some(span.progress?.at(now))).collect()
}

impl View for Plain {
    fn change(&mut self, trace: &Trace, change: &Change, now: u64, out: &mut String) {
        let (Change::Started(id)
        | Change::Printed(id, _)
        | Change::Progressed(id)
        | Change::Ended(id, _)) = change
        else {
            return;
        };
        let Some(span) = trace.span(*id).filter(|span| self.look.shows(span)) else { return };
        if self.only_failures() {
            if span.failure().is_some() {
                let begin = self.started(trace, span);
                let said = self.ended(trace, span).after(begin);
                self.say(*id, said, false, now, out);
            }
            return;
        }
        match change {
            Change::Nothing => {}
            Change::Started(_) => {
                let text = self.started(trace, span);
                self.say(*id, Said::of_work(text), false, now, out);
            }
            Change::Printed(_, lines) => {
                let text = self.lines(span, lines);
                if !text.is_empty() {
                    self.printed.insert(*id);
                }
                self.say(*id, Said::of_work(text), true, now, out);
            }
            Change::Progressed(_) => {
                if let Some((speaker, text)) = self.progressed(trace, span, now) {
                    self.say(speaker, Said::of_work(text), false, now, out);
                }
            }
            Change::Ended(_, lines) => {
                let text = self.lines(span, lines);
                let said = self.ended(trace, span).after(text);
                if !lines.is_empty() {
                    self.printed.insert(*id);
                }
                self.told.remove(id);
                if span.failure().is_none() {
                    self.printed.remove(id);
                }
                self.say(*id, said, false, now, out);
                if self.floor.as_ref().is_some_and(|floor| floor.holder == *id) {
                    self.pass_floor(trace, now, out);
                }
            }
        }
    }

    fn tick(&mut self, trace: &Trace, now: u64, out: &mut String) {
        let Some(floor) = &self.floor else { return };
        let idle = now.saturating_sub(floor.last) >= FLOOR_IDLE;
        let long = now.saturating_sub(floor.since) >= FLOOR_MAX;
        if idle || (long && !self.waiting.is_empty()) || self.waiting.len() > MAX_WAITING {
            self.pass_floor(trace, now, out);
        }
    }

    fn finish(&mut self, end: End<'_>, out: &mut String) -> Shown {
        self.floor = None;
        for (_, said) in std::mem::take(&mut self.waiting) {
            self.write(said, out);
        }
        if self.wrote {
            out.push('\n');
        }
        // Reasons were told when each step ended. One that was told long ago is worth being told again.
        let output = end.trace.causes().any(|span| self.printed.contains(&span.id));
        Shown { reasons: self.last_word.take().into_iter().collect(), output }
    }

    fn interval(&self) -> Option<Duration> {
        Some(TICK)
    }
}
