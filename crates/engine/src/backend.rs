//! [`Backend`]: what a door needs to know of the engine behind it.

use graph::{Extensions, Graph};
use protocol::Error;
use std::sync::Arc;

/// The engine behind a door.
pub struct Backend {
    /// The API.
    pub graph: Arc<Graph>,
    /// What every session's operations work with.
    pub extensions: Extensions,
    /// Makes everything that was finished until now safe. Blocks.
    pub flush: Arc<dyn Fn() -> Result<(), Error> + Send + Sync>,
}
