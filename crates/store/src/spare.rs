//! [`Spares`]: the folders of an exec's layer, made before somebody waits for them.
//!
//! Making three directories takes longer than all else that an overlay needs, and every exec needs them. So
//! while one runs, the folders of the next are made; those of one that has ended are used again, because
//! taking them apart and making others costs more than to empty them:
//!
//! ```text
//! upper    has become a layer, or is removed if nothing was written
//! work     the kernel's own, with what it does not mount over again
//! ```

use crate::Error;
use crate::draft::{Draft, WorkDir};
use crate::state::StateDir;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, mkdirat, openat, unlinkat};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many are kept. More than a few commands seldom begin at one moment.
const MOST: usize = 4;
/// The layer.
const UPPER: &str = "upper";
/// The folder that is the kernel's own.
const KERNEL: &str = "work";
/// What the kernel leaves in its folder, in the order in which it can be removed.
const LEFT: [(&str, AtFlags); 4] = [
    ("work/work/incompat/volatile/dirty", AtFlags::empty()),
    ("work/work/incompat/volatile", AtFlags::REMOVEDIR),
    ("work/work/incompat", AtFlags::REMOVEDIR),
    ("work/work", AtFlags::REMOVEDIR),
];

/// Folders in stock.
#[derive(Default)]
pub(crate) struct Spares {
    ready: Mutex<Vec<Folders>>,
    used: Mutex<Vec<WorkDir>>,
}

/// The folders of one layer that is going to be written.
pub(crate) struct Folders {
    pub(crate) work: Arc<WorkDir>,
    /// The layer, still empty.
    pub(crate) upper: Draft,
}

impl Spares {
    /// Folders out of the stock, or new ones.
    pub(crate) fn take(&self, state: &Arc<StateDir>) -> Result<Folders, Error> {
        let stock = lock(&self.ready).pop();
        stock.map_or_else(|| Folders::make(state), Ok)
    }

    /// Takes back folders whose mount is gone. What is in the layer by now is somebody's mistake, and goes to
    /// the trash with the rest.
    pub(crate) fn give_back(&self, work: Arc<WorkDir>) {
        let Some(work) = Arc::into_inner(work) else { return };
        match unlinkat(CWD, work.path().join(UPPER), AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(_) => return,
        }
        let mut used = lock(&self.used);
        if used.len() < MOST {
            used.push(work);
        }
    }

    /// Adds to the stock, if there is need. What goes wrong here goes wrong again, and is told, where it
    /// matters.
    pub(crate) fn fill(&self, state: &Arc<StateDir>) {
        if lock(&self.ready).len() >= MOST {
            return;
        }
        let used = lock(&self.used).pop();
        let again = used.map(Folders::again).and_then(|made| {
            made.inspect_err(|error| tracing::debug!("folders are not used again: {error}")).ok()
        });
        match again.map_or_else(|| Folders::make(state), Ok) {
            Ok(made) => lock(&self.ready).push(made),
            Err(error) => tracing::debug!("no folders were made ahead: {error}"),
        }
    }
}

impl Folders {
    fn make(state: &Arc<StateDir>) -> Result<Self, Error> {
        let work = Arc::new(WorkDir::new(state)?);
        let path = work.path().join(KERNEL);
        let made = mkdirat(CWD, &path, Mode::RWXU);
        made.map_err(|errno| Error::io("create", &path)(errno.into()))?;
        Self::with_upper(work)
    }

    /// Empties folders that were used. Those that have more in them than they should go to the trash.
    fn again(work: WorkDir) -> Result<Self, Error> {
        for (name, flags) in LEFT {
            let path = work.path().join(name);
            match unlinkat(CWD, &path, flags) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(errno) => return Err(Error::io("remove", path)(errno.into())),
            }
        }
        Self::with_upper(Arc::new(work))
    }

    fn with_upper(work: Arc<WorkDir>) -> Result<Self, Error> {
        let upper = Draft::at(Arc::clone(&work), UPPER)?;
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

/// Every change under these locks is one push or one pop.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
