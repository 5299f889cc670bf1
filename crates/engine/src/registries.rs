//! Registries as the engine's configuration describes them.

use crate::Error;
use api::image::Images;
use config::engine::Engine;
use registry::{Credential, Given, Host, Protocol, Registries, Settings};
use std::path::Path;

/// What is known of registries. Certificates and passwords are read now, so that a wrong path is told
/// at the start and not in the middle of a pull.
pub(crate) fn images(config: &Engine) -> Result<Images, Error> {
    let mut settings = Settings { proxy: config.proxy.clone(), ..Settings::default() };
    let mut given = Given::new();
    for (name, registry) in &config.registries {
        let ca = registry.ca.as_deref().map(read).transpose()?;
        let host = Host {
            mirrors: registry.mirrors.clone(),
            protocol: registry.http.then_some(Protocol::Http),
            insecure: registry.insecure,
            ca: ca.map(Into::into),
            address: None,
        };
        settings.hosts.insert(name.clone(), host);
        if let (Some(username), Some(file)) = (&registry.username, &registry.password_file) {
            let password = String::from_utf8_lossy(&read(file)?).trim_end().to_owned();
            given.insert(name, Credential::Password { username: username.clone(), password });
        }
    }
    Ok(Images::new(Registries::new(settings), given))
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(|source| Error::File { path: path.to_owned(), source })
}
