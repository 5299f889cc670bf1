//! Custom scalars: text with a meaning.

graph::scalar! {
    /// `os/arch[/variant]`, e.g. `linux/amd64`.
    pub(crate) Platform
}

graph::scalar! {
    /// A text that is JSON.
    pub(crate) Json, "JSON"
}
