//! Manifests and blobs out of a registry in good condition.

use crate::world::{MANIFEST, client, content, descriptor, pull, push, push_image, reference};
use registry::{Descriptor, Digest, Error, Verifier, quiet};
use std::sync::{Arc, Mutex};
use testkit::registry::{Fault, FaultyProxy, Registry};

#[tokio::test]
async fn an_image_comes_back_as_it_was_pushed() {
    let registry = Registry::start();
    let (client, tagged) = (client(), reference(&registry.address(), "app:1"));
    let layer = content(3_000_000);
    let manifest = push_image(&client, &tagged, &layer).await;
    let digest = Digest::sha256(&manifest);
    for name in [tagged.clone(), tagged.with_digest(digest.clone())] {
        let fetched = client.manifest(&name).await.unwrap();
        assert_eq!(fetched.bytes, manifest);
        assert_eq!((fetched.digest, fetched.media_type.as_str()), (digest.clone(), MANIFEST));
        assert_eq!(client.resolve(&name).await.unwrap(), digest);
    }
    assert_eq!(pull(&client, &tagged, &descriptor(&layer)).await.unwrap(), layer);
}

#[tokio::test]
async fn an_index_is_a_manifest_too() {
    let registry = Registry::start();
    let (client, tagged) = (client(), reference(&registry.address(), "app:1"));
    let manifest = push_image(&client, &tagged, b"layer").await;
    let kind = "application/vnd.oci.image.index.v1+json";
    let index = format!(
        "{{\"schemaVersion\":2,\"mediaType\":\"{kind}\",\"manifests\":[{{\"mediaType\":\"{MANIFEST}\",\
         \"digest\":\"{}\",\"size\":{},\"platform\":{{\"os\":\"linux\",\"architecture\":\"amd64\"}}}}]}}",
        Digest::sha256(&manifest),
        manifest.len()
    );
    let tagged = reference(&registry.address(), "app:all");
    client.push_manifest(&tagged, kind, index.as_bytes()).await.unwrap();
    let fetched = client.manifest(&tagged).await.unwrap();
    assert_eq!((fetched.media_type.as_str(), fetched.bytes), (kind, index.into_bytes()));
}

#[tokio::test]
async fn what_is_not_there_is_named_at_once() {
    let registry = Registry::start();
    let proxy = FaultyProxy::before(&registry.address());
    let (client, name) = (client(), reference(&proxy.address(), "app:1"));
    for error in
        [client.manifest(&name).await.unwrap_err(), client.resolve(&name).await.unwrap_err()]
    {
        assert!(matches!(error, Error::NotFound { .. }), "{error}");
        assert!(error.to_string().contains(&name.to_string()), "{error}");
        assert!(error.hint().is_some());
    }
    let error = pull(&client, &name, &descriptor(b"x")).await.unwrap_err();
    assert!(matches!(error, Error::NotFound { .. }), "{error}");
    assert_eq!(proxy.count("GET", "/v2/app/"), 2, "nothing is asked twice");
    let closed = reference("127.0.0.1:1", "app:1");
    let error = client.manifest(&closed).await.unwrap_err();
    assert!(matches!(error, Error::Connect { .. }), "{error}");
    assert_eq!(error.hint().unwrap(), "check that `127.0.0.1:1` runs");
}

#[tokio::test]
async fn progress_is_told_to_the_end() {
    let registry = Registry::start();
    let (client, name) = (client(), reference(&registry.address(), "app:1"));
    let layer = content(500_000);
    push(&client, &name, &layer).await.unwrap();
    let seen = Arc::new(Mutex::new(vec![]));
    let told = seen.clone();
    let progress = Arc::new(move |done, total| told.lock().unwrap().push((done, total)));
    let mut blob = client.blob(&name, &descriptor(&layer), progress).await.unwrap();
    while blob.chunk().await.unwrap().is_some() {}
    let seen = seen.lock().unwrap();
    assert!(seen.is_sorted());
    assert_eq!(seen.last(), Some(&(500_000, Some(500_000))));
}

