//! [`Admission`]: how many commands run at a time.
//!
//! More commands than the machine has processors finish no earlier and take memory while they wait for each
//! other. But a command may also wait: for the network, for a clock, for another command of ours. So as
//! many as there is work for are let in at once, in the order they came, and more as long as processors are
//! idle and there is memory. Who has waited for long is let in whatever the machine does: it may be
//! what others wait for.

use std::collections::VecDeque;
use std::fs;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Commands for each processor that are let in at once: while one is made, another one works.
const FOR_EACH: usize = 2;
/// How often it is looked whether the machine can take more. There must be a few ticks of the kernel's clock in it.
const LOOK: Duration = Duration::from_millis(40);
/// The first in line is let in after so long.
const PATIENCE: Duration = Duration::from_secs(1);
/// The share of processor time that must be idle.
const IDLE: f64 = 0.2;
/// The share of memory that must be available.
const AVAILABLE: f64 = 0.1;

/// Lets commands in. Clones are the same.
#[derive(Clone)]
pub(crate) struct Admission(Arc<Mutex<State>>);

struct State {
    /// How many are let in at once.
    base: usize,
    running: usize,
    waiting: VecDeque<oneshot::Sender<Admitted>>,
    /// Whether somebody looks at the machine already.
    watched: bool,
    /// When somebody was let in last.
    moved: Instant,
    /// Whether memory is short, and when that was looked at.
    short: (Instant, bool),
}

/// Leave to run; given back when this is dropped.
pub(crate) struct Admitted(Option<Admission>);

impl Admission {
    /// For this machine.
    pub(crate) fn new() -> Admission {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Admission::for_processors(processors)
    }

    fn for_processors(processors: usize) -> Admission {
        let (base, moved) = (processors * FOR_EACH, Instant::now());
        let (waiting, short) = (VecDeque::new(), (moved, false));
        let state = State { base, running: 0, waiting, watched: false, moved, short };
        Admission(Arc::new(Mutex::new(state)))
    }

    /// Waits for the turn. Who stops waiting gives it up. Must be called inside a tokio runtime.
    pub(crate) async fn enter(&self) -> Admitted {
        let turn = {
            let mut state = self.lock();
            if state.waiting.is_empty() && state.takes_another() {
                state.running += 1;
                state.moved = Instant::now();
                return Admitted(Some(self.clone()));
            }
            let (sender, turn) = oneshot::channel();
            state.waiting.push_back(sender);
            if !std::mem::replace(&mut state.watched, true) {
                tokio::spawn(self.clone().watch());
            }
            turn
        };
        // It is dropped unsent only when the whole of the admission is.
        turn.await.unwrap_or(Admitted(None))
    }

    /// Lets more in as long as somebody waits and the machine can take it.
    async fn watch(self) {
        let mut before = Machine::look();
        loop {
            tokio::time::sleep(LOOK).await;
            let now = Machine::look();
            let mut state = self.lock();
            state.waiting.retain(|turn| !turn.is_closed());
            if state.waiting.is_empty() {
                state.watched = false;
                return;
            }
            let more = match now.has_room_since(&before) {
                true => (state.running / 4).max(1),
                false => usize::from(state.moved.elapsed() > PATIENCE),
            };
            for _ in 0..more {
                self.admit(&mut state);
            }
            drop(state);
            before = now;
        }
    }

