//! HTTP as registries speak it: who is called, how a caller proves who it is, when to try again.

mod challenge;
mod clients;
mod endpoint;
mod exchange;
mod keyring;
mod reply;
mod token;
mod tries;

pub(crate) use clients::{Clients, is_loopback};
pub(crate) use endpoint::{Endpoint, Endpoints};
pub(crate) use exchange::{Exchange, Request};
pub(crate) use keyring::Keyring;
pub(crate) use reply::Reply;
pub(crate) use tries::Tries;
