//! GraphQL documents of the pipelines that are measured.

/// Steps of a pipeline on top of a container, written as one chain of selections.
pub(crate) struct Document {
    text: String,
    depth: usize,
}

impl Document {
    /// Starts from a container by its id.
    pub(crate) fn load(id: &str) -> Self {
        Self::begin(&format!("loadContainerFromID(id: {})", quoted(id)))
    }

    /// Starts from an image.
    pub(crate) fn from(address: &str) -> Self {
        Self::begin("container").field(&format!("from(address: {})", quoted(address)))
    }

    fn begin(field: &str) -> Self {
        Self { text: format!("{{ {field}"), depth: 1 }
    }

    /// Sets a variable. A value that was never used makes everything after it new.
    pub(crate) fn env(self, name: &str, value: &str) -> Self {
        let (name, value) = (quoted(name), quoted(value));
        self.field(&format!("withEnvVariable(name: {name}, value: {value})"))
    }

    /// Runs a command.
    pub(crate) fn exec<S: AsRef<str>>(self, args: &[S]) -> Self {
        let args: Vec<String> = args.iter().map(|arg| quoted(arg.as_ref())).collect();
        self.field(&format!("withExec(args: [{}])", args.join(", ")))
    }

    /// Runs one `touch` for each number, each of another file.
    pub(crate) fn touches(self, numbers: std::ops::Range<usize>) -> Self {
        numbers.fold(self, |document, number| document.exec(&["touch", &format!("/s{number}")]))
    }

    /// The text, asking for this field at the end.
    pub(crate) fn ask(self, leaf: &str) -> String {
        format!("{} {{ {leaf} }}{}", self.text, " }".repeat(self.depth))
    }

    fn field(self, field: &str) -> Self {
        Self { text: format!("{} {{ {field}", self.text), depth: self.depth + 1 }
    }
}

/// A text as a GraphQL literal.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::String(text.to_owned()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_closes_what_it_opened() {
        let text = Document::load("aWQ=").env("A", "1").touches(0..2).ask("sync");
        let expected = "{ loadContainerFromID(id: \"aWQ=\") \
                        { withEnvVariable(name: \"A\", value: \"1\") \
                        { withExec(args: [\"touch\", \"/s0\"]) \
                        { withExec(args: [\"touch\", \"/s1\"]) { sync } } } } }";
        assert_eq!(text, expected);
    }
}
