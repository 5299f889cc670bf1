//! Images out of containers: `publish`, `export`, `asTarball`, `manifest` and `layer`.

use super::from::{RegistryProtocol, Way, reach};
use super::{Config, Container};
use crate::export;
use crate::file::File;
use crate::image::{Form, Recipe};
use crate::service::Service;
use crate::services::Services;
use graph::{Args, Builder, Context, Enum, Op, Ref, Scope};
use image::{Compression, Family};
use protocol::Error;
use serde_json::json;

pub(super) fn install(builder: &mut Builder) {
    builder
        .install::<Publish>()
        .install::<Export>()
        .install::<AsTarball>()
        .install::<ManifestFile>()
        .install::<LayerFile>();
}

/// How layers are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Enum)]
#[graph(name = "ImageLayerCompression")]
pub(crate) enum LayerCompression {
    /// Understood by everything.
    #[value(name = "Gzip", alias = "GZIP")]
    Gzip,
    /// Smaller and faster.
    #[value(name = "Zstd", alias = "ZSTD")]
    Zstd,
    /// Gzip with an index, so that files can be read one by one; to others it is gzip.
    #[value(name = "EStarGZ", alias = "ESTARGZ")]
    EStarGz,
    /// Not at all.
    #[value(name = "Uncompressed", alias = "UNCOMPRESSED")]
    Uncompressed,
}

/// Whose names the documents of an image use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Enum)]
#[graph(name = "ImageMediaTypes")]
pub(crate) enum MediaTypes {
    /// The Open Container Initiative's.
    #[value(name = "OCIMediaTypes", alias = "OCI")]
    Oci,
    /// Docker's, for old registries.
    #[value(name = "DockerMediaTypes", alias = "DOCKER")]
    Docker,
}

/// Pushes the container as an image, and gives its address with the digest.
#[derive(Args)]
struct Publish {
    /// Where to: `[registry/]repository[:tag]`.
    address: String,
    /// Compress all layers in this way; otherwise layers of images stay as they are.
    forced_compression: Option<LayerCompression>,
    /// Whose names the documents use.
    #[arg(default = "OCIMediaTypes")]
    media_types: MediaTypes,
    /// The same image for other platforms, under the same address.
    #[arg(default = "[]")]
    platform_variants: Vec<Ref<Container>>,
    /// A service that is the registry.
    registry_service: Option<Ref<Service>>,
    /// How to speak to the registry; without a word encrypted, or plain on this very machine.
    protocol: Option<RegistryProtocol>,
    /// Accept any certificate of the registry.
    #[arg(default = "false", name = "insecureSkipTLSVerify")]
    insecure_skip_tls_verify: bool,
}

impl Op for Publish {
    type Parent = Container;
    type Output = String;
    const NAME: &'static str = "publish";
    const SCOPE: Scope = Scope::Request;

    async fn run(&self, container: &Container, cx: &Context) -> Result<String, Error> {
        let services = cx.get::<Services>()?;
        let form = form(self.media_types, self.forced_compression);
        let mut reach = reach(self.protocol, self.insecure_skip_tls_verify);
        let way = Way::to(&self.address, self.registry_service.as_deref(), cx).await?;
        reach.address = way.as_ref().map(Way::address);
        let access = services.images.access(&container.auths, cx);
        let recipes = recipes(container, &self.platform_variants);
        services.images.publish(&access, (&self.address, reach), (&recipes, form), cx).await
    }
}

/// The container as an image in one file that every program for images can load.
#[derive(Args)]
struct AsTarball {
    /// Compress all layers in this way; otherwise layers of images stay as they are.
    forced_compression: Option<LayerCompression>,
    /// Whose names the documents use.
    #[arg(default = "OCIMediaTypes")]
    media_types: MediaTypes,
    /// The same image for other platforms.
    #[arg(default = "[]")]
    platform_variants: Vec<Ref<Container>>,
}

impl Op for AsTarball {
    type Parent = Container;
    type Output = File;
    const NAME: &'static str = "asTarball";

    async fn run(&self, container: &Container, cx: &Context) -> Result<File, Error> {
        let form = form(self.media_types, self.forced_compression);
        crate::image::tarball(&recipes(container, &self.platform_variants), form, cx).await
    }
}

/// Writes the container as an image in one file to the caller's disk, and gives the absolute path.
#[derive(Args)]
struct Export {
    /// Replace `$VAR` and `${VAR}` in the path by the container's variables.
    #[arg(default = "false")]
    expand: bool,
    /// Compress all layers in this way; otherwise layers of images stay as they are.
    forced_compression: Option<LayerCompression>,
    /// Whose names the documents use.
    #[arg(default = "OCIMediaTypes")]
    media_types: MediaTypes,
    /// Where; relative paths start from the caller's working directory.
    path: String,
    /// The same image for other platforms.
    #[arg(default = "[]")]
    platform_variants: Vec<Ref<Container>>,
}

