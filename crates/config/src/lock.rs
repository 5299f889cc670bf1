//! `ci-tool.lock`: what look-ups came to, so that the next run finds the same.
//!
//! Lines of JSON, sorted: a head with the version, then one line an entry,
//! `[namespace, operation, [inputs...], value, policy]`. A file without entries is empty, and none ends with a new
//! line. Equal entries are equal bytes, so the file is fit for a repository.

use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The name of the file.
pub const FILE: &str = "ci-tool.lock";
/// Where it was kept before it had its name, below the same directory.
pub const OLD_FILE: &str = ".ci-tool/lock";
const VERSION: &str = "1";

/// What a file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lock(BTreeMap<Key, (String, Policy)>);

/// Sorted as the file is: by namespace, by operation, by the inputs as they are written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    namespace: String,
    operation: String,
    inputs: String,
}

/// One settled look-up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Whose operation it is; empty is the core API.
    pub namespace: String,
    /// What looked something up, e.g. `container.from`.
    pub operation: String,
    /// What was looked up.
    pub inputs: Vec<String>,
    /// What it came to.
    pub value: String,
    /// When it is looked up again.
    pub policy: Policy,
}

/// When something is looked up again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// When somebody asks for it.
    Pin,
    /// Whenever that is allowed.
    Float,
}

/// A file that is no lock.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum LockError {
    /// Another form of the file.
    #[error("line 1: this program does not know version `{0}` of the file")]
    Version(String),
    /// A line that cannot be read.
    #[error("line {line}: {problem}")]
    Line {
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },
}

impl Policy {
    fn name(self) -> &'static str {
        match self {
            Self::Pin => "pin",
            Self::Float => "float",
        }
    }
}

impl Lock {
    /// Reads a file. An empty one is fine.
    pub fn parse(text: &str) -> Result<Self, LockError> {
        let mut lock = Self::default();
        let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let Some((at, head)) = lines.next() else { return Ok(lock) };
        version(head).map_err(|problem| match problem {
            Head::Version(version) => LockError::Version(version),
            Head::Problem(problem) => LockError::Line { line: at + 1, problem },
        })?;
        for (at, line) in lines {
            let failed = |problem: String| LockError::Line { line: at + 1, problem };
            lock.set(entry(line).map_err(failed)?);
        }
        Ok(lock)
    }

    /// The file.
    pub fn text(&self) -> String {
        if self.0.is_empty() {
            return String::new();
        }
        let head = json!([["version", VERSION]]).to_string();
        let entries = self.0.iter().map(|(key, (value, policy))| {
            // Inputs are kept as they are written.
            let [namespace, operation, value, policy] =
                [&key.namespace, &key.operation, value, policy.name()].map(|text| json!(text));
            format!("[{namespace},{operation},{},{value},{policy}]", key.inputs)
        });
        std::iter::once(head).chain(entries).collect::<Vec<_>>().join("\n")
    }

    /// What a look-up of the core API came to.
    pub fn find(&self, operation: &str, inputs: &[String]) -> Option<(&str, Policy)> {
        let found = self.0.get(&Key::new("", operation, inputs));
        found.map(|(value, policy)| (value.as_str(), *policy))
    }

    /// Adds an entry, in the place of an older one of the same look-up.
    pub fn set(&mut self, entry: Entry) {
        let key = Key::new(&entry.namespace, &entry.operation, &entry.inputs);
        self.0.insert(key, (entry.value, entry.policy));
    }
}

impl Key {
    fn new(namespace: &str, operation: &str, inputs: &[String]) -> Self {
        let (namespace, operation) = (namespace.to_owned(), operation.to_owned());
        Self { namespace, operation, inputs: json!(inputs).to_string() }
    }
}

enum Head {
    Version(String),
    Problem(String),
}

