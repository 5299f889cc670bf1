//! [`Lease`]: the right to use a service that runs.

use super::forward::Forward;
use super::instance::{Instance, Place};
use super::running::RunningServices;
use crate::container::ExposedPort;
use graph::Context;
use protocol::Error;
use sandbox::Process;
use sandbox::network::Party;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;

/// A service that goes on for as long as this lives.
pub(crate) struct Lease {
    instance: Arc<Instance>,
    place: Option<Place>,
}

impl Lease {
    /// Of an instance that is about to begin, or runs; none of one that is about to end.
    pub(super) fn take(instance: &Arc<Instance>) -> Option<Self> {
        let entered = instance.enter();
        entered.then(|| Self { instance: instance.clone(), place: None })
    }

    /// Now that it is known where it is.
    pub(super) fn at(mut self, place: Place) -> Self {
        self.place = Some(place);
        self
    }

    /// Lets it go on until it is stopped, or the session ends.
    pub(super) fn keep(self) {
        std::mem::forget(self);
    }

    /// A service of this session that runs, by the name that containers reach it by.
    pub(crate) fn of_host(hostname: &str, cx: &Context) -> Option<Self> {
        let instance = cx.get::<RunningServices>().ok()?.named(hostname)?;
        let place = instance.place()?;
        Self::take(&instance).map(|lease| lease.at(place))
    }

    /// Its name.
    pub(crate) fn hostname(&self) -> &str {
        self.instance.hostname()
    }

    /// The ports that it listens on.
    pub(crate) fn ports(&self) -> &[ExposedPort] {
        self.instance.ports()
    }

    /// Its address in the network of containers.
    pub(crate) fn address(&self) -> Option<Ipv4Addr> {
        self.place.as_ref()?.address
    }

    /// The container that it runs in, if it is in one.
    pub(super) fn process(&self) -> Option<&Process> {
        self.place.as_ref()?.inside.as_ref().map(|(process, _)| process)
    }

    /// Where it is.
    pub(super) fn place(&self) -> Option<&Place> {
        self.place.as_ref()
    }

    /// Waits until it has ended, and gives why.
    pub(crate) async fn ended(&self) -> Error {
        self.instance.ended().await
    }

    /// An address of the engine's own machine that leads to one of its ports, for programs and libraries
    /// that are not in the network of containers. It lives as long as what this gives.
    pub(crate) async fn forwarded(&self, port: u16, cx: &Context) -> Result<Forward, Error> {
        let (party, address) = self.on_network(cx)?;
        Forward::to(party.clone(), SocketAddrV4::new(address, port)).await
    }

    fn on_network<'a>(&self, cx: &'a Context) -> Result<(&'a Party, Ipv4Addr), Error> {
        let party = cx.get::<RunningServices>()?.need_party()?;
        let address = self.address();
        Ok((party, address.ok_or_else(|| Error::user("the service is on no network"))?))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.instance.leave();
    }
}
