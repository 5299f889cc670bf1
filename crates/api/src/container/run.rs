//! One command in the sandbox: its cache key, its mounts, its result.
//!
//! The key covers all that the command can observe. A hit answers from the record; a miss runs the
//! command over a fresh overlay, and commits what it wrote only when it ended as expected.

use super::exec::ReturnType;
use super::outcome::{Capture, Combined, Outcome, Record};
use super::{Container, DEFAULT_PATH, MountSource, Place};
use crate::edit::Edit;
use crate::owner::{self, Identity, OwnerSpec};
use crate::services::Services;
use crate::tree::Tree;
use graph::{Context, Span};
use protocol::{Digest, Error, ErrorKind, ExecFailure, LogStream};
use sandbox::{Spec, Stdin, User};
use std::sync::{Arc, Mutex, PoisonError};
use store::{Scratch, Snapshot, Target, TargetKind};

/// Raised when a change here alters what a command observes or what a record holds.
const EXEC_VERSION: u64 = 1;
/// Longest combined stream that is kept beside its two parts.
const MAX_COMBINED_BYTES: usize = 64 << 10;

/// A command, with everything typed turned into what it means.
#[derive(Clone)]
pub(super) struct Command {
    pub(super) args: Vec<String>,
    pub(super) expect: ReturnType,
    pub(super) all_capabilities: bool,
    pub(super) init: bool,
    pub(super) stdin: String,
    pub(super) redirect_stdin: Option<String>,
    pub(super) redirect_stdout: Option<String>,
    pub(super) redirect_stderr: Option<String>,
}

/// Runs a command, or finds that it has run before.
pub(super) async fn run(
    container: &Container,
    command: Command,
    cx: &Context,
) -> Result<Container, Error> {
    let services = cx.get::<Services>()?.clone();
    let key = action(container, &command, &services).await?;
    let usable = {
        let services = services.clone();
        move |bytes: &[u8]| decode(bytes).is_some_and(|record| is_present(&record, &services))
    };
    let work = perform(container.clone(), command, services.clone(), cx.span().clone());
    let bytes = cx.action(key, &usable, work).await?;
    let record = decode(&bytes).ok_or_else(|| Error::internal("an exec record cannot be read"))?;
    Ok(after(container, key, record))
}

/// The digest of all that the command can observe.
async fn action(
    container: &Container,
    command: &Command,
    services: &Services,
) -> Result<Digest, Error> {
    let mut digest = Digest::builder("action:exec");
    digest.number(EXEC_VERSION).text(services.observable.network).text(&container.platform);
    digest.digest(&container.rootfs.identity(services).await?);
    list(&mut digest, &command.args);
    let config = &container.config;
    digest.number(config.env.len() as u64);
    for (name, value) in &config.env {
        digest.text(name).text(value);
    }
    digest.text(&config.workdir).text(&config.user).text(&command.stdin);
    for path in [&command.redirect_stdin, &command.redirect_stdout, &command.redirect_stderr] {
        digest.text(path.as_deref().unwrap_or_default());
    }
    for flag in [command.all_capabilities, command.init] {
        digest.number(u64::from(flag));
    }
    digest.number(command.expect as u64).number(container.mounts.len() as u64);
    for mount in &container.mounts {
        digest.text(&mount.path).number(u64::from(mount.read_only));
        match &mount.source {
            MountSource::Directory(tree) => {
                digest.text("directory").digest(&tree.identity(services).await?)
            }
            MountSource::File { tree, name } => {
                digest.text("file").text(name).digest(&tree.identity(services).await?)
            }
            MountSource::Cache { volume } => digest.text("cache").text(&volume.key),
            MountSource::Temporary { size } => digest.text("tmpfs").number(size.unwrap_or(0)),
        };
    }
    Ok(digest.finish())
}

fn list(digest: &mut protocol::DigestBuilder, items: &[String]) {
    digest.number(items.len() as u64);
    items.iter().for_each(|item| {
        digest.text(item);
    });
}

fn decode(bytes: &[u8]) -> Option<Record> {
    postcard::from_bytes(bytes).ok()
}