fn version(line: &str) -> Result<(), Head> {
    let unread = || Head::Problem("the file does not begin with its version".to_owned());
    let head: Vec<(String, String)> = serde_json::from_str(line).map_err(|_| unread())?;
    match &head[..] {
        [(name, version)] if name == "version" && version == VERSION => Ok(()),
        [(name, version)] if name == "version" => Err(Head::Version(version.clone())),
        _ => Err(unread()),
    }
}

fn entry(line: &str) -> Result<Entry, String> {
    let line: Value = serde_json::from_str(line).map_err(|error| format!("no JSON: {error}"))?;
    type Parts = (String, String, Vec<String>, String, String);
    let parts = serde_json::from_value::<Parts>(line);
    let form = "an entry is [namespace, operation, [inputs...], value, policy]";
    let (namespace, operation, inputs, value, policy) = parts.map_err(|_| form.to_owned())?;
    let policy = match policy.as_str() {
        "pin" => Policy::Pin,
        "float" => Policy::Float,
        other => return Err(format!("`{other}` is neither `pin` nor `float`")),
    };
    Ok(Entry { namespace, operation, inputs, value, policy })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(operation: &str, inputs: &[&str], value: &str, policy: Policy) -> Entry {
        Entry {
            namespace: String::new(),
            operation: operation.into(),
            inputs: inputs.iter().map(|&input| input.into()).collect(),
            value: value.into(),
            policy,
        }
    }

    #[test]
    fn equal_entries_are_equal_bytes_in_any_order() {
        let entries = [
            made("git.tag", &["https://host/r", "v1"], "abc", Policy::Pin),
            made(
                "container.from",
                &["docker.io/library/a:1", "linux/amd64"],
                "sha256:1",
                Policy::Pin,
            ),
            made("git.branch", &["https://host/r", "main \"x\""], "def", Policy::Float),
        ];
        let expected = concat!(
            "[[\"version\",\"1\"]]\n",
            "[\"\",\"container.from\",[\"docker.io/library/a:1\",\"linux/amd64\"],\"sha256:1\",\"pin\"]\n",
            "[\"\",\"git.branch\",[\"https://host/r\",\"main \\\"x\\\"\"],\"def\",\"float\"]\n",
            "[\"\",\"git.tag\",[\"https://host/r\",\"v1\"],\"abc\",\"pin\"]",
        );
        for turn in 0..entries.len() {
            let mut lock = Lock::default();
            let mut entries = entries.to_vec();
            entries.rotate_left(turn);
            entries.into_iter().for_each(|entry| lock.set(entry));
            assert_eq!(lock.text(), expected);
            assert_eq!(Lock::parse(&lock.text()), Ok(lock));
        }
        assert_eq!(Lock::parse("").unwrap().text(), "");
    }

    #[test]
    fn a_later_entry_of_the_same_look_up_wins() {
        let mut lock = Lock::default();
        lock.set(made("git.head", &["u"], "one", Policy::Float));
        lock.set(made("git.head", &["u"], "two", Policy::Pin));
        assert_eq!(lock.find("git.head", &["u".into()]), Some(("two", Policy::Pin)));
        assert_eq!(lock.find("git.head", &["v".into()]), None);
        assert_eq!(lock.find("git.tag", &["u".into()]), None);
    }

    #[test]
    fn what_is_no_lock_is_an_error_with_its_line() {
        let head = "[[\"version\",\"1\"]]\n";
        for (text, expected) in [
            ("[[\"version\",\"9\"]]".to_owned(), "line 1: this program does not know version `9`"),
            ("nonsense".to_owned(), "line 1: the file does not begin with its version"),
            (format!("{head}[1]"), "line 2: an entry is"),
            (format!("{head}{{"), "line 2: no JSON"),
            (format!("{head}\n[\"\",\"a\",[],\"v\",\"often\"]"), "line 3: `often` is neither"),
            (format!("{head}[\"\",\"a\",[1],\"v\",\"pin\"]"), "line 2: an entry is"),
        ] {
            let error = Lock::parse(&text).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
