//! The daemon: sessions, the door they come in by, the way back to their hosts, and the one list
//! that puts all the parts together. Wiring only: no field of the API is decided here.
//!
//! [`serve`] is the whole life of an engine, from the lock on its state folder to the last flush. It
//! makes a [`Backend`] (`wiring`) and opens a [`Door`] on it. A connection at the door is greeted and
//! becomes a session's own (queries come in) or its second one (the engine asks for files). Four roles
//! of the program end up in this crate: `engine serve` in [`serve`], `engine zygote` in
//! [`zygote_main`], `engine guard` in [`guard_main`], `engine errands` in [`errands_main`].

mod attendants;
mod backend;
mod certificates;
mod door;
mod error;
mod greeting;
mod key;
mod lock;
mod log;
mod memo;
mod network;
mod predecessors;
mod registries;
mod remote;
mod runtime;
mod serve;
mod session;
mod sessions;
mod wiring;

pub use backend::Backend;
pub use door::{Door, Ended, Listeners};
pub use error::Error;
pub use memo::StoredMemo;
pub use remote::Remote;
pub use sandbox::network::guard_main;
pub use sandbox::{errands_main, zygote_main};
pub use serve::{Settings, serve};
