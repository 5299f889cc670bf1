//! [`Stop`]: tells work on another thread that nobody waits for it any more.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A word that may be given once. The work holds a clone and looks at it now and then.
#[derive(Clone, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

/// Gives the word when it is dropped, and so when the future that holds it is.
pub(crate) struct StopOnDrop(Stop);

impl Stop {
    /// A word, and what gives it.
    pub(crate) fn new() -> (Self, StopOnDrop) {
        let stop = Self::default();
        (stop.clone(), StopOnDrop(stop))
    }

    /// Gives the word.
    pub(crate) fn give(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the work is to end.
    pub(crate) fn is_given(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// The same bytes, with an error in place of the next ones once the word is given.
    pub(crate) fn reading<R: Read>(&self, inner: R) -> impl Read + use<R> {
        Stoppable { inner, stop: self.clone() }
    }
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.give();
    }
}

struct Stoppable<R> {
    inner: R,
    stop: Stop,
}

impl<R: Read> Read for Stoppable<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.stop.is_given() {
            true => Err(io::Error::other("nobody waits for this any more")),
            false => self.inner.read(buffer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_ends_when_the_word_is_given() {
        let (stop, guard) = Stop::new();
        let mut read = stop.reading(&b"abc"[..]);
        let mut byte = [0];
        assert_eq!(read.read(&mut byte).unwrap(), 1);
        drop(guard);
        assert!(stop.is_given());
        assert!(read.read(&mut byte).is_err());
    }
}
