//! [`IdleThread`]: work that is to slow nobody down.
//!
//! Such a thread runs only where no other wants to. On a machine that is fully busy that may be for
//! moments seconds apart, which is too little once somebody waits for its end: then it runs as others do.
//! Who has no right to raise a thread waits longer, no more.

use crate::sys::{Pace, set_pace};
use std::io;
use std::thread::{Builder, JoinHandle};

/// A thread of the lowest priority.
pub(crate) struct IdleThread(JoinHandle<()>);

impl IdleThread {
    /// Starts it.
    pub(crate) fn spawn(
        thread: Builder,
        work: impl FnOnce() + Send + 'static,
    ) -> io::Result<IdleThread> {
        let thread = thread.spawn(work)?;
        // Where that fails it is slower for others, but not wrong.
        let _ = set_pace(&thread, Pace::Idle);
        Ok(IdleThread(thread))
    }

    /// Waits for its end, which it must have been told to come to.
    pub(crate) fn join(self) -> std::thread::Result<()> {
        let _ = set_pace(&self.0, Pace::Usual);
        self.0.join()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn who_is_waited_for_runs_as_others_do() {
        let (ask, asked) = mpsc::channel::<()>();
        let (tell, told) = mpsc::channel();
        let work = move || asked.iter().for_each(|()| tell.send(crate::sys::pace()).unwrap());
        let thread = IdleThread::spawn(Builder::new(), work).unwrap();
        ask.send(()).unwrap();
        assert_eq!(told.recv().unwrap(), Some(Pace::Idle));
        // As who waits for it does.
        let raised = set_pace(&thread.0, Pace::Usual).is_ok();
        ask.send(()).unwrap();
        let pace = if raised { Pace::Usual } else { Pace::Idle };
        assert_eq!(told.recv().unwrap(), Some(pace));
        drop(ask);
        thread.join().unwrap();
    }
}
