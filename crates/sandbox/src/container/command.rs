//! The last steps before a program runs, in the process that becomes it.
//!
//! Everything that can be prepared is prepared in [`Command::new`]. [`Command::execute`] may run in
//! memory that is shared with process 1, which stands still meanwhile.

use super::terminal::Ends;
use crate::capabilities;
use crate::sys::{self, Strings};
use crate::wire::{Channel, Failure, Input, Run, Stage, Status};
use crate::zygote::{World, process, tell};
use rustix::fs::{Access, AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Gid, Signal, Uid, WaitOptions, kill_process, waitpid};
use rustix::thread::CapabilitySet;
use std::cell::Cell;
use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};

/// Where programs are looked for when the environment has no `PATH`.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Exit code of a shell that does not find a program.
const NOT_FOUND: i32 = 127;
/// Exit code of a shell that finds a program it cannot execute.
const NOT_EXECUTABLE: i32 = 126;

/// A command, ready to be executed.
pub(super) struct Command {
    arguments: Strings,
    environment: Strings,
    /// Paths to try in turn.
    candidates: Vec<CString>,
    /// Whether the candidates come from a search.
    searched: bool,
    uid: Uid,
    gid: Gid,
    groups: Vec<Gid>,
    /// Capabilities to keep across everything, if all are to be kept.
    keep: Option<CapabilitySet>,
    stdin: Option<String>,
    redirects: Vec<(Channel, String)>,
    /// What it runs on instead of pipes.
    terminal: Option<Ends>,
    /// Whether process 1 of its namespace is not who started it, so that it must end with that one.
    beside: bool,
}

impl Command {
    /// Prepares the command.
    pub(super) fn new(
        run: &Run,
        world: &World,
        terminal: Option<Ends>,
    ) -> Result<Command, Failure> {
        let malformed = || Failure::setup("read the request")(Errno::BADMSG);
        let strings = |texts: &[String]| -> Result<Vec<CString>, Failure> {
            texts.iter().map(|text| CString::new(text.as_str()).map_err(|_| malformed())).collect()
        };
        let program = run.args.first().ok_or_else(malformed)?;
        let redirects =
            [(Channel::Stdout, &run.redirect_stdout), (Channel::Stderr, &run.redirect_stderr)];
        Ok(Command {
            arguments: Strings::new(strings(&run.args)?),
            environment: Strings::new(strings(&run.env)?),
            candidates: strings(&candidates(program, &run.env))?,
            searched: !program.contains('/'),
            uid: Uid::from_raw(run.uid),
            gid: Gid::from_raw(run.gid),
            groups: run.groups.iter().map(|group| Gid::from_raw(*group)).collect(),
            keep: run.all_capabilities.then_some(world.held),
            stdin: match &run.stdin {
                Input::File(path) => Some(path.clone()),
                Input::Null | Input::Pipe => None,
            },
            redirects: redirects
                .into_iter()
                .filter_map(|(channel, path)| Some((channel, path.clone()?)))
                .collect(),
            terminal,
            beside: run.beside,
        })
    }

    /// Becomes the program; returns only when that failed.
    pub(super) fn execute(&self, status: &OwnedFd) -> Failure {
        let prepared = self
            .take_terminal(status)
            .and_then(|()| self.become_user())
            .and_then(|()| self.open_files(status))
            .and_then(|()| self.depend());
        if let Err(failure) = prepared {
            return failure;
        }
        sys::close_on_exec_from(3);
        sys::unblock_all();
        self.try_candidates(&Cell::new(0))
    }

