//! How far long work is, how fast it goes and how long it may still take.
//!
//! The rate is smoothed: reports come in bursts, and a figure that jumps cannot be read. It follows
//! a change within seconds, and it falls when reports stay away.

use protocol::Unit;

/// The rate follows a change in about this time, in seconds.
const SMOOTHING: f64 = 3.0;
/// Reports that are closer together than this, in microseconds, count as one.
const SAMPLE: u64 = 250_000;
/// Work that has not reported for so long is getting slower.
const STALL: u64 = 2_000_000;

/// How far long work is, as its reports say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    last: Report,
    /// Where the current sample began: when, and how much was done.
    sample: (u64, u64),
    rate: Option<u64>,
}

/// One report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Report {
    pub(crate) done: u64,
    pub(crate) total: Option<u64>,
    pub(crate) unit: Unit,
    pub(crate) at: u64,
}

/// How far work is at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// How much is done.
    pub done: u64,
    /// How much there is, once known.
    pub total: Option<u64>,
    /// Of what.
    pub unit: Unit,
    /// How much is done a second, once that can be told.
    pub rate: Option<u64>,
}

impl Progress {
    /// The progress after one more report.
    pub(crate) fn after(before: Option<Self>, report: Report) -> Self {
        let fresh = Self { last: report, sample: (report.at, report.done), rate: None };
        // Work that begins again, or counts something else now, has no past.
        let Some(before) =
            before.filter(|b| b.last.unit == report.unit && b.sample.1 <= report.done)
        else {
            return fresh;
        };
        if report.at.saturating_sub(before.sample.0) < SAMPLE {
            return Self { last: report, ..before };
        }
        Self { rate: before.smoothed(report.done, report.at), ..fresh }
    }

    /// How far the work is at this time.
    pub fn at(&self, now: u64) -> Pace {
        let Report { done, total, unit, at } = self.last;
        let stalled = now.saturating_sub(at) >= STALL;
        let rate = if stalled { self.smoothed(done, now) } else { self.rate };
        Pace { done, total, unit, rate }
    }

    /// The rate if the current sample ended so.
    fn smoothed(&self, done: u64, at: u64) -> Option<u64> {
        let (began, from) = self.sample;
        let micros = at.checked_sub(began).filter(|micros| *micros > 0)?;
        let seconds = micros as f64 / 1e6;
        let sample = done.saturating_sub(from) as f64 / seconds;
        let Some(rate) = self.rate else { return Some(sample as u64) };
        let weight = 1.0 - (-seconds / SMOOTHING).exp();
        Some((rate as f64 + weight * (sample - rate as f64)).round() as u64)
    }
}

impl Pace {
    /// Microseconds until the rest is done at this rate.
    pub fn left(&self) -> Option<u64> {
        let rest = self.total?.checked_sub(self.done).filter(|rest| *rest > 0)?;
        let rate = self.rate.filter(|rate| *rate > 0)?;
        u64::try_from(u128::from(rest) * 1_000_000 / u128::from(rate)).ok()
    }

    /// All of them together: what counts the same as the first. None of none.
    pub fn sum(paces: impl IntoIterator<Item = Self>) -> Option<Self> {
        let mut paces = paces.into_iter();
        let first = paces.next()?;
        let rest = paces.filter(|pace| pace.unit == first.unit);
        Some(rest.fold(first, |sum, pace| Self {
            done: sum.done.saturating_add(pace.done),
            total: sum.total.zip(pace.total).map(|(one, other)| one.saturating_add(other)),
            unit: sum.unit,
            rate: match (sum.rate, pace.rate) {
                (Some(one), Some(other)) => Some(one.saturating_add(other)),
                (one, other) => one.or(other),
            },
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000;

    /// Reports of bytes done at times, in thousands and in milliseconds.
    fn progress(reports: &[(u64, u64)]) -> Progress {
        let report = |(done, at)| Report {
            done: done * 1000,
            total: Some(1_000_000),
            unit: Unit::Bytes,
            at: at * 1000,
        };
        let fold = |before, next| Some(Progress::after(before, report(next)));
        reports.iter().copied().fold(None, fold).unwrap()
    }

    #[test]
    fn a_steady_rate_is_told_as_it_is() {
        assert_eq!(progress(&[(0, 0), (10, 100)]).at(0).rate, None);
        let steady: Vec<_> = (0..50).map(|n| (n * 10, n * 100)).collect();
        let pace = progress(&steady).at(0);
        assert_eq!((pace.done, pace.rate), (490_000, Some(100_000)));
        assert_eq!(pace.left(), Some(5_100_000));
    }

    #[test]
    fn a_change_is_followed_and_a_burst_is_not() {
        let mut reports: Vec<_> = (0..=10).map(|n| (n * 10, n * 1000)).collect();
        reports.push((150, 11_000));
        let burst = progress(&reports).at(0).rate.unwrap();
        assert!((15_000..30_000).contains(&burst), "{burst}");
        reports.extend((1..20).map(|n| (150 + n * 40, 11_000 + n * 1000)));
        let later = progress(&reports).at(0).rate.unwrap();
        assert!((39_000..=40_000).contains(&later), "{later}");
    }

    #[test]
    fn who_stops_reporting_gets_slower() {
        let moving = progress(&[(0, 0), (100, 1000), (200, 2000)]);
        assert_eq!(moving.at(2 * SECOND + 1).rate, Some(100_000));
        let stalled = moving.at(12 * SECOND).rate.unwrap();
        assert!(stalled < 5_000, "{stalled}");
    }

    #[test]
    fn work_that_begins_again_has_no_past() {
        let again = progress(&[(0, 0), (500, 1000), (1, 1500)]);
        assert_eq!((again.at(0).done, again.at(0).rate), (1000, None));
    }

    #[test]
    fn what_is_unknown_of_one_is_unknown_of_all() {
        let pace = |done, total, rate| Pace { done, total, unit: Unit::Bytes, rate };
        let items = Pace { unit: Unit::Items, ..pace(7, Some(7), None) };
        let known = [pace(1, Some(10), Some(3)), items, pace(2, Some(20), None)];
        assert_eq!(Pace::sum(known), Some(pace(3, Some(30), Some(3))));
        let unknown = [pace(1, Some(10), Some(3)), pace(2, None, Some(1))];
        assert_eq!(Pace::sum(unknown), Some(pace(3, None, Some(4))));
        assert_eq!(Pace::sum([]), None);
    }

    #[test]
    fn nothing_is_left_of_what_is_done_or_unknown() {
        let pace = |done, total, rate| Pace { done, total, unit: Unit::Bytes, rate };
        assert_eq!(pace(1, Some(3), Some(1)).left(), Some(2 * SECOND));
        for none in [pace(3, Some(3), Some(1)), pace(1, None, Some(1)), pace(1, Some(3), Some(0))] {
            assert_eq!(none.left(), None);
        }
    }
}
