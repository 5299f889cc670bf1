//! [`Sample`]: times of one thing that was done again and again, and how to take them.
//!
//! The machine may be busy with something else, so the 10th percentile stands beside the median:
//! it is what the thing costs when nobody is in the way.

use anyhow::{Context as _, Result, bail};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Times in the order they were taken.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sample(Vec<Duration>);

impl Sample {
    /// Adds one time.
    pub(crate) fn push(&mut self, time: Duration) {
        self.0.push(time);
    }

    /// Adds all times of another sample.
    pub(crate) fn extend(&mut self, other: Sample) {
        self.0.extend(other.0);
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// The one in the middle.
    pub(crate) fn median(&self) -> Duration {
        self.percentile(50)
    }

    /// All of them in sequence, divided by how many they are.
    pub(crate) fn mean(&self) -> Duration {
        let all: Duration = self.0.iter().sum();
        u32::try_from(self.0.len())
            .ok()
            .and_then(|count| all.checked_div(count))
            .unwrap_or_default()
    }

    /// The time that so many percent do not exceed; zero where nothing was measured.
    pub(crate) fn percentile(&self, percent: usize) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let last = sorted.len().saturating_sub(1);
        // To the nearest: of three times the 90th percentile is the last, not the middle one.
        sorted.get((last * percent + 50) / 100).copied().unwrap_or_default()
    }

    /// The first that was taken.
    pub(crate) fn first(&self) -> Duration {
        self.0.first().copied().unwrap_or_default()
    }

    /// The middle of the first few, and of as many last ones.
    pub(crate) fn ends(&self, count: usize) -> (Duration, Duration) {
        let median = |times: &[Duration]| times.iter().copied().collect::<Sample>().median();
        let count = count.min(self.0.len());
        (median(&self.0[..count]), median(&self.0[self.0.len() - count..]))
    }

    /// The slowest of all.
    pub(crate) fn slowest(&self) -> Duration {
        self.0.iter().max().copied().unwrap_or_default()
    }

    /// All but the first few.
    pub(crate) fn without_first(&self, count: usize) -> Sample {
        self.0.iter().skip(count).copied().collect()
    }

    /// Each time divided, for things that were done many at a time.
    pub(crate) fn divided_by(&self, count: u32) -> Sample {
        self.0.iter().map(|time| *time / count).collect()
    }
}

impl FromIterator<Duration> for Sample {
    fn from_iter<I: IntoIterator<Item = Duration>>(times: I) -> Self {
        Self(times.into_iter().collect())
    }
}

/// How many times as long one takes as the other, by their medians.
pub(crate) fn ratio(one: &Sample, other: &Sample) -> f64 {
    one.median().as_secs_f64() / other.median().as_secs_f64()
}

/// Does something and says how long it took.
pub(crate) fn time<T>(work: impl FnOnce() -> Result<T>) -> Result<(Duration, T)> {
    let begin = Instant::now();
    let made = work()?;
    Ok((begin.elapsed(), made))
}

/// Runs a program to its end and says how long that took. One that fails is an error with its talk.
pub(crate) fn time_command(command: &mut Command) -> Result<Duration> {
    let (time, _) = time(|| output(command))?;
    Ok(time)
}

/// Runs a program to its end and gives its standard output.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = command.spawn().and_then(|child| child.wait_with_output());
    let output = output.with_context(|| format!("cannot run {}", command_line(command)))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{} ended with {}: {}", command_line(command), output.status, said.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A command as one would type it.
fn command_line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_taken_from_the_sorted_times() {
        let sample: Sample = (1..=11).rev().map(Duration::from_millis).collect();
        let millis = |time: Duration| time.as_millis();
        assert_eq!(millis(sample.median()), 6);
        assert_eq!(millis(sample.percentile(10)), 2);
        assert_eq!(millis(sample.percentile(90)), 10);
        assert_eq!(millis(sample.first()), 11);
        assert_eq!(millis(sample.slowest()), 11);
        assert_eq!((millis(sample.ends(3).0), millis(sample.ends(3).1)), (10, 2));
        assert_eq!(Sample::default().median(), Duration::ZERO);
        let three: Sample = (1..=3).map(Duration::from_millis).collect();
        assert_eq!(millis(three.percentile(10)), 1);
        assert_eq!(millis(three.percentile(90)), 3);
    }

    #[test]
    fn a_program_that_fails_is_an_error_with_its_talk() {
        let error = time_command(Command::new("sh").args(["-c", "echo broken >&2; exit 3"]));
        let text = format!("{:#}", error.unwrap_err());
        assert!(text.contains("broken") && text.contains("sh -c"), "{text}");
    }
}
