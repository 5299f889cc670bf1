//! `Service`: a container that runs in the background. No field makes one yet; arguments that name
//! one are part of the schema already.

use graph::Object;

/// A running service. It has no values until services are built.
pub(crate) enum Service {}

impl Object for Service {
    const TYPE: &'static str = "Service";
}
