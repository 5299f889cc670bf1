//! What the wire promises.

mod ids;
mod introspection;
mod values;
