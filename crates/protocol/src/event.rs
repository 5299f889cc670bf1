//! [`Event`]: what a user sees of running work. A client folds events into a trace and draws that.

use crate::Digest;
use serde::{Deserialize, Serialize};

/// A span, unique within one engine process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SpanId(pub u64);

/// Something happened in a session. Times are microseconds since the Unix epoch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Event {
    /// A span began.
    Started {
        /// The span.
        id: SpanId,
        /// The span it is part of.
        parent: Option<SpanId>,
        /// What a user reads, e.g. `container.withExec(args: ["true"])`.
        name: String,
        /// What sort of work it is.
        kind: SpanKind,
        /// The call, where the span is one.
        call: Option<Digest>,
        /// When.
        at: u64,
    },
    /// A span ended.
    Ended {
        /// The span.
        id: SpanId,
        /// How.
        outcome: Outcome,
        /// When.
        at: u64,
    },
    /// Output of the work behind a span.
    Log {
        /// The span.
        id: SpanId,
        /// Which stream.
        stream: LogStream,
        /// Text, cut anywhere, invalid UTF-8 replaced.
        text: String,
        /// When.
        at: u64,
    },
    /// Long work moved on.
    Progress {
        /// The span.
        id: SpanId,
        /// How much is done.
        done: u64,
        /// How much there is, once known.
        total: Option<u64>,
        /// Of what.
        unit: Unit,
        /// When.
        at: u64,
    },
}

/// What sort of work a span is, which decides at which verbosity it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SpanKind {
    /// One field call.
    Call,
    /// A part of a call worth a line of its own: a download, an unpack, a merge.
    Work,
    /// Plumbing, shown only to who asks for more.
    Internal,
}

/// How a span ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// Done.
    Done,
    /// Done before: nothing ran.
    Cached,
    /// It failed, for this reason.
    Failed(String),
    /// Nobody waited for it any more.
    Cancelled,
}

/// Where a piece of log comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LogStream {
    /// The command's standard output.
    Stdout,
    /// The command's standard error.
    Stderr,
    /// The engine itself.
    Engine,
    /// The engine itself, for whoever waits: it is of use only while the work goes on, and every display that shows
    /// work shows it then.
    Notice,
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Packages, files and the like.
    Items,
}
