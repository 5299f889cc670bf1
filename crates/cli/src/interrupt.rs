//! Ctrl-C and its relatives.

use crate::error::Error;
use std::future::Future;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Waits for somebody to end the program.
pub(crate) struct Interrupt {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
    quit: Signal,
}

impl Interrupt {
    /// Takes the signals over: from now on they no longer end the program by themselves.
    pub(crate) fn new() -> Result<Self, Error> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            quit: signal(SignalKind::quit())?,
        })
    }

    /// Waits for the next press.
    pub(crate) async fn pressed(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hang_up.recv() => {}
            _ = self.quit.recv() => {}
        }
    }

    /// The future's outcome, unless somebody presses Ctrl-C first; then the future is dropped.
    pub(crate) async fn or<T, E>(
        &mut self,
        future: impl Future<Output = Result<T, E>>,
    ) -> Result<T, Error>
    where
        Error: From<E>,
    {
        tokio::select! {
            result = future => Ok(result?),
            () = self.pressed() => Err(Error::interrupted()),
        }
    }
}