    /// Lets the first one in that still waits.
    fn admit(&self, state: &mut State) {
        while let Some(turn) = state.waiting.pop_front() {
            state.running += 1;
            match turn.send(Admitted(Some(self.clone()))) {
                Ok(()) => {
                    state.moved = Instant::now();
                    return;
                }
                // Given back here, because the lock is ours.
                Err(mut unwanted) => {
                    unwanted.0 = None;
                    state.running -= 1;
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let Some(admission) = self.0.take() else { return };
        let mut state = admission.lock();
        state.running -= 1;
        if state.takes_another() {
            admission.admit(&mut state);
        }
    }
}

impl State {
    /// Whether one more is let in without a look at what the processors do.
    fn takes_another(&mut self) -> bool {
        if self.running == 0 {
            return true;
        }
        if self.short.0.elapsed() > LOOK {
            self.short = (Instant::now(), Machine::look().available <= AVAILABLE);
        }
        self.running < self.base && !self.short.1
    }
}

/// How busy the machine is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Machine {
    /// Ticks that processors had nothing to do, and all ticks, since the start.
    idle: u64,
    ticks: u64,
    /// The share of memory that is available.
    available: f64,
}

impl Machine {
    /// As the kernel says; who says nothing is busy.
    fn look() -> Machine {
        let read = |file| fs::read_to_string(file).unwrap_or_default();
        Machine::parse(&read("/proc/stat"), &read("/proc/meminfo"))
    }

    fn parse(stat: &str, memory: &str) -> Machine {
        let first = stat.lines().next().unwrap_or_default();
        let ticks = first.split_ascii_whitespace().skip(1).take(8);
        let ticks: Vec<u64> = ticks.filter_map(|field| field.parse().ok()).collect();
        let idle = ticks.iter().skip(3).take(2).sum();
        let size = |name: &str| -> Option<f64> {
            let line = memory.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_ascii_whitespace().next()?.parse().ok()
        };
        let share = size("MemAvailable:").zip(size("MemTotal:"));
        let available = share.map_or(0.0, |(available, total)| available / total);
        Machine { idle, ticks: ticks.iter().sum(), available }
    }

    fn has_room_since(&self, before: &Machine) -> bool {
        let ticks = self.ticks.saturating_sub(before.ticks);
        let idle = self.idle.saturating_sub(before.idle);
        self.available > AVAILABLE && ticks > 0 && idle as f64 / ticks as f64 > IDLE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn as_many_as_there_is_work_for_come_in_at_once_and_the_next_when_one_ends() {
        let admission = Admission::for_processors(1);
        let (first, _second) = (admission.enter().await, admission.enter().await);
        assert_eq!(admission.lock().running, 2);
        let mut third = Box::pin(admission.enter());
        let waits = tokio::time::timeout(Duration::ZERO, &mut third).await.is_err();
        assert!(waits);
        drop(first);
        drop(third.await);
        assert_eq!(admission.lock().running, 1);
    }

    #[tokio::test]
    async fn who_stops_waiting_holds_nobody_up() {
        let admission = Admission::for_processors(1);
        let held = [admission.enter().await, admission.enter().await];
        for _ in 0..10 {
            let given_up = tokio::time::timeout(Duration::ZERO, admission.enter()).await;
            assert!(given_up.is_err());
        }
        let next = tokio::spawn({
            let admission = admission.clone();
            async move { drop(admission.enter().await) }
        });
        drop(held);
        next.await.unwrap();
        assert_eq!(admission.lock().running, 0);
    }

    #[tokio::test]
    async fn commands_that_wait_for_another_one_of_ours_do_not_wait_for_ever() {
        let admission = Admission::for_processors(1);
        let mut held = Vec::new();
        // Each holds its turn until the last one has come in.
        for _ in 0..8 {
            held.push(admission.enter().await);
        }
        assert_eq!(admission.lock().running, 8);
    }

    #[test]
    fn a_machine_has_room_when_it_is_idle_and_has_memory() {
        let look = |idle: u64, busy: u64, available: u64| {
            let stat = format!("cpu  {busy} 0 0 {idle} 0 0 0 0 0 0\ncpu0 1 2 3\n");
            let memory =
                format!("MemTotal: 1000 kB\nMemFree: 1 kB\nMemAvailable: {available} kB\n");
            Machine::parse(&stat, &memory)
        };
        let before = look(100, 100, 500);
        assert!(look(150, 150, 500).has_room_since(&before));
        assert!(!look(110, 190, 500).has_room_since(&before), "busy");
        assert!(!look(150, 150, 50).has_room_since(&before), "no memory");
        assert!(!Machine::parse("", "").has_room_since(&before));
    }
}
