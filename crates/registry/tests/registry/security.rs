//! Certificates, protocols, and keys that must stay where they belong.

use crate::world::{
    client, client_of, content, descriptor, login, pull, push, push_image, reference, settings,
};
use registry::{Error, Host, Protocol, Registries, Settings};
use std::sync::Arc;
use testkit::registry::{Fault, FaultyProxy, Registry};

fn with_host(registry: &str, host: Host) -> Registries {
    Registries::new(Settings { hosts: [(registry.to_owned(), host)].into(), ..settings() })
}

#[tokio::test]
async fn a_known_authority_is_trusted() {
    let registry = Registry::with_tls();
    let address = registry.address();
    let ca: Arc<[u8]> = std::fs::read(registry.ca()).unwrap().into();
    let client = with_host(&address, Host { ca: Some(ca), ..Host::default() });
    push_image(&client, &reference(&address, "app:1"), &content(300_000)).await;
}

#[tokio::test]
async fn an_unknown_authority_is_not_trusted_where_https_is_asked_for() {
    let registry = Registry::with_tls();
    let address = registry.address();
    let name = reference(&address, "app:1");
    let strict = Host { protocol: Some(Protocol::Https), ..Host::default() };
    let error = with_host(&address, strict.clone()).manifest(&name).await.unwrap_err();
    assert!(matches!(error, Error::Certificate { .. }), "{error}");
    assert!(error.hint().unwrap().contains("insecure = true"), "{error}");
    let loose = with_host(&address, Host { insecure: true, ..strict });
    assert!(push(&loose, &name, b"layer").await.unwrap());
}

#[tokio::test]
async fn registries_of_this_machine_need_no_settings() {
    for registry in [Registry::start(), Registry::with_tls()] {
        let client = client();
        assert!(push(&client, &reference(&registry.address(), "app:1"), b"layer").await.unwrap());
    }
}

#[tokio::test]
async fn settings_of_one_registry_can_be_changed_for_one_call() {
    let registry = Registry::with_tls();
    let address = registry.address();
    let name = reference(&address, "app:1");
    let client = client();
    push_image(&client, &name, b"layer").await;
    let strict = client.with_host(&address, |host| host.protocol = Some(Protocol::Https));
    assert!(matches!(strict.manifest(&name).await.unwrap_err(), Error::Certificate { .. }));
    let insecure = strict.with_host(&address, |host| host.insecure = true);
    assert!(insecure.manifest(&name).await.is_ok());
    let plain = client.with_host(&address, |host| host.protocol = Some(Protocol::Http));
    assert!(plain.manifest(&name).await.is_err());
}

#[tokio::test]
async fn authorities_that_are_none_are_named() {
    let ca: Arc<[u8]> = Arc::from(b"-----BEGIN CERTIFICATE-----\nx\n".as_slice());
    let client = with_host("a.example", Host { ca: Some(ca), ..Host::default() });
    let error = client.manifest(&reference("a.example", "app:1")).await.unwrap_err();
    assert!(matches!(error, Error::Settings { .. }), "{error}");
}

#[tokio::test]
async fn a_redirect_is_followed_without_the_key() {
    let registry = Registry::with_password();
    let proxy = FaultyProxy::before(&registry.address());
    let (user, name) = (client_of(&proxy.address(), login()), reference(&proxy.address(), "app:1"));
    let layer = content(100_000);
    push(&user, &name, &layer).await.unwrap();
    proxy.fault("GET", "/blobs/", Fault::Redirect, 1);
    // The other host is the same registry, which refuses who shows no key.
    let error = pull(&user, &name, &descriptor(&layer)).await.unwrap_err();
    assert!(matches!(error, Error::Unauthorized { .. }), "{error}");
    let elsewhere = proxy.requests_elsewhere();
    assert_eq!(elsewhere.len(), 1);
    assert_eq!(elsewhere[0].header("authorization"), None);
    let here = proxy.requests();
    let asked = here.iter().rfind(|head| head.path().contains("/blobs/sha256")).unwrap();
    assert!(asked.header("authorization").is_some());
}

#[tokio::test]
async fn a_redirected_blob_is_resumed_where_it_stopped() {
    let registry = Registry::start();
    let proxy = FaultyProxy::before(&registry.address());
    let (client, name) = (client(), reference(&proxy.address(), "app:1"));
    let layer = content(1_000_000);
    push(&client, &name, &layer).await.unwrap();
    proxy.fault("GET", "/blobs/", Fault::CutAfter(400_000), 1);
    proxy.fault("GET", "/blobs/", Fault::Redirect, 1);
    assert_eq!(pull(&client, &name, &descriptor(&layer)).await.unwrap(), layer);
    let range = proxy.requests_elsewhere()[0].header("range").map(str::to_owned);
    assert!(range.is_some_and(|range| range.starts_with("bytes=")));
}

#[tokio::test]
async fn circles_of_redirects_end() {
    let registry = Registry::start();
    let proxy = FaultyProxy::before(&registry.address());
    let address = proxy.address();
    let (client, name) = (client(), reference(&address, "app:1"));
    push_image(&client, &name, b"layer").await;
    let to = format!("location: http://{address}/v2/app/manifests/1\r\n");
    proxy.fault("GET", "/manifests/", Fault::Status(302, to.leak()), 100);
    let error = client.manifest(&name).await.unwrap_err();
    assert!(error.to_string().contains("circles"), "{error}");
}

#[tokio::test]
async fn a_proxy_is_used_for_other_machines_only() {
    let registry = Registry::start();
    // It does what a proxy does: the whole address stands in the request.
    let proxy = FaultyProxy::before(&registry.address());
    let far = "registry.test:5000";
    let plain = Host { protocol: Some(Protocol::Http), ..Host::default() };
    let through = Some(format!("http://{}", proxy.address()));
    let hosts = [(far.to_owned(), plain)].into();
    let client = Registries::new(Settings { hosts, proxy: through, ..settings() });
    push_image(&client, &reference(far, "app:1"), b"layer").await;
    assert!(proxy.count("PUT", "http://registry.test:5000/v2/app/manifests/1") == 1);
    let asked = proxy.requests().len();
    assert!(client.manifest(&reference(&registry.address(), "app:1")).await.is_ok());
    assert_eq!(proxy.requests().len(), asked);
}
