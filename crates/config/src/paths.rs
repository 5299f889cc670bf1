//! Where state and settings live, decided from values that `main.rs` read from the environment.
//!
//! One folder holds all state of one engine; one folder holds what the user set. Relative values of
//! the XDG variables are ignored, as their specification asks; our own variables may be relative to
//! the working directory.

use std::path::{Path, PathBuf};

/// The environment's say in where things live. An empty value counts as not set.
#[derive(Clone, Debug, Default)]
pub struct Variables {
    /// Home folder of the user.
    pub home: Option<PathBuf>,
    /// The XDG base folder of state.
    pub xdg_state_home: Option<PathBuf>,
    /// The XDG base folder of settings.
    pub xdg_config_home: Option<PathBuf>,
    /// Our own variable for the state folder.
    pub state_dir: Option<PathBuf>,
    /// Our own variable for the user's settings file.
    pub user_config: Option<PathBuf>,
    /// Our own variable for the engine's settings file.
    pub engine_config: Option<PathBuf>,
}

/// There is no base to put a folder under.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot tell where {what} belongs: neither HOME nor {variable} is set")]
pub struct NoHome {
    what: &'static str,
    variable: &'static str,
}

/// A settings file, and whether it was asked for by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsFile {
    /// Where it is.
    pub path: PathBuf,
    /// Whether it must exist: somebody named it.
    pub required: bool,
}

impl Variables {
    /// The folder with all state of one engine.
    pub fn state_dir(&self, workdir: &Path) -> Result<PathBuf, NoHome> {
        if let Some(own) = given(&self.state_dir) {
            return Ok(workdir.join(own));
        }
        let missing = NoHome { what: "the state folder", variable: "XDG_STATE_HOME" };
        self.base(&self.xdg_state_home, ".local/state").ok_or(missing)
    }

    /// The folder with the user's settings.
    pub fn config_dir(&self) -> Result<PathBuf, NoHome> {
        let missing = NoHome { what: "the settings folder", variable: "XDG_CONFIG_HOME" };
        self.base(&self.xdg_config_home, ".config").ok_or(missing)
    }

    /// The engine's settings file.
    pub fn engine_config(&self, workdir: &Path) -> Result<SettingsFile, NoHome> {
        self.settings(&self.engine_config, "engine.toml", workdir)
    }

    /// The user's settings file.
    pub fn user_config(&self, workdir: &Path) -> Result<SettingsFile, NoHome> {
        self.settings(&self.user_config, "config.toml", workdir)
    }

    fn settings(
        &self,
        own: &Option<PathBuf>,
        name: &str,
        workdir: &Path,
    ) -> Result<SettingsFile, NoHome> {
        match given(own) {
            Some(path) => Ok(SettingsFile { path: workdir.join(path), required: true }),
            None => Ok(SettingsFile { path: self.config_dir()?.join(name), required: false }),
        }
    }

    fn base(&self, xdg: &Option<PathBuf>, below_home: &str) -> Option<PathBuf> {
        let absolute = given(xdg).filter(|path| path.is_absolute());
        let base = match absolute {
            Some(path) => path.to_owned(),
            None => given(&self.home)?.join(below_home),
        };
        Some(base.join("ci-tool"))
    }
}

/// Names of the files in a state folder that a client and an engine both know. What else is in it is
/// the business of the engine alone.
#[derive(Clone, Debug)]
pub struct StateFiles(PathBuf);

impl StateFiles {
    /// The files in this state folder.
    pub fn new(state_dir: impl Into<PathBuf>) -> Self {
        Self(state_dir.into())
    }

    /// The folder itself.
    pub fn dir(&self) -> &Path {
        &self.0
    }

    /// The files of an engine of this version that runs beside one of another version.
    pub fn beside(&self, version: &str) -> Self {
        Self(self.besides().join(version))
    }

    /// Where the folders of engines are that run beside the one of this folder, each named by its
    /// version.
    pub fn besides(&self) -> PathBuf {
        self.0.join("beside")
    }

    /// The socket on which the engine listens.
    pub fn socket(&self) -> PathBuf {
        self.0.join("engine.sock")
    }

    /// Locked by the engine for as long as it lives.
    pub fn engine_lock(&self) -> PathBuf {
        self.0.join("engine.lock")
    }

    /// Locked by a client while it starts an engine.
    pub fn start_lock(&self) -> PathBuf {
        self.0.join("start.lock")
    }

    /// The engine's log.
    pub fn log(&self) -> PathBuf {
        self.0.join("engine.log")
    }
}

fn given(value: &Option<PathBuf>) -> Option<&Path> {
    value.as_deref().filter(|path| !path.as_os_str().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(pairs: &[(&str, &str)]) -> Variables {
        let get = |name: &str| {
            pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| PathBuf::from(value))
        };
        Variables {
            home: get("home"),
            xdg_state_home: get("xdg_state"),
            xdg_config_home: get("xdg_config"),
            state_dir: get("state"),
            user_config: get("user_config"),
            engine_config: get("engine_config"),
        }
    }

    #[test]
    fn state_folder() {
        for (pairs, expected) in [
            (&[("home", "/h")][..], "/h/.local/state/ci-tool"),
            (&[("home", "/h"), ("xdg_state", "/x")], "/x/ci-tool"),
            (&[("home", "/h"), ("xdg_state", "relative")], "/h/.local/state/ci-tool"),
            (&[("home", "/h"), ("xdg_state", "")], "/h/.local/state/ci-tool"),
            (&[("xdg_state", "/x")], "/x/ci-tool"),
            (&[("home", "/h"), ("state", "/s")], "/s"),
            (&[("state", "s")], "/w/s"),
            (&[("home", "/h"), ("state", "")], "/h/.local/state/ci-tool"),
        ] {
            let found = variables(pairs).state_dir(Path::new("/w")).unwrap();
            assert_eq!(found, Path::new(expected), "{pairs:?}");
        }
        let error = variables(&[("xdg_state", "relative")]).state_dir(Path::new("/w"));
        assert!(error.unwrap_err().to_string().contains("XDG_STATE_HOME"));
    }

    #[test]
    fn engine_settings_are_required_only_when_named() {
        for (pairs, path, required) in [
            (&[("home", "/h")][..], "/h/.config/ci-tool/engine.toml", false),
            (&[("xdg_config", "/c")], "/c/ci-tool/engine.toml", false),
            (&[("engine_config", "e.toml")], "/w/e.toml", true),
        ] {
            let found = variables(pairs).engine_config(Path::new("/w")).unwrap();
            assert_eq!(found, SettingsFile { path: path.into(), required }, "{pairs:?}");
        }
        assert!(Variables::default().engine_config(Path::new("/w")).is_err());
    }

    #[test]
    fn user_settings() {
        let found = variables(&[("home", "/h")]).user_config(Path::new("/w")).unwrap();
        assert_eq!(found.path, Path::new("/h/.config/ci-tool/config.toml"));
        let found = variables(&[("user_config", "/c.toml")]).user_config(Path::new("/w")).unwrap();
        assert_eq!(found, SettingsFile { path: "/c.toml".into(), required: true });
    }
}
