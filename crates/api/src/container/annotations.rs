//! What is said of an image outside its configuration, and who may fetch and push it. All of it is
//! plain data.

use super::Container;
use super::config::set;
use crate::image::Auth;
use crate::secret::Secret;
use graph::{Args, Builder, Context, Op, Ref};
use protocol::Error;

pub(super) fn install(builder: &mut Builder) {
    builder
        .install::<WithAnnotation>()
        .install::<WithoutAnnotation>()
        .install::<WithRegistryAuth>()
        .install::<WithoutRegistryAuth>();
}

/// Sets an annotation of the image: it stands in the manifest, beside the configuration.
#[derive(Args)]
struct WithAnnotation {
    /// Name of the annotation.
    name: String,
    /// Its value.
    value: String,
}

impl Op for WithAnnotation {
    type Parent = Container;
    type Output = Container;
    const NAME: &'static str = "withAnnotation";

    async fn run(&self, container: &Container, _: &Context) -> Result<Container, Error> {
        let mut changed = container.clone();
        set(&mut changed.annotations, &self.name, self.value.clone());
        Ok(changed)
    }
}

/// Removes an annotation of the image.
#[derive(Args)]
struct WithoutAnnotation {
    /// Name of the annotation.
    name: String,
}

impl Op for WithoutAnnotation {
    type Parent = Container;
    type Output = Container;
    const NAME: &'static str = "withoutAnnotation";

    async fn run(&self, container: &Container, _: &Context) -> Result<Container, Error> {
        let mut changed = container.clone();
        changed.annotations.retain(|(name, _)| *name != self.name);
        Ok(changed)
    }
}

/// A login for a registry, for `from` and `publish` after it. It goes before those of the engine's and
/// the client's configuration.
#[derive(Args)]
struct WithRegistryAuth {
    /// The registry, or any address of an image in it.
    address: String,
    /// The password or token.
    secret: Ref<Secret>,
    /// The user.
    username: String,
}

impl Op for WithRegistryAuth {
    type Parent = Container;
    type Output = Container;
    const NAME: &'static str = "withRegistryAuth";

    async fn run(&self, container: &Container, cx: &Context) -> Result<Container, Error> {
        let mut changed = container.clone();
        let registry = registry_of(&self.address)?;
        changed.auths.retain(|auth| auth.registry != registry);
        let password = self.secret.text(cx).await?.into();
        let username = self.username.clone();
        changed.auths.push(Auth { registry, username, password });
        Ok(changed)
    }
}

/// Removes a login for a registry.
#[derive(Args)]
struct WithoutRegistryAuth {
    /// The registry, or any address of an image in it.
    address: String,
}

impl Op for WithoutRegistryAuth {
    type Parent = Container;
    type Output = Container;
    const NAME: &'static str = "withoutRegistryAuth";

    async fn run(&self, container: &Container, _: &Context) -> Result<Container, Error> {
        let mut changed = container.clone();
        let registry = registry_of(&self.address)?;
        changed.auths.retain(|auth| auth.registry != registry);
        Ok(changed)
    }
}

/// The registry of an address, which may be just that.
fn registry_of(address: &str) -> Result<String, Error> {
    let bare = address.trim_start_matches("https://").trim_start_matches("http://");
    let bare = bare.trim_end_matches('/');
    let is_host = !bare.contains('/') && (bare.contains(['.', ':']) || bare == "localhost");
    let image = if is_host { format!("{bare}/x") } else { bare.to_owned() };
    let wrong = |_| Error::user(format!("`{address}` names no registry"));
    let reference = registry::Reference::parse(&image).map_err(wrong)?;
    Ok(reference.registry().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registries_of_addresses() {
        for (address, registry) in [
            ("localhost:5000", "localhost:5000"),
            ("localhost:5000/app:1", "localhost:5000"),
            ("registry.example/team/app", "registry.example"),
            ("https://registry.example/", "registry.example"),
            ("docker.io", "docker.io"),
            ("me/app", "docker.io"),
            ("app", "docker.io"),
        ] {
            assert_eq!(registry_of(address).unwrap(), registry, "{address}");
        }
        assert!(registry_of("a b").is_err());
    }
}
