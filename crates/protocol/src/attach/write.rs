//! Trees and files on their way from the engine to the host.

use serde::{Deserialize, Serialize};

/// Asks to write a tree or one file to the host. Frames follow: first [`super::FrameKind::Remove`]
/// for each path that is to go (with a slash at its end, a directory that goes if it is empty by
/// then), then entries as a read has them, a single file as one entry with an
/// empty path, and [`super::FrameKind::End`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WriteRequest {
    /// Absolute, or relative to the client's working directory, or beginning with `~`.
    pub path: String,
    /// What is written there.
    pub what: Writing,
}

/// What is written to a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Writing {
    /// The entries of a directory, into one that is made with its parents where it is missing.
    Directory {
        /// Whether everything goes that is there and is not written.
        wipe: bool,
    },
    /// One file. Missing parents are made.
    File {
        /// Name to use when the path is an existing directory; empty makes that an error.
        name_in_directory: String,
    },
}

impl WriteRequest {
    /// The value of [`super::WRITE_HEADER`]: JSON with everything beyond ASCII escaped.
    pub fn to_header(&self) -> String {
        super::ascii_json(self)
    }
}

/// Where it was written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WriteReply {
    /// Absolute path of the directory or of the file.
    pub path: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_header_is_ascii_and_reads_back() {
        let request = WriteRequest {
            path: "/tmp/\u{e4}\u{1f600}\"\n".into(),
            what: Writing::File { name_in_directory: "\u{e4}".into() },
        };
        let header = request.to_header();
        assert!(header.is_ascii(), "{header}");
        assert_eq!(serde_json::from_str::<WriteRequest>(&header).unwrap(), request);
    }
}
