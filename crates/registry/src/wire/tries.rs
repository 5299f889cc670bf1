//! When to try again, and how long to wait before.
//!
//! Pauses double and are drawn at random from the upper half, so that many who failed together do
//! not come back together. A registry that names a time is asked again no earlier.

use crate::{Error, Settings};
use std::time::Duration;

/// Longest pause that we choose by ourselves.
const LONGEST_OWN_PAUSE: Duration = Duration::from_secs(8);

/// Tries of one piece of work.
#[derive(Debug)]
pub(crate) struct Tries {
    made: u32,
    attempts: u32,
    pause: Duration,
    longest_pause: Duration,
}

impl Tries {
    pub(crate) fn new(settings: &Settings, attempts: u32) -> Self {
        Self { made: 0, attempts, pause: settings.pause, longest_pause: settings.longest_pause }
    }

    /// The work went on since: failures before that do not count.
    pub(crate) fn reset(&mut self) {
        self.made = 0;
    }

    /// Waits before the next try, or gives the error back when it makes no sense to try again.
    pub(crate) async fn pause_after(&mut self, error: Error) -> Result<(), Error> {
        self.made += 1;
        if !error.is_passing() || self.made >= self.attempts {
            return Err(error);
        }
        let named = error.after().unwrap_or_default();
        if named > self.longest_pause {
            return Err(error);
        }
        let pause = own_pause(self.pause, self.made).max(named);
        tracing::debug!(%error, attempt = self.made, "trying again");
        tokio::time::sleep(pause).await;
        Ok(())
    }
}

fn own_pause(first: Duration, made: u32) -> Duration {
    let factor = 1_u32.checked_shl(made.saturating_sub(1)).unwrap_or(u32::MAX);
    let whole = first.saturating_mul(factor).min(LONGEST_OWN_PAUSE);
    let mut byte = [0];
    // Without randomness the pause is the longest.
    let share = getrandom::fill(&mut byte).map_or(255, |()| u32::from(byte[0]));
    whole / 2 + whole.mul_f64(f64::from(share) / 510.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_stay_within_bounds() {
        let first = Duration::from_millis(100);
        for made in 1..=40 {
            let pause = own_pause(first, made);
            let whole = (first * (1 << (made - 1).min(20))).min(LONGEST_OWN_PAUSE);
            assert!(pause >= whole / 2 && pause <= whole, "{made}: {pause:?} of {whole:?}");
        }
    }
}
