//! Names of all environment variables, each declared once. They are read in `main.rs` only.

/// Folder that holds all state of one engine.
pub const STATE_DIR: &str = "CITOOL_STATE_DIR";
/// Address of the engine to use instead of one's own: `unix:///run/ci-tool.sock`, `tcp://host:port` with
/// certificates, or `ssh://user@host`.
pub const ENGINE: &str = "CITOOL_ENGINE";
/// File with the certificates, in PEM, that sign the certificate of an engine at a `tcp://` address.
pub const ENGINE_CA: &str = "CITOOL_ENGINE_CA";
/// File with the certificate, in PEM, to show to an engine at a `tcp://` address.
pub const ENGINE_CERT: &str = "CITOOL_ENGINE_CERT";
/// File with the key of that certificate, in PEM.
pub const ENGINE_KEY: &str = "CITOOL_ENGINE_KEY";
/// `true` leaves engines of other versions, and what they keep, alone: this version runs beside them.
pub const LEAVE_OLD_ENGINE: &str = "CITOOL_LEAVE_OLD_ENGINE";
/// Path of the engine's configuration file.
pub const ENGINE_CONFIG: &str = "CITOOL_ENGINE_CONFIG";
/// Path of the user's configuration file.
pub const CONFIG: &str = "CITOOL_CONFIG";
/// Progress format when `--progress` is `auto`.
pub const PROGRESS: &str = "CITOOL_PROGRESS";
/// Default of `--silent`.
pub const SILENT: &str = "CITOOL_SILENT";
/// Default of `--quiet`.
pub const QUIET: &str = "CITOOL_QUIET";
/// How often the progress format `report` gives a sign of life, e.g. `30s`; `0` for never.
pub const REPORT_HEARTBEAT: &str = "CITOOL_REPORT_HEARTBEAT";
/// Working directory when `--workdir` is not given.
pub const WORKDIR: &str = "CITOOL_WORKDIR";
/// Which command set's form wins where the two differ: `legacy` or empty.
pub const COMMAND_SET: &str = "CITOOL_COMMAND_SET";
/// Port of the session endpoint, for children of `run`.
pub const SESSION_PORT: &str = "CITOOL_SESSION_PORT";
/// Token of the session endpoint, for children of `run`.
pub const SESSION_TOKEN: &str = "CITOOL_SESSION_TOKEN";
/// The port again, under the name that published client libraries read.
pub const COMPAT_SESSION_PORT: &str = "DAGGER_SESSION_PORT";
/// The token again, under the name that published client libraries read.
pub const COMPAT_SESSION_TOKEN: &str = "DAGGER_SESSION_TOKEN";
/// Filter of the engine's log, in the syntax of `tracing`.
pub const LOG: &str = "CITOOL_LOG";

/// How the network is reached. The engine passes those that are set where it is started on to commands in containers.
pub const PROXIES: [&str; 10] = [
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "FTP_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "ftp_proxy",
    "all_proxy",
    "no_proxy",
];