    fn depend(&self) -> Result<(), Failure> {
        if !self.beside {
            return Ok(());
        }
        let failed = Failure::setup("end with who watches it");
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).map_err(failed)
    }

    fn take_terminal(&self, status: &OwnedFd) -> Result<(), Failure> {
        self.terminal.as_ref().map_or(Ok(()), |terminal| terminal.take(status))
    }

    fn become_user(&self) -> Result<(), Failure> {
        let failed = Failure::setup("change the user");
        if !self.groups.is_empty() {
            rustix::thread::set_thread_groups(&self.groups).map_err(&failed)?;
        }
        if self.keep.is_some() {
            rustix::thread::set_keep_capabilities(true).map_err(&failed)?;
        }
        if !self.gid.is_root() {
            rustix::thread::set_thread_res_gid(self.gid, self.gid, self.gid).map_err(&failed)?;
        }
        if !self.uid.is_root() {
            rustix::thread::set_thread_res_uid(self.uid, self.uid, self.uid).map_err(&failed)?;
        }
        // A change of user sets this to what the host's administrator chose, and the memory may still
        // be shared with process 1.
        rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(&failed)?;
        match self.keep {
            Some(held) => keep_capabilities(held).map_err(Failure::setup("keep capabilities")),
            None => Ok(()),
        }
    }

    /// Opens what the user named, as the user and in the container's root.
    fn open_files(&self, status: &OwnedFd) -> Result<(), Failure> {
        if let Some(file) = self.open_input()? {
            rustix::stdio::dup2_stdin(&file).map_err(Failure::setup("connect the streams"))?;
        }
        self.open_redirects(status)
    }

    fn open_input(&self) -> Result<Option<OwnedFd>, Failure> {
        let told = |reason: String| Failure::told(Stage::Stdin(reason));
        self.stdin.as_ref().map(|path| open_input(path).map_err(told)).transpose()
    }

    /// The engine writes the redirected files itself, so it gets their descriptors.
    fn open_redirects(&self, status: &OwnedFd) -> Result<(), Failure> {
        if self.redirects.is_empty() {
            return Ok(());
        }
        let mut files = Vec::new();
        for (channel, path) in &self.redirects {
            let told = |reason: String| Failure::told(Stage::Redirect(*channel, reason));
            files.push(open_output(path).map_err(told)?);
        }
        let files: Vec<_> = files.iter().map(AsFd::as_fd).collect();
        tell(status.as_fd(), &Status::Files, &files);
        Ok(())
    }

    /// Does all that comes before the execution, which somebody else is to do: becomes the user, opens the
    /// files and tries whether the program can be executed. Gives the program's path and the file for the standard
    /// input.
    pub(super) fn rehearse(&self, status: &OwnedFd) -> Result<(String, Option<OwnedFd>), Failure> {
        self.become_user()?;
        let input = self.open_input()?;
        self.open_redirects(status)?;
        Ok((self.try_out()?, input))
    }

    /// Executes the program in a process that is stopped before the program does anything, and killed. Only the
    /// kernel knows what it would execute. Gives its path, or nothing where the host lets nobody be stopped.
    fn try_out(&self) -> Result<String, Failure> {
        let failed = Failure::setup("try the command");
        let (tried, mut failure) = (Cell::new(0), None);
        let mut become_program = || {
            sys::close_on_exec_from(3);
            sys::unblock_all();
            failure = match sys::trace_me() {
                Ok(()) => Some(self.try_candidates(&tried)),
                Err(Errno::PERM) => {
                    tried.set(usize::MAX);
                    None
                }
                Err(error) => Some(failed(error)),
            };
            super::NOT_BEGUN
        };
        let pid = sys::spawn_in_shared_memory(&mut become_program).map_err(&failed)?;
        let pid = process(pid).ok_or(Errno::SRCH).map_err(&failed)?;
        // Who was not executed has ended.
        let _ = kill_process(pid, Signal::KILL);
        while let Ok(Some((_, status))) = waitpid(Some(pid), WaitOptions::empty()) {
            if !status.stopped() {
                break;
            }
        }
        match failure {
            Some(failure) => Err(failure),
            None => {
                let program = self.candidates.get(tried.get());
                Ok(program.map(|path| path.to_string_lossy().into_owned()).unwrap_or_default())
            }
        }
    }

    /// Executes the first candidate that can be, in the manner of `execvp`.
    /// `tried` gets its number.
    fn try_candidates(&self, tried: &Cell<usize>) -> Failure {
        let mut denied = None;
        for (number, candidate) in self.candidates.iter().enumerate() {
            // The kernel copies arguments and environment before it finds that there is no such file.
            if self.searched && is_absent(candidate) {
                continue;
            }
            tried.set(number);
            let error = sys::execute(candidate, &self.arguments, &self.environment);
            if let Some(failure) = self.refused(error, candidate, &mut denied) {
                return failure;
            }
        }
        self.verdict(denied)
    }

    /// What an error about a candidate means; none if the next may do.
    fn refused<'a>(
        &self,
        error: Errno,
        candidate: &'a CString,
        denied: &mut Option<&'a CString>,
    ) -> Option<Failure> {
        match error {
            Errno::NOENT | Errno::NOTDIR => None,
            Errno::ACCESS => {
                denied.get_or_insert(candidate);
                None
            }
            Errno::NOEXEC => Some(unfit(crate::NO_PROGRAM.to_owned())),
            Errno::NAMETOOLONG | Errno::LOOP if self.searched => None,
            error @ (Errno::NAMETOOLONG | Errno::LOOP) => {
                Some(Failure::told(Stage::Program(NOT_FOUND, words(error))))
            }
            error => Some(unfit(words(error))),
        }
    }

    /// Why no candidate did.
    fn verdict(&self, denied: Option<&CString>) -> Failure {
        if let Some(path) = denied {
            let directory = file_type(path) == Some(FileType::Directory);
            return unfit(
                if directory { "it is a directory" } else { "permission denied" }.to_owned(),
            );
        }
        if self.candidates.iter().any(|path| file_type(path) == Some(FileType::RegularFile)) {
            return unfit("the interpreter or loader that it names does not exist".to_owned());
        }
        let reason =
            if self.searched { "not found in any directory of PATH" } else { "no such file" };
        Failure::told(Stage::Program(NOT_FOUND, reason.to_owned()))
    }
}

