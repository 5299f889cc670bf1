//! The API as the crates themselves say it, with what works yet.

use graph::{Graph, NoMemo};
use protocol::schema::Schema;
use std::io;
use std::sync::Arc;

/// The schema with every operation in it.
pub fn schema() -> io::Result<Schema> {
    let mut builder = Graph::builder(api::SCHEMA).map_err(io::Error::other)?;
    api::install(&mut builder);
    let graph = builder.build(Arc::new(NoMemo), [0; 32]).map_err(io::Error::other)?;
    Ok(graph.schema().clone())
}
