//! How a client and an engine greet, and the paths they then speak on.
//!
//! A client dials the engine's unix socket and writes one line of JSON, a [`Hello`]; the engine
//! answers with one line, a [`Welcome`] or a [`Refusal`]. After that the connection is HTTP/2.
//! On a `Query` connection the client asks and the engine serves the paths below. On an `Attach`
//! connection it is the other way round: the engine asks and the client serves [`crate::attach`].
//! The session lives as long as its `Query` connection.
//!
//! A client on another machine has one connection, because each may cost a login: what would be its `Attach`
//! connection is a stream within the first, for which it asks with `CONNECT` [`ATTACH_AUTHORITY`].

use crate::Error;
use serde::{Deserialize, Serialize};

/// `POST`: a GraphQL request, answered as GraphQL over HTTP.
pub const QUERY_PATH: &str = "/query";
/// `GET`: the session's events, one JSON [`crate::Event`] a line, until the session ends.
pub const EVENTS_PATH: &str = "/events";
/// `GET`: the schema as [`crate::schema::Schema`] in JSON, for our own command line.
pub const SCHEMA_PATH: &str = "/schema";
/// `POST`: ends the session; answered when everything it made is safe.
pub const CLOSE_PATH: &str = "/close";
/// `GET`: an [`EngineStatus`] as JSON.
pub const STATUS_PATH: &str = "/status";
/// `CONNECT`: the stream becomes a connection on which the engine asks, as on one with [`Purpose::Attach`].
pub const ATTACH_AUTHORITY: &str = "attach:1";

/// Request header by which our own command line asks for error kinds: every error then carries an
/// extension `_type`. Published clients do not send it and get the plain form.
pub const ERROR_KINDS_HEADER: &str = "x-ci-tool-error-kinds";
/// Request header with the span under which the calls of a request appear.
pub const PARENT_SPAN_HEADER: &str = "x-ci-tool-parent-span";

/// Largest accepted request body; more is answered 413.
pub const MAX_BODY_BYTES: usize = 32 << 20;
/// Exit code of an engine that found a state folder of a newer version and left it alone.
pub const NEWER_STATE_EXIT: i32 = 93;
/// Exit code of an engine that cannot run on this machine as it is. The last two lines of its log begin with
/// [`CANNOT_RUN`] and [`HINT`].
pub const UNFIT_EXIT: i32 = 94;
/// What begins the line in which an engine says why it does not start.
pub const CANNOT_RUN: &str = "the engine cannot run: ";
/// What begins the line in which an engine says what would help.
pub const HINT: &str = "hint: ";
/// Longest accepted greeting line.
pub const MAX_GREETING_BYTES: usize = 64 << 10;

/// First line a client writes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    /// [`crate::WIRE_VERSION`] of the client.
    pub wire: u32,
    /// [`crate::VERSION`] of the client.
    pub version: String,
    /// What the connection is for.
    pub purpose: Purpose,
}

/// What a connection is for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Purpose {
    /// Opens a session and queries on it.
    Query(ClientSettings),
    /// Serves attachables for the session with this secret name, on the engine's own machine: such a client can
    /// hand open directories over, see [`Purpose::HandOver`].
    Attach {
        /// The name that [`Welcome`] gave.
        session: String,
    },
    /// Hands one open directory to the session with this secret name: after the welcome the client
    /// sends one byte with one descriptor.
    HandOver {
        /// The name that [`Welcome`] gave.
        session: String,
        /// The token of the [`crate::attach::OpenRequest`] that is answered.
        token: String,
    },
    /// Asks the engine to end: at once when idle, else refused unless `force` or `when_idle`. An engine
    /// of any version understands it.
    #[serde(rename_all = "camelCase")]
    Stop {
        /// End running sessions too.
        force: bool,
        /// Wait for the last session to end. The wish is dropped with the connection.
        #[serde(default)]
        when_idle: bool,
    },
}

/// What the engine needs to know of a client.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClientSettings {
    /// The client's working directory: relative host paths start here.
    pub workdir: String,
    /// Home of the user, for `~`.
    pub home: String,
    /// Labels, e.g. name and version of a client library.
    pub labels: Vec<(String, String)>,
    /// Version of the API whose behaviour the client expects; empty means the newest.
    pub compat: String,
    /// What runs on the client's terminal in a container whose command failed; empty is nothing.
    pub interactive: Vec<String>,
    /// What becomes of look-ups.
    pub lock: LockMode,
    /// Whether the client is on another machine. The engine cannot tell: what comes by ssh comes to its socket.
    pub remote: bool,
}

/// What becomes of look-ups, such as the digest of a tag, that a file of the project can record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum LockMode {
    /// Nothing is recorded, and nothing recorded is used.
    #[default]
    Disabled,
    /// Everything is looked up and recorded.
    Live,
    /// What is recorded is used, the rest is looked up and recorded.
    Pinned,
    /// Only what is recorded is used.
    Frozen,
}

/// The engine takes the client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Welcome {
    /// [`crate::VERSION`] of the engine.
    pub version: String,
    /// Unguessable name of the session; empty where there is none.
    pub session: String,
    /// What the user is to be told, e.g. that the cache was begun anew. Told to one client only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

/// The engine sends the client away.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Refusal {
    /// Why.
    #[serde(flatten)]
    pub error: Error,
    /// Who it is, where another version of it might take the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineVersion>,
}

/// An engine, as a client of another version needs to know it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineVersion {
    /// [`crate::VERSION`] of the engine.
    pub version: String,
    /// [`crate::WIRE_VERSION`] of the engine.
    pub wire: u32,
    /// Process id.
    pub pid: u32,
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self { error, engine: None }
    }
}

/// The engine's answer to a [`Hello`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Greeting {
    /// Come in.
    Welcome(Welcome),
    /// Go away, for this reason.
    Refused(Refusal),
}

/// What an engine says about itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EngineStatus {
    /// [`crate::VERSION`] of the engine.
    pub version: String,
    /// Process id.
    pub pid: u32,
    /// Sessions that are open now.
    pub sessions: usize,
    /// Seconds since it started.
    pub uptime_seconds: u64,
}
