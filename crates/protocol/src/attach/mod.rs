//! What the engine asks of a client, on the stream that the client serves.
//!
//! Every request is an HTTP/2 `POST` with a JSON head. File contents travel as frames: one byte of
//! [`FrameKind`], four bytes of little-endian length, then that many bytes. A client on the engine's
//! own machine hands over open directories instead. A connection to a socket is a stream of bytes both
//! ways, and so are a terminal and a connection to a port that the client listens on. Prompts will be a
//! further path beside these.

mod frame;
mod git;
mod handover;
mod image;
mod lock;
mod login;
mod name;
mod port;
mod read;
mod secret;
mod socket;
mod terminal;
mod write;

pub use frame::{FrameDecoder, FrameError, FrameKind, MAX_FRAME_BYTES, frame};
pub use git::{GitCredential, GitCredentialReply, GitCredentialRequest};
pub use handover::{IgnoreFile, OpenFor, OpenReply, OpenRequest};
pub use image::ImageRequest;
pub use lock::{LockPolicy, LockRecord, LockReply, LockRequest};
pub use login::{Login, LoginReply, LoginRequest};
pub use name::Name;
pub use port::{ListenDecoder, ListenEvent, ListenRequest, PacketDecoder, packet};
pub use read::{Entry, EntryKind, FindUpReply, FindUpRequest, ReadRequest};
pub use secret::{MAX_SECRET_BYTES, SecretRequest};
pub use socket::SocketAddress;
pub use terminal::{TerminalDecoder, TerminalInput, UnknownInput};
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
/// `POST` a [`LockRequest`]: the answer is a [`LockReply`].
pub const LOCK_FIND_PATH: &str = "/lock/find";
/// `POST` a [`LockRecord`]: the answer is empty once it is in the file.
pub const LOCK_RECORD_PATH: &str = "/lock/record";
/// `POST` a [`GitCredentialRequest`]: the answer is a [`GitCredentialReply`].
pub const GIT_CREDENTIAL_PATH: &str = "/git/credential";
/// Header that carries the JSON of a [`WriteRequest`], percent-encoding nothing: JSON is ASCII here.
pub const WRITE_HEADER: &str = "x-ci-tool-write";
/// `POST` a [`SecretRequest`]: the answer is the bytes of the secret.
pub const SECRET_PATH: &str = "/secrets/read";
/// `POST` bytes for a socket after its [`SocketAddress`] in a header: the answer is bytes from it.
pub const SOCKET_PATH: &str = "/sockets/connect";
/// Header that carries the JSON of a [`SocketAddress`].
pub const SOCKET_HEADER: &str = "x-ci-tool-socket";
/// `POST` a [`ListenRequest`]: the answer is [`ListenEvent`]s, for as long as it is read.
pub const LISTEN_PATH: &str = "/ports/listen";
/// `POST` the [`ListenRequest`] of an open port: the answer is empty once nobody listens there.
pub const CLOSE_PATH: &str = "/ports/close";
/// `POST` bytes for a connection after its number in a header: the answer is bytes from it.
pub const ACCEPT_PATH: &str = "/ports/accept";
/// Header that carries the number of a connection.
pub const CONNECTION_HEADER: &str = "x-ci-tool-connection";
/// `POST` bytes to show on the user's terminal: the answer is [`TerminalInput`].
pub const TERMINAL_PATH: &str = "/terminals/lend";
/// `POST` an image as an archive after its [`ImageRequest`] in a header: the client's container program keeps
/// it under that name.
pub const IMAGE_LOAD_PATH: &str = "/images/load";
/// Header that carries the JSON of an [`ImageRequest`].
pub const IMAGE_HEADER: &str = "x-ci-tool-image";
/// `POST` an [`ImageRequest`]: the answer is the image as an archive.
pub const IMAGE_SAVE_PATH: &str = "/images/save";
/// How much may be on its way on the whole connection that a client serves. What comes from a socket
/// that a command does not read stays on its way: with less, a few of those would hold up everything.
pub const CONNECTION_WINDOW: u32 = 1 << 30;

/// JSON with everything beyond ASCII escaped, so that a header can carry it.
fn ascii_json(value: &impl serde::Serialize) -> String {
    let json = serde_json::to_string(value).expect("plain data has a JSON form");
    let mut header = String::with_capacity(json.len());
    for character in json.chars() {
        if character.is_ascii() {
            header.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut [0; 2]) {
            header.push_str(&format!("\\u{unit:04x}"));
        }
    }
    header
}
