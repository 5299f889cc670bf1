//! Images in the store of a container program on the client's machine.

use super::ascii_json;
use serde::{Deserialize, Serialize};

/// Names an image there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageRequest {
    /// `[registry/]repository[:tag]`.
    pub name: String,
}

impl ImageRequest {
    /// The form in which a header carries it.
    pub fn to_header(&self) -> String {
        ascii_json(self)
    }
}
