//! Logins for registries, as docker and podman keep them on this machine.

use protocol::Error;
use protocol::attach::{Login, LoginReply, LoginRequest};
use registry::{Credential, Credentials as _, DockerConfig, Places};
use std::ffi::OsString;

/// Where logins may be, and where programs that keep them are looked for.
#[derive(Clone, Debug, Default)]
pub struct Logins {
    /// What the environment says about files.
    pub places: Places,
    /// The folders of programs, in the form of `PATH`.
    pub search_path: OsString,
}

/// The first login for a registry.
pub(super) async fn find(logins: &Logins, request: LoginRequest) -> Result<LoginReply, Error> {
    for file in logins.places.files() {
        let config = DockerConfig::read(&file).map_err(refused)?;
        let Some(config) = config else { continue };
        let config = config.with_search_path(logins.search_path.clone());
        if let Some(found) = config.find(&request.registry).await.map_err(refused)? {
            return Ok(LoginReply { login: Some(login(found)) });
        }
    }
    Ok(LoginReply { login: None })
}

fn login(credential: Credential) -> Login {
    match credential {
        Credential::Password { username, password } => Login::Password { username, password },
        Credential::IdentityToken(token) => Login::IdentityToken(token),
        Credential::Bearer(token) => Login::Bearer(token),
    }
}

fn refused(error: registry::Error) -> Error {
    Error::environment(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn files_are_asked_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let (docker, podman) = (folder.path().join("config.json"), folder.path().join("auth.json"));
        std::fs::write(&docker, r#"{"auths":{"one.example":{"auth":"bWU6YTpi"}}}"#).unwrap();
        let others = r#"{"auths":{"one.example":{"auth":"eDp5"},"two.example":{"auth":"eDp5"}}}"#;
        std::fs::write(&podman, others).unwrap();
        let places = Places {
            docker_config: Some(folder.path().to_owned()),
            registry_auth_file: Some(podman),
            ..Places::default()
        };
        let logins = Logins { places, search_path: OsString::new() };
        let find = async |registry: &str| {
            let request = LoginRequest { registry: registry.to_owned() };
            find(&logins, request).await.unwrap().login
        };
        let password = |username: &str, password: &str| {
            let (username, password) = (username.to_owned(), password.to_owned());
            Some(Login::Password { username, password })
        };
        assert_eq!(find("one.example").await, password("me", "a:b"));
        assert_eq!(find("two.example").await, password("x", "y"));
        assert_eq!(find("three.example").await, None);
    }
}
