//! Reaches an engine: finds it, starts it, opens a session on it and serves the host's files to it.
//!
//! [`connect`] is the way in. It gives a [`Session`] to query on; while that lives, the engine may
//! ask for files on the session's second connection (`files`). An [`Endpoint`] opens the session to
//! other programs on a loopback port. A client never imports the engine: they meet on the wire, in
//! `protocol`. Nothing here prints or reads the environment; see [`ClientEnvironment`].

mod address;
mod connect;
mod endpoint;
mod environment;
mod error;
mod files;
mod git;
mod images;
mod lock;
mod notices;
mod own;
mod ports;
mod relay;
mod route;
mod secrets;
mod session;
mod sockets;
mod start;
mod task;
mod terminal;

pub use connect::{connect, stop};
pub use endpoint::Endpoint;
pub use environment::ClientEnvironment;
pub use error::{Error, OtherVersion};
pub use files::Logins;
pub use notices::Notices;
pub use relay::relay;
pub use route::Certificates;
pub use secrets::EnvVariables;
pub use session::{Events, Session, SessionOptions};
pub use terminal::{Lent, Loan, Loans, Terminals, terminals};
