//! What look-ups came to, in the file that the client keeps beside the user's project.

use serde::{Deserialize, Serialize};

/// Asks what a look-up of the core API came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockRequest {
    /// What looks something up, e.g. `container.from`.
    pub operation: String,
    /// What is looked up.
    pub inputs: Vec<String>,
}

/// What is known of a look-up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockReply {
    /// Whether there is a place for the file at all: a project.
    pub kept: bool,
    /// What it came to, if that was recorded.
    pub entry: Option<(String, LockPolicy)>,
}

/// Records what a look-up came to; the answer is empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockRecord {
    /// The look-up.
    pub request: LockRequest,
    /// What it came to.
    pub value: String,
    /// When it is looked up again.
    pub policy: LockPolicy,
}

/// When something is looked up again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum LockPolicy {
    /// When the user asks for it.
    Pin,
    /// Whenever that is allowed.
    Float,
}
