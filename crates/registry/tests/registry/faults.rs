//! Must hold: a registry that hangs, cuts connections, answers 429, 500 or the wrong bytes is tried
//! again or ends in a clear error within bounds, and nothing wrong passes for right.

use crate::world::{
    MANIFEST, client, client_meeting, content, descriptor, impatient, manifest, pull, push,
    push_image, reference, settings,
};
use registry::{Digest, Error, Reference, Registries, Settings};
use std::time::Duration;
use testkit::Random;
use testkit::registry::{Fault, FaultyProxy, Registry};

/// Bounds what hangs; nothing comes near it.
const DEADLINE: Duration = Duration::from_secs(60);

/// A registry with an image behind a proxy.
struct World {
    _registry: Registry,
    proxy: FaultyProxy,
    client: Registries,
    name: Reference,
    layer: Vec<u8>,
}

impl World {
    async fn new() -> Self {
        let registry = Registry::start();
        let proxy = FaultyProxy::before(&registry.address());
        let layer = content(3_000_000);
        push_image(&client(), &reference(&registry.address(), "app:1"), &layer).await;
        let (client, name) = (client(), reference(&proxy.address(), "app:1"));
        Self { _registry: registry, proxy, client, name, layer }
    }

    async fn pull(&self) -> Result<Vec<u8>, Error> {
        let wanted = descriptor(&self.layer);
        let work = pull(&self.client, &self.name, &wanted);
        tokio::time::timeout(DEADLINE, work).await.unwrap()
    }

    async fn manifest(&self) -> Result<registry::Fetched, Error> {
        tokio::time::timeout(DEADLINE, self.client.manifest(&self.name)).await.unwrap()
    }

    async fn push(&self, bytes: &[u8]) -> Result<bool, Error> {
        tokio::time::timeout(DEADLINE, push(&self.client, &self.name, bytes)).await.unwrap()
    }
}

/// Faults that pass.
fn passing() -> Vec<Fault> {
    vec![
        Fault::Hang,
        Fault::HangAfter(70),
        Fault::CutAfter(70),
        Fault::CutAfter(0),
        Fault::Status(500, ""),
        Fault::Status(502, ""),
        Fault::Status(429, ""),
    ]
}

#[tokio::test]
async fn what_passes_is_tried_again() {
    let mut world = World::new().await;
    let named = [503, 429].map(|status| Fault::Status(status, "retry-after: 1\r\n"));
    for fault in passing().into_iter().chain(named) {
        world.client = client_meeting(&fault);
        world.proxy.fault("GET", "/manifests/", fault.clone(), 1);
        assert!(world.manifest().await.is_ok(), "{fault:?}");
        world.proxy.fault("GET", "/blobs/", fault.clone(), 2);
        assert!(world.pull().await.unwrap() == world.layer, "{fault:?}");
        assert_eq!(world.proxy.unmet(), 0, "{fault:?}");
    }
}

#[tokio::test]
async fn what_does_not_pass_is_an_error_after_a_few_tries() {
    let world = World::new().await;
    // All at once: most of the time goes by waiting.
    futures::future::join_all(passing().into_iter().map(|fault| gives_up(&world, fault))).await;
}

async fn gives_up(world: &World, fault: Fault) {
    // A fresh proxy: what is left of a fault must not meet the next one.
    let proxy = FaultyProxy::before(&world._registry.address());
    let name = reference(&proxy.address(), "app:1");
    proxy.fault("GET", "/manifests/", fault.clone(), 1000);
    proxy.fault("GET", "/blobs/", fault.clone(), 1000);
    let client = client_meeting(&fault);
    let work = async {
        let manifest = client.manifest(&name).await.unwrap_err();
        (manifest, pull(&client, &name, &descriptor(&world.layer)).await.unwrap_err())
    };
    let (manifest, blob) = tokio::time::timeout(DEADLINE, work).await.unwrap();
    for error in [manifest, blob] {
        assert!(error.to_string().contains(&name.name()), "{fault:?}: {error}");
    }
    assert_eq!(proxy.count("GET", "/manifests/"), settings().attempts as usize, "{fault:?}");
    assert_eq!(proxy.count("GET", "/blobs/"), settings().attempts as usize, "{fault:?}");
}

#[tokio::test]
async fn a_rate_limit_is_named_and_waited_for_only_so_long() {
    let world = World::new().await;
    world.proxy.fault("GET", "/manifests/", Fault::Status(429, "retry-after: 3600\r\n"), 1);
    let error = world.manifest().await.unwrap_err();
    assert!(matches!(error, Error::RateLimit { .. }), "{error}");
    assert!(error.to_string().contains("rate limit"), "{error}");
    assert!(error.to_string().contains("3600 s"), "{error}");
    assert!(error.hint().unwrap().contains("mirror"), "{error}");
    assert_eq!(world.proxy.count("GET", "/manifests/"), 1);
}

