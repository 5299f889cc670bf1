//! [`Spares`]: the folders of an exec's layer, made before somebody waits for them.
//!
//! Making three directories takes longer than all else that an overlay needs, and every exec needs them. So
//! while one runs, the folders of the next are made.

use crate::Error;
use crate::draft::{Draft, WorkDir};
use crate::state::StateDir;
use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

/// How many are kept. More than a few commands seldom begin at one moment.
const MOST: usize = 4;
/// The folder that is the kernel's own.
const KERNEL: &str = "work";

/// Folders in stock.
#[derive(Default)]
pub(crate) struct Spares(Mutex<Vec<Folders>>);

/// The folders of one layer that is going to be written.
pub(crate) struct Folders {
    pub(crate) work: Arc<WorkDir>,
    /// The layer, still empty.
    pub(crate) upper: Draft,
}

impl Spares {
    /// Folders out of the stock, or new ones.
    pub(crate) fn take(&self, state: &Arc<StateDir>) -> Result<Folders, Error> {
        let stock = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        stock.map_or_else(|| Folders::make(state), Ok)
    }

    /// Adds to the stock, if there is need. What goes wrong here goes wrong again, and is told, where it
    /// matters.
    pub(crate) fn fill(&self, state: &Arc<StateDir>) {
        let full = || self.0.lock().unwrap_or_else(PoisonError::into_inner).len() >= MOST;
        if full() {
            return;
        }
        match Folders::make(state) {
            Ok(made) => self.0.lock().unwrap_or_else(PoisonError::into_inner).push(made),
            Err(error) => tracing::debug!("no folders were made ahead: {error}"),
        }
    }
}

impl Folders {
    fn make(state: &Arc<StateDir>) -> Result<Self, Error> {
        let work = Arc::new(WorkDir::new(state)?);
        let upper = Draft::at(Arc::clone(&work), "upper")?;
        let path = work.path().join(KERNEL);
        let made = mkdirat(CWD, &path, Mode::RWXU);
        made.map_err(|errno| Error::io("create", &path)(errno.into()))?;
        Ok(Self { work, upper })
    }

    /// The folder that is the kernel's own.
    pub(crate) fn kernel(work: &WorkDir) -> Result<OwnedFd, Error> {
        let path = work.path().join(KERNEL);
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let open = openat(CWD, &path, flags, Mode::empty());
        open.map_err(|errno| Error::io("open", &path)(errno.into()))
    }
}