fn is_absent(path: &CString) -> bool {
    let found = rustix::fs::accessat(CWD, path, Access::EXISTS, AtFlags::empty());
    matches!(found, Err(Errno::NOENT | Errno::NOTDIR))
}

fn unfit(reason: String) -> Failure {
    Failure::told(Stage::Program(NOT_EXECUTABLE, reason))
}

/// What the kernel's error means, without its number.
fn words(error: Errno) -> String {
    let text = std::io::Error::from(error).to_string();
    let end = text.find(" (os error").unwrap_or(text.len());
    text[..end].to_lowercase()
}

fn file_type(path: &CString) -> Option<FileType> {
    let found = rustix::fs::stat(path).ok()?;
    Some(FileType::from_raw_mode(found.st_mode))
}

/// Paths at which a program may be.
fn candidates(program: &str, env: &[String]) -> Vec<String> {
    if program.contains('/') {
        return vec![program.to_owned()];
    }
    if program.is_empty() {
        return Vec::new();
    }
    let path = env.iter().rev().find_map(|entry| entry.strip_prefix("PATH="));
    path.unwrap_or(DEFAULT_PATH)
        .split(':')
        .map(|directory| if directory.is_empty() { "." } else { directory })
        .map(|directory| format!("{directory}/{program}"))
        .collect()
}

/// Opens without following links that lead out of the root, as those in `/proc` could, and without waiting for
/// the other end of a named pipe.
fn open_here(path: &str, flags: OFlags) -> Result<(OwnedFd, FileType), Errno> {
    let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    // With no file to make, the kernel wants no mode either.
    let mode =
        if flags.contains(OFlags::CREATE) { Mode::from_raw_mode(0o666) } else { Mode::empty() };
    let file = rustix::fs::openat2(CWD, path, flags, mode, ResolveFlags::NO_MAGICLINKS)?;
    let kind = FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode);
    Ok((file, kind))
}

fn open_input(path: &str) -> Result<OwnedFd, String> {
    let (file, kind) = open_here(path, OFlags::RDONLY).map_err(words)?;
    match kind {
        FileType::RegularFile | FileType::CharacterDevice => {}
        FileType::Directory => return Err("it is a directory".to_owned()),
        _ => return Err("it is not a regular file".to_owned()),
    }
    rustix::fs::fcntl_setfl(&file, OFlags::empty()).map_err(words)?;
    Ok(file)
}

/// Appending lets both streams go to one file.
fn open_output(path: &str) -> Result<OwnedFd, String> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::APPEND;
    match open_here(path, flags) {
        Ok((file, FileType::RegularFile)) => Ok(file),
        // A named pipe that nobody reads.
        Ok(_) | Err(Errno::NXIO) => Err("it is not a regular file".to_owned()),
        Err(error) => Err(words(error)),
    }
}

/// Makes capabilities survive the execution of programs, for users other than root too.
fn keep_capabilities(held: CapabilitySet) -> Result<(), Errno> {
    rustix::thread::set_capabilities(None, capabilities::all_sets(held))?;
    for capability in capabilities::singles(held) {
        rustix::thread::configure_capability_in_ambient_set(capability, true)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(program: &str, env: &[&str], expected: &[&str]) {
        let env: Vec<String> = env.iter().map(|entry| (*entry).to_owned()).collect();
        assert_eq!(candidates(program, &env), expected);
    }

    #[test]
    fn a_path_is_taken_as_it_is() {
        check("/bin/sh", &["PATH=/a"], &["/bin/sh"]);
        check("./run", &["PATH=/a"], &["./run"]);
        check("", &["PATH=/a"], &[]);
    }

    #[test]
    fn a_name_is_looked_for_in_the_commands_own_path() {
        check("sh", &["PATH=/a:/b/c"], &["/a/sh", "/b/c/sh"]);
        check("sh", &["PATH=:/a"], &["./sh", "/a/sh"]);
        check("sh", &["PATH=/old", "PATH=/new"], &["/new/sh"]);
        assert_eq!(candidates("sh", &[]).len(), 6);
    }

    #[test]
    fn kernel_errors_lose_their_number() {
        assert_eq!(words(Errno::ACCESS), "permission denied");
    }
}