#[tokio::test]
async fn a_download_goes_on_where_it_was_cut() {
    let world = World::new().await;
    world.proxy.fault("GET", "/blobs/", Fault::CutAfter(1_200_000), 2);
    assert!(world.pull().await.unwrap() == world.layer);
    let requests = world.proxy.requests();
    let ranges: Vec<_> = requests
        .iter()
        .filter(|head| head.method() == "GET" && head.path().contains("/blobs/"))
        .map(|head| head.header("range").unwrap_or("all").to_owned())
        .collect();
    assert_eq!(ranges, ["all", "bytes=1200000-", "bytes=2400000-"]);
}

#[tokio::test]
async fn progress_between_failures_makes_them_count_from_one_again() {
    let world = World::new().await;
    let proxy = &world.proxy;
    let layer = content(12_000_000);
    push(&client(), &reference(&world._registry.address(), "app:1"), &layer).await.unwrap();
    proxy.fault("GET", "/blobs/", Fault::CutAfter(1_100_000), 1000);
    let pulled = pull(&world.client, &world.name, &descriptor(&layer)).await.unwrap();
    assert!(pulled == layer);
    // Without progress worth the name it ends.
    let proxy = FaultyProxy::before(&world._registry.address());
    let name = reference(&proxy.address(), "app:1");
    proxy.fault("GET", "/blobs/", Fault::CutAfter(1000), 1000);
    let error = pull(&world.client, &name, &descriptor(&layer)).await.unwrap_err();
    assert!(matches!(error, Error::Broken { .. }), "{error}");
}

#[tokio::test]
async fn wrong_bytes_are_an_error_that_names_both_digests() {
    let world = World::new().await;
    let expected = Digest::sha256(&world.layer);
    for at in [0, 1_500_000, 2_999_999] {
        world.proxy.fault("GET", "/blobs/", Fault::Flip(at), 1);
        let error = world.pull().await.unwrap_err();
        match &error {
            Error::Digest { expected: named, found, .. } => {
                assert_eq!(*named, expected);
                assert!(error.to_string().contains(found.as_str()), "{error}");
            }
            other => panic!("{other}"),
        }
    }
    assert!(world.pull().await.unwrap() == world.layer);
    let digest = world.manifest().await.unwrap().digest;
    let pinned = world.name.with_digest(digest.clone());
    for name in [&world.name, &pinned] {
        world.proxy.fault("GET", "/manifests/", Fault::Flip(20), 1);
        let error = world.client.manifest(name).await.unwrap_err();
        assert!(matches!(error, Error::Digest { .. }), "{error}");
    }
    let lie = Fault::DigestHeader(Digest::sha256(b"lie").to_string());
    world.proxy.fault("GET", "/manifests/", lie.clone(), 2);
    let error = world.manifest().await.unwrap_err();
    assert!(matches!(error, Error::Digest { .. }), "{error}");
    assert_eq!(world.client.manifest(&pinned).await.unwrap().digest, digest, "the name goes first");
}

#[tokio::test]
async fn a_small_blob_with_wrong_bytes_is_asked_for_once_more() {
    let world = World::new().await;
    let wanted = descriptor(&world.layer);
    world.proxy.fault("GET", "/blobs/", Fault::Flip(5), 1);
    let bytes = world.client.small_blob(&world.name, &wanted, 4 << 20).await.unwrap();
    assert!(bytes == world.layer);
    world.proxy.fault("GET", "/blobs/", Fault::Flip(5), 2);
    let error = world.client.small_blob(&world.name, &wanted, 4 << 20).await.unwrap_err();
    assert!(matches!(error, Error::Digest { .. }), "{error}");
}

