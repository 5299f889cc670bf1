//! [`Files`]: the host of a session inside a container, which is that container.
//!
//! Its files are read below a descriptor of its root: no path leaves it, whatever links are in it. They are
//! read with the engine's rights, which are those of the container's root. What is mounted there as a
//! secret or a socket, and the kernel's own file systems, are not for reading: a secret that is taken in like a file
//! would lie on a disk. Nothing is written, and there is no secret, socket, login or terminal
//! to ask for: those are the caller's. What look-ups came to is recorded for the run as a whole, outside.

use api::host::{Channel, Handed, Host, HostFiles, HostPort, TreePart, UserTerminal};
use futures::future::BoxFuture;
use protocol::attach::{
    Entry, EntryKind, GitCredential, GitCredentialRequest, IgnoreFile, ListenRequest, LockRecord,
    LockReply, LockRequest, Login, Name, OpenFor, ReadRequest, SocketAddress, WriteRequest,
};
use protocol::{Digest, Error};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, StatxFlags, openat2, statx};
use rustix::io::Errno;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::mpsc;

/// What the kernel tells in files.
const KERNELS: [&str; 3] = ["/proc", "/sys", "/dev"];
/// Bytes of a file that are sent at once.
const PIECE: usize = 256 << 10;
/// Bytes of a `.gitignore` that are read; more is not meant to be read by anybody.
const LONGEST_IGNORES: u64 = 1 << 20;
/// Characters that stand for others in patterns.
const PATTERN: &[char] = &['*', '?', '[', ']', '\\'];

/// The files of a container, and the host of the outer session, for what a run records as a whole.
pub(super) struct Files(Arc<Root>, Arc<Host>);

struct Root {
    /// Nothing can be read from the descriptor itself.
    descriptor: OwnedFd,
    workdir: String,
    home: String,
    hidden: Vec<String>,
    /// The mounts that are hidden, so that no link leads there.
    hidden_mounts: HashSet<u64>,
    /// Tells this container from others where paths are remembered.
    name: String,
}

impl Files {
    /// The files below a root; `hidden` are paths of secrets and sockets.
    pub(super) fn new(
        (descriptor, outer): (OwnedFd, Arc<Host>),
        (workdir, home): (String, String),
        hidden: Vec<String>,
    ) -> io::Result<Self> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let own = mount_of(&descriptor)?;
        let mut root = Root {
            descriptor,
            workdir,
            home,
            hidden: KERNELS.iter().map(|&path| path.to_owned()).chain(hidden).collect(),
            hidden_mounts: HashSet::new(),
            name: Digest::of(&random).to_string(),
        };
        // One that is gone meanwhile leads nowhere.
        let opened = root.hidden.iter().filter_map(|path| root.find(path, OFlags::PATH).ok());
        let mounts: HashSet<u64> = opened.filter_map(|it| mount_of(&it).ok()).collect();
        root.hidden_mounts = mounts.into_iter().filter(|mount| *mount != own).collect();
        Ok(Self(Arc::new(root), outer))
    }

    /// Works with the files on a thread that may wait for a disk.
    async fn on_disk<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Root) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let root = self.0.clone();
        let done = tokio::task::spawn_blocking(move || work(&root)).await;
        done.map_err(|error| Error::internal(error.to_string()))?
    }
}

impl Root {
    /// What is at an absolute path.
    fn find(&self, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        openat2(&self.descriptor, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve)
    }

    /// The absolute path that a user meant.
    fn absolute(&self, typed: &str) -> String {
        let path = match typed.strip_prefix("~/").or((typed == "~").then_some("")) {
            Some(rest) => Path::new(&self.home).join(rest),
            None => Path::new(&self.workdir).join(typed),
        };
        path.to_string_lossy().into_owned()
    }

    /// Opens what a user named for reading, and gives its path without links.
    fn open(&self, typed: &str) -> Result<(File, PathBuf), Error> {
        let failed = |errno: Errno| named(typed, errno);
        // Whoever opens a pipe waits for somebody at its other end.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let opened = self.find(&self.absolute(typed), flags).map_err(failed)?;
        if self.hidden_mounts.contains(&mount_of(&opened).map_err(failed)?) {
            let message = format!("{typed}: this is not for reading from a nested session");
            let hint =
                "secrets, sockets and the kernel's files stay with the command that has them";
            return Err(Error::user(message).with_hint(hint));
        }
        let path = self.path_of(&opened).map_err(|error| Error::environment(error.to_string()))?;
        Ok((File::from(opened), path))
    }

