//! [`Verified`]: bytes that are compared, on their way out, with what they were when they were
//! written.

use super::inspector::Inspector;
use super::ledger::Content;
use super::manifest::Sum;
use crate::Error;
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;

/// The bytes of a file of a tree, or of a blob. Where their digest is known, reading to the end
/// fails if they are not the right ones, and what they belong to is given up, to be made again.
/// [`Error::from_read`] tells that from other failures.
pub struct Verified {
    file: File,
    check: Option<Check>,
}

struct Check {
    hasher: Sha256,
    expected: Sum,
    content: Content,
    inspector: Arc<Inspector>,
}

impl Verified {
    pub(crate) fn new(
        file: File,
        content: Content,
        expected: Option<Sum>,
        inspector: &Arc<Inspector>,
    ) -> Self {
        let inspector = Arc::clone(inspector);
        let check = expected.map(|expected| {
            let hasher = Sha256::new();
            Check { hasher, expected, content, inspector }
        });
        Self { file, check }
    }

    /// Bytes of which nothing is known.
    pub(crate) fn unchecked(file: File) -> Self {
        Self { file, check: None }
    }
}

impl Read for Verified {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        if count > 0
            && let Some(check) = &mut self.check
        {
            check.hasher.update(&buffer[..count]);
        }
        if count == 0
            && !buffer.is_empty()
            && let Some(check) = self.check.take()
        {
            check.finish()?;
        }
        Ok(count)
    }
}

impl Check {
    fn finish(self) -> io::Result<()> {
        if self.hasher.finalize()[..] == self.expected[..] {
            return Ok(());
        }
        let reason = "its bytes have changed";
        Err(io::Error::other(match self.content {
            Content::Layer(id) => {
                self.inspector.lose_layer(id, reason);
                Error::MissingLayer(id)
            }
            Content::Blob(id) => {
                self.inspector.lose_blob(id, reason);
                Error::MissingBlob(id)
            }
        }))
    }
}