fn is_present(record: &Record, services: &Services) -> bool {
    services.store.has(&record.rootfs)
        && record.mounts.iter().all(|snapshot| services.store.has(snapshot))
        && [&record.outcome.stdout, &record.outcome.stderr]
            .iter()
            .all(|stream| stream.is_present(&services.store))
}

/// The container value after the command: trees are known by the action that made them.
fn after(container: &Container, key: Digest, record: Record) -> Container {
    let mut after = container.clone();
    after.rootfs = Tree::settled(part(key, "rootfs"), record.rootfs);
    let mut snapshots = record.mounts.into_iter();
    for mount in &mut after.mounts {
        let tree = match &mut mount.source {
            MountSource::Directory(tree) if !mount.read_only => tree,
            MountSource::File { tree, .. } => tree,
            _ => continue,
        };
        if let Some(snapshot) = snapshots.next() {
            *tree = Tree::settled(part(key, &mount.path), snapshot);
        }
    }
    after.last = Some(Arc::new(record.outcome));
    after
}

fn part(key: Digest, name: &str) -> Digest {
    Digest::builder("tree:exec").digest(&key).text(name).finish()
}

/// Everything on disk that the running command uses. The sandbox holds it until the last process
/// is gone, whatever becomes of who asked.
#[derive(Default)]
struct Workspace {
    root: Option<Scratch>,
    mounts: Vec<MountWork>,
}

/// One mount while the command runs.
enum MountWork {
    Overlay(Scratch),
    /// Nothing comes back from it.
    Plain,
}

type Shared = Arc<Mutex<Workspace>>;

async fn perform(
    container: Container,
    command: Command,
    services: Arc<Services>,
    span: Span,
) -> Result<Vec<u8>, Error> {
    let prepared = prepare(&container, &command, &services).await?;
    let (spec, workspace) = (prepared.spec, prepared.workspace);
    let captures = Arc::new(Mutex::new(Captures::new(&services)));
    let output = {
        let captures = captures.clone();
        Box::new(move |stream: sandbox::Stream, bytes: &[u8]| {
            let mut captures = captures.lock().unwrap_or_else(PoisonError::into_inner);
            captures.push(stream, bytes, &span);
        })
    };
    let ended = services.sandbox.run(spec, output).await;
    let captures = std::mem::replace(
        &mut *captures.lock().unwrap_or_else(PoisonError::into_inner),
        Captures::new(&services),
    );
    let exit = match ended {
        Ok(exit) => exit,
        Err(error) => return Err(failed_to_run(error, &command, &captures)),
    };
    if !command.expect.accepts(exit.code) {
        return Err(unexpected_exit(&exit, &command, &captures));
    }
    let workspace = std::mem::take(&mut *workspace.lock().unwrap_or_else(PoisonError::into_inner));
    services.in_place(|| commit(workspace, captures, exit.code))
}

struct PreparedExec {
    spec: Spec,
    workspace: Shared,
}

async fn prepare(
    container: &Container,
    command: &Command,
    services: &Services,
) -> Result<PreparedExec, Error> {
    let rootfs = rootfs_with_workdir(container, services).await?;
    let mut trees = Vec::with_capacity(container.mounts.len());
    for mount in &container.mounts {
        trees.push(match &mount.source {
            MountSource::Directory(tree) | MountSource::File { tree, .. } => {
                tree.snapshot(services).await?
            }
            _ => Snapshot::empty(),
        });
    }
    services.in_place(|| assemble(container, command, services, (&rootfs, trees)))
}

