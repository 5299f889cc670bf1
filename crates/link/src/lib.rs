//! What carries a connection between a client and an engine: a socket of this machine, TCP with or
//! without TLS, or the streams of a program such as ssh.
//!
//! Both towers speak the same bytes over a [`Stream`] and do not ask what it is, but for two things:
//! only a socket of this machine carries descriptors and says who is at the other end, and a link that
//! [`Stream::is_remote`] may be slow and may vanish without a word. [`tls`] reads certificates, and a
//! [`Token`] lets programs in at the port of a session, wherever that is open. Nothing here knows what is
//! said on a connection.

mod program;
mod stream;
pub mod tls;
mod token;

pub use program::Program;
pub use stream::{Duplex, Stream};
pub use token::{Token, authorization};

use std::time::Duration;

/// How often a remote peer is asked whether it is there, and how long it may take to answer. A machine
/// that loses its power sends nothing: without this a request would wait for ever.
pub const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(5);
/// See [`KEEP_ALIVE_INTERVAL`].
pub const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the way to a remote engine may take to open.
pub const OPEN_TIME: Duration = Duration::from_secs(15);

/// How much may be on its way on one stream of a connection.
pub fn stream_window(remote: bool) -> u32 {
    if remote { REMOTE_STREAM_WINDOW } else { STREAM_WINDOW }
}

/// How much may be on its way on a whole connection.
pub fn connection_window(remote: bool) -> u32 {
    if remote { REMOTE_CONNECTION_WINDOW } else { CONNECTION_WINDOW }
}

/// Large enough for the files and answers of a local socket, small enough that a thousand streams
/// cost little.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 4 << 20;
/// What a link of a gigabit a second holds that answers after a tenth of a second, and a bit.
const REMOTE_STREAM_WINDOW: u32 = 16 << 20;
const REMOTE_CONNECTION_WINDOW: u32 = 32 << 20;
