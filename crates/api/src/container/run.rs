//! One command in the sandbox: its cache key, its mounts, its result.
//!
//! The key covers all that the command can observe. A hit answers from the record; a miss runs the
//! command over a fresh overlay, and commits what it wrote only when it ended as expected.

use super::exec::ReturnType;
use super::outcome::{Capture, Combined, Outcome, Record};
use super::volumes::{self, OpenVolume};
use super::{Container, DEFAULT_PATH, MountPoint, MountSource, Place};
use crate::edit::Edit;
use crate::owner::{self, Identity, OwnerSpec};
use crate::services::Services;
use crate::tree::Tree;
use graph::{Context, Hold, Remembered, Span};
use protocol::{Digest, Error, ErrorKind, ExecFailure, LogStream};
use sandbox::{Spec, Stdin, User};
use std::sync::{Arc, Mutex, PoisonError};
use store::{Full, RunWatch, Scratch, Snapshot, Target, TargetKind, Volume};
use tokio::sync::oneshot;

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
        move |bytes: &[u8]| decode(bytes)?.pinned(&services.store).map(Hold::new)
    };
    let work = perform(container.clone(), command, services.clone(), cx.span().clone());
    let bytes = cx.action(key, &usable, work).await?;
    // What came of the action is held, so that nothing of it can have gone meanwhile.
    let record = decode(&bytes).and_then(|record| record.pinned(&services.store));
    // Unless it was found damaged just now, and is lost.
    let lost = || Error::new(ErrorKind::Lost, "what the command left is lost");
    let record = record.ok_or_else(lost)?;
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
            MountSource::Cache(cache) => {
                digest.text("cache").text(&cache.key);
                volumes::digest_into(cache, &mut digest, services).await?
            }
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
    /// Cache volumes, and the right to use them.
    volumes: Vec<OpenVolume>,
    /// Trees that are mounted and cannot be changed.
    trees: Vec<Snapshot>,
    /// Last, so that who waits for it finds all the rest gone.
    _gone: Option<oneshot::Sender<()>>,
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
) -> Result<Remembered, Error> {
    let prepared = prepare(&container, &command, &services, &span).await?;
    let (spec, workspace) = (prepared.spec, prepared.workspace);
    let captures = Arc::new(Mutex::new(Captures::new(&services)));
    let output = {
        let captures = captures.clone();
        Box::new(move |stream: sandbox::Stream, bytes: &[u8]| {
            let mut captures = captures.lock().unwrap_or_else(PoisonError::into_inner);
            captures.push(stream, bytes, &span);
        })
    };
    let ended = tokio::select! {
        ended = services.sandbox.run(spec, output) => ended,
        Ok(full) = prepared.stopped => {
            drop(workspace);
            released(prepared.gone, &services).await;
            return Err(stopped(full, &command));
        }
    };
    let captures = std::mem::replace(
        &mut *captures.lock().unwrap_or_else(PoisonError::into_inner),
        Captures::new(&services),
    );
    let exit = match ended {
        Ok(exit) => exit,
        Err(error) => {
            examine(&workspace, &services)?;
            return Err(failed_to_run(error, &command, &captures));
        }
    };
    if !command.expect.accepts(exit.code) {
        examine(&workspace, &services)?;
        return Err(unexpected_exit(&exit, &command, &captures, prepared.watch.full()));
    }
    drop(prepared.watch);
    let workspace = std::mem::take(&mut *workspace.lock().unwrap_or_else(PoisonError::into_inner));
    let label = display(&command);
    services.in_place(|| commit(workspace, captures, exit.code, label))
}

/// Finds out whether a command failed because a tree it ran on got damaged. It has not failed then:
/// the tree is made again, and the command runs again.
fn examine(workspace: &Shared, services: &Services) -> Result<(), Error> {
    let workspace = workspace.lock().unwrap_or_else(PoisonError::into_inner);
    let mounts = workspace.mounts.iter().filter_map(|mount| match mount {
        MountWork::Overlay(scratch) => Some(scratch),
        MountWork::Plain => None,
    });
    let mut trees = mounts.chain(&workspace.root).map(Scratch::base).chain(&workspace.trees);
    services.in_place(|| trees.try_for_each(|tree| services.store.examine(tree)))?;
    Ok(())
}

struct PreparedExec {
    spec: Spec,
    workspace: Shared,
    watch: RunWatch,
    /// Says why when the command must end for want of room.
    stopped: oneshot::Receiver<Full>,
    /// Ends when the last process and all that it wrote is gone.
    gone: oneshot::Receiver<()>,
}

async fn prepare(
    container: &Container,
    command: &Command,
    services: &Services,
    span: &Span,
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
    services.in_place(|| services.store.make_room())?;
    let volumes = volumes::open(container, &rootfs, services, span).await?;
    let parts = Parts { rootfs: &rootfs, trees, volumes };
    services.in_place(|| assemble(container, command, services, parts))
}

/// What a run is put together from.
struct Parts<'a> {
    rootfs: &'a Snapshot,
    /// The trees of the mounts, in their order.
    trees: Vec<Snapshot>,
    volumes: Vec<OpenVolume>,
}

