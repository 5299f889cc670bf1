//! What a Dockerfile says about its image, and the image that goes out.

use super::{World, with};
use serde_json::{Value, json};
use std::path::Path;

const BASE: &str = "ARG BASE\nFROM $BASE\n";

/// The configuration of what a registry has under a name.
fn config(world: &World, address: &str) -> Value {
    let address = format!("docker://{address}");
    let args = ["inspect", "--config", "--raw", "--tls-verify=false", &address];
    serde_json::from_str(world.state.program(Path::new("skopeo")).args(args).run().ok()).unwrap()
}

#[test]
fn configuration_is_carried_into_the_image() {
    let world = World::new();
    let dockerfile = format!(
        "{BASE}MAINTAINER me\nENV A=1\nLABEL l=\"x y\" m=$A\nEXPOSE 80 8000-8002/udp\nVOLUME /v1 /v2\nUSER guest\nWORKDIR /tmp\nSTOPSIGNAL SIGINT\n\
         SHELL [\"/bin/ash\", \"-c\"]\nHEALTHCHECK --interval=5s --retries=2 CMD true\nONBUILD USER 0\nONBUILD RUN echo later > /tmp/l\nENTRYPOINT [\"/bin/sh\"]\nCMD echo hi\n"
    );
    let address = format!("{}/configured:1", world.registry.address());
    let publish = format!("publish(address: {})", json!(address));
    world.built(&dockerfile, &[], &publish);
    let whole = config(&world, &address);
    assert_eq!(whole["author"], "me");
    let found = &whole["config"];
    for (name, expected) in [
        ("Env", json!(["PATH=/bin", "A=1"])),
        ("Labels", json!({"l": "x y", "m": "1"})),
        ("ExposedPorts", json!({"80/tcp": {}, "8000/udp": {}, "8001/udp": {}, "8002/udp": {}})),
        ("Volumes", json!({"/v1": {}, "/v2": {}})),
        ("User", json!("guest")),
        ("WorkingDir", json!("/tmp")),
        ("StopSignal", json!("SIGINT")),
        ("Shell", json!(["/bin/ash", "-c"])),
        (
            "Healthcheck",
            json!({"Test": ["CMD-SHELL", "true"], "Interval": 5_000_000_000u64, "Retries": 2}),
        ),
        ("OnBuild", json!(["USER 0", "RUN echo later > /tmp/l"])),
        ("Entrypoint", json!(["/bin/sh"])),
        ("Cmd", json!(["/bin/ash", "-c", "echo hi"])),
    ] {
        assert_eq!(found[name], expected, "{name}");
    }
    // Who begins from it inherits all but the triggers, which run; an entrypoint takes the command away.
    let next = format!("FROM {address}\nUSER 0\nENTRYPOINT [\"/x\"]\n");
    let file = r#"file(path: "/tmp/l") { contents }"#;
    assert_eq!(world.built(&next, &[], file), "later\n");
    assert!(
        world
            .session
            .error(&world.document(&with(&next, &[]), "", "stdout"))
            .contains("no command has been set")
    );
    assert_eq!(world.built(&next, &[], "defaultArgs"), json!([]));
    assert_eq!(world.built(&next, &[], "entrypoint"), json!(["/x"]));
    assert_eq!(world.built(&next, &[], "exposedPorts { port }").as_array().unwrap().len(), 4);
}

#[test]
fn each_step_that_writes_is_a_layer_with_its_line() {
    let world = World::new();
    let files = [("a", "a"), ("d/b", "b")];
    let dockerfile = format!(
        "{BASE}COPY a d /x/\nENV E=1\nRUN true\nRUN echo y > /y\nWORKDIR /w\nCOPY a b\nCOPY a b\nCMD z\n"
    );
    let dockerfile = dockerfile.replace("COPY a b\nCOPY a b", "COPY a b\nCOPY d /z/");
    let address = format!("{}/layers:1", world.registry.address());
    world.built(&dockerfile, &files, &format!("publish(address: {})", json!(address)));
    let whole = config(&world, &address);
    let layers = whole["rootfs"]["diff_ids"].as_array().unwrap().len();
    assert_eq!(layers, 1 + 5, "of the base and five of ours");
    let history: Vec<(String, bool)> = whole["history"]
        .as_array()
        .unwrap()
        .iter()
        .skip(1)
        .map(|step| (step["created_by"].as_str().unwrap().to_owned(), step["empty_layer"] == true))
        .collect();
    let expected = [
        ("COPY a d /x/", false),
        ("ENV E=1", true),
        ("RUN true", true),
        ("RUN echo y > /y", false),
        ("WORKDIR /w", false),
        ("COPY a b", false),
        ("COPY d /z/", false),
        ("CMD z", true),
    ];
    assert_eq!(history, expected.map(|(text, empty)| (text.to_owned(), empty)));
    // From the cache the image is the same.
    let again = format!("{}/layers:2", world.registry.address());
    world.session.leaf(&world.document(
        &with(&dockerfile, &files),
        "",
        &format!("publish(address: {})", json!(again)),
    ));
    assert_eq!(config(&world, &again), whole);
}
