//! `ci-tool.lock`, the record of what look-ups came to, on behalf of the engine.
//!
//! The file belongs to a project, which is what is below a `.git`: the nearest file upwards from the working directory is
//! used; where there is none it is made beside the nearest `ci-tool.toml`, else at the top. Who writes holds a lock on the
//! directory and reads the file first, so two runs at once lose nothing; the file is replaced in one step.

use config::lock::{self, Entry, Lock, Policy};
use protocol::Error;
use protocol::attach::{LockPolicy, LockRecord, LockReply, LockRequest};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// What marks the top of a project, and its configuration.
const TOP: &str = ".git";
const PROJECT: &str = "ci-tool.toml";
/// What the file is called until it is whole.
const UNFINISHED: &str = ".ci-tool.lock.new";

/// What is recorded of a look-up.
pub(crate) fn find(workdir: &Path, request: &LockRequest) -> Result<LockReply, Error> {
    let Some(path) = place(workdir) else { return Ok(LockReply::default()) };
    let lock = read(&path)?;
    let entry = lock.find(&request.operation, &request.inputs).map(|(value, policy)| {
        let policy = match policy {
            Policy::Pin => LockPolicy::Pin,
            Policy::Float => LockPolicy::Float,
        };
        (value.to_owned(), policy)
    });
    Ok(LockReply { kept: true, entry })
}

/// Records what a look-up came to.
pub(crate) fn record(workdir: &Path, record: LockRecord) -> Result<(), Error> {
    let Some(path) = place(workdir) else {
        return Err(Error::user("there is no project here that could have a `ci-tool.lock`"));
    };
    // A link is followed: the file it leads to is replaced, not the link.
    let path = path.canonicalize().unwrap_or(path);
    let failed = |error: io::Error| named(&path, &error);
    let directory = path.parent().unwrap_or(Path::new("/"));
    let turn = File::open(directory).map_err(failed)?;
    turn.lock().map_err(failed)?;
    let before = read(&path)?;
    let mut lock = before.clone();
    lock.set(Entry {
        namespace: String::new(),
        operation: record.request.operation,
        inputs: record.request.inputs,
        value: record.value,
        policy: match record.policy {
            LockPolicy::Pin => Policy::Pin,
            LockPolicy::Float => Policy::Float,
        },
    });
    if lock == before {
        return Ok(());
    }
    replace(&directory.join(UNFINISHED), &path, &lock.text()).map_err(failed)
}

/// Whoever calls this holds the lock on the directory, so the name of what is not finished is free.
fn replace(unfinished: &Path, path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(unfinished)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    let replaced = written.and_then(|()| fs::rename(unfinished, path));
    if replaced.is_err() {
        // What cannot be removed is overwritten by the next.
        let _ = fs::remove_file(unfinished);
    }
    replaced
}

/// Where the file is or belongs; none outside of a project.
fn place(workdir: &Path) -> Option<PathBuf> {
    let top = workdir.ancestors().find(|at| at.join(TOP).exists())?;
    let within = || workdir.ancestors().take_while(|at| at.starts_with(top));
    let having = |name: &str| within().find(|at| at.join(name).is_file());
    let directory = having(lock::FILE).or_else(|| having(lock::OLD_FILE));
    let directory = directory.or_else(|| having(PROJECT)).unwrap_or(top);
    Some(directory.join(lock::FILE))
}

fn read(path: &Path) -> Result<Lock, Error> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Lock::default()),
        Err(error) => return Err(named(path, &error)),
    };
    Lock::parse(&text).map_err(|error| {
        Error::user(format!("`{}`: {error}", path.display()))
            .with_hint("mend the line, or remove the file and record it again with `--lock=live`")
    })
}

fn named(path: &Path, error: &io::Error) -> Error {
    Error::environment(format!("`{}`: {error}", path.display()))
}

#[cfg(test)]
mod tests;
