//! One engine a state folder: a lock that the kernel drops with the process, however that ends.

use crate::Error;
use config::paths::StateFiles;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// How long to wait for a predecessor that no longer listens: it is ending within its grace.
const PREDECESSOR: Duration = Duration::from_secs(45);
/// How often the lock is tried.
const POLL: Duration = Duration::from_millis(2);

/// Held for as long as the engine lives. It holds the process id, for people.
#[derive(Debug)]
pub(crate) struct EngineLock {
    _file: File,
}

impl EngineLock {
    /// Takes the lock of a state folder. Waits for an engine that is ending, not for one that
    /// listens.
    pub(crate) fn take(files: &StateFiles) -> Result<Self, Error> {
        let path = files.engine_lock();
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .mode(0o600)
            .open(&path)
            .map_err(Error::file(&path))?;
        let began = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(error)) => return Err(Error::file(path)(error)),
                Err(TryLockError::WouldBlock) => {}
            }
            if UnixStream::connect(files.socket()).is_ok() || began.elapsed() > PREDECESSOR {
                let mut pid = String::new();
                let known = file.read_to_string(&mut pid).is_ok() && !pid.trim().is_empty();
                let pid = if known { pid.trim().to_owned() } else { "unknown".into() };
                return Err(Error::AlreadyRunning { dir: files.dir().to_owned(), pid });
            }
            std::thread::sleep(POLL);
        }
        // On a full disk it stays empty: a store can be made smaller only by an engine that runs.
        let _ = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
        Ok(Self { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_running_engine_is_named_and_a_dead_one_is_no_hindrance() {
        let dir = tempfile::tempdir().unwrap();
        let files = StateFiles::new(dir.path());
        std::fs::write(files.engine_lock(), "999999 and more").unwrap();
        let lock = EngineLock::take(&files).unwrap();
        let pid = std::process::id();
        assert_eq!(std::fs::read_to_string(files.engine_lock()).unwrap(), format!("{pid}\n"));
        let _listening = UnixListener::bind(files.socket()).unwrap();
        let error = EngineLock::take(&files).unwrap_err().to_string();
        assert!(error.contains(&format!("(process {pid})")), "{error}");
        drop(lock);
        EngineLock::take(&files).unwrap();
    }

    #[test]
    fn an_engine_that_is_ending_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let files = StateFiles::new(dir.path());
        let lock = EngineLock::take(&files).unwrap();
        let waiting = std::thread::spawn({
            let files = files.clone();
            move || EngineLock::take(&files).map(drop)
        });
        drop(lock);
        waiting.join().unwrap().unwrap();
    }
}