/// Puts the root, the mounts and everything else of a run together.
fn assemble(
    container: &Container,
    command: &Command,
    services: &Services,
    parts: Parts<'_>,
) -> Result<PreparedExec, Error> {
    let Parts { rootfs, trees, volumes } = parts;
    let identity = identity(container, rootfs, services)?;
    let root = services.store.begin(rootfs, &targets(container, services))?;
    let (sender, gone) = oneshot::channel();
    let mut workspace = Workspace { volumes, _gone: Some(sender), ..Workspace::default() };
    let mut mounts = Vec::with_capacity(container.mounts.len());
    for (mount, snapshot) in container.mounts.iter().zip(trees) {
        let (source, work) = open_mount(services, mount, snapshot, &mut workspace)?;
        workspace.mounts.push(work);
        let (target, read_only) = (mount.path.clone(), mount.read_only);
        mounts.push(sandbox::MountPoint { target, source, read_only });
    }
    let root_mount = root.mount_clone()?;
    workspace.root = Some(root);
    let (watch, stopped) = watch(services, &workspace);
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
    Ok(PreparedExec { spec, workspace, watch, stopped, gone })
}

/// Has the room that a command takes watched.
fn watch(services: &Services, workspace: &Workspace) -> (RunWatch, oneshot::Receiver<Full>) {
    let (stop, stopped) = oneshot::channel();
    let mounts = workspace.mounts.iter().filter_map(|work| match work {
        MountWork::Overlay(scratch) => Some(scratch),
        MountWork::Plain => None,
    });
    let scratches: Vec<&Scratch> = workspace.root.iter().chain(mounts).collect();
    let volumes: Vec<&Volume> = workspace.volumes.iter().map(|open| &open.volume).collect();
    // A command that has just ended by itself does not hear it.
    let watch = services.store.watch(&scratches, &volumes, |full| drop(stop.send(full)));
    (watch, stopped)
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
    mount: &MountPoint,
    snapshot: Snapshot,
    workspace: &mut Workspace,
) -> Result<(sandbox::Source, MountWork), Error> {
    let store = &services.store;
    Ok(match &mount.source {
        MountSource::Directory(_) if mount.read_only => {
            let tree = store.mountable(&snapshot)?;
            let mounted = store.mount_read_only(&tree)?;
            workspace.trees.push(tree);
            (sandbox::Source::Mount(mounted), MountWork::Plain)
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
        MountSource::Cache(cache) => {
            let open = workspace.volumes.iter().find(|open| open.key == cache.key);
            let open = open.ok_or_else(|| Error::internal("a cache volume was not opened"))?;
            (sandbox::Source::Mount(open.volume.mount()?), MountWork::Plain)
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
fn commit(
    workspace: Workspace,
    captures: Captures,
    exit_code: i32,
    label: String,
) -> Result<Remembered, Error> {
    let outcome = Outcome {
        exit_code,
        stdout: captures.stdout.finish()?,
        stderr: captures.stderr.finish()?,
        combined: captures.combined.map_or(Combined::Parts, Combined::Inline),
        pins: vec![],
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
    let value = postcard::to_stdvec(&record)
        .map_err(|error| Error::internal(format!("an exec record cannot be written: {error}")))?;
    let needs = record.needs().encode();
    Ok(Remembered { value, kind: "exec", label, needs, hold: Hold::new(record) })
}

fn failure(command: &Command, code: i32, captures: &Captures) -> ExecFailure {
    ExecFailure {
        cmd: command.args.clone(),
        exit_code: code,
        stdout: captures.stdout.excerpt(),
        stderr: captures.stderr.excerpt(),
    }
}

/// Waits until a command that was stopped is gone and what it wrote is removed.
async fn released(gone: oneshot::Receiver<()>, services: &Services) {
    // Nothing is ever sent: it ends when the other side is dropped.
    let _ = gone.await;
    let store = services.store.clone();
    let empty = move || {
        store.empty_trash();
        Ok::<_, Error>(())
    };
    let emptied = services.blocking(empty).await;
    if let Err(error) = emptied {
        tracing::warn!("cannot empty the trash: {}", error.message);
    }
}

/// A command that was stopped because there is no room for what it writes.
fn stopped(full: Full, command: &Command) -> Error {
    let message = format!("command `{}` was stopped: {full}", display(command));
    Error::environment(message).with_hint(Full::HINT)
}

fn unexpected_exit(
    exit: &sandbox::Exit,
    command: &Command,
    captures: &Captures,
    full: Option<Full>,
) -> Error {
    let mut message = format!("command `{}` failed: exit code: {}", display(command), exit.code);
    if let Some(oom) = &exit.oom {
        message.push_str(&format!(" (out of memory: the limit is {} MiB", oom.limit >> 20));
        if let Some(peak) = oom.peak {
            message.push_str(&format!(", {} MiB were in use", peak >> 20));
        }
        message.push(')');
    }
    let failure = failure(command, exit.code, captures);
    match full {
        // Whatever it says itself, this is the likely reason.
        Some(full) => {
            let error = Error::user(format!("{message} ({full})")).with_exec(failure);
            error.with_hint(Full::HINT)
        }
        None => Error::user(message).with_exec(failure),
    }
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
