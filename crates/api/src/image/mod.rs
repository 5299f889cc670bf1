//! Images of registries and archives: in as snapshots, out as manifests and blobs.
//!
//! Ways in: `pull` (from a registry) and `import` (from a file), which meet in `layers`: every layer of
//! an image becomes one layer of the store, unpacked by `unpack` while its bytes arrive, and `origin`
//! remembers which blob it came from. Ways out: `assemble` turns a tree and a configuration into a
//! manifest, `pack` writes our own layers down, `blobs` finds the bytes of any layer again, `publish`
//! and `tarball` hand them over.
//!
//! What is remembered lives in the store by digest; only which digest a tag means is kept for a
//! session alone.

mod access;
mod assemble;
mod blobs;
mod error;
mod import;
mod layers;
mod origin;
mod pack;
mod publish;
mod pull;
mod sources;
mod tarball;
mod unpack;

pub(crate) use access::{Auth, Reach};
pub(crate) use assemble::{Base, Form, Recipe, Step};
pub(crate) use import::import;
pub(crate) use pull::{OPERATION, Pulled};
pub(crate) use tarball::{layer, manifest, tarball};

use access::Sessions;
use registry::{Given, Registries};
use std::sync::Arc;

/// Raised when equal images may give other layers or records.
const FORMAT: u64 = 3;
/// Raised when a layer of ours may be packed into other bytes: what is remembered of packed layers is then packed anew.
const PACKING: u64 = 2;
/// Layers on their way at once, in either direction.
const AT_ONCE: usize = 6;

/// All that is known of registries.
pub struct Images {
    registries: Registries,
    /// What the engine's own configuration says of logins.
    configured: Arc<Given>,
    sessions: Sessions,
}

impl Images {
    /// Does nothing yet. `configured` are the logins of the engine's configuration.
    pub fn new(registries: Registries, configured: Given) -> Self {
        Self { registries, configured: Arc::new(configured), sessions: Sessions::default() }
    }
}