#[tokio::test]
async fn who_has_the_beginning_gets_the_rest() {
    let registry = Registry::start();
    let proxy = FaultyProxy::before(&registry.address());
    let (client, name) = (client(), reference(&proxy.address(), "app:1"));
    let layer = content(500_000);
    let descriptor = descriptor(&layer);
    push(&client, &name, &layer).await.unwrap();
    for (begin, ranges) in [(200_000, true), (200_000, false), (500_000, true)] {
        if !ranges {
            proxy.fault("GET", "/blobs/", Fault::NoRange, 1);
        }
        let mut beginning = Verifier::new(&descriptor.digest);
        beginning.update(&layer[..begin]);
        let mut blob = client.rest_of_blob(&name, &descriptor, beginning, quiet()).await.unwrap();
        let mut bytes = layer[..begin].to_vec();
        while let Some(chunk) = blob.chunk().await.unwrap() {
            bytes.extend_from_slice(&chunk);
        }
        assert!(bytes == layer, "{begin} {ranges}");
    }
    let mut wrong = Verifier::new(&descriptor.digest);
    wrong.update(&[0; 200_000]);
    let mut blob = client.rest_of_blob(&name, &descriptor, wrong, quiet()).await.unwrap();
    let mut length = 200_000;
    let error = loop {
        match blob.chunk().await {
            Ok(chunk) => length += chunk.unwrap().len(),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::Digest { .. }), "{error}");
    assert!(length < layer.len(), "the last bytes are held back");
    assert!(blob.chunk().await.unwrap().is_none(), "nothing follows");
}

#[tokio::test]
async fn a_blob_is_a_stream_too_and_may_be_dropped() {
    use futures::StreamExt as _;
    let registry = Registry::start();
    let (client, name) = (client(), reference(&registry.address(), "app:1"));
    let layer = content(2_000_000);
    push(&client, &name, &layer).await.unwrap();
    let blob = client.blob(&name, &descriptor(&layer), quiet()).await.unwrap();
    let parts: Vec<_> = blob.into_stream().map(Result::unwrap).collect().await;
    assert_eq!(parts.concat(), layer);
    for _ in 0..20 {
        let mut blob = client.blob(&name, &descriptor(&layer), quiet()).await.unwrap();
        assert!(blob.chunk().await.unwrap().is_some());
    }
    assert_eq!(pull(&client, &name, &descriptor(&layer)).await.unwrap(), layer);
}

#[tokio::test]
async fn small_blobs_have_a_limit() {
    let registry = Registry::start();
    let (client, name) = (client(), reference(&registry.address(), "app:1"));
    push(&client, &name, b"config").await.unwrap();
    let descriptor = descriptor(b"config");
    assert_eq!(client.small_blob(&name, &descriptor, 6).await.unwrap(), b"config");
    let error = client.small_blob(&name, &descriptor, 5).await.unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
}

#[tokio::test]
async fn a_blob_of_another_size_is_refused_before_it_is_read() {
    let registry = Registry::start();
    let (client, name) = (client(), reference(&registry.address(), "app:1"));
    let layer = content(10_000);
    push(&client, &name, &layer).await.unwrap();
    for size in [9_999, 10_001, 0] {
        let wrong = Descriptor { size, ..descriptor(&layer) };
        let error = pull(&client, &name, &wrong).await.unwrap_err();
        assert!(matches!(error, Error::Size { .. } | Error::Digest { .. }), "{size}: {error}");
    }
    push(&client, &name, b"").await.unwrap();
    assert!(pull(&client, &name, &descriptor(b"")).await.unwrap().is_empty());
}

#[tokio::test]
async fn many_blobs_come_at_a_time() {
    let registry = Registry::start();
    let (client, name) = (client(), reference(&registry.address(), "app:1"));
    let layers: Vec<Vec<u8>> = (0..12).map(|number| content(100_000 + number)).collect();
    let pushes = layers.iter().map(|layer| push(&client, &name, layer));
    assert!(futures::future::join_all(pushes).await.into_iter().all(|pushed| pushed.unwrap()));
    let wanted: Vec<Descriptor> = layers.iter().map(|layer| descriptor(layer)).collect();
    let pulls = wanted.iter().map(|wanted| pull(&client, &name, wanted));
    let pulled = futures::future::join_all(pulls).await;
    assert!(pulled.into_iter().map(Result::unwrap).eq(layers));
}
