//! [`ClientEnvironment`]: everything a client takes from its surroundings, as plain values.
//!
//! The environment is read once, in `main.rs`, and handed in here through a look-up function, so
//! that a test can give a client any surroundings it likes.

use crate::files::Logins;
use crate::own::GIVE_WAY_LIMIT;
use crate::route::Certificates;
use crate::secrets::EnvVariables;
use config::paths::Variables;
use protocol::env;
use registry::Places;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// What a client knows of its surroundings.
#[derive(Clone, Debug, Default)]
pub struct ClientEnvironment {
    /// Where state and settings live.
    pub variables: Variables,
    /// Address of an engine to use instead of one's own; empty is none.
    pub engine: String,
    /// What is shown to an engine on another machine.
    pub certificates: Certificates,
    /// Port of a session to join; empty is none.
    pub session_port: String,
    /// Token of a session to join; empty is none.
    pub session_token: String,
    /// Filter of the log of an engine that this client starts; empty leaves it to the engine.
    pub log: String,
    /// Whether engines of other versions are left alone.
    pub leave_old_engine: bool,
    /// How long an older engine may take to be idle and end.
    pub give_way_limit: Duration,
    /// The program to start an engine with: this one.
    pub program: PathBuf,
    /// The working directory: relative paths start here.
    pub workdir: PathBuf,
    /// Where logins for registries are kept on this machine.
    pub logins: Logins,
    /// All environment variables, for secrets that are in one; filled in by who reads them.
    pub secrets: EnvVariables,
}

impl ClientEnvironment {
    /// Takes what it needs from `lookup`, which gives the value of an environment variable.
    pub fn from_lookup(
        lookup: &dyn Fn(&str) -> Option<OsString>,
        program: PathBuf,
        workdir: PathBuf,
    ) -> Self {
        let path = |name: &str| lookup(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let text = |name: &str| {
            lookup(name).map(|value| value.to_string_lossy().into_owned()).unwrap_or_default()
        };
        Self {
            variables: Variables {
                home: path("HOME"),
                xdg_state_home: path("XDG_STATE_HOME"),
                xdg_config_home: path("XDG_CONFIG_HOME"),
                state_dir: path(env::STATE_DIR),
                user_config: path(env::CONFIG),
                engine_config: path(env::ENGINE_CONFIG),
            },
            engine: text(env::ENGINE),
            certificates: Certificates {
                authorities: path(env::ENGINE_CA),
                certificate: path(env::ENGINE_CERT),
                key: path(env::ENGINE_KEY),
            },
            session_port: text(env::SESSION_PORT),
            session_token: text(env::SESSION_TOKEN),
            log: text(env::LOG),
            leave_old_engine: matches!(
                text(env::LEAVE_OLD_ENGINE).to_ascii_lowercase().as_str(),
                "1" | "t" | "true"
            ),
            give_way_limit: GIVE_WAY_LIMIT,
            program,
            workdir,
            logins: Logins {
                places: Places {
                    docker_config: path("DOCKER_CONFIG"),
                    registry_auth_file: path("REGISTRY_AUTH_FILE"),
                    runtime_dir: path("XDG_RUNTIME_DIR"),
                    config_home: path("XDG_CONFIG_HOME"),
                    home: path("HOME"),
                },
                search_path: lookup("PATH").unwrap_or_default(),
            },
            secrets: EnvVariables::default(),
        }
    }

    /// The user's home folder as text; empty when there is none.
    pub(crate) fn home(&self) -> String {
        let home = self.variables.home.as_deref();
        home.map(|home| home.to_string_lossy().into_owned()).unwrap_or_default()
    }
}