    /// The path of something open, without links, as the container sees it.
    fn path_of(&self, opened: &OwnedFd) -> io::Result<PathBuf> {
        let path = |it: &OwnedFd| std::fs::read_link(format!("/proc/self/fd/{}", it.as_raw_fd()));
        let (root, path) = (path(&self.descriptor)?, path(opened)?);
        Ok(Path::new("/").join(path.strip_prefix(root).unwrap_or(&path)))
    }

    fn directory(&self, typed: &str, gitignore: bool) -> Result<Handed, Error> {
        let (directory, path) = self.open(typed)?;
        if kind(&directory).map_err(|errno| named(typed, errno))? != FileType::Directory {
            return Err(Error::user(format!("path {typed} is a file, not a directory")));
        }
        let ignores = if gitignore { self.ignores_above(&path) } else { None };
        let hidden = self.hidden.iter().filter_map(|hidden| {
            let rest = Path::new(hidden).strip_prefix(&path).ok()?;
            Some(format!("/{}", literal(&rest.to_string_lossy())))
        });
        Ok(Handed {
            directory: directory.into(),
            path: format!("{}:{}", self.name, path.display()),
            made: false,
            owner: (0, 0),
            ignores,
            hidden: hidden.collect(),
        })
    }

    /// The `.gitignore` files above a directory, from the top of its repository down; none in no repository.
    fn ignores_above(&self, path: &Path) -> Option<Vec<IgnoreFile>> {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let is_top = |at: &&Path| self.find(&text(&at.join(".git")), OFlags::PATH).is_ok();
        let top = path.ancestors().find(is_top)?;
        let mut above: Vec<&Path> =
            path.ancestors().skip(1).take_while(|at| at.starts_with(top)).collect();
        above.reverse();
        let read = |at: &&Path| {
            let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW;
            let file = File::from(self.find(&text(&at.join(".gitignore")), flags).ok()?);
            let mut bytes = vec![];
            file.take(LONGEST_IGNORES).read_to_end(&mut bytes).ok()?;
            let below = text(path.strip_prefix(at).ok()?);
            Some(IgnoreFile { below, text: String::from_utf8_lossy(&bytes).into_owned() })
        };
        Some(above.iter().filter_map(read).collect())
    }

    /// Sends one file, for as long as somebody takes it.
    fn send(&self, typed: &str, parts: &mpsc::Sender<TreePart>) -> Result<(), Error> {
        let failed = |error: io::Error| Error::environment(format!("{typed}: {error}"));
        let (mut file, _) = self.open(typed)?;
        let stat = rustix::fs::fstat(&file).map_err(|errno| named(typed, errno))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {}
            FileType::Directory => {
                return Err(Error::user(format!("path {typed} is a directory, not a file")));
            }
            _ => return Err(Error::user(format!("{typed}: neither a file nor a directory"))),
        }
        let entry = Entry {
            path: Name::default(),
            kind: EntryKind::File,
            mode: stat.st_mode & 0o7777,
            modified: stat.st_mtime * 1_000_000_000 + stat.st_mtime_nsec as i64,
            size: stat.st_size as u64,
            target: Name::default(),
        };
        let mut taken = parts.blocking_send(TreePart::Entry(entry)).is_ok();
        while taken {
            let mut piece = vec![0; PIECE];
            let length = file.read(&mut piece).map_err(failed)?;
            if length == 0 {
                break;
            }
            piece.truncate(length);
            taken = parts.blocking_send(TreePart::Data(piece)).is_ok();
        }
        for part in [TreePart::EndOfFile, TreePart::End] {
            taken = taken && parts.blocking_send(part).is_ok();
        }
        Ok(())
    }

    fn find_up(&self, name: &str) -> Option<String> {
        let mut relative = String::new();
        for directory in Path::new(&self.workdir).ancestors() {
            let flags = OFlags::PATH | OFlags::NOFOLLOW;
            if self.find(&directory.join(name).to_string_lossy(), flags).is_ok() {
                return Some(relative + name);
            }
            relative.push_str("../");
        }
        None
    }
}

