//! What the tests share: settings that do not wait long, content, and a push of it.

use registry::{
    Credential, Descriptor, Digest, Error, Given, MemorySource, Reference, Registries, Settings,
    quiet,
};
use std::sync::Arc;
use std::time::Duration;
use testkit::registry::{Fault, PASSWORD, USER};

/// The type of a plain manifest.
pub(crate) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// Settings that try again at once. A machine may be slow: what is not to hang is waited for.
pub(crate) fn settings() -> Settings {
    Settings {
        attempts: 4,
        pause: Duration::from_millis(2),
        longest_pause: Duration::from_secs(2),
        ..Settings::default()
    }
}

/// Settings that do not wait long: a hang is found within a moment.
pub(crate) fn impatient() -> Settings {
    Settings {
        stall_timeout: Duration::from_secs(1),
        finish_timeout: Duration::from_secs(2),
        ..settings()
    }
}

pub(crate) fn client() -> Registries {
    Registries::new(settings())
}

/// A client that is about to meet this fault.
pub(crate) fn client_meeting(fault: &Fault) -> Registries {
    match fault {
        Fault::Hang | Fault::HangAfter(_) => Registries::new(impatient()),
        _ => client(),
    }
}

/// A client that is logged in to a registry.
pub(crate) fn client_of(registry: &str, credential: Credential) -> Registries {
    let mut given = Given::new();
    given.insert(registry, credential);
    client().with_credentials(Arc::new(given))
}

pub(crate) fn login() -> Credential {
    Credential::Password { username: USER.to_owned(), password: PASSWORD.to_owned() }
}

pub(crate) fn reference(registry: &str, rest: &str) -> Reference {
    Reference::parse(&format!("{registry}/{rest}")).unwrap()
}

/// Bytes that do not repeat at short distances.
pub(crate) fn content(length: usize) -> Vec<u8> {
    (0..length as u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

pub(crate) fn descriptor(bytes: &[u8]) -> Descriptor {
    Descriptor { digest: Digest::sha256(bytes), size: bytes.len() as u64 }
}

pub(crate) async fn push(
    client: &Registries,
    reference: &Reference,
    bytes: &[u8],
) -> Result<bool, Error> {
    let source = Arc::new(MemorySource::new(bytes.to_vec()));
    client.push_blob(reference, &descriptor(bytes), source, quiet()).await
}

pub(crate) async fn pull(
    client: &Registries,
    reference: &Reference,
    descriptor: &Descriptor,
) -> Result<Vec<u8>, Error> {
    let mut blob = client.blob(reference, descriptor, quiet()).await?;
    let mut bytes = vec![];
    while let Some(chunk) = blob.chunk().await? {
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// Pushes an image of a config and one layer, and gives its manifest.
pub(crate) async fn push_image(
    client: &Registries,
    reference: &Reference,
    layer: &[u8],
) -> Vec<u8> {
    let config = b"{\"architecture\":\"amd64\",\"os\":\"linux\"}";
    push(client, reference, config).await.unwrap();
    push(client, reference, layer).await.unwrap();
    let manifest = manifest(config, layer);
    let digest = client.push_manifest(reference, MANIFEST, &manifest).await.unwrap();
    assert_eq!(digest, Digest::sha256(&manifest));
    manifest
}

/// A manifest of a config and one layer.
pub(crate) fn manifest(config: &[u8], layer: &[u8]) -> Vec<u8> {
    let part = |kind: &str, bytes: &[u8]| {
        let descriptor = descriptor(bytes);
        format!(
            "{{\"mediaType\":\"application/vnd.oci.image.{kind}\",\"digest\":\"{}\",\"size\":{}}}",
            descriptor.digest, descriptor.size
        )
    };
    let (config, layer) = (part("config.v1+json", config), part("layer.v1.tar", layer));
    format!(
        "{{\"schemaVersion\":2,\"mediaType\":\"{MANIFEST}\",\"config\":{config},\"layers\":[{layer}]}}"
    )
    .into_bytes()
}
