//! What the engine asks of a client, on the stream that the client serves.
//!
//! Every request is an HTTP/2 `POST` with a JSON head. File contents travel as frames: one byte of
//! [`FrameKind`], four bytes of little-endian length, then that many bytes. A client on the engine's
//! own machine hands over open directories instead. Secrets, sockets, terminals, prompts and git
//! credentials will be further paths beside these.

mod frame;
mod handover;
mod login;
mod name;
mod read;
mod write;

pub use frame::{FrameDecoder, FrameError, FrameKind, MAX_FRAME_BYTES, frame};
pub use handover::{IgnoreFile, OpenFor, OpenReply, OpenRequest};
pub use login::{Login, LoginReply, LoginRequest};
pub use name::Name;
pub use read::{Entry, EntryKind, FindUpReply, FindUpRequest, ReadRequest};
pub use write::{WriteReply, WriteRequest, Writing};

/// `POST` a [`ReadRequest`]: the answer is a stream of frames.
pub const READ_PATH: &str = "/files/read";
/// `POST` frames after a [`WriteRequest`] in a header: the answer is a [`WriteReply`].
pub const WRITE_PATH: &str = "/files/write";
/// `POST` a [`FindUpRequest`]: the answer is a [`FindUpReply`].
pub const FIND_UP_PATH: &str = "/files/find-up";
/// `POST` an [`OpenRequest`]: the answer is an [`OpenReply`].
pub const OPEN_PATH: &str = "/files/open";
/// `POST` a [`LoginRequest`]: the answer is a [`LoginReply`].
pub const LOGIN_PATH: &str = "/logins/find";
/// Header that carries the JSON of a [`WriteRequest`], percent-encoding nothing: JSON is ASCII here.
pub const WRITE_HEADER: &str = "x-ci-tool-write";
