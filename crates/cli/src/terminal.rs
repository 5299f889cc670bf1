//! [`Terminal`]: what a live display needs of the terminal besides drawing: its keys, a clean
//! screen when the user stops the program with Ctrl-Z, and who else wants the terminal.

use client::{Loan, Loans};
use rustix::process::{Signal as Number, getpid, kill_process};
use std::future::pending;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Interval, MissedTickBehavior, interval};
use tui::Keyboard;

/// How often keys are looked for. Nobody notices the wait, and neither a thread nor a flag on the
/// terminal that others share is needed for it.
const LOOK: Duration = Duration::from_millis(25);

/// The terminal beside a display.
pub(crate) struct Terminal {
    live: bool,
    /// Whether keys are for the display.
    keys: bool,
    keyboard: Option<(Keyboard, Interval)>,
    stop: Option<Signal>,
    /// Who asks for the terminal.
    loans: Option<Loans>,
}

/// What a user does at the terminal.
pub(crate) enum Input {
    /// Presses keys.
    Keys(Vec<u8>),
    /// Presses Ctrl-Z.
    Stop,
    /// Is about to use it for something else.
    Loan(Loan),
}

impl Terminal {
    /// The terminal of a display that is redrawn in place, or of one that is not. Only the first is lent.
    pub(crate) fn new(live: bool, keys: bool, loans: Option<Loans>) -> Self {
        Self { live, keys, keyboard: None, stop: None, loans: loans.filter(|_| live) }
    }

    /// Whether the display may draw now: a program in the background leaves the screen alone.
    pub(crate) fn may_draw(&self) -> bool {
        !self.live || tui::may_draw()
    }

    /// Something stands on the screen: from now on keys are for it. Work that is over in a blink
    /// leaves what is typed meanwhile to whoever comes next.
    pub(crate) fn drawn(&mut self) {
        if self.stop.is_none() {
            self.stop = signal(SignalKind::from_raw(Number::TSTP.as_raw())).ok();
        }
        if self.keys {
            self.take_keys();
        }
    }

    /// Takes the keys, whoever they were for.
    pub(crate) fn take_keys(&mut self) {
        if self.keyboard.is_none() {
            let mut looks = interval(LOOK);
            looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            self.keyboard = Keyboard::open().map(|keyboard| (keyboard, looks));
        }
    }

    /// What the user does next.
    pub(crate) async fn next(&mut self) -> Input {
        let Self { keyboard, stop, loans, .. } = self;
        tokio::select! {
            keys = typed(keyboard) => Input::Keys(keys),
            () = stopped(stop.as_mut()) => Input::Stop,
            loan = asked(loans) => Input::Loan(loan),
        }
    }

    /// Stops the program until the shell continues it.
    pub(crate) fn stop(&mut self) {
        self.release();
        // We were asked to stop, and nobody can refuse this.
        let _ = kill_process(getpid(), Number::STOP);
        self.regain();
    }

    /// Takes the keys again after [`Terminal::release`].
    pub(crate) fn regain(&mut self) {
        if let Some((keyboard, _)) = &mut self.keyboard {
            keyboard.take();
        }
    }

    /// Leaves the terminal as it was.
    pub(crate) fn release(&mut self) {
        if let Some((keyboard, _)) = &mut self.keyboard {
            keyboard.release();
        }
    }
}

async fn typed(keyboard: &mut Option<(Keyboard, Interval)>) -> Vec<u8> {
    let mut buffer = [0; 256];
    while let Some((keys, looks)) = keyboard {
        looks.tick().await;
        match keys.read(&mut buffer) {
            Some([]) => {}
            Some(bytes) => return bytes.to_vec(),
            // The terminal is gone.
            None => *keyboard = None,
        }
    }
    pending().await
}

async fn asked(loans: &mut Option<Loans>) -> Loan {
    if let Some(waiting) = loans {
        match waiting.next().await {
            Some(loan) => return loan,
            None => *loans = None,
        }
    }
    pending().await
}

async fn stopped(stop: Option<&mut Signal>) {
    match stop {
        Some(stop) => stop.recv().await,
        None => pending().await,
    };
}
