//! One command in the sandbox: its cache key, its mounts, its result.
//!
//! The key covers all that the command can observe. A hit answers from the record; a miss runs the
//! command over a fresh overlay, and commits what it wrote only when it ended as expected.

use super::bindings::{self, Bound};
use super::captures::Captures;
use super::config::set;
use super::exec::ReturnType;
use super::failure::{display, failed_to_run, failure, stopped, unexpected_exit};
use super::outcome::{Combined, Outcome, Record};
use super::places::{places, targets, within};
use super::secrets::Revealed;
use super::sockets::{self, Listening};
use super::terminal;
use super::volumes::{self, Opened};
use super::{Container, DEFAULT_PATH, MountPoint, MountSource, Place};
use crate::edit::Edit;
use crate::nest::{self, Nested};
use crate::owner::{self, Identity, OwnerSpec};
use crate::services::Services;
use crate::tree::Tree;
use crate::volume::Serving;
use graph::{Context, Hold, Remembered};
use protocol::{Digest, Error, ErrorKind};
use redact::Known;
use sandbox::{Network, Spec, Stdin, User};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use store::{Full, LayerId, RunWatch, Scratch, Snapshot, Store, Target, Volume};
use tokio::sync::oneshot;

/// Raised when a change here alters what a command observes or what a record holds.
const EXEC_VERSION: u64 = 1;

/// A command, with everything typed turned into what it means.
#[derive(Clone)]
pub(super) struct Command {
    pub(super) args: Vec<String>,
    pub(super) expect: ReturnType,
    pub(super) all_capabilities: bool,
    pub(super) init: bool,
    /// Whether it gets a session of its own.
    pub(super) nests: bool,
    pub(super) stdin: String,
    pub(super) redirect_stdin: Option<String>,
    pub(super) redirect_stdout: Option<String>,
    pub(super) redirect_stderr: Option<String>,
    /// What it can reach; none is what the engine says.
    pub(super) network: Option<Network>,
}

/// Runs a command, or finds that it has run before.
pub(super) async fn run(
    container: &Container,
    command: Command,
    cx: &Context,
) -> Result<Container, Error> {
    let services = cx.get::<Services>()?.clone();
    let key = action(container, &command, cx).await?;
    let usable = {
        let services = services.clone();
        move |bytes: &[u8]| decode(bytes)?.pinned(&services.store).map(Hold::new)
    };
    // A terminal that is opened when it fails is this session's too, and what a command does in a session
    // inside is told to this one. There it may ask for the same, and must not wait for itself.
    let alone = container.sockets.is_empty() && container.bindings.is_empty();
    let shared = alone && terminal::interactive(cx).is_none() && !command.nests;
    let work = perform(container.clone(), command, services.clone(), cx.clone());
    if container.is_live() {
        // What it saw may be gone a moment later: it stands for nothing but itself.
        let made = work.await?;
        let record = decode(&made.value).and_then(|record| record.pinned(&services.store));
        let own = LayerId::random().to_string();
        let key = Digest::builder("action:live").digest(&key).text(&own).finish();
        return Ok(after(container, key, record.ok_or_else(lost)?));
    }
    let made = match shared {
        true => cx.action(key, &usable, work).await?,
        false => cx.action_of_session(key, &usable, work).await?,
    };
    // What came of the action is held, so that nothing of it can have gone meanwhile.
    let record = made.held::<Record>().cloned();
    Ok(after(container, key, record.ok_or_else(|| Error::internal("an exec holds no record"))?))
}

/// What the command left was found damaged just now.
fn lost() -> Error {
    Error::new(ErrorKind::Lost, "what the command left is lost")
}

/// The digest of all that the command can observe.
pub(super) async fn action(
    container: &Container,
    command: &Command,
    cx: &Context,
) -> Result<Digest, Error> {
    let services = cx.get::<Services>()?;
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
    if let Some(network) = command.network {
        digest.text("network").text(&format!("{network:?}"));
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
            MountSource::Volume(volume) => volume.digest_into(&mut digest, cx).await?,
            MountSource::Temporary { size } => digest.text("tmpfs").number(size.unwrap_or(0)),
        };
    }
    if !container.gpus.is_empty() {
        list(digest.text("gpus"), &container.gpus);
    }
    container.secrets.digest_into(&mut digest, cx).await?;
    if command.nests {
        digest.text("nests");
    }
    bindings::digest_into(container, &mut digest);
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
    let tree = |name: &str, snapshot| Tree::settled(part(key, name), snapshot);
    let mut after = with_trees(container, (record.rootfs, record.mounts), tree);
    after.last = Some(Arc::new(record.outcome));
    after
}

