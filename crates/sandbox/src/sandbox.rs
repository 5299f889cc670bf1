//! [`Sandbox`]: the face of the crate.

use crate::admission::Admission;
use crate::cgroup::Groups;
use crate::driver::{Driver, Orders};
use crate::hosts::HostFiles;
use crate::launch::Launch;
use crate::network::{Bridge, Exchange, Party};
use crate::sys::watched;
use crate::wire::{self, Dialect, Ready, Setup};
use crate::{Error, Exit, Network, Output, Root, Runtime, Settings, Spec, Zygote, packet};
use rustix::io::Errno;
use std::any::Any;
use std::convert::Infallible;
use std::future::ready;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};

/// How long the zygote may take to prepare itself.
const READY_LIMIT: Duration = Duration::from_secs(30);
/// How long the zygote may leave a request in its queue when the queue is full.
const SEND_LIMIT: Duration = Duration::from_secs(30);
/// How long [`Sandbox::shutdown`] waits for runs that were killed.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(90);

/// Runs commands. Clones are the same sandbox.
#[derive(Clone)]
pub struct Sandbox(Arc<Inner>);

/// What all clones share.
pub(crate) struct Inner {
    settings: Settings,
    requests: AsyncFd<OwnedFd>,
    zygote: Mutex<Option<Zygote>>,
    groups: Option<Groups>,
    hosts: HostFiles,
    admission: Admission,
    /// Who reaches whom on the engine's network.
    exchange: Option<Arc<Exchange>>,
    /// What containers are plugged into.
    bridge: Mutex<Option<Bridge>>,
    closing: watch::Sender<bool>,
    /// Each run holds a clone; when the last is gone, `ended` says so. None once shut down.
    runs: Mutex<Option<mpsc::Sender<Infallible>>>,
    ended: tokio::sync::Mutex<mpsc::Receiver<Infallible>>,
}

impl Sandbox {
    /// Gives the zygote its settings. Must be called inside a tokio runtime. Runs in
    /// [`Network::Bridge`] need a bridge.
    pub fn new(
        zygote: Zygote,
        settings: Settings,
        mut bridge: Option<Bridge>,
    ) -> Result<Sandbox, Error> {
        if settings.network == Network::Bridge && bridge.is_none() {
            return Err(Error::Invalid("there is no bridge to plug containers into".to_owned()));
        }
        let hosts = HostFiles::write(&settings, bridge.as_ref().map(Bridge::gateway))?;
        hand_over(&zygote, &settings, &hosts, bridge.as_ref())?;
        if let Some(bridge) = &mut bridge {
            bridge.serve()?;
        }
        let groups = Groups::prepare(&settings.cgroup_name, settings.limits, zygote.pid())?;
        let requests = zygote
            .socket()
            .try_clone_to_owned()
            .and_then(|socket| watched(socket, Interest::WRITABLE))
            .map_err(Error::host("cannot watch the zygote's socket"))?;
        let (runs, ended) = mpsc::channel(1);
        Ok(Sandbox(Arc::new(Inner {
            settings,
            requests,
            zygote: Mutex::new(Some(zygote)),
            groups,
            hosts,
            admission: Admission::new(),
            exchange: bridge.as_ref().map(|bridge| bridge.exchange().clone()),
            bridge: Mutex::new(bridge),
            closing: watch::Sender::new(false),
            runs: Mutex::new(Some(runs)),
            ended: tokio::sync::Mutex::new(ended),
        })))
    }

    /// Runs a command to its end. All that it writes goes to `output` before this returns.
    ///
    /// Dropping the future cancels: the command gets SIGTERM and, when the grace is over, everything in the
    /// container is killed. A task of the sandbox sees to that and drops `spec.keep` afterwards.
    pub async fn run(&self, spec: Spec, output: Output) -> Result<Exit, Error> {
        let alive = self.0.register()?;
        let (cancel, cancelled) = oneshot::channel();
        let orders = Orders { cancelled, closing: self.0.closing.subscribe() };
        let inner = self.0.clone();
        let run = Box::pin(async move {
            let result = inner.see_through(spec, output, orders).await;
            drop(alive);
            result
        });
        let runtime = Handle::current();
        SeenThrough { run: Some(run), _cancel: Some(cancel), runtime }.await
    }

