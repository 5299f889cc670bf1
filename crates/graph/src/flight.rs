//! [`Flights`]: equal work in flight is done once, and only for as long as somebody waits.
//!
//! The table holds weak references. Every waiter holds a strong one and polls the work; when the last
//! waiter drops its own, the work is dropped too, wherever it is. Results are not kept here: a flight
//! must store its result before it lands, and whoever starts one looks there first: under the lock, or
//! before it if nothing has landed since.

use crate::Digest;
use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared, WeakShared};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Work that several wait for.
pub(crate) type Flight<T> = Shared<BoxFuture<'static, T>>;

/// The work in flight, by name.
pub(crate) struct Flights<T: Clone>(Mutex<Table<T>>);

struct Table<T: Clone> {
    /// Tells a flight from an earlier one of the same name.
    next: u64,
    /// How many are over.
    landed: u64,
    flights: HashMap<Digest, (u64, WeakShared<BoxFuture<'static, T>>)>,
}

/// What joining found.
pub(crate) enum Joined<T: Clone, R> {
    /// The work was finished before.
    Finished(R),
    /// It is in flight now.
    Flying(Flight<T>),
}

/// Takes a flight off the table when it is over, be it done or dropped.
struct Landing<T: Clone + Send + 'static> {
    flights: Arc<Flights<T>>,
    key: Digest,
    number: u64,
}

impl<T: Clone + Send + Sync + 'static> Flights<T> {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(Table { next: 0, landed: 0, flights: HashMap::new() })))
    }

    /// How many flights are over. What was not finished when this was asked can only be so once the answer
    /// has changed.
    pub(crate) fn landed(&self) -> u64 {
        self.lock().landed
    }

    /// Joins the flight of this name, or else asks `finished` once more, with how many are over by now, and
    /// begins `start`.
    ///
    /// Both run under the lock of the table: they must be short and must not come back here.
    pub(crate) fn join<R>(
        self: &Arc<Self>,
        key: Digest,
        finished: impl FnOnce(u64) -> Option<R>,
        start: impl FnOnce() -> BoxFuture<'static, T>,
    ) -> Joined<T, R> {
        let mut table = self.lock();
        if let Some(flight) = table.flights.get(&key).and_then(|(_, flight)| flight.upgrade()) {
            return Joined::Flying(flight);
        }
        if let Some(result) = finished(table.landed) {
            return Joined::Finished(result);
        }
        table.next += 1;
        let number = table.next;
        let work = start();
        let landing = Landing { flights: self.clone(), key, number };
        let flight = async move {
            let _landing = landing;
            work.await
        };
        let flight = flight.boxed().shared();
        if let Some(weak) = flight.downgrade() {
            table.flights.insert(key, (number, weak));
        }
        Joined::Flying(flight)
    }
}

impl<T: Clone> Flights<T> {
    /// A panic elsewhere leaves the table whole: every change is one insert or one remove.
    fn lock(&self) -> MutexGuard<'_, Table<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Clone + Send + 'static> Drop for Landing<T> {
    fn drop(&mut self) {
        let mut table = self.flights.lock();
        table.landed += 1;
        if table.flights.get(&self.key).is_some_and(|(number, _)| *number == self.number) {
            table.flights.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_looked_before_a_landing_looks_again() {
        let flights = Flights::<u32>::new();
        let key = Digest::builder("flight").finish();
        let before = flights.landed();
        let join = |before| {
            let finished = move |landed| (landed != before).then_some(7);
            flights.join(key, finished, || async { 1 }.boxed())
        };
        let Joined::Flying(flight) = join(before) else { panic!("nothing has landed") };
        assert_eq!(flight.now_or_never(), Some(1));
        assert!(matches!(join(before), Joined::Finished(7)));
        assert!(matches!(join(flights.landed()), Joined::Flying(_)));
    }
}
