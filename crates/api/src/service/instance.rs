//! [`Instance`]: a service that runs, from the wish for it to its end.
//!
//! ```text
//! Starting ---> Ready ---> Ended
//!    '------------------------^
//! ```
//!
//! A task of its own sees it through. It ends when it is told to, when its command does, or when nobody has
//! used it for a while.

use super::lease::Lease;
use super::running::RunningServices;
use super::{Kind, Service, health};
use crate::container::{Alive, Background, Beside, ExposedPort};
use crate::services::Services;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use graph::{Context, Span, SpanKind, SpanOutcome};
use protocol::{Error, ErrorKind};
use sandbox::{Process, Wish};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{oneshot, watch};

/// How long a service that nobody uses goes on: the next step of a pipeline often needs it again.
const IDLE: Duration = Duration::from_secs(10);

/// A service that runs.
pub(crate) struct Instance {
    service: Service,
    state: watch::Sender<State>,
    wish: watch::Sender<Wish>,
    usage: Mutex<Usage>,
    /// How many use it, for who waits until nobody does.
    users: watch::Sender<usize>,
}

#[derive(Default)]
struct Usage {
    users: usize,
    /// Whether it is about to end, so that nobody new may use it.
    ending: bool,
}

/// How far it is.
#[derive(Clone)]
enum State {
    Starting,
    Ready(Place),
    Ended(Error),
}

/// Where it is.
#[derive(Clone)]
pub(crate) struct Place {
    /// Its address in the network of containers, if it is in that.
    pub(crate) address: Option<Ipv4Addr>,
    /// The ports that it is reached on.
    pub(crate) ports: Vec<ExposedPort>,
    /// What runs there, and how to run something beside it, if it is in a container.
    pub(crate) inside: Option<(Process, Arc<Beside>)>,
}

impl Instance {
    fn new(service: &Service) -> Arc<Self> {
        Arc::new(Self {
            service: service.clone(),
            state: watch::Sender::new(State::Starting),
            wish: watch::Sender::new(Wish::Run),
            usage: Mutex::default(),
            users: watch::Sender::new(0),
        })
    }

    /// Waits until a service is ready, which is started if it does not run.
    pub(super) async fn start(service: &Service, cx: &Context) -> Result<Lease, Error> {
        let running = cx.get::<RunningServices>()?;
        loop {
            let make = || Instance::new(service);
            let (instance, new) = running.find_or_make(service.identity(), make)?;
            let Some(lease) = Lease::take(&instance) else {
                // It is about to end. The next one begins when it has.
                instance.ended().await;
                continue;
            };
            if new {
                tokio::spawn(see_through(instance.clone(), running.clone(), cx.clone()));
            }
            return instance.ready().await.map(|place| lease.at(place));
        }
    }

    pub(super) fn hostname(&self) -> &str {
        self.service.hostname()
    }

    pub(super) fn ports(&self) -> &[ExposedPort] {
        self.service.ports()
    }

    /// Says what becomes of it. Only more than before counts.
    pub(crate) fn wish(&self, wish: Wish) {
        self.lock().ending = true;
        self.wish.send_if_modified(|now| {
            let more = wish > *now;
            if more {
                *now = wish;
            }
            more
        });
    }

    /// Waits until it has ended, and gives why.
    pub(crate) async fn ended(&self) -> Error {
        let mut state = self.state.subscribe();
        // The sender lives in `self`, so waiting cannot fail.
        let state = state.wait_for(|state| matches!(state, State::Ended(_))).await;
        match state.as_deref() {
            Ok(State::Ended(error)) => error.clone(),
            _ => Error::internal("a service was forgotten"),
        }
    }

    async fn ready(&self) -> Result<Place, Error> {
        let mut state = self.state.subscribe();
        let state = state.wait_for(|state| !matches!(state, State::Starting)).await;
        match state.as_deref() {
            Ok(State::Ready(place)) => Ok(place.clone()),
            Ok(State::Ended(error)) => Err(error.clone()),
            _ => Err(Error::internal("a service was forgotten")),
        }
    }

    /// Waits until it is to end.
    pub(super) async fn wished(&self) {
        // The sender lives in `self`, so waiting cannot fail.
        let _ = self.wish.subscribe().wait_for(|wish| *wish != Wish::Run).await;
    }

    /// Where it is now, if it is ready.
    pub(super) fn place(&self) -> Option<Place> {
        match &*self.state.borrow() {
            State::Ready(place) => Some(place.clone()),
            _ => None,
        }
    }

