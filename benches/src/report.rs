//! [`Report`]: the table of one question: figures first, then what they are held against.

use crate::measure::{Sample, ratio};
use std::fmt;
use std::time::Duration;

/// What is known about one question so far.
pub(crate) struct Report {
    name: &'static str,
    load: String,
    figures: Vec<[String; 5]>,
    goals: Vec<Goal>,
    notes: Vec<String>,
}

/// A figure, what it should be, and whether it is.
struct Goal {
    what: String,
    value: String,
    wanted: String,
    met: bool,
}

/// Goals over several questions.
#[derive(Default)]
pub(crate) struct Verdict {
    met: usize,
    missed: Vec<String>,
}

impl Report {
    /// An empty report. The load of the machine is noted now and again at the end.
    pub(crate) fn begin(name: &'static str, title: &'static str) -> Self {
        println!("== {name}: {title}");
        let (figures, goals, notes) = (Vec::new(), Vec::new(), Vec::new());
        Self { name, load: load_average(), figures, goals, notes }
    }

    /// A row of times.
    pub(crate) fn sample(&mut self, what: &str, sample: &Sample) {
        let times = [sample.median(), sample.percentile(10), sample.percentile(90)].map(time_text);
        let [median, low, high] = times;
        self.figures.push([what.to_owned(), median, low, high, sample.count().to_string()]);
    }

    /// A row with one figure that is no time.
    pub(crate) fn figure(&mut self, what: &str, value: String) {
        self.figures.push([what.to_owned(), value, String::new(), String::new(), String::new()]);
    }

    /// A line below the table: what was left out and why, or what a figure means.
    pub(crate) fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// Goal: we are at least so many times as fast as the peer.
    pub(crate) fn faster(&mut self, what: &str, peer: &Sample, ours: &Sample, factor: f64) {
        let value = ratio(peer, ours);
        let (value_text, wanted) = (ratio_text(value), format!("at least {}", ratio_text(factor)));
        self.goal(what, value_text, wanted, value >= factor);
    }

    /// Goal: a ratio does not exceed a limit.
    pub(crate) fn ratio_at_most(&mut self, what: &str, value: f64, limit: f64) {
        let (value_text, wanted) = (ratio_text(value), format!("at most {}", ratio_text(limit)));
        self.goal(what, value_text, wanted, value <= limit);
    }

    /// Goal: a time does not exceed a limit.
    pub(crate) fn time_at_most(&mut self, what: &str, value: Duration, limit: Duration) {
        let (value_text, wanted) = (time_text(value), format!("at most {}", time_text(limit)));
        self.goal(what, value_text, wanted, value <= limit);
    }

    /// Goal: some amount of memory, in bytes, does not exceed a limit.
    pub(crate) fn memory_at_most(&mut self, what: &str, value: u64, limit: u64) {
        let (value_text, wanted) = (memory_text(value), format!("at most {}", memory_text(limit)));
        self.goal(what, value_text, wanted, value <= limit);
    }

    /// A ratio without a goal.
    pub(crate) fn compare(&mut self, what: &str, value: f64) {
        self.goal(what, ratio_text(value), String::new(), true);
    }

    fn goal(&mut self, what: &str, value: String, wanted: String, met: bool) {
        self.goals.push(Goal { what: what.to_owned(), value, wanted, met });
    }

    /// Prints the tables and gives the goals.
    pub(crate) fn print(self) -> Verdict {
        if !self.figures.is_empty() {
            print_row(&["", "median", "p10", "p90", "count"].map(str::to_owned));
            self.figures.iter().for_each(print_row);
        }
        self.goals.iter().for_each(Goal::print);
        self.notes.iter().for_each(|note| println!("  {note}"));
        println!("  load average: {} before, {} after\n", self.load, load_average());
        let (asked, name) = (self.goals.iter().filter(|goal| !goal.wanted.is_empty()), self.name);
        let (met, missed): (Vec<_>, Vec<_>) = asked.partition(|goal| goal.met);
        let text = |goal: &&Goal| format!("{name}: {} {} ({})", goal.what, goal.value, goal.wanted);
        Verdict { met: met.len(), missed: missed.iter().map(text).collect() }
    }
}

impl Goal {
    fn print(&self) {
        let word = match (self.wanted.is_empty(), self.met) {
            (true, _) => "",
            (false, true) => "goal met",
            (false, false) => "goal missed",
        };
        let line = format!("  {:<58} {:>10}  {:<18} {word}", self.what, self.value, self.wanted);
        println!("{}", line.trim_end());
    }
}

impl Verdict {
    /// Adds the goals of another question.
    pub(crate) fn add(&mut self, other: Verdict) {
        self.met += other.met;
        self.missed.extend(other.missed);
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "goals: {} met, {} missed", self.met, self.missed.len())?;
        self.missed.iter().try_for_each(|goal| write!(to, "\n  goal missed: {goal}"))
    }
}

fn print_row([what, median, low, high, count]: &[String; 5]) {
    let line = format!("  {what:<58} {median:>10} {low:>10} {high:>10} {count:>6}");
    println!("{}", line.trim_end());
}

/// A time with three digits or so.
fn time_text(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        s if s < 0.001 => format!("{:.0} us", s * 1e6),
        s if s < 0.01 => format!("{:.2} ms", s * 1e3),
        s if s < 0.1 => format!("{:.1} ms", s * 1e3),
        s if s < 1.0 => format!("{:.0} ms", s * 1e3),
        s => format!("{s:.2} s"),
    }
}

/// Memory in megabytes of a million bytes.
pub(crate) fn memory_text(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

fn ratio_text(value: f64) -> String {
    match value {
        v if v < 10.0 => format!("{v:.2}x"),
        v => format!("{v:.1}x"),
    }
}

/// The three load averages of the machine.
fn load_average() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rows_with_a_goal_count() {
        let mut report = Report::begin("test", "a report");
        report.compare("no goal", 3.0);
        report.ratio_at_most("good", 1.0, 2.0);
        report.time_at_most("bad", Duration::from_millis(31), Duration::from_millis(30));
        let verdict = report.print();
        assert_eq!(verdict.met, 1);
        assert_eq!(verdict.missed, ["test: bad 31.0 ms (at most 30.0 ms)"]);
    }

    #[test]
    fn times_are_written_with_their_unit() {
        for (micros, text) in
            [(5, "5 us"), (1_570, "1.57 ms"), (31_000, "31.0 ms"), (2_310_000, "2.31 s")]
        {
            assert_eq!(time_text(Duration::from_micros(micros)), text);
        }
    }
}
