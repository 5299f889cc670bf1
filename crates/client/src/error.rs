//! Why an engine or a session cannot be reached.

use protocol::ErrorKind;
use protocol::session::EngineVersion;
use std::io;
use std::path::PathBuf;

/// Why an engine or a session cannot be reached.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not an address we know.
    #[error("`{0}` is no address of an engine")]
    BadAddress(String),
    /// An engine that is not on this machine, and nothing to show to it.
    #[error("the engine at `{0}` needs certificates")]
    NoCertificates(String),
    /// Certificates that are no use.
    #[error(transparent)]
    Certificates(#[from] link::tls::Error),
    /// There is no way to an engine on another machine.
    #[error("cannot reach the engine at `{engine}`: {reason}")]
    Unreachable {
        /// Its address.
        engine: String,
        /// Why not.
        reason: String,
    },
    /// No folder to keep state in.
    #[error(transparent)]
    NoHome(#[from] config::paths::NoHome),
    /// The path of the socket does not fit into a socket address.
    #[error("the path of the engine's socket is too long for the system: `{0}`")]
    SocketPathTooLong(PathBuf),
    /// Nobody listens.
    #[error("no engine listens at `{path}`: {source}")]
    Absent {
        /// The socket.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It listened and closed the connection without a greeting.
    #[error("the engine at `{0}` closed the connection while it was greeted")]
    Gone(PathBuf),
    /// It is somebody else's.
    #[error("the engine at `{path}` runs as user {uid}, who is neither you nor root")]
    Foreign {
        /// The socket.
        path: PathBuf,
        /// Who runs it.
        uid: u32,
    },
    /// It said something that is no greeting.
    #[error("what listens at `{0}` is no engine")]
    NotAnEngine(PathBuf),
    /// It does not want us.
    #[error(transparent)]
    Refused(protocol::Error),
    /// It is of another version.
    #[error(transparent)]
    OtherVersion(Box<OtherVersion>),
    /// A newer version has written the state folder, and left nothing for us to run on.
    #[error("the state folder `{0}` belongs to a newer version of this program")]
    NewerState(PathBuf),
    /// The state folder cannot be used.
    #[error("cannot use `{path}`: {source}")]
    State {
        /// Which file or folder.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The disk of the state folder is full.
    #[error("no space is left on the disk of the state folder `{0}`")]
    DiskFull(PathBuf),
    /// The engine program does not start.
    #[error("cannot start the engine with `{program}`: {source}")]
    Spawn {
        /// Which program.
        program: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The engine ended before it answered.
    #[error("the engine ended while it started ({status}){}", with_log(.log))]
    Died {
        /// How it ended.
        status: String,
        /// The last lines of its log.
        log: Vec<String>,
        /// Where its log is.
        log_file: PathBuf,
    },
    /// The engine cannot run on this machine as it is.
    #[error("the engine cannot run: {reason}")]
    Unfit {
        /// Why not.
        reason: String,
        /// What would help.
        hint: String,
    },
    /// The engine does not answer.
    #[error("the engine did not answer within {seconds} s{}", with_log(.log))]
    Slow {
        /// How long we waited.
        seconds: u64,
        /// The last lines of its log.
        log: Vec<String>,
        /// Where its log is.
        log_file: PathBuf,
    },
    /// The connection broke.
    #[error("the engine is gone: {0}")]
    Lost(String),
    /// The session's environment variables make no sense.
    #[error("cannot join the session: {0}")]
    Join(String),
    /// The session has no such thing because it was joined.
    #[error("a session that was joined over its endpoint has no {0}")]
    NotInJoined(&'static str),
    /// An answer that is not in the agreed form.
    #[error("the engine answered in an unknown form: {0}")]
    BadAnswer(String),
}

/// An engine of another version, and what it said.
#[derive(Debug, thiserror::Error)]
#[error("{refusal}")]
pub struct OtherVersion {
    /// Who it is.
    pub engine: EngineVersion,
    /// What it said.
    pub refusal: protocol::Error,
}

fn with_log(lines: &[String]) -> String {
    lines.iter().map(|line| format!("\n  {line}")).collect()
}

/// The way out when a file or folder of the state folder cannot be used.
fn state_hint(error: &io::Error) -> Option<&'static str> {
    Some(match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "it belongs to somebody else; choose a folder of your own with CITOOL_STATE_DIR"
        }
        io::ErrorKind::ReadOnlyFilesystem => {
            "choose a folder on a file system that can be written, with CITOOL_STATE_DIR"
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "make room on that disk, or choose a folder on another one with CITOOL_STATE_DIR"
        }
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
            "a file is where a folder belongs: move it, or choose another place with CITOOL_STATE_DIR"
        }
        io::ErrorKind::IsADirectory => "a folder is where a file belongs: move it away",
        _ => return None,
    })
}

impl Error {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::BadAddress(_) => {
                "write it like `unix:///run/ci-tool.sock`, `tcp://host:7433` or \
                                    `ssh://user@host`"
                    .into()
            }
            Self::NoCertificates(_) => {
                "name the files with CITOOL_ENGINE_CA, CITOOL_ENGINE_CERT and CITOOL_ENGINE_KEY"
                    .into()
            }
            Self::Unreachable { engine, .. } if engine.starts_with("tcp://") => {
                "an engine listens at a port when `listen` in its engine.toml names it: see that one runs \
                 there, and that nothing on the way refuses the connection"
                    .into()
            }
            Self::SocketPathTooLong(_) => {
                "choose a shorter path for the state folder with CITOOL_STATE_DIR".into()
            }
            Self::State { source, .. } => return state_hint(source).map(str::to_owned),
            Self::DiskFull(_) => state_hint(&io::ErrorKind::StorageFull.into())?.to_owned(),
            Self::Unfit { hint, .. } => hint.clone(),
            Self::NewerState(_) => {
                "use that version, or choose another folder with CITOOL_STATE_DIR".into()
            }
            Self::Died { log_file, .. } | Self::Slow { log_file, .. } => {
                format!("the engine's whole log is `{}`", log_file.display())
            }
            _ => return None,
        })
    }
}

impl From<Error> for protocol::Error {
    fn from(error: Error) -> Self {
        let kind = match &error {
            Error::Refused(refusal) => return refusal.clone(),
            Error::OtherVersion(other) => return other.refusal.clone(),
            Error::BadAddress(_)
            | Error::NoCertificates(_)
            | Error::Join(_)
            | Error::NotInJoined(_) => ErrorKind::User,
            Error::BadAnswer(_) => ErrorKind::Internal,
            _ => ErrorKind::Environment,
        };
        let hint = error.hint();
        let plain = Self::new(kind, error.to_string());
        match hint {
            Some(hint) => plain.with_hint(hint),
            None => plain,
        }
    }
}
