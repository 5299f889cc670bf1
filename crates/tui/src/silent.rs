//! The view that shows nothing. Results and errors are not its business.

use crate::display::{End, Shown, View};
use std::time::Duration;
use telemetry::{Change, Trace};

pub(crate) struct Silent;

impl View for Silent {
    fn change(&mut self, _: &Trace, _: &Change, _: u64, _: &mut String) {}

    fn tick(&mut self, _: &Trace, _: u64, _: &mut String) {}

    fn finish(&mut self, _: End<'_>, _: &mut String) -> Shown {
        Shown::default()
    }

    fn interval(&self) -> Option<Duration> {
        None
    }
}