impl Op for Export {
    type Parent = Container;
    type Output = String;
    const NAME: &'static str = "export";
    const SCOPE: Scope = Scope::Request;

    async fn run(&self, container: &Container, cx: &Context) -> Result<String, Error> {
        let services = cx.get::<Services>()?;
        let form = form(self.media_types, self.forced_compression);
        let recipes = recipes(container, &self.platform_variants);
        let file = crate::image::tarball(&recipes, form, cx).await?;
        let snapshot = file.snapshot(services).await?;
        let (store, path) = (services.store.clone(), file.path().to_owned());
        let source = services.blocking(move || store.outlet_file(&snapshot, &path)).await?;
        export::file(source, container.expanded(&self.path, self.expand)?, "", cx).await
    }
}

/// The manifest of the container as an image.
#[derive(Args)]
struct ManifestFile {
    /// Compress all layers in this way; otherwise layers of images stay as they are.
    forced_compression: Option<LayerCompression>,
    /// Whose names the documents use.
    #[arg(default = "OCIMediaTypes")]
    media_types: MediaTypes,
}

impl Op for ManifestFile {
    type Parent = Container;
    type Output = File;
    const NAME: &'static str = "manifest";

    async fn run(&self, container: &Container, cx: &Context) -> Result<File, Error> {
        let form = form(self.media_types, self.forced_compression);
        crate::image::manifest(&container.recipe(), form, cx).await
    }
}

/// One layer of the container as an image, or its configuration.
#[derive(Args)]
struct LayerFile {
    /// Its digest, as the manifest names it.
    id: String,
    /// Compress all layers in this way; otherwise layers of images stay as they are.
    forced_compression: Option<LayerCompression>,
    /// Whose names the documents use.
    #[arg(default = "OCIMediaTypes")]
    media_types: MediaTypes,
}

impl Op for LayerFile {
    type Parent = Container;
    type Output = File;
    const NAME: &'static str = "layer";

    async fn run(&self, container: &Container, cx: &Context) -> Result<File, Error> {
        let form = form(self.media_types, self.forced_compression);
        crate::image::layer(&container.recipe(), &self.id, form, cx).await
    }
}

pub(super) fn form(types: MediaTypes, compression: Option<LayerCompression>) -> Form {
    let family = match types {
        MediaTypes::Oci => Family::Oci,
        MediaTypes::Docker => Family::Docker,
    };
    let compression = match compression {
        None => None,
        Some(LayerCompression::Gzip) => Some(Compression::Gzip),
        Some(LayerCompression::Zstd) => Some(Compression::Zstd),
        Some(LayerCompression::Uncompressed) => Some(Compression::None),
        Some(LayerCompression::EStarGz) => Some(Compression::EStarGz),
    };
    Form { family, compression }
}

/// The container and its variants. A container without a root that has variants is only their common
/// name.
pub(super) fn recipes(container: &Container, variants: &[Ref<Container>]) -> Vec<Recipe> {
    let own = variants.is_empty() || !container.is_blank();
    let own = own.then(|| container.recipe());
    own.into_iter().chain(variants.iter().map(|variant| variant.recipe())).collect()
}

impl Container {
    /// What an image of this container is made from. Mounts are no part of it.
    fn recipe(&self) -> Recipe {
        Recipe {
            tree: self.rootfs.clone(),
            platform: self.platform.to_string(),
            config: self.config.for_image(),
            annotations: self.annotations.iter().cloned().collect(),
            base: self.base.clone(),
            steps: self.steps.to_vec(),
        }
    }

    /// Whether nothing was ever put into it.
    fn is_blank(&self) -> bool {
        self.base.is_none() && self.rootfs.is_empty() && *self.config == Config::default()
    }
}

impl Config {
    fn for_image(&self) -> image::Config {
        image::Config {
            env: self.env.iter().map(|(name, value)| format!("{name}={value}")).collect(),
            user: self.user.clone(),
            working_dir: self.workdir.clone(),
            entrypoint: self.entrypoint.clone(),
            cmd: self.default_args.clone(),
            labels: self.labels.iter().cloned().collect(),
            exposed_ports: self.ports.iter().map(|port| (port.to_string(), json!({}))).collect(),
            other: self.other.clone(),
        }
    }
}