    /// One more uses it; false if it is about to end.
    pub(super) fn enter(&self) -> bool {
        let mut usage = self.lock();
        if usage.ending {
            return false;
        }
        usage.users += 1;
        self.users.send_replace(usage.users);
        true
    }

    /// One less uses it.
    pub(super) fn leave(&self) {
        let mut usage = self.lock();
        usage.users -= 1;
        self.users.send_replace(usage.users);
    }

    /// Ends it once nobody has used it for a while.
    async fn end_when_idle(&self) {
        let users = self.users.subscribe();
        loop {
            unused(users.clone(), IDLE).await;
            if self.lock().users == 0 {
                return self.wish(Wish::End);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Usage> {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits until nobody has used something for so long.
async fn unused(mut users: watch::Receiver<usize>, long: Duration) {
    // The sender is gone with all that could use it.
    while users.wait_for(|users| *users == 0).await.is_ok() {
        tokio::select! {
            () = tokio::time::sleep(long) => return,
            _ = users.wait_for(|users| *users > 0) => {}
        }
    }
}

/// Runs a service to its end. Its type is written out because services start services.
fn see_through(
    instance: Arc<Instance>,
    running: Arc<RunningServices>,
    cx: Context,
) -> BoxFuture<'static, ()> {
    async move { live(&instance, &running, &cx).await }.boxed()
}

async fn live(instance: &Arc<Instance>, running: &RunningServices, cx: &Context) {
    let name = format!("service {}", instance.hostname());
    let span = cx.span().child(name, SpanKind::Work);
    let idle = {
        let instance = instance.clone();
        tokio::spawn(async move { instance.end_when_idle().await })
    };
    let life = Life { instance, running, cx, span: &span };
    let ran = match &instance.service.0.kind {
        Kind::Container(background) => run(background, &life).await,
        Kind::Host(host) => host.run(&life).await,
        Kind::Tunnel(tunnel) => tunnel.run(&life).await,
    };
    let (Ok(error) | Err(error)) = ran;
    idle.abort();
    let asked = *instance.wish.borrow() != Wish::Run;
    let error = match asked {
        true => Error::new(ErrorKind::Cancelled, "it was stopped"),
        false => error,
    };
    span.end(match asked {
        true => SpanOutcome::Done,
        false => SpanOutcome::Failed(error.message.clone()),
    });
    instance.lock().ending = true;
    running.forget(instance.service.identity());
    instance.state.send_replace(State::Ended(error));
}

/// What a service that runs has to do with.
pub(super) struct Life<'a> {
    pub(super) instance: &'a Instance,
    pub(super) running: &'a RunningServices,
    pub(super) cx: &'a Context,
    pub(super) span: &'a Span,
}

impl Life<'_> {
    /// It is ready, and there.
    pub(super) fn ready(&self, place: Place) {
        self.instance.state.send_replace(State::Ready(place));
    }
}

/// What the service of a container does all its life. The result is why it ended, or what went wrong on our
/// side.
async fn run(background: &Background, life: &Life<'_>) -> Result<Error, Error> {
    let Life { instance, running, cx, span } = life;
    let (party, services) = (running.need_party()?, cx.get::<Services>()?);
    let (begun, alive) = oneshot::channel();
    let mut command = Box::pin(background.run((cx, span), instance.wish.subscribe(), begun));
    let Alive { address, process, beside } = tokio::select! {
        error = &mut command => return Ok(error),
        alive = alive => match alive {
            Ok(alive) => alive,
            Err(_) => return Ok(command.await),
        },
    };
    let address = address.ok_or_else(|| Error::internal("a service has no address"))?;
    let offered = party.offer(&[instance.hostname()], address);
    let _offer = offered.map_err(|error| Error::environment(error.to_string()))?;
    let ports = instance.service.ports();
    let inside = Some((process, Arc::new(beside)));
    let place = Place { address: Some(address), ports: ports.to_vec(), inside };
    let check = background.healthcheck();
    let way = (party, address, &place);
    tokio::select! {
        biased;
        error = &mut command => return Ok(error),
        checked = health::wait(way, ports, check.as_ref(), (services, life.span)) => checked?,
    }
    life.ready(place);
    Ok(command.await)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_what_nobody_uses_is_unused() {
        let users = watch::Sender::new(1);
        let waiting = tokio::spawn(unused(users.subscribe(), Duration::ZERO));
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        assert!(!waiting.is_finished());
        users.send_replace(0);
        waiting.await.unwrap();
    }
}