    /// A party of containers and services, which nobody is in yet; none where commands have no network
    /// of their own that services could be reached on.
    pub fn party(&self) -> Option<Party> {
        let bridged = self.0.settings.network == Network::Bridge;
        self.0.exchange.as_ref().filter(|_| bridged).map(Exchange::party)
    }

    /// How long a command may take to end when it is asked to.
    pub fn grace(&self) -> Duration {
        self.0.settings.grace
    }

    /// Kills everything that runs and waits until it is gone. Further runs are refused.
    pub async fn shutdown(&self) {
        let inner = &self.0;
        drop(inner.runs.lock().unwrap_or_else(PoisonError::into_inner).take());
        inner.closing.send_replace(true);
        let ended = async { inner.ended.lock().await.recv().await };
        if tokio::time::timeout(SHUTDOWN_LIMIT, ended).await.is_err() {
            tracing::error!("some containers did not end within {SHUTDOWN_LIMIT:?}");
        }
        let zygote = inner.zygote.lock().unwrap_or_else(PoisonError::into_inner).take();
        let bridge = inner.bridge.lock().unwrap_or_else(PoisonError::into_inner).take();
        // Its end is waited for, which is short but not for a thread of the runtime. The bridge goes
        // after it: what is plugged in must be gone.
        if let Err(error) = tokio::task::spawn_blocking(move || drop((zygote, bridge))).await {
            tracing::error!("cannot end the zygote: {error}");
        }
        if let Some(groups) = &inner.groups {
            groups.close();
        }
    }
}

/// A run that goes on in a task of its own when nobody waits for it any more. As long as somebody
/// does, it is theirs: a task of its own would cost two changes of thread.
struct SeenThrough<F: Future<Output: Send> + Send + 'static> {
    run: Option<Pin<Box<F>>>,
    _cancel: Option<oneshot::Sender<()>>,
    runtime: Handle,
}

impl<F: Future<Output: Send> + Send + 'static> Future for SeenThrough<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let Some(run) = &mut self.run else { return Poll::Pending };
        let polled = run.as_mut().poll(context);
        if polled.is_ready() {
            self.run = None;
        }
        polled
    }
}

impl<F: Future<Output: Send> + Send + 'static> Drop for SeenThrough<F> {
    fn drop(&mut self) {
        if let Some(run) = self.run.take() {
            // The order to end follows when this is gone.
            self.runtime.spawn(run);
        }
    }
}

impl Inner {
    /// What holds for every run.
    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The address of the container at a place of the engine's network.
    pub(crate) fn address(&self, place: u32) -> Option<Ipv4Addr> {
        self.exchange.as_ref().map(|exchange| exchange.address(place))
    }

    fn register(&self) -> Result<mpsc::Sender<Infallible>, Error> {
        let runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs.clone().ok_or(Error::Closed)
    }

    async fn see_through(
        &self,
        mut spec: Spec,
        output: Output,
        orders: Orders,
    ) -> Result<Exit, Error> {
        let keep = std::mem::replace(&mut spec.keep, Box::new(()));
        let result = self.start_and_wait(spec, output, orders).await;
        release(keep, &result);
        result
    }

