//! The tables of all keys of `engine.toml`.

/// Everything about one key.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Name in the file.
    pub name: &'static str,
    /// Form of the value.
    pub form: Form,
    /// The default as it would be written, quotes aside; empty where the default is to have none.
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
    /// `"20GB"` or `"75%"` of the file system.
    Space,
    /// `true` or `false`.
    Flag,
    /// A list of texts.
    List,
    /// A text of any form.
    Text,
    /// Tables with names of the user's choice.
    Tables,
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
        name: "runtime",
        form: Form::Text,
        default: "own",
        doc: "What makes containers: `own` is the engine itself; `crun`, `runc`, or the absolute path of a program with the flags of the one that its name has in it, is an installed program. See [Containers by crun or runc](../guide/runtimes.md).",
    },
    Key {
        name: "network",
        form: Form::Choice(&["bridge", "none", "host"]),
        default: "bridge",
        doc: "What network commands in containers see: `bridge` is a network of the engine's own with a way out, `none` is loopback alone, `host` is the network of the machine.",
    },
    Key {
        name: "subnet",
        form: Form::Text,
        default: "",
        doc: "Private range of addresses for containers in the network `bridge`, e.g. `10.50.0.0/16`: from /8 to /24. Without it one is found that the machine has no route into.",
    },
    Key {
        name: "ca-certificates",
        form: Form::Path,
        default: "",
        doc: "File with certificates, in PEM, that commands in containers trust besides those of their image. Without it the machine's own; `/dev/null` adds none.",
    },
    Key {
        name: "listen",
        form: Form::Address,
        default: "",
        doc: "Where clients on other machines reach the engine, e.g. `tcp://0.0.0.0:7433`, beside its socket. It needs `tls-cert`, `tls-key` and `tls-client-ca`. An engine that listens does not end when it is idle.",
    },
    Key {
        name: "tls-cert",
        form: Form::Path,
        default: "",
        doc: "File with the engine's certificate, in PEM, for the name or address that clients use.",
    },
    Key {
        name: "tls-key",
        form: Form::Path,
        default: "",
        doc: "File with the key of `tls-cert`, in PEM.",
    },
    Key {
        name: "tls-client-ca",
        form: Form::Path,
        default: "",
        doc: "File with the certificates, in PEM, that sign those of clients. Whoever shows one may do what the engine's user may.",
    },
    Key {
        name: "listen-plain",
        form: Form::Flag,
        default: "false",
        doc: "Whether `listen` does without certificates, which only an address of the loopback interface may: every user of the machine can then use the engine.",
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
        name: "max-used-space",
        form: Form::Space,
        default: "75%",
        doc: "Most space that the cache may use. What has not been used for longest goes first.",
    },
    Key {
        name: "min-free-space",
        form: Form::Space,
        default: "",
        doc: "Space that is kept free on the disk, whoever else writes to it: the cache gives way, and a command that would take of it is stopped, unless the cache uses less than `reserved-space`. Without it the cache gives way at 20% of the disk, or 20GB where that is less, and no command is stopped for it.",
    },
    Key {
        name: "reserved-space",
        form: Form::Space,
        default: "",
        doc: "Space that the cache may always use: nothing is collected while it uses less. Without it 10% of the disk, or 10GB where that is less.",
    },
    Key {
        name: "target-space",
        form: Form::Space,
        default: "",
        doc: "How far down a collection goes once it is needed. Without it nine tenths of `max-used-space`.",
    },
    Key {
        name: "keep-duration",
        form: Form::Duration,
        default: "7d",
        doc: "What was used more recently than this is collected only when nothing older is left.",
    },
    Key {
        name: "gc",
        form: Form::Flag,
        default: "true",
        doc: "Whether the engine collects by itself. With `false` space is given back only by `prune`, and work that finds no room fails.",
    },
    Key {
        name: "registry",
        form: Form::Tables,
        default: "",
        doc: "One table for each registry that needs settings; see [below](#registries).",
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
        doc: "Folder that keeps downloaded packages and indexes, which several engines may share. The engine never cleans it. Without it downloads are part of the cache: they count, and go when room is needed.",
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

/// Keys of one `[registry."..."]` table, in the order of the reference page.
pub const REGISTRY_KEYS: &[Key] = &[
    Key {
        name: "mirrors",
        form: Form::List,
        default: "",
        doc: "Registries that are asked first when an image is pulled, in this order: `host`, `host:port` or either with a path before the image's name. The registry itself comes last. Nothing is pushed to a mirror. How a mirror is spoken to stands in a table of its own.",
    },
    Key {
        name: "http",
        form: Form::Flag,
        default: "false",
        doc: "Whether the registry is spoken to without TLS. Registries on the loopback interface are tried so anyway.",
    },
    Key {
        name: "insecure",
        form: Form::Flag,
        default: "false",
        doc: "Whether any certificate is accepted. A `ca` is the better answer.",
    },
    Key {
        name: "ca",
        form: Form::Path,
        default: "",
        doc: "File with certificates, in PEM, that the registry's certificate may be signed by, besides the usual ones.",
    },
    Key {
        name: "username",
        form: Form::Text,
        default: "",
        doc: "Name to log in with. It needs a `password-file`.",
    },
    Key {
        name: "password-file",
        form: Form::Path,
        default: "",
        doc: "File with the password, or token, that belongs to `username`. A line break at its end does not count.",
    },
];

impl Form {
    /// The form in words, for messages.
    pub fn described(self) -> &'static str {
        match self {
            Self::Duration => "a duration such as `\"10m\"`",
            Self::Size => "a size such as `\"2GiB\"`",
            Self::Space => "a size such as `\"20GB\"` or `\"75%\"`",
            Self::Flag => "true or false, without quotes",
            Self::List => "a list of texts such as `[\"mirror.example\"]`",
            Self::Text => "a text in quotes",
            Self::Tables => "tables such as `[registry.\"host:5000\"]`",
            Self::Count => "a whole number",
            Self::Number => "a number",
            Self::Choice(_) => "one of its words, in quotes",
            Self::Address => "an address in quotes",
            Self::Path => "a path in quotes",
            Self::LogFilter => "a log level in quotes",
        }
    }

    pub(super) fn in_table(self) -> String {
        match self {
            Self::Duration => "duration".into(),
            Self::Size => "size".into(),
            Self::Space => "size or share".into(),
            Self::Flag => "`true` or `false`".into(),
            Self::List => "list of texts".into(),
            Self::Text => "text".into(),
            Self::Tables => "tables".into(),
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