impl HostFiles for Files {
    fn read(
        &self,
        request: ReadRequest,
        parts: mpsc::Sender<TreePart>,
    ) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(self.on_disk(move |root| root.send(&request.path, &parts)))
    }

    fn write(
        &self,
        request: WriteRequest,
        _: mpsc::Receiver<Vec<u8>>,
    ) -> BoxFuture<'_, Result<String, Error>> {
        let hint = "read it with `contents`, or let the command print what its caller needs";
        refused(format!("nothing can be exported to {}", request.path), hint)
    }

    fn open(&self, path: String, purpose: OpenFor) -> BoxFuture<'_, Result<Option<Handed>, Error>> {
        Box::pin(async move {
            match purpose {
                OpenFor::Read { gitignore } => {
                    self.on_disk(move |root| root.directory(&path, gitignore)).await.map(Some)
                }
                // It is refused when it is written.
                OpenFor::Write(_) => Ok(None),
            }
        })
    }

    fn login(&self, _: String) -> BoxFuture<'_, Result<Option<Login>, Error>> {
        Box::pin(async { Ok(None) })
    }

    fn git_credential(
        &self,
        _: GitCredentialRequest,
    ) -> BoxFuture<'_, Result<Option<GitCredential>, Error>> {
        Box::pin(async { Ok(None) })
    }

    fn secret(&self, uri: String) -> BoxFuture<'_, Result<Vec<u8>, Error>> {
        let hint =
            "give the secret to the command as a variable or a file, and use `setSecret` there";
        refused(format!("the secret `{uri}` is the caller's and cannot be read"), hint)
    }

    fn connect(&self, address: SocketAddress) -> BoxFuture<'_, Result<Channel, Error>> {
        let address = match address {
            SocketAddress::Unix(path) => path,
            SocketAddress::Tcp(host, port) | SocketAddress::Udp(host, port) => {
                format!("{host}:{port}")
            }
        };
        let hint = "mount the socket where the command is started, with `withUnixSocket`";
        refused(format!("the socket `{address}` is the caller's and cannot be reached"), hint)
    }

    fn listen(&self, request: ListenRequest) -> BoxFuture<'_, Result<HostPort, Error>> {
        let hint = "open the tunnel where the command is started";
        refused(format!("no port {} of the caller's can be opened", request.port), hint)
    }

    fn close(&self, port: ListenRequest) -> BoxFuture<'_, Result<(), Error>> {
        let hint = "open the tunnel where the command is started";
        refused(format!("no port {} of the caller's can be closed", port.port), hint)
    }

    fn accept(&self, _: u64) -> BoxFuture<'_, Result<Channel, Error>> {
        refused(
            "no connection can be taken".to_owned(),
            "open the tunnel where the command is started",
        )
    }

    fn terminal(&self) -> BoxFuture<'_, Result<UserTerminal, Error>> {
        let hint = "open it where the command is started";
        refused("no terminal can be opened".to_owned(), hint)
    }

    fn locked(&self, request: LockRequest) -> BoxFuture<'_, Result<LockReply, Error>> {
        self.1.files().locked(request)
    }

    fn lock(&self, record: LockRecord) -> BoxFuture<'_, Result<(), Error>> {
        self.1.files().lock(record)
    }

    fn find_up(&self, name: String) -> BoxFuture<'_, Result<Option<String>, Error>> {
        Box::pin(self.on_disk(move |root| Ok(root.find_up(&name))))
    }
}

/// The answer to what belongs to the caller.
fn refused<'a, T: Send + 'a>(what: String, hint: &str) -> BoxFuture<'a, Result<T, Error>> {
    let message = format!("{what} from a nested session");
    Box::pin(std::future::ready(Err(Error::user(message).with_hint(hint))))
}

/// Which mount something is on.
fn mount_of(descriptor: &impl AsFd) -> Result<u64, Errno> {
    Ok(statx(descriptor, "", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID)?.stx_mnt_id)
}

fn kind(file: &File) -> Result<FileType, Errno> {
    Ok(FileType::from_raw_mode(rustix::fs::fstat(file)?.st_mode))
}

/// A path as a pattern that nothing else fits.
fn literal(path: &str) -> String {
    let mut pattern = String::with_capacity(path.len());
    for character in path.chars() {
        if PATTERN.contains(&character) {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern
}

/// An error of the file system in the words users know.
fn named(typed: &str, errno: Errno) -> Error {
    match errno {
        Errno::NOENT => Error::user(format!("{typed}: no such file or directory")),
        Errno::NOTDIR => Error::user(format!("{typed}: not a directory")),
        errno => Error::environment(format!("{typed}: {}", io::Error::from(errno))),
    }
}

#[cfg(test)]
mod tests;
