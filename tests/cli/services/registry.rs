//! A registry that is a service.

use serde_json::json;
use testkit::{Session, State};

const CONFIG: &str =
    "version: 0.1\nstorage:\n  filesystem:\n    rootdirectory: /var/images\nhttp:\n  addr: :5000\n";

#[test]
fn images_go_to_and_come_from_a_registry_that_is_a_service() {
    let state = State::debian();
    let session = Session::start(&state);
    let config = json!(CONFIG);
    let id = session.leaf(&format!(
        r#"{{ container {{ from(address: "deb://bookworm+docker-registry") {{
            withNewFile(path: "/config.yml", contents: {config}) {{ withExposedPort(port: 5000) {{
            asService(args: ["docker-registry", "serve", "/config.yml"]) {{ id }} }} }} }} }} }}"#
    ));
    let address = "registry:5000/words:one";
    let publish = format!(
        r#"withNewFile(path: "/word", contents: "hello") {{
            publish(address: "{address}", registryService: {id}) }}"#
    );
    let published = session.container(&publish);
    assert!(published.starts_with("registry:5000/words:one@sha256:"), "{published}");
    let word = session.leaf(&format!(
        r#"{{ container {{ from(address: "{published}", registryService: {id}) {{
            file(path: "/word") {{ contents }} }} }} }}"#
    ));
    assert_eq!(word, "hello");
    // One that runs is known by its name.
    let document = format!("{{ loadServiceFromID(id: {id}) {{ start endpoint }} }}");
    let started = session.query(&document);
    let endpoint = started["loadServiceFromID"]["endpoint"].as_str().unwrap();
    let by_name = format!(
        r#"withNewFile(path: "/word", contents: "again") {{ publish(address: "{endpoint}/words:two") }}"#
    );
    let published = session.container(&by_name);
    assert!(published.contains("/words:two@sha256:"), "{published}");
}
