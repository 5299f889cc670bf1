//! The engine's log: one file, turned over when it grows.
//!
//! `engine.log` is written to, `engine.log.1` is the one before. Whoever starts an engine points its
//! standard error at the same file, so that a panic is found beside what led to it; that is why the
//! standard error follows when the file is turned over. Secrets of open sessions are taken out of every line.

use crate::Error;
use redact::Known;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

/// Size at which the log is turned over.
const TURN_OVER: u64 = 10 << 20;

/// Sends everything that is traced to the log file.
pub(crate) fn start(path: &Path, filter: &str, secrets: Arc<Known>) -> Result<(), Error> {
    let parsed = EnvFilter::try_new(filter).map_err(|error| Error::LogFilter {
        filter: filter.to_owned(),
        reason: error.to_string(),
    })?;
    let log = LogFile::open(path, TURN_OVER, secrets).map_err(Error::file(path))?;
    tracing_subscriber::fmt()
        .with_env_filter(parsed)
        .with_ansi(false)
        .with_writer(log)
        .try_init()
        .map_err(|error| Error::Part { part: "log", reason: error.to_string() })
}

/// The log file, shared by all threads.
struct LogFile {
    open: Mutex<Open>,
    /// What no line may hold.
    secrets: Arc<Known>,
}

struct Open {
    path: PathBuf,
    file: File,
    size: u64,
    limit: u64,
}

/// One line on its way into the log.
struct Line<'a>(&'a LogFile);

impl LogFile {
    fn open(path: &Path, limit: u64, secrets: Arc<Known>) -> io::Result<Self> {
        let file = append(path)?;
        let size = file.metadata()?.len();
        let open = Mutex::new(Open { path: path.to_owned(), file, size, limit });
        Ok(Self { open, secrets })
    }
}

impl<'a> MakeWriter<'a> for LogFile {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Line<'a> {
        Line(self)
    }
}

impl Write for Line<'_> {
    /// Never fails: on a full disk lines are lost. An error would be printed to the standard error,
    /// which is the same file, and failing to do that ends the thread.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let redactor = self.0.secrets.redactor();
        let line = redactor.bytes(bytes);
        let mut open = self.0.open.lock().unwrap_or_else(PoisonError::into_inner);
        // A log that cannot be turned over grows on.
        if open.size + line.len() as u64 <= open.limit || open.turn_over().is_ok() {
            open.size += line.len() as u64;
        }
        let _ = open.file.write_all(&line);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Open {
    fn turn_over(&mut self) -> io::Result<()> {
        let mut old = self.path.clone().into_os_string();
        old.push(".1");
        std::fs::rename(&self.path, old)?;
        let fresh = append(&self.path)?;
        if is_standard_error(&self.file)? {
            rustix::stdio::dup2_stderr(&fresh)?;
        }
        self.file = fresh;
        self.size = 0;
        Ok(())
    }
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

fn is_standard_error(file: &File) -> io::Result<bool> {
    let ours = file.metadata()?;
    let standard = rustix::fs::fstat(io::stderr())?;
    Ok((ours.dev(), ours.ino()) == (standard.st_dev, standard.st_ino))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_turned_over_and_two_files_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("engine.log");
        std::fs::write(&path, "before\n").unwrap();
        let log = LogFile::open(&path, 16, Arc::default()).unwrap();
        for line in ["one\n", "two two two\n", "three three\n"] {
            log.make_writer().write_all(line.as_bytes()).unwrap();
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "three three\n");
        let old = std::fs::read_to_string(dir.path().join("engine.log.1")).unwrap();
        assert_eq!(old, "two two two\n");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_full_disk_loses_lines_and_nothing_else() {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let open = Open { path: "/dev/full".into(), file: full, size: 0, limit: 100 };
        let log = LogFile { open: Mutex::new(open), secrets: Arc::default() };
        log.make_writer().write_all(b"lost").unwrap();
    }

    #[test]
    fn secrets_are_taken_out_of_lines() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("engine.log");
        let secrets = Arc::new(Known::default());
        let log = LogFile::open(&path, 1000, secrets.clone()).unwrap();
        log.make_writer().write_all(b"before: hunter2\n").unwrap();
        secrets.add(b"hunter2");
        log.make_writer().write_all(b"password=hunter2 auth=aHVudGVyMg==\n").unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, "before: hunter2\npassword=*** auth=***\n");
    }

    #[test]
    fn a_bad_filter_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let error =
            start(&dir.path().join("log"), "a=b=c", Arc::default()).unwrap_err().to_string();
        assert!(error.starts_with("`a=b=c` is no filter of a log"), "{error}");
    }
}