/// The container with other trees, in the place of those that a command can write to.
fn with_trees(
    container: &Container,
    (rootfs, mounts): (Snapshot, Vec<Snapshot>),
    made: impl Fn(&str, Snapshot) -> Tree,
) -> Container {
    let mut changed = container.clone();
    changed.rootfs = made("rootfs", rootfs);
    let mut snapshots = mounts.into_iter();
    for mount in &mut changed.mounts {
        let tree = match &mut mount.source {
            MountSource::Directory(tree) if !mount.read_only => tree,
            MountSource::File { tree, .. } => tree,
            _ => continue,
        };
        if let Some(snapshot) = snapshots.next() {
            *tree = made(&mount.path, snapshot);
        }
    }
    changed
}

fn part(key: Digest, name: &str) -> Digest {
    Digest::builder("tree:exec").digest(&key).text(name).finish()
}

/// Everything on disk that the running command uses. The sandbox holds it until the last process
/// is gone, whatever becomes of who asked.
#[derive(Default)]
pub(super) struct Workspace {
    root: Option<Scratch>,
    mounts: Vec<MountWork>,
    /// Volumes, and the right to use them.
    volumes: Opened,
    /// Trees that are mounted and cannot be changed.
    trees: Vec<Snapshot>,
    _sockets: Vec<Listening>,
    /// Last, so that who waits for it finds all the rest gone.
    _gone: Option<oneshot::Sender<()>>,
}

/// One mount while the command runs.
enum MountWork {
    Overlay(Scratch),
    /// Nothing comes back from it.
    Plain,
}

pub(super) type Shared = Arc<Mutex<Workspace>>;

async fn perform(
    container: Container,
    command: Command,
    services: Arc<Services>,
    cx: Context,
) -> Result<Remembered, Error> {
    let revealed = container.secrets.reveal(&cx).await?;
    let shown = cx.get::<Known>()?.redactor();
    let prepared = prepare(&container, (&command, &revealed), &services, &cx).await?;
    let (spec, workspace) = (prepared.spec, prepared.workspace);
    let captures = Arc::new(Mutex::new(Captures::new(&services, &shown)));
    let output = {
        let (captures, span) = (captures.clone(), cx.span().clone());
        Box::new(move |stream: sandbox::Stream, bytes: &[u8]| {
            let mut captures = captures.lock().unwrap_or_else(PoisonError::into_inner);
            captures.push(stream, bytes, &span);
        })
    };
    let ahead = async {
        services.in_place(|| services.store.begin_ahead());
        std::future::pending::<Infallible>().await
    };
    let ended = tokio::select! {
        biased;
        ended = services.sandbox.run(spec, output) => ended,
        never = Nested::attend(prepared.nested, cx.clone()) => match never {},
        // It only uses the time in which the command runs.
        never = ahead => match never {},
        Ok(full) = prepared.stopped => {
            drop(workspace);
            released(prepared.gone, &services).await;
            return Err(stopped(full, &display(&command, &shown)));
        }
        error = prepared.bound.died() => {
            drop(workspace);
            released(prepared.gone, &services).await;
            return Err(error);
        }
    };
    let mut captures = std::mem::replace(
        &mut *captures.lock().unwrap_or_else(PoisonError::into_inner),
        Captures::new(&services, &shown),
    );
    captures.end(cx.span());
    let line = display(&command, &shown);
    let failed = match ended {
        Ok(exit) if command.expect.accepts(exit.code) => {
            drop(prepared.watch);
            let workspace = taken(&workspace);
            return services
                .in_place(|| commit(workspace, captures, (exit.code, line), &services.store));
        }
        Ok(exit) => {
            let failure = failure(&command, exit.code, &captures);
            unexpected_exit(&exit, &line, failure, prepared.watch.full())
        }
        Err(error) => failed_to_run(error, &container, (&command, &captures)),
    };
    examine(&workspace, &services)?;
    drop(prepared.watch);
    let left = || services.in_place(|| left(&container, taken(&workspace)));
    Err(terminal::look_into(failed, left, &cx).await)
}