/// Puts the root, the mounts and everything else of a run together.
fn assemble(
    container: &Container,
    command: &Command,
    services: &Services,
    (rootfs, trees): (&Snapshot, Vec<Snapshot>),
) -> Result<PreparedExec, Error> {
    let identity = identity(container, rootfs, services)?;
    let root = services.store.begin(rootfs, &targets(container, services))?;
    let mut workspace = Workspace::default();
    let mut mounts = Vec::with_capacity(container.mounts.len());
    for (mount, snapshot) in container.mounts.iter().zip(trees) {
        let (source, work) = open_mount(services, &mount.source, mount.read_only, snapshot)?;
        workspace.mounts.push(work);
        let (target, read_only) = (mount.path.clone(), mount.read_only);
        mounts.push(sandbox::MountPoint { target, source, read_only });
    }
    let root_mount = root.mount_clone()?;
    workspace.root = Some(root);
    let workspace = Arc::new(Mutex::new(workspace));
    let spec = Spec {
        root: root_mount,
        mounts,
        env: environment(container, &identity),
        args: command.args.clone(),
        workdir: workdir(container).to_owned(),
        user: User { uid: identity.uid, gid: identity.gid, groups: identity.groups },
        init: command.init,
        all_capabilities: command.all_capabilities,
        stdin: match &command.redirect_stdin {
            Some(path) => Stdin::File(path.clone()),
            None if command.stdin.is_empty() => Stdin::Empty,
            None => Stdin::Bytes(command.stdin.clone().into_bytes()),
        },
        redirect_stdout: command.redirect_stdout.clone(),
        redirect_stderr: command.redirect_stderr.clone(),
        keep: Box::new(workspace.clone()),
    };
    Ok(PreparedExec { spec, workspace })
}

/// The root file system, with the working directory made where it is missing.
async fn rootfs_with_workdir(
    container: &Container,
    services: &Services,
) -> Result<Snapshot, Error> {
    let snapshot = container.rootfs.snapshot(services).await?;
    let path = workdir(container);
    let in_root = matches!(container.locate(path).0, Place::Root);
    if path == "/" || !in_root || services.store.view(&snapshot).resolve(path, true).is_ok() {
        return Ok(snapshot);
    }
    let owner = OwnerSpec::parse(&container.config.user);
    let edit = Edit::NewDirectory { path: path.to_owned(), mode: 0o755, owner };
    container.rootfs.edited(edit, services).await?.snapshot(services).await
}

fn workdir(container: &Container) -> &str {
    if container.config.workdir.is_empty() { "/" } else { &container.config.workdir }
}

fn identity(
    container: &Container,
    rootfs: &Snapshot,
    services: &Services,
) -> Result<Identity, Error> {
    let user = &container.config.user;
    if user.is_empty() {
        return Ok(Identity { uid: 0, gid: 0, groups: vec![], home: "/root".into() });
    }
    let view = services.store.view(rootfs);
    owner::identify(user, &|path| owner::read_small_file(&view, path))
}

fn environment(container: &Container, identity: &Identity) -> Vec<(String, String)> {
    let mut env = container.config.env.clone();
    for (name, value) in [("PATH", DEFAULT_PATH), ("HOME", identity.home.as_str())] {
        if container.env(name).is_none() {
            env.push((name.to_owned(), value.to_owned()));
        }
    }
    env
}

/// What the sandbox mounts onto and so must exist in the root.
fn targets(container: &Container, services: &Services) -> Vec<Target> {
    let mounts = container.mounts.iter().map(|mount| Target {
        path: mount.path.clone(),
        kind: match mount.source {
            MountSource::File { .. } => TargetKind::File,
            _ => TargetKind::Directory,
        },
    });
    services.targets.iter().cloned().chain(mounts).collect()
}

fn open_mount(
    services: &Services,
    source: &MountSource,
    read_only: bool,
    snapshot: Snapshot,
) -> Result<(sandbox::Source, MountWork), Error> {
    let store = &services.store;
    Ok(match source {
        MountSource::Directory(_) if read_only => {
            (sandbox::Source::Mount(store.mount_read_only(&snapshot)?), MountWork::Plain)
        }
        MountSource::Directory(_) => {
            let scratch = store.begin(&snapshot, &[])?;
            let mount = scratch.mount_clone()?;
            (sandbox::Source::Mount(mount), MountWork::Overlay(scratch))
        }
        MountSource::File { name, .. } => {
            let scratch = store.begin(&snapshot, &[])?;
            let mount = scratch.mount_at(name)?;
            (sandbox::Source::Mount(mount), MountWork::Overlay(scratch))
        }
        MountSource::Cache { volume } => {
            let mount = store.cache_volume(&volume.key)?.mount()?;
            (sandbox::Source::Mount(mount), MountWork::Plain)
        }
        MountSource::Temporary { size } => {
            (sandbox::Source::Tmpfs { size: *size }, MountWork::Plain)
        }
    })
}

