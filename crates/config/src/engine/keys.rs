//! The table of all keys of `engine.toml`, and the reference page made from it.

use std::fmt::Write;

/// Everything about one key.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Name in the file.
    pub name: &'static str,
    /// Form of the value.
    pub form: Form,
    /// The default as it would be written; empty where the default is to have none.
    pub default: &'static str,
    /// What it does.
    pub doc: &'static str,
}

/// Form of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `"10m"`.
    Duration,
    /// `"2GiB"`.
    Size,
    /// `100`.
    Count,
    /// `1.5`.
    Number,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A URL, or a directory where that makes sense.
    Address,
    /// An absolute path.
    Path,
    /// A filter in the syntax of the `tracing` crate.
    LogFilter,
}

/// All keys, in the order of the reference page.
pub const KEYS: &[Key] = &[
    Key {
        name: "idle-timeout",
        form: Form::Duration,
        default: "10m",
        doc: "How long the engine stays when no client is connected. It then ends by itself and is started again by the next command.",
    },
    Key {
        name: "grace",
        form: Form::Duration,
        default: "10s",
        doc: "How long a cancelled command may take to end after it got SIGTERM. It then gets SIGKILL.",
    },
    Key {
        name: "network",
        form: Form::Choice(&["none", "host"]),
        default: "none",
        doc: "What network commands in containers see: `none` is loopback alone, `host` is the network of the machine.",
    },
    Key {
        name: "memory-limit",
        form: Form::Size,
        default: "",
        doc: "Most memory that one command and its children may use. A command that is ended for it says so, with figures.",
    },
    Key {
        name: "pids-limit",
        form: Form::Count,
        default: "",
        doc: "Most processes and threads that one command may have at a time.",
    },
    Key {
        name: "cpu-limit",
        form: Form::Number,
        default: "",
        doc: "Most processors that one command may keep busy; `1.5` is one and a half.",
    },
    Key {
        name: "debian-mirror",
        form: Form::Address,
        default: "",
        doc: "Debian archive that `deb://` images are made from, e.g. `http://archive.example/debian`, or a directory that holds one. Without it the machine's own apt sources are used.",
    },
    Key {
        name: "debian-keyring",
        form: Form::Path,
        default: "",
        doc: "File with the keys that may sign the archive of `debian-mirror`. Without it the machine's own apt keys are used.",
    },
    Key {
        name: "debian-refresh",
        form: Form::Duration,
        default: "24h",
        doc: "How old the package index of a suite may grow before the archive is asked again.",
    },
    Key {
        name: "debian-cache",
        form: Form::Path,
        default: "",
        doc: "Folder that keeps downloaded packages and indexes, which several engines may share. Without it they are kept in the state folder.",
    },
    Key {
        name: "proxy",
        form: Form::Address,
        default: "",
        doc: "HTTP proxy through which the engine downloads, e.g. `http://proxy.example:3128`. Without it the engine connects directly; the proxy variables of the environment are not read.",
    },
    Key {
        name: "log-level",
        form: Form::LogFilter,
        default: "info",
        doc: "How much the engine writes to its log: `error`, `warn`, `info`, `debug`, `trace`, or a filter such as `info,sandbox=debug`. The environment variable `CITOOL_LOG` wins over it.",
    },
];

impl Form {
    /// The form in words, for messages.
    pub fn described(self) -> &'static str {
        match self {
            Self::Duration => "a duration such as `\"10m\"`",
            Self::Size => "a size such as `\"2GiB\"`",
            Self::Count => "a whole number",
            Self::Number => "a number",
            Self::Choice(_) => "one of its words, in quotes",
            Self::Address => "an address in quotes",
            Self::Path => "a path in quotes",
            Self::LogFilter => "a log level in quotes",
        }
    }

    fn in_table(self) -> String {
        match self {
            Self::Duration => "duration".into(),
            Self::Size => "size".into(),
            Self::Count => "whole number".into(),
            Self::Number => "number".into(),
            Self::Choice(words) => {
                words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(" or ")
            }
            Self::Address => "address".into(),
            Self::Path => "absolute path".into(),
            Self::LogFilter => "log filter".into(),
        }
    }
}

/// The reference page of `engine.toml`.
pub fn reference_markdown() -> String {
    let mut page = String::from(
        "# `engine.toml`\n\n\
         Settings of the engine. The file is looked for beside the user's settings\n\
         (`$XDG_CONFIG_HOME/ci-tool/engine.toml`, or `~/.config/ci-tool/engine.toml`);\n\
         `CITOOL_ENGINE_CONFIG` names another one. The engine reads it when it starts. A key that is\n\
         not in this table is an error.\n\n\
         Durations are written like `90s`, `10m` or `1h30m`, sizes like `512MiB` or `2GB`.\n\n\
         | key | value | default | meaning |\n|---|---|---|---|\n",
    );
    for key in KEYS {
        let default = match key.default {
            "" => "none".to_owned(),
            text => format!("`{text}`"),
        };
        writeln!(page, "| `{}` | {} | {default} | {} |", key.name, key.form.in_table(), key.doc)
            .expect("writing to a string does not fail");
    }
    page
}
