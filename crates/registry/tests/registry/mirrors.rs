//! Mirrors: asked first, passed over when they fail, never pushed to.

use crate::world::{
    client, content, descriptor, impatient, pull, push, push_image, reference, settings,
};
use registry::{Host, Reference, Registries, Settings};
use testkit::registry::{Fault, FaultyProxy, Registry};

/// A registry with an image, a mirror of it with the same, and a client that knows both.
struct World {
    _registry: Registry,
    _mirror: Registry,
    before_registry: FaultyProxy,
    before_mirror: FaultyProxy,
    client: Registries,
    name: Reference,
    layer: Vec<u8>,
}

impl World {
    async fn new() -> Self {
        Self::with(settings()).await
    }

    /// One whose client has these settings.
    async fn with(settings: Settings) -> Self {
        let (registry, mirror) = (Registry::start(), Registry::start());
        let before_registry = FaultyProxy::before(&registry.address());
        let before_mirror = FaultyProxy::before(&mirror.address());
        let layer = content(300_000);
        push_image(&client(), &reference(&registry.address(), "app:1"), &layer).await;
        push_image(&client(), &reference(&mirror.address(), "kept/app:1"), &layer).await;
        let mirrors = vec![format!("{}/kept", before_mirror.address())];
        let hosts = [(before_registry.address(), Host { mirrors, ..Host::default() })].into();
        let client = Registries::new(Settings { hosts, ..settings });
        let name = reference(&before_registry.address(), "app:1");
        let (_registry, _mirror) = (registry, mirror);
        Self { _registry, _mirror, before_registry, before_mirror, client, name, layer }
    }

    async fn pull_all(&self) {
        self.client.manifest(&self.name).await.unwrap();
        let layer = pull(&self.client, &self.name, &descriptor(&self.layer)).await.unwrap();
        assert_eq!(layer, self.layer);
    }
}

#[tokio::test]
async fn a_mirror_is_asked_and_the_registry_is_not() {
    let world = World::new().await;
    world.pull_all().await;
    world.client.resolve(&world.name).await.unwrap();
    assert_eq!(world.before_registry.requests().len(), 0);
    assert!(world.before_mirror.count("GET", "/v2/kept/app/blobs/") == 1);
}

#[tokio::test]
async fn a_mirror_that_lacks_something_is_asked_again_for_the_next() {
    let world = World::new().await;
    let extra = content(1000);
    push(&client(), &world.name, &extra).await.unwrap();
    assert_eq!(pull(&world.client, &world.name, &descriptor(&extra)).await.unwrap(), extra);
    world.client.manifest(&world.name).await.unwrap();
    assert_eq!(world.before_registry.count("GET", "/manifests/"), 0);
}

#[tokio::test]
async fn a_mirror_in_trouble_is_passed_over_and_left_alone() {
    for fault in [Fault::Hang, Fault::Status(500, ""), Fault::Status(429, "retry-after: 3600\r\n")]
    {
        let settings = if matches!(fault, Fault::Hang) { impatient() } else { settings() };
        let world = World::with(settings).await;
        world.before_mirror.fault("GET", "/", fault, 1000);
        world.pull_all().await;
        let asked = world.before_mirror.requests().len();
        world.pull_all().await;
        assert_eq!(world.before_mirror.requests().len(), asked);
    }
}

#[tokio::test]
async fn a_mirror_that_breaks_in_the_middle_is_continued_by_the_registry() {
    let world = World::new().await;
    world.client.manifest(&world.name).await.unwrap();
    world.before_mirror.fault("GET", "/blobs/", Fault::CutAfter(100_000), 1);
    world.before_mirror.fault("GET", "/blobs/", Fault::Status(503, ""), 1);
    let layer = pull(&world.client, &world.name, &descriptor(&world.layer)).await.unwrap();
    assert_eq!(layer, world.layer);
    let requests = world.before_registry.requests();
    let asked = requests.iter().find(|head| head.path().contains("/blobs/")).unwrap();
    assert!(asked.header("range").is_some());
}

#[tokio::test]
async fn a_mirror_with_wrong_bytes_is_found_out() {
    let world = World::new().await;
    world.before_mirror.fault("GET", "/manifests/", Fault::Flip(3), 1000);
    world.client.manifest(&world.name).await.unwrap();
    assert_eq!(world.before_registry.count("GET", "/manifests/"), 1);
    let world = World::new().await;
    world.before_mirror.fault("GET", "/blobs/", Fault::Flip(3), 1000);
    assert!(pull(&world.client, &world.name, &descriptor(&world.layer)).await.is_err());
    let layer = pull(&world.client, &world.name, &descriptor(&world.layer)).await.unwrap();
    assert_eq!(layer, world.layer, "who begins anew is served by another");
}

#[tokio::test]
async fn a_mirror_is_not_pushed_to() {
    let world = World::new().await;
    push(&world.client, &world.name, b"new").await.unwrap();
    assert_eq!(world.before_mirror.requests().len(), 0);
}