fn taken(workspace: &Shared) -> Workspace {
    std::mem::take(&mut *workspace.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The container as a command that failed left it.
fn left(container: &Container, workspace: Workspace) -> Result<Container, Error> {
    let trees = keep(workspace)?;
    Ok(with_trees(container, trees, |_, snapshot| Tree::taken_out(snapshot)))
}

/// Keeps what a command wrote: its root, and the mounts that it could write to.
fn keep(workspace: Workspace) -> Result<(Snapshot, Vec<Snapshot>), Error> {
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
    Ok((root.commit()?, mounts))
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

pub(super) struct PreparedExec {
    pub(super) spec: Spec,
    pub(super) workspace: Shared,
    watch: RunWatch,
    /// Says why when the command must end for want of room.
    pub(super) stopped: oneshot::Receiver<Full>,
    /// Ends when the last process and all that it wrote is gone.
    pub(super) gone: oneshot::Receiver<()>,
    /// The session that the command gets, if it gets one; to be attended while it runs.
    pub(super) nested: Option<Nested>,
    /// The services that it reaches.
    pub(super) bound: Bound,
    /// Who answers for its files that are elsewhere. Not with the workspace, which waits for its last process.
    _serving: Vec<Serving>,
}

/// Makes everything that a run of the command needs.
pub(super) async fn prepare(
    container: &Container,
    (command, revealed): (&Command, &Revealed),
    services: &Services,
    cx: &Context,
) -> Result<PreparedExec, Error> {
    let bound = bindings::start(container, cx).await?;
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
    let (volumes, serving) = volumes::open(container, &rootfs, services, cx).await?;
    let parts = Parts { rootfs: &rootfs, trees, volumes, serving, revealed, bound };
    services.in_place(|| assemble(container, command, cx, parts))
}

/// What a run is put together from.
struct Parts<'a> {
    rootfs: &'a Snapshot,
    /// The trees of the mounts, in their order.
    trees: Vec<Snapshot>,
    volumes: Opened,
    serving: Vec<Serving>,
    revealed: &'a Revealed,
    bound: Bound,
}

/// Puts the root, the mounts and everything else of a run together.
fn assemble(
    container: &Container,
    command: &Command,
    cx: &Context,
    parts: Parts<'_>,
) -> Result<PreparedExec, Error> {
    let Parts { rootfs, trees, volumes, serving, revealed, bound } = parts;
    let services = cx.get::<Services>()?;
    let identity = identity(container, rootfs, services)?;
    let root = services.store.begin(rootfs, &targets(container, services))?;
    let (sender, gone) = oneshot::channel();
    let (from_client, listening) = sockets::listen(container, rootfs, services, cx)?;
    let mut workspace =
        Workspace { volumes, _sockets: listening, _gone: Some(sender), ..Workspace::default() };
    let mut mounts = Vec::with_capacity(container.mounts.len());
    let places = places(container);
    for (mount, snapshot) in container.mounts.iter().zip(trees) {
        let within = within(mount, &places);
        let (source, work) = open_mount(services, mount, (snapshot, &within), &mut workspace)?;
        workspace.mounts.push(work);
        let (target, read_only) = (mount.path.clone(), mount.read_only);
        mounts.push(sandbox::MountPoint { target, source, read_only });
    }
    // Last, so that they cover a mount at the same path.
    mounts.extend(from_client);
    mounts.extend(container.gpu_mounts()?);
    mounts.extend(revealed.mounts(rootfs, services)?);
    let root_mount = root.mount_clone()?;
    workspace.root = Some(root);
    let (watch, stopped) = watch(services, &workspace);
    let workspace = Arc::new(Mutex::new(workspace));
    let (nested, endpoint) = match command.nests {
        true => Some(Nested::admit(inside(container, &identity), cx)?).unzip(),
        false => (None, None),
    };
    let mut env = environment(container, &identity, revealed, services);
    if let Some(nested) = &nested {
        nested.add_to(&mut env);
    }
    let spec = Spec {
        root: sandbox::Root::Mount(root_mount),
        mounts,
        env,
        args: command.args.clone(),
        workdir: workdir(container).to_owned(),
        user: User { uid: identity.uid, gid: identity.gid, groups: identity.groups },
        init: command.init,
        all_capabilities: command.all_capabilities,
        network: command.network,
        stdin: match &command.redirect_stdin {
            Some(path) => Stdin::File(path.clone()),
            None if command.stdin.is_empty() => Stdin::Empty,
            None => Stdin::Bytes(command.stdin.clone().into_bytes()),
        },
        redirect_stdout: command.redirect_stdout.clone(),
        redirect_stderr: command.redirect_stderr.clone(),
        filter: revealed.filter(nested.as_ref().map(Nested::token)),
        terminal: None,
        endpoint,
        company: bound.company(cx),
        lead: None,
        keep: Box::new(workspace.clone()),
    };
    Ok(PreparedExec { spec, workspace, watch, stopped, gone, nested, bound, _serving: serving })
}

/// What a session inside is told about its container.
fn inside(container: &Container, identity: &Identity) -> nest::Place {
    let hidden = container.secrets.targets().chain(sockets::targets(container));
    nest::Place {
        workdir: workdir(container).to_owned(),
        home: identity.home.clone(),
        hidden: hidden.map(|target| target.path).collect(),
    }
}

/// Has the room that a command takes watched.
fn watch(services: &Services, workspace: &Workspace) -> (RunWatch, oneshot::Receiver<Full>) {
    let (stop, stopped) = oneshot::channel();
    let mounts = workspace.mounts.iter().filter_map(|work| match work {
        MountWork::Overlay(scratch) => Some(scratch),
        MountWork::Plain => None,
    });
    let scratches: Vec<&Scratch> = workspace.root.iter().chain(mounts).collect();
    let volumes: Vec<&Volume> = workspace.volumes.volumes.iter().map(|open| &open.volume).collect();
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

fn environment(
    container: &Container,
    identity: &Identity,
    revealed: &Revealed,
    services: &Services,
) -> Vec<(String, String)> {
    let mut env = container.config.env.clone();
    for (name, value) in &container.volatile {
        set(&mut env, name, value.clone());
    }
    env.retain(|(name, _)| !container.secrets.has_variable(name));
    env.extend(revealed.variables.iter().cloned());
    for (name, value) in [("PATH", DEFAULT_PATH), ("HOME", identity.home.as_str())] {
        if env.iter().all(|(known, _)| known != name) {
            env.push((name.to_owned(), value.to_owned()));
        }
    }
    services.surroundings.add_to(&mut env);
    env
}

fn open_mount(
    services: &Services,
    mount: &MountPoint,
    (snapshot, within): (Snapshot, &[Target]),
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
            let scratch = store.begin(&snapshot, within)?;
            let mount = scratch.mount_clone()?;
            (sandbox::Source::Mount(mount), MountWork::Overlay(scratch))
        }
        MountSource::File { name, .. } => {
            let scratch = store.begin(&snapshot, &[])?;
            let mount = scratch.mount_at(name)?;
            (sandbox::Source::Mount(mount), MountWork::Overlay(scratch))
        }
        MountSource::Cache(cache) => {
            let volume = workspace.volumes.find(&cache.key)?;
            (sandbox::Source::Mount(volume.mount()?), MountWork::Plain)
        }
        MountSource::Volume(live) => {
            let mounted = workspace.volumes.mount(live, &mount.path)?;
            (sandbox::Source::Mount(mounted), MountWork::Plain)
        }
        MountSource::Temporary { size } => {
            (sandbox::Source::Tmpfs { size: *size }, MountWork::Plain)
        }
    })
}

/// Keeps what the command wrote, and gives the record of it.
fn commit(
    workspace: Workspace,
    captures: Captures,
    (exit_code, label): (i32, String),
    store: &Store,
) -> Result<Remembered, Error> {
    let outcome = Outcome {
        exit_code,
        stdout: captures.stdout.finish()?,
        stderr: captures.stderr.finish()?,
        combined: captures.combined.map_or(Combined::Parts, Combined::Inline),
        pins: vec![],
    };
    let outcome = outcome.pinned(store).ok_or_else(lost)?;
    let (rootfs, mounts) = keep(workspace)?;
    let record = Record { rootfs, mounts, outcome };
    let value = postcard::to_stdvec(&record)
        .map_err(|error| Error::internal(format!("an exec record cannot be written: {error}")))?;
    let needs = record.needs().encode();
    Ok(Remembered { value, kind: "exec", label, needs, hold: Hold::new(record) })
}

/// Waits until a command that was stopped is gone and what it wrote is removed.
pub(super) async fn released(gone: oneshot::Receiver<()>, services: &Services) {
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
