//! Who may fetch and push: logins of the container, of the engine's settings and of the client.

use super::image::publish;
use serde_json::json;
use testkit::registry::{PASSWORD, Registry, USER};
use testkit::{Session, State};

/// The auth field of a docker configuration for the user.
fn docker_config(registry: &str, password: &str) -> String {
    use std::fmt::Write as _;
    let plain = format!("{USER}:{password}");
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut encoded = String::new();
    for chunk in plain.as_bytes().chunks(3) {
        let bits = chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        for place in 0..4 {
            match place <= chunk.len() {
                true => encoded.push(alphabet[(bits >> (18 - 6 * place) & 63) as usize] as char),
                false => write!(encoded, "=").unwrap(),
            }
        }
    }
    json!({ "auths": { registry: { "auth": encoded } } }).to_string()
}

fn secret(session: &Session, password: &str) -> serde_json::Value {
    session.leaf(&format!(r#"{{ setSecret(name: "p", plaintext: {}) {{ id }} }}"#, json!(password)))
}

fn with_login(registry: &Registry, session: &Session, password: &str) -> String {
    let secret = secret(session, password);
    format!(
        r#"withRegistryAuth(address: {}, username: "{USER}", secret: {secret}) {{"#,
        json!(registry.address())
    )
}

fn entries(address: &str, login: &str) -> String {
    let close = if login.is_empty() { "" } else { "}" };
    format!(
        "{{ container {{ {login} from(address: {}) {{ rootfs {{ entries }} }} {close} }} }}",
        json!(address)
    )
}

#[test]
fn a_container_brings_its_own_login() {
    for registry in [Registry::with_password(), Registry::with_tokens()] {
        let state = State::new();
        let session = Session::start(&state);
        let address = format!("{}/app:1", registry.address());
        let said =
            session.error(&session.on_container(&format!("publish(address: {})", json!(address))));
        assert!(said.contains("login") || said.contains("refuses"), "{said}");
        publish(&session, &with_login(&registry, &session, PASSWORD), &address, "");
        let said = session.error(&entries(&address, ""));
        assert!(said.contains("login") || said.contains("refuses"), "{said}");
        let wrong = with_login(&registry, &session, "wrong");
        let said = session.error(&entries(&address, &wrong));
        assert!(said.contains(&registry.address()), "{said}");
        assert!(!said.contains("wrong"), "{said}");
        let login = with_login(&registry, &session, PASSWORD);
        assert!(session.leaf(&entries(&address, &login)).as_array().is_some());
        let without = format!(
            "{{ container {{ {login} withoutRegistryAuth(address: {}) {{ from(address: {}) {{ rootfs {{ entries }} }} }} }} }} }}",
            json!(registry.address()),
            json!(format!("{}/other:1", registry.address()))
        );
        session.error(&without);
    }
}

#[test]
fn the_client_and_the_engine_have_logins_too() {
    let registry = Registry::with_password();
    let address = format!("{}/app:1", registry.address());
    let state = State::new();
    std::fs::create_dir_all(state.home().join(".docker")).unwrap();
    let config = state.home().join(".docker/config.json");
    std::fs::write(&config, docker_config(&registry.address(), PASSWORD)).unwrap();
    let session = Session::start(&state);
    publish(&session, "", &address, "");
    drop(session);
    // A program that keeps passwords, as docker asks it.
    let bin = state.home().join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    let helper = bin.join("docker-credential-kept");
    let said = json!({ "ServerURL": registry.address(), "Username": USER, "Secret": PASSWORD });
    testkit::write_program(&helper, format!("#!/bin/sh\ncat > /dev/null\necho '{said}'\n"));
    let named = json!({ "credHelpers": { registry.address(): "kept" } }).to_string();
    std::fs::write(&config, named).unwrap();
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let args = ["core", "container", "from", "--address", &address, "rootfs", "entries"];
    assert!(state.cli(args).env("PATH", &path).run().ok().contains("bin"));
    // A helper that is not there is no reason to fail before the registry does.
    let output = state.cli(args.map(|arg| arg.replace("app:1", "app2:1"))).run();
    assert!(!output.status.success() && output.stderr.contains("login"), "{output:#?}");

    let password = state.file("password", format!("{PASSWORD}\n"));
    let config = format!(
        "[registry.\"{}\"]\nusername = \"{USER}\"\npassword-file = {:?}\n",
        registry.address(),
        password.to_str().unwrap()
    );
    let other = state.another();
    other.configure(&config);
    let session = Session::start(&other);
    assert!(session.leaf(&entries(&address, "")).as_array().is_some());
    // What a container brings goes before what the engine has.
    let wrong = with_login(&registry, &session, "wrong");
    session.error(&entries(&address, &wrong));
}

#[test]
fn a_password_appears_nowhere() {
    let registry = Registry::with_password();
    let state = State::new();
    let session = Session::start(&state);
    let password = "very-secret-text";
    let secret = secret(&session, password);
    assert_eq!(session.leaf(&format!("{{ loadSecretFromID(id: {secret}) {{ name }} }}")), "p");
    let plain = session.leaf(&format!("{{ loadSecretFromID(id: {secret}) {{ plaintext }} }}"));
    assert_eq!(plain, password);
    session.error(&entries(
        &format!("{}/app:1", registry.address()),
        &with_login(&registry, &session, password),
    ));
    let other = Session::start(&state);
    other.error(&format!("{{ loadSecretFromID(id: {secret}) {{ plaintext }} }}"));
    drop((session, other));
    state.stop();
    let output = state
        .program(std::path::Path::new("grep"))
        .args(["-r", "-l", "-a", password, state.dir().to_str().unwrap()])
        .run();
    assert_eq!(output.stdout, "");
}

#[test]
fn protocols_and_certificates() {
    let registry = Registry::with_tls();
    let address = format!("{}/app:1", registry.address());
    let state = State::new();
    let session = Session::start(&state);
    let verified = format!("publish(address: {}, protocol: HTTPS)", json!(address));
    let said = session.error(&session.on_container(&verified));
    assert!(said.contains(&registry.address()), "{said}");
    publish(&session, "", &address, ", protocol: HTTPS, insecureSkipTLSVerify: true");
    let pull = |arguments: &str| {
        format!(
            "{{ container {{ from(address: {}{arguments}) {{ rootfs {{ entries }} }} }} }}",
            json!(address)
        )
    };
    session.error(&pull(", protocol: HTTPS"));
    session.error(&pull(", protocol: HTTP"));
    assert!(session.leaf(&pull(", insecureSkipTLSVerify: true")).as_array().is_some());
    let config = format!(
        "[registry.\"{}\"]\nca = {:?}\n",
        registry.address(),
        registry.ca().to_str().unwrap()
    );
    drop(session);
    let other = state.another();
    other.configure(&config);
    let session = Session::start(&other);
    assert!(session.leaf(&pull("")).as_array().is_some());
    assert!(session.leaf(&pull(", protocol: HTTPS")).as_array().is_some());
}
