//! Where an engine listens, and what it asks for before it does.

use super::{Remote, free_port};
use testkit::State;

#[test]
fn listening_without_certificates_is_refused() {
    for (settings, hint) in [
        ("listen = \"tcp://0.0.0.0:PORT\"\nlisten-plain = true", "`tls-client-ca`"),
        ("listen = \"tcp://127.0.0.1:PORT\"", "`listen-plain = true`"),
        (
            "listen = \"tcp://127.0.0.1:PORT\"\ntls-cert = \"/c\"\ntls-key = \"/k\"",
            "`tls-client-ca`",
        ),
    ] {
        let state = State::with_config(&settings.replace("PORT", &free_port().to_string()));
        let output = state.cli(["core", "version"]).run();
        let said = output.fails(1);
        assert!(said.contains("needs certificates of both sides"), "{settings}: {said}");
        assert!(said.contains(hint), "{settings}: {said}");
    }
}

#[test]
fn certificates_that_cannot_be_read_are_named() {
    let port = free_port();
    let state = State::with_config(&format!(
        "listen = \"tcp://127.0.0.1:{port}\"\ntls-cert = \"/no/c.pem\"\ntls-key = \"/no/k.pem\"\ntls-client-ca = \"/no/a.pem\""
    ));
    let output = state.cli(["core", "version"]).run();
    assert!(output.fails(1).contains("/no/a.pem"), "{output:#?}");
}

#[test]
fn loopback_does_without_when_it_was_asked_to() {
    let remote = Remote::plain();
    let output = remote.cli(&["core", "file", "--name=a", "--contents=b", "contents"]).run();
    assert_eq!(output.ok(), "b");
}

#[test]
fn an_engine_that_listens_stays_when_it_is_idle() {
    let state = State::new();
    let port = free_port();
    state.configure(&format!(
        "idle-timeout = \"1ms\"\nlisten = \"tcp://127.0.0.1:{port}\"\nlisten-plain = true"
    ));
    state.cli(["core", "version"]).run().ok();
    let before = state.engine().pid;
    for _ in 0..3 {
        state.cli(["core", "version"]).run().ok();
    }
    assert_eq!(state.engine().pid, before);
}

#[test]
fn addresses_and_certificates_of_the_client_are_checked() {
    let state = State::new();
    for (address, words) in [
        ("tcp://engine.example:7433", "needs certificates"),
        ("tcp://engine.example", "is no address of an engine"),
        ("http://engine.example:1", "is no address of an engine"),
        ("ssh://", "is no address of an engine"),
    ] {
        let output = state.cli(["core", "version"]).env("CITOOL_ENGINE", address).run();
        assert!(output.fails(1).contains(words), "{address}: {output:#?}");
    }
    let output = state
        .cli(["core", "version"])
        .env("CITOOL_ENGINE", "tcp://engine.example:7433")
        .env("CITOOL_ENGINE_CA", "/no/ca.pem")
        .env("CITOOL_ENGINE_CERT", "/no/c.pem")
        .env("CITOOL_ENGINE_KEY", "/no/k.pem")
        .run();
    assert!(output.fails(1).contains("/no/ca.pem"), "{output:#?}");
}
