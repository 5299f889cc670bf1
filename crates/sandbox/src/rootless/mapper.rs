//! [`Mapper`]: the process outside that has the maps of ids written.
//!
//! Only the set-user-id programs `newuidmap` and `newgidmap` may write a map with more than one id, and they
//! are powerless inside the namespace. So a child is forked before, waits until its parent has left, and
//! runs them on the parent.

use super::Error;
use super::ranges::Maps;
use crate::sys::{self, Clone3};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{WaitId, WaitIdOptions, waitid};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::Command;

/// The programs, and whose map each of them writes.
const PROGRAMS: [&str; 2] = ["newuidmap", "newgidmap"];

/// The child, waiting to be told.
pub(super) struct Mapper {
    pidfd: OwnedFd,
    /// None once it was told.
    go: Option<File>,
    told: File,
}

/// What came of it.
#[derive(Serialize, Deserialize)]
enum Told {
    Mapped,
    Missing(usize),
    Refused { program: String, said: String },
}

impl Mapper {
    /// Forks the child. Call this while there is only one thread.
    pub(super) fn start(maps: &Maps) -> Result<Mapper, Error> {
        let failed = |errno: Errno| Error::host("start a helper outside")(errno.into());
        let (wait, go) = pipe_with(PipeFlags::CLOEXEC).map_err(failed)?;
        let (told, tell) = pipe_with(PipeFlags::CLOEXEC).map_err(failed)?;
        match sys::clone_process(0, None).map_err(failed)? {
            Clone3::Child => {
                // Else the end of the parent would not be the end of the pipe.
                drop((go, told));
                sys::exit_now(serve(wait.into(), tell.into(), maps))
            }
            Clone3::Parent { pidfd, .. } => {
                drop((wait, tell));
                Ok(Mapper { pidfd, go: Some(go.into()), told: told.into() })
            }
        }
    }

    /// Has the maps of this process written, which is in the namespace by now.
    pub(super) fn map(mut self) -> Result<(), Error> {
        let failed = Error::host("reach the helper outside");
        if let Some(mut go) = self.go.take() {
            go.write_all(&[0]).map_err(&failed)?;
        }
        let mut bytes = vec![];
        self.told.read_to_end(&mut bytes).map_err(&failed)?;
        let garbled = |_| failed(io::ErrorKind::InvalidData.into());
        match postcard::from_bytes(&bytes).map_err(garbled)? {
            Told::Mapped => Ok(()),
            Told::Missing(program) => Err(Error::MissingProgram(PROGRAMS[program.min(1)])),
            Told::Refused { program, said } => Err(Error::MapRefused { program, said }),
        }
    }
}

impl Drop for Mapper {
    /// It has told all it knows, or learns from the end of the pipe that nobody wants to know.
    fn drop(&mut self) {
        drop(self.go.take());
        // Nothing depends on its exit code; only its place in the table of processes is given back.
        let _ = waitid(WaitId::PidFd(self.pidfd.as_fd()), WaitIdOptions::EXITED);
    }
}

/// The whole life of the child.
fn serve(mut wait: File, mut tell: File, maps: &Maps) -> i32 {
    if wait.read_exact(&mut [0]).is_err() {
        return 0;
    }
    let Some(parent) = rustix::process::getppid() else { return 1 };
    let told = run(&parent.to_string(), maps);
    let bytes = postcard::to_stdvec(&told).unwrap_or_default();
    tell.write_all(&bytes).map_or(1, |()| 0)
}

fn run(parent: &str, maps: &Maps) -> Told {
    for (number, words) in [&maps.users, &maps.groups].into_iter().enumerate() {
        let refused = |said: String| {
            let said = said.lines().next().unwrap_or("it gives no reason").to_owned();
            Told::Refused { program: PROGRAMS[number].to_owned(), said }
        };
        match Command::new(PROGRAMS[number]).arg(parent).args(words).output() {
            Ok(output) if output.status.success() => {}
            Ok(output) => return refused(String::from_utf8_lossy(&output.stderr).into_owned()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Told::Missing(number),
            Err(error) => return refused(error.to_string()),
        }
    }
    Told::Mapped
}
