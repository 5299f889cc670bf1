//! Blobs and manifests into a registry in good condition.

use crate::world::{
    MANIFEST, client, content, descriptor, manifest, pull, push, push_image, reference,
};
use registry::{Digest, Error, FileSource, Source, quiet};
use std::io;
use std::sync::{Arc, Mutex};
use testkit::registry::{FaultyProxy, Registry};

#[tokio::test]
async fn what_is_there_is_not_sent_again() {
    let registry = Registry::start();
    let proxy = FaultyProxy::before(&registry.address());
    let (client, name) = (client(), reference(&proxy.address(), "app:1"));
    let layer = content(100_000);
    assert!(!client.has_blob(&name, &Digest::sha256(&layer)).await.unwrap());
    assert!(push(&client, &name, &layer).await.unwrap());
    assert!(client.has_blob(&name, &Digest::sha256(&layer)).await.unwrap());
    let uploads = proxy.count("POST", "/uploads/");
    assert!(!push(&client, &name, &layer).await.unwrap());
    assert_eq!(proxy.count("POST", "/uploads/"), uploads);
}

#[tokio::test]
async fn a_small_blob_takes_few_requests() {
    let registry = Registry::start();
    let proxy = FaultyProxy::before(&registry.address());
    let (client, name) = (client(), reference(&proxy.address(), "app:1"));
    for (size, patches) in [(100_000, 0), (5_000_000, 1)] {
        let layer = content(size);
        push(&client, &name, &layer).await.unwrap();
        assert_eq!(proxy.count("PATCH", "/uploads/"), patches);
        assert_eq!(pull(&client, &name, &descriptor(&layer)).await.unwrap(), layer);
    }
}

#[tokio::test]
async fn a_file_is_pushed_with_progress() {
    let registry = Registry::start();
    let (client, name) = (client(), reference(&registry.address(), "app:1"));
    let layer = content(5_000_000);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("layer");
    std::fs::write(&path, &layer).unwrap();
    let seen = Arc::new(Mutex::new(vec![]));
    let told = seen.clone();
    let progress = Arc::new(move |done, total| told.lock().unwrap().push((done, total)));
    let source = Arc::new(FileSource::new(&path));
    assert!(client.push_blob(&name, &descriptor(&layer), source, progress).await.unwrap());
    assert_eq!(pull(&client, &name, &descriptor(&layer)).await.unwrap(), layer);
    let seen = seen.lock().unwrap();
    assert!(seen.is_sorted());
    assert_eq!(seen.last(), Some(&(5_000_000, Some(5_000_000))));
}

#[tokio::test]
async fn a_blob_is_taken_over_from_another_repository() {
    let registry = Registry::start();
    let proxy = FaultyProxy::before(&registry.address());
    let client = client();
    let (one, two) = (reference(&proxy.address(), "one:1"), reference(&proxy.address(), "two:1"));
    let layer = content(100_000);
    push(&client, &one, &layer).await.unwrap();
    let digest = Digest::sha256(&layer);
    let uploads = proxy.count("PUT", "/uploads/");
    assert!(client.mount_blob(&two, &digest, "one").await.unwrap());
    assert!(client.has_blob(&two, &digest).await.unwrap());
    assert_eq!(proxy.count("PUT", "/uploads/"), uploads);
    let absent = Digest::sha256(b"absent");
    assert!(!client.mount_blob(&two, &absent, "one").await.unwrap());
    assert_eq!(proxy.count("DELETE", "/uploads/"), 1, "no upload is left open");
}

#[tokio::test]
async fn a_manifest_goes_under_its_digest_where_the_name_has_one() {
    let registry = Registry::start();
    let (client, tagged) = (client(), reference(&registry.address(), "app:1"));
    let bytes = push_image(&client, &tagged, b"layer").await;
    let other = [bytes.as_slice(), b"\n"].concat();
    let digest = Digest::sha256(&other);
    let pinned = tagged.with_digest(digest.clone());
    assert_eq!(client.push_manifest(&pinned, MANIFEST, &other).await.unwrap(), digest);
    assert_eq!(client.manifest(&pinned).await.unwrap().bytes, other);
    assert_eq!(client.manifest(&tagged).await.unwrap().bytes, bytes, "the tag stays");
    let error = client.push_manifest(&pinned, MANIFEST, &bytes).await.unwrap_err();
    assert!(matches!(error, Error::Digest { .. }), "{error}");
}

#[tokio::test]
async fn a_manifest_without_its_blobs_is_refused_in_words() {
    let registry = Registry::start();
    let (client, name) = (client(), reference(&registry.address(), "app:1"));
    let bytes = manifest(b"{}", b"absent");
    let error = client.push_manifest(&name, MANIFEST, &bytes).await.unwrap_err();
    assert!(matches!(error, Error::Status { status: 400 | 404, .. } | Error::NotFound { .. }));
    assert!(error.to_string().contains("blob unknown"), "{error}");
}

#[tokio::test]
async fn a_source_that_cannot_be_read_or_is_too_short_is_named() {
    let registry = Registry::start();
    let (client, name) = (client(), reference(&registry.address(), "app:1"));
    let layer = content(5_000_000);
    let missing: Arc<dyn Source> = Arc::new(FileSource::new("/no/such/file"));
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("short"), &layer[..50_000]).unwrap();
    let short: Arc<dyn Source> = Arc::new(FileSource::new(folder.path().join("short")));
    let expect = [(missing, io::ErrorKind::NotFound), (short, io::ErrorKind::UnexpectedEof)];
    for (source, kind) in expect {
        let result = client.push_blob(&name, &descriptor(&layer), source, quiet()).await;
        match result.unwrap_err() {
            Error::Source { source, .. } => assert_eq!(source.kind(), kind),
            other => panic!("{other}"),
        }
    }
    assert!(!client.has_blob(&name, &Digest::sha256(&layer)).await.unwrap());
}

#[tokio::test]
async fn a_source_with_other_bytes_is_not_kept() {
    let registry = Registry::start();
    let (client, name) = (client(), reference(&registry.address(), "app:1"));
    let layer = content(100_000);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("other"), vec![0; layer.len()]).unwrap();
    let source = Arc::new(FileSource::new(folder.path().join("other")));
    let result = client.push_blob(&name, &descriptor(&layer), source, quiet()).await;
    assert!(result.is_err());
    assert!(!client.has_blob(&name, &Digest::sha256(&layer)).await.unwrap());
}

#[tokio::test]
async fn an_empty_blob_can_be_pushed() {
    let registry = Registry::start();
    let (client, name) = (client(), reference(&registry.address(), "app:1"));
    assert!(push(&client, &name, b"").await.unwrap());
}
