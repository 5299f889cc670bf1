//! What is committed survives, and what is damaged is noticed.
//!
//! Two promises are kept here. A row of the database is committed only when the layers and blobs
//! that it names are on disk: [`Durable`] knows what is not and syncs it. And a layer that somebody
//! uses is what it was when it was made: beside each committed layer lies a manifest, with which
//! [`Inspector`] compares it at its first use after a start, [`Verified`] readers what they read, and
//! [`Keeper`] everything, blobs too, in idle time.

mod blobs;
mod check;
mod inspector;
mod keeper;
mod ledger;
mod manifest;
mod orphans;
mod scrub;
mod survey;
mod sync;
mod verified;

#[cfg(test)]
mod tests;

pub(crate) use inspector::{Inspector, discard_layer};
pub(crate) use keeper::Keeper;
pub(crate) use ledger::{Content, Durable, Stage};
pub(crate) use manifest::Sum;
pub(crate) use survey::Sums;
pub use verified::Verified;