    async fn start_and_wait(
        &self,
        mut spec: Spec,
        output: Output,
        mut orders: Orders,
    ) -> Result<Exit, Error> {
        // Who sits at a terminal works little, and somebody waits for him to be let in. What runs in the
        // background, and beside it, is what others wait for.
        let at_once =
            spec.terminal.is_some() || spec.lead.is_some() || matches!(spec.root, Root::Of(_));
        let _admitted = tokio::select! {
            biased;
            () = ready(()), if at_once => None,
            admitted = self.admission.enter() => Some(admitted),
            _ = &mut orders.cancelled => return Err(Error::Closed),
            _ = orders.closing.wait_for(|closing| *closing) => return Err(Error::Closed),
        };
        self.hosts.refresh()?;
        let filter = spec.filter.take();
        let group = self.groups.as_ref().map(Groups::create).transpose()?;
        let launch = Launch::prepare(spec, group.as_ref(), self.settings.network)?;
        let (bytes, descriptors) = launch.request(group.as_ref());
        let send = |socket: &OwnedFd| Ok(packet::send(socket, bytes, &descriptors)?);
        let sent = self.requests.async_io(Interest::WRITABLE, send);
        match tokio::time::timeout(SEND_LIMIT, sent).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) if error.raw_os_error() == Some(Errno::PIPE.raw_os_error()) => {
                return Err(Error::Zygote("has ended".into()));
            }
            Ok(Err(source)) => {
                return Err(Error::Host { action: "cannot reach the zygote", source });
            }
            Err(_) => return Err(Error::Zygote("takes no requests".into())),
        }
        drop(descriptors);
        let driver = Driver::new(launch.sent(), (output, filter));
        let driver = driver.map_err(Error::host("cannot watch the container"))?;
        let result = driver.run(self, orders, group.as_ref()).await;
        if let Some(group) = group {
            group.remove().await;
        }
        result
    }
}

/// Lets go of what a run needed, unless a process may still be using it; then it is left to the next
/// start of the engine, which finds it on the disk.
fn release(keep: Box<dyn Any + Send>, result: &Result<Exit, Error>) {
    match result {
        Err(Error::Stuck { .. }) => std::mem::forget(keep),
        _ => drop(keep),
    }
}

/// Makes the directory that bundles are mounted in.
fn make_place(runtime: &Runtime) -> Result<wire::Runtime, Error> {
    let failed = Error::host("cannot make a place for bundles");
    std::fs::create_dir_all(&runtime.place).map_err(failed)?;
    let text = |path: &Path| match path.to_str() {
        Some(text) => Ok(text.to_owned()),
        None => Err(Error::Invalid(format!("`{}` is not UTF-8", path.display()))),
    };
    let dialect = match runtime.program.file_name() {
        Some(name) if name.to_string_lossy().contains("runc") => Dialect::Runc,
        _ => Dialect::Crun,
    };
    Ok(wire::Runtime { program: text(&runtime.program)?, place: text(&runtime.place)?, dialect })
}

fn hand_over(
    zygote: &Zygote,
    settings: &Settings,
    hosts: &HostFiles,
    bridge: Option<&Bridge>,
) -> Result<(), Error> {
    let network = settings.network.byte();
    let runtime = settings.runtime.as_ref().map(make_place).transpose()?;
    let setup = Setup { network, outlet: bridge.map(Bridge::outlet), runtime };
    let malformed = |_| Error::Zygote("does not speak our language".into());
    let head: [u8; wire::HEAD] = [wire::SETTINGS, wire::GROUP_NONE, network, wire::POWERS_USUAL];
    let bytes = postcard::to_extend(&setup, head.to_vec());
    let mounts = hosts.mounts()?;
    let descriptors = mounts.iter().map(AsFd::as_fd).chain(bridge.map(Bridge::namespace));
    let descriptors: Vec<_> = descriptors.collect();
    packet::send(zygote.socket(), &bytes.map_err(malformed)?, &descriptors)
        .map_err(|error| Error::Host { action: "cannot reach the zygote", source: error.into() })?;
    let mut buffer = [0; 4096];
    let length = zygote.receive(&mut buffer, READY_LIMIT)?;
    let ready: Ready = postcard::from_bytes(&buffer[..length]).map_err(malformed)?;
    match ready.error {
        Some(error) => Err(Error::Zygote(error)),
        None => Ok(()),
    }
}