/// Both streams of a running command.
struct Captures {
    stdout: Capture,
    stderr: Capture,
    combined: Option<Vec<u8>>,
}

impl Captures {
    fn new(services: &Services) -> Self {
        Self {
            stdout: Capture::new(&services.store),
            stderr: Capture::new(&services.store),
            combined: Some(vec![]),
        }
    }

    fn push(&mut self, stream: sandbox::Stream, bytes: &[u8], span: &Span) {
        let (capture, log) = match stream {
            sandbox::Stream::Stdout => (&mut self.stdout, LogStream::Stdout),
            sandbox::Stream::Stderr => (&mut self.stderr, LogStream::Stderr),
        };
        capture.push(bytes);
        match &mut self.combined {
            Some(combined) if combined.len() + bytes.len() <= MAX_COMBINED_BYTES => {
                combined.extend_from_slice(bytes);
            }
            _ => self.combined = None,
        }
        span.log(log, String::from_utf8_lossy(bytes));
    }
}

/// Keeps what the command wrote, and gives the record of it.
fn commit(workspace: Workspace, captures: Captures, exit_code: i32) -> Result<Vec<u8>, Error> {
    let outcome = Outcome {
        exit_code,
        stdout: captures.stdout.finish()?,
        stderr: captures.stderr.finish()?,
        combined: captures.combined.map_or(Combined::Parts, Combined::Inline),
    };
    let Some(root) = workspace.root else {
        return Err(Error::internal("an exec lost its root file system"));
    };
    let mut mounts = Vec::new();
    for work in workspace.mounts {
        match work {
            MountWork::Overlay(scratch) => mounts.push(scratch.commit()?),
            MountWork::Plain => {}
        }
    }
    let record = Record { rootfs: root.commit()?, mounts, outcome };
    postcard::to_stdvec(&record)
        .map_err(|error| Error::internal(format!("an exec record cannot be written: {error}")))
}

fn failure(command: &Command, code: i32, captures: &Captures) -> ExecFailure {
    ExecFailure {
        cmd: command.args.clone(),
        exit_code: code,
        stdout: captures.stdout.excerpt(),
        stderr: captures.stderr.excerpt(),
    }
}

fn unexpected_exit(exit: &sandbox::Exit, command: &Command, captures: &Captures) -> Error {
    let mut message = format!("command `{}` failed: exit code: {}", display(command), exit.code);
    if let Some(oom) = &exit.oom {
        message.push_str(&format!(" (out of memory: the limit is {} MiB", oom.limit >> 20));
        if let Some(peak) = oom.peak {
            message.push_str(&format!(", {} MiB were in use", peak >> 20));
        }
        message.push(')');
    }
    Error::user(message).with_exec(failure(command, exit.code, captures))
}

/// A command that never began: the user's where it is the program or a path, else ours.
fn failed_to_run(error: sandbox::Error, command: &Command, captures: &Captures) -> Error {
    use sandbox::Error as Failure;
    let message = error.to_string();
    match error {
        Failure::Program { code, .. } => Error::user(format!("{message}: exit code: {code}"))
            .with_exec(failure(command, code, captures)),
        Failure::Workdir { .. }
        | Failure::Redirect { .. }
        | Failure::Stdin { .. }
        | Failure::Mount { .. }
        | Failure::Invalid(_) => Error::user(message),
        Failure::Closed => Error::new(ErrorKind::Cancelled, message),
        Failure::Limit { .. } => Error::environment(message).with_hint(
            "take the limits out of engine.toml, or run the engine where it may use them",
        ),
        _ => Error::environment(message),
    }
}

/// The command for a message: long ones are cut.
fn display(command: &Command) -> String {
    const LONGEST: usize = 120;
    let line = command.args.join(" ");
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line,
    }
}
