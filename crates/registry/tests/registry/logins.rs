//! Registries that ask who it is: passwords, tokens, identity tokens, nobody.

use crate::world::{
    client, client_of, content, descriptor, login, pull, push, push_image, reference,
};
use registry::{Credential, Credentials, DockerConfig, Error, Found};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use testkit::registry::{REFRESH_TOKEN, Registry};

fn is_refused(error: &Error, registry: &str) {
    assert!(matches!(error, Error::Unauthorized { .. }), "{error}");
    assert!(error.to_string().contains(registry), "{error}");
    assert!(error.hint().unwrap().contains("docker login"), "{error}");
}

fn wrong() -> Credential {
    Credential::Password { username: "tester".to_owned(), password: "guess".to_owned() }
}

#[tokio::test]
async fn a_password_opens() {
    let registry = Registry::with_password();
    let address = registry.address();
    let name = reference(&address, "app:1");
    let user = client_of(&address, login());
    push_image(&user, &name, &content(100_000)).await;
    assert!(user.manifest(&name).await.is_ok());
    is_refused(&client().manifest(&name).await.unwrap_err(), &address);
    is_refused(&client_of(&address, wrong()).manifest(&name).await.unwrap_err(), &address);
    is_refused(&push(&client(), &name, b"x").await.unwrap_err(), &address);
}

#[tokio::test]
async fn a_token_is_asked_for_once_for_each_scope() {
    let registry = Registry::with_tokens();
    let address = registry.address();
    let (name, layer) = (reference(&address, "app:1"), content(100_000));
    let user = client_of(&address, login());
    push_image(&user, &name, &layer).await;
    assert_eq!(registry.tokens().asked(), ["tester repository:app:pull,push"]);
    user.manifest(&name).await.unwrap();
    let wanted = descriptor(&layer);
    let blobs = (0..8).map(|_| pull(&user, &name, &wanted));
    for blob in futures::future::join_all(blobs).await {
        assert_eq!(blob.unwrap(), layer);
    }
    let expect = ["tester repository:app:pull,push", "tester repository:app:pull"];
    assert_eq!(registry.tokens().asked(), expect);
}

#[tokio::test]
async fn many_at_a_time_ask_for_one_token() {
    let registry = Registry::with_tokens();
    let address = registry.address();
    let name = reference(&address, "app:1");
    let user = client_of(&address, login());
    let layers: Vec<Vec<u8>> = (0..8).map(|number| content(1000 + number)).collect();
    let pushes = layers.iter().map(|layer| push(&user, &name, layer));
    assert!(futures::future::join_all(pushes).await.into_iter().all(|pushed| pushed.unwrap()));
    assert_eq!(registry.tokens().asked().len(), 1);
}

#[tokio::test]
async fn nobody_gets_what_is_public_and_no_more() {
    let registry = Registry::with_tokens();
    let address = registry.address();
    let (open, closed) = (reference(&address, "public/app:1"), reference(&address, "app:1"));
    let user = client_of(&address, login());
    push_image(&user, &open, b"layer").await;
    push_image(&user, &closed, b"layer").await;
    let nobody = client();
    assert!(nobody.manifest(&open).await.is_ok());
    is_refused(&nobody.manifest(&closed).await.unwrap_err(), &address);
    is_refused(&push(&nobody, &open, b"x").await.unwrap_err(), &address);
    let impostor = client_of(&address, wrong());
    is_refused(&impostor.manifest(&closed).await.unwrap_err(), &address);
    // Who logs in later is not held to what it was before.
    let later = nobody.with_credentials(Arc::new({
        let mut given = registry::Given::new();
        given.insert(&address, login());
        given
    }));
    assert!(later.manifest(&closed).await.is_ok());
}

#[tokio::test]
async fn an_identity_token_is_changed_for_another() {
    let registry = Registry::with_tokens();
    let address = registry.address();
    let name = reference(&address, "app:1");
    let user = client_of(&address, Credential::IdentityToken(REFRESH_TOKEN.to_owned()));
    assert!(push(&user, &name, b"layer").await.unwrap());
    let impostor = client_of(&address, Credential::IdentityToken("guess".to_owned()));
    is_refused(&push(&impostor, &name, b"other").await.unwrap_err(), &address);
}

#[tokio::test]
async fn a_mount_asks_for_both_repositories() {
    let registry = Registry::with_tokens();
    let address = registry.address();
    let (one, two) = (reference(&address, "one:1"), reference(&address, "two:1"));
    let user = client_of(&address, login());
    let layer = content(1000);
    push(&user, &one, &layer).await.unwrap();
    assert!(user.mount_blob(&two, &descriptor(&layer).digest, "one").await.unwrap());
    let last = registry.tokens().asked().pop().unwrap();
    assert_eq!(last, "tester repository:two:pull,push repository:one:pull");
}

/// Counts how often it is asked.
struct Counted(AtomicU32);

impl Credentials for Counted {
    fn find<'a>(&'a self, _registry: &'a str) -> Found<'a> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Box::pin(async { Ok(Some(login())) })
    }
}

#[tokio::test]
async fn credentials_are_looked_up_when_asked_for_and_kept() {
    let (open, closed) = (Registry::start(), Registry::with_password());
    let counted = Arc::new(Counted(AtomicU32::new(0)));
    let user = client().with_credentials(counted.clone());
    push_image(&user, &reference(&open.address(), "app:1"), b"layer").await;
    assert_eq!(counted.0.load(Ordering::Relaxed), 0);
    push_image(&user, &reference(&closed.address(), "app:1"), b"layer").await;
    assert_eq!(counted.0.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn the_configuration_of_docker_opens() {
    let registry = Registry::with_password();
    let address = registry.address();
    // `tester:hush`
    let text = format!("{{\"auths\":{{\"{address}\":{{\"auth\":\"dGVzdGVyOmh1c2g=\"}}}}}}");
    let config = DockerConfig::parse(Path::new("config.json"), text.as_bytes()).unwrap();
    let user = client().with_credentials(Arc::new(config));
    assert!(push(&user, &reference(&address, "app:1"), b"layer").await.unwrap());
}