#[tokio::test]
async fn a_push_survives_what_passes() {
    let mut world = World::new().await;
    let (small, large) = (1_000_000, 5_000_000);
    let faults = [
        (small, "HEAD", Fault::Status(500, "")),
        (small, "POST", Fault::Hang),
        (small, "POST", Fault::Status(429, "retry-after: 1\r\n")),
        (small, "PUT", Fault::CutUpload(700_000)),
        (small, "PUT", Fault::Status(500, "")),
        (small, "PUT", Fault::CutAfter(0)),
        (small, "PUT", Fault::Hang),
        (large, "PATCH", Fault::CutUpload(700_000)),
        (large, "PATCH", Fault::CutAfter(0)),
        (large, "PATCH", Fault::Hang),
        (large, "PATCH", Fault::Status(503, "")),
        (large, "PUT", Fault::Status(500, "")),
        (large, "PUT", Fault::CutAfter(0)),
        (large, "PUT", Fault::Hang),
    ];
    for (number, (size, method, fault)) in faults.into_iter().enumerate() {
        let layer = content(size + number);
        world.client = client_meeting(&fault);
        world.proxy.fault(method, "/blobs/", fault.clone(), 1);
        assert!(world.push(&layer).await.is_ok(), "{method} {fault:?}");
        let pulled = pull(&world.client, &world.name, &descriptor(&layer)).await.unwrap();
        assert!(pulled == layer, "{method} {fault:?}");
        assert_eq!(world.proxy.unmet(), 0, "{method} {fault:?}");
    }
    let manifest = manifest(b"{\"architecture\":\"amd64\",\"os\":\"linux\"}", &world.layer);
    for fault in [Fault::Status(500, ""), Fault::CutAfter(0), Fault::Hang] {
        world.client = client_meeting(&fault);
        world.proxy.fault("PUT", "/manifests/", fault.clone(), 1);
        let pushed = world.client.push_manifest(&world.name, MANIFEST, &manifest).await;
        assert_eq!(pushed.unwrap(), Digest::sha256(&manifest), "{fault:?}");
        assert_eq!(world.proxy.unmet(), 0, "{fault:?}");
    }
}

#[tokio::test]
async fn bytes_that_are_there_are_not_sent_again_when_the_end_of_a_push_fails() {
    let world = World::new().await;
    for (number, fault) in [Fault::Status(500, ""), Fault::CutAfter(0)].into_iter().enumerate() {
        let layer = content(5_000_000 + number);
        let before = world.proxy.count("PATCH", "/uploads/");
        world.proxy.fault("PUT", "/uploads/", fault.clone(), 1);
        assert!(world.push(&layer).await.is_ok(), "{fault:?}");
        assert_eq!(world.proxy.count("PATCH", "/uploads/"), before + 1, "{fault:?}");
    }
}

#[tokio::test]
async fn a_push_that_cannot_be_done_ends_in_a_clear_error() {
    let world = World::new().await;
    for (size, method, fault) in [
        (500_000, "POST", Fault::Hang),
        (500_000, "PUT", Fault::CutUpload(1000)),
        (500_000, "PUT", Fault::Status(500, "")),
        (9_000_000, "PATCH", Fault::CutUpload(1000)),
        (9_000_000, "PATCH", Fault::Hang),
    ] {
        let proxy = FaultyProxy::before(&world._registry.address());
        let name = reference(&proxy.address(), "app:1");
        let layer = content(size);
        proxy.fault(method, "/uploads/", fault.clone(), 1000);
        let client = client_meeting(&fault);
        let work = push(&client, &name, &layer);
        let error = tokio::time::timeout(DEADLINE, work).await.unwrap().unwrap_err();
        assert!(error.to_string().contains(&name.name()), "{method} {fault:?}: {error}");
        let there = world.client.has_blob(&name, &Digest::sha256(&layer)).await.unwrap();
        assert!(!there, "{method} {fault:?}");
    }
    world.proxy.fault("PUT", "/manifests/", Fault::Status(403, ""), 1);
    let pushed = world.client.push_manifest(&world.name, MANIFEST, b"{}").await;
    assert!(matches!(pushed.unwrap_err(), Error::Denied { .. }));
}

/// Faults at random places, over and over: what comes is right or an error.
#[tokio::test]
async fn nothing_wrong_ever_passes_for_right() {
    let world = World::new().await;
    let mut random = Random::new("registry faults");
    let client =
        Registries::new(Settings { stall_timeout: Duration::from_millis(150), ..impatient() });
    let wanted = descriptor(&world.layer);
    for _ in 0..testkit::rounds() {
        let proxy = FaultyProxy::before(&world._registry.address());
        let name = reference(&proxy.address(), "app:1");
        for _ in 0..random.below(5) {
            let at = random.below(3_000_000);
            let fault = match random.below(6) {
                0 => Fault::Hang,
                1 => Fault::HangAfter(at),
                2 => Fault::CutAfter(at),
                3 => Fault::Flip(at),
                4 => Fault::NoRange,
                _ => Fault::Status(500, ""),
            };
            proxy.fault("GET", "/blobs/", fault, 1);
        }
        let work = pull(&client, &name, &wanted);
        match tokio::time::timeout(DEADLINE, work).await.unwrap() {
            Ok(bytes) => assert!(bytes == world.layer),
            Err(error) => assert!(error.to_string().contains(&name.name()), "{error}"),
        }
    }
}
