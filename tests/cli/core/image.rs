//! Images of registries: `from`, `publish` and what is between.

use serde_json::{Value, json};
use std::path::Path;
use testkit::registry::Registry;
use testkit::{Session, State};

/// What a registry has under a name, as another program reads it.
pub(super) fn raw(state: &State, address: &str) -> Value {
    let address = format!("docker://{address}");
    let output = state
        .program(Path::new("skopeo"))
        .args(["inspect", "--raw", "--tls-verify=false", &address])
        .run();
    serde_json::from_str(output.ok()).unwrap()
}

/// The configuration of what a registry has under a name.
fn config(state: &State, address: &str) -> Value {
    let address = format!("docker://{address}");
    let args = ["inspect", "--config", "--raw", "--tls-verify=false", &address];
    serde_json::from_str(state.program(Path::new("skopeo")).args(args).run().ok()).unwrap()
}

/// Publishes the static root file system, with a chain of fields after it, and gives the address.
pub(super) fn publish(session: &Session, chain: &str, address: &str, rest: &str) -> String {
    let publish = format!("publish(address: {}{rest})", json!(address));
    let whole = match chain.is_empty() {
        true => publish,
        false => {
            let depth = chain.matches('{').count() - chain.matches('}').count();
            format!("{chain} {publish} {}", "}".repeat(depth))
        }
    };
    session.container(&whole)
}

fn from(address: &str, chain: &str) -> String {
    format!("{{ container {{ from(address: {}) {{ {chain} }} }} }}", json!(address))
}

#[test]
fn an_image_goes_out_and_comes_in() {
    let registry = Registry::start();
    let state = State::new();
    let session = Session::start(&state);
    let address = format!("{}/app:1", registry.address());
    let published =
        publish(&session, r#"withNewFile(path: "/hello", contents: "hello") {"#, &address, "");
    let (name, digest) = published.split_once('@').unwrap();
    assert_eq!(name, address);
    assert!(digest.starts_with("sha256:") && digest.len() == 71, "{published}");
    let manifest = raw(&state, &address);
    assert_eq!(manifest["mediaType"], "application/vnd.oci.image.manifest.v1+json");
    assert_eq!(manifest["layers"].as_array().unwrap().len(), 2);

    let other = state.another();
    let there = Session::start(&other);
    let run = r#"withExec(args: ["cat", "/hello"]) { stdout }"#;
    assert_eq!(there.leaf(&from(&address, run)), "hello");
    assert_eq!(there.leaf(&from(&address, "imageRef")), published);
    drop(there);
    // A digest is known for good: no registry is asked any more.
    drop(registry);
    let there = Session::start(&other);
    assert_eq!(there.leaf(&from(&published, run)), "hello");
    let said = there.error(&from(&address, "imageRef"));
    assert!(said.contains("app:1") || said.contains("127.0.0.1"), "{said}");
}

#[test]
fn layers_of_an_image_are_kept_and_ours_are_added() {
    let registry = Registry::start();
    let state = State::new();
    let session = Session::start(&state);
    let (base, next) =
        (format!("{}/base:1", registry.address()), format!("{}/next:2", registry.address()));
    publish(
        &session,
        r#"withNewFile(path: "/d/a", contents: "a") { withNewFile(path: "/d/b", contents: "b") {"#,
        &base,
        "",
    );
    let other = state.another();
    let there = Session::start(&other);
    let chain = format!(
        r#"withExec(args: ["sh", "-c", "rm /d/a; rm -r /tmp; mkdir /tmp; echo c > /d/c; ln /d/c /d/e"]) {{
             withExec(args: ["sh", "-c", "chmod 700 /d"]) {{ publish(address: {}) }} }}"#,
        json!(next)
    );
    there.leaf(&from(&base, &chain));
    let (old, new) = (raw(&state, &base), raw(&state, &next));
    let layers = |manifest: &Value| manifest["layers"].as_array().unwrap().clone();
    let (old, new) = (layers(&old), layers(&new));
    assert_eq!(new[..old.len()], old[..]);
    assert_eq!(new.len(), old.len() + 2);
    let steps = config(&state, &next)["history"].as_array().unwrap().len();
    assert_eq!(steps, new.len());
    drop(there);

    // Somebody who has neither sees the same files.
    let third = state.another();
    let there = Session::start(&third);
    let look =
        r#"withExec(args: ["sh", "-c", "ls /d /tmp; stat -c %a /d; stat -c %h /d/c"]) { stdout }"#;
    assert_eq!(there.leaf(&from(&next, look)), "/d:\nb\nc\ne\n\n/tmp:\n700\n2\n");
}

#[test]
fn configuration_travels_with_the_image() {
    let registry = Registry::start();
    let state = State::new();
    let session = Session::start(&state);
    let address = format!("{}/app:1", registry.address());
    let chain = r#"withEnvVariable(name: "A", value: "1") { withLabel(name: "l", value: "v") {
        withAnnotation(name: "org.note", value: "n") { withAnnotation(name: "gone", value: "n") { withoutAnnotation(name: "gone") {
        withExposedPort(port: 80, description: "web") { withExposedPort(port: 53, protocol: UDP) { withExposedPort(port: 9) { withoutExposedPort(port: 9) {
        withEntrypoint(args: ["/bin/sh", "-c"]) { withDefaultArgs(args: ["echo hi"]) { withUser(name: "guest") { withWorkdir(path: "/tmp") {"#;
    publish(&session, chain, &address, "");
    let manifest = raw(&state, &address);
    assert_eq!(manifest["annotations"], json!({ "org.note": "n" }));
    let config = config(&state, &address);
    assert_eq!(config["config"]["ExposedPorts"], json!({ "53/udp": {}, "80/tcp": {} }));
    assert_eq!(config["config"]["Entrypoint"], json!(["/bin/sh", "-c"]));
    assert_eq!(config["config"]["Labels"], json!({ "l": "v" }));

    let there = Session::start(&state);
    let field = |chain: &str| there.leaf(&from(&address, chain));
    assert_eq!(field("entrypoint"), json!(["/bin/sh", "-c"]));
    assert_eq!(field("defaultArgs"), json!(["echo hi"]));
    assert_eq!(field("user"), "guest");
    assert_eq!(field("workdir"), "/tmp");
    assert_eq!(field(r#"label(name: "l")"#), "v");
    assert_eq!(field(r#"envVariable(name: "A")"#), "1");
    assert_eq!(
        field("exposedPorts { port protocol description experimentalSkipHealthcheck }"),
        json!([
            { "port": 53, "protocol": "UDP", "description": null, "experimentalSkipHealthcheck": true },
            { "port": 80, "protocol": "TCP", "description": null, "experimentalSkipHealthcheck": true },
        ])
    );
    assert_eq!(field(r#"withExec(args: [], useEntrypoint: true) { stdout }"#), "hi\n");
    // What was set before stays unless the image says otherwise.
    let before = format!(
        r#"{{ container {{ withEnvVariable(name: "A", value: "0") {{ withEnvVariable(name: "B", value: "2") {{
            from(address: {}) {{ envVariables {{ name value }} }} }} }} }} }}"#,
        json!(address)
    );
    let pairs = json!([{ "name": "A", "value": "1" }, { "name": "B", "value": "2" }]);
    assert_eq!(there.leaf(&before), pairs);
    let said = there.error(&from(&address, r#"withLabel(name: "x", value: "y") { imageRef }"#));
    assert!(said.contains("configuration was changed"), "{said}");
    let kept = there.leaf(&from(&address, r#"withNewFile(path: "/x", contents: "") { imageRef }"#));
    assert!(kept.as_str().unwrap().starts_with(&address), "{kept}");
}

#[test]
fn platforms_under_one_name() {
    let registry = Registry::start();
    let state = State::new();
    let session = Session::start(&state);
    let address = format!("{}/many:1", registry.address());
    let variant = |platform: &str| {
        let id = session.leaf(&format!(
            r#"{{ container(platform: "{platform}") {{ withNewFile(path: "/is", contents: "{platform}") {{
                withAnnotation(name: "for", value: "{platform}") {{ id }} }} }} }}"#
        ));
        id.as_str().unwrap().to_owned()
    };
    let variants = json!(["linux/amd64", "linux/arm64", "linux/arm/v7"].map(variant));
    let publish = format!(
        "{{ container {{ publish(address: {}, platformVariants: {variants}) }} }}",
        json!(address)
    );
    session.leaf(&publish);
    let index = raw(&state, &address);
    let manifests = index["manifests"].as_array().unwrap();
    assert_eq!(manifests.len(), 3);
    assert_eq!(manifests[2]["platform"]["variant"], "v7");
    assert_eq!(manifests[1]["annotations"]["for"], "linux/arm64");

    let there = Session::start(&state);
    let is = |platform: &str| {
        format!(
            r#"{{ container(platform: "{platform}") {{ from(address: {}) {{ file(path: "/is") {{ contents }} }} }} }}"#,
            json!(address)
        )
    };
    assert_eq!(there.leaf(&is("linux/arm64/v8")), "linux/arm64");
    assert_eq!(there.leaf(&is("linux/arm")), "linux/arm/v7");
    let said = there.error(&is("linux/s390x"));
    assert!(said.contains("linux/amd64, linux/arm/v7, linux/arm64"), "{said}");
    let twice = json!([variant("linux/amd64"), variant("linux/amd64")]);
    let said = session.error(&format!(
        "{{ container {{ publish(address: {}, platformVariants: {twice}) }} }}",
        json!(address)
    ));
    assert!(said.contains("two variants"), "{said}");
}

#[test]
fn forms_of_layers_and_documents() {
    let registry = Registry::start();
    let state = State::new();
    let session = Session::start(&state);
    let base = format!("{}/base:1", registry.address());
    publish(&session, "", &base, "");
    for (arguments, manifest_type, layer_type) in [
        (
            ", mediaTypes: DockerMediaTypes",
            "docker.distribution.manifest.v2",
            "rootfs.diff.tar.gzip",
        ),
        (", forcedCompression: Zstd", "oci.image.manifest", "layer.v1.tar+zstd"),
        (", forcedCompression: UNCOMPRESSED", "oci.image.manifest", "layer.v1.tar"),
        (", forcedCompression: EStarGZ", "oci.image.manifest", "tar+gzip"),
        (", forcedCompression: Gzip, mediaTypes: DOCKER", "docker", "tar.gzip"),
    ] {
        let address = format!("{}/form:1", registry.address());
        let chain = format!(
            r#"withNewFile(path: "/f", contents: "f") {{ publish(address: {}{arguments}) }}"#,
            json!(address)
        );
        session.leaf(&from(&base, &chain));
        let manifest = raw(&state, &address);
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        assert!(text(&manifest["mediaType"]).contains(manifest_type), "{manifest}");
        for layer in manifest["layers"].as_array().unwrap() {
            assert!(text(&layer["mediaType"]).ends_with(layer_type), "{arguments}: {layer}");
        }
        let there = Session::start(&state);
        assert_eq!(there.leaf(&from(&address, r#"withExec(args: ["cat", "/f"]) { stdout }"#)), "f");
    }
}

#[test]
fn layers_with_an_index_are_layers_to_everybody() {
    let registry = Registry::start();
    let state = State::new();
    let session = Session::start(&state);
    let (base, address) =
        (format!("{}/plain:1", registry.address()), format!("{}/lazy:1", registry.address()));
    publish(&session, r#"withNewFile(path: "/old", contents: "old") {"#, &base, "");
    let chain = format!(
        r#"withNewFile(path: "/f", contents: "f") {{ withoutFile(path: "/old") {{
            publish(address: {}, forcedCompression: ESTARGZ) }} }}"#,
        json!(address)
    );
    session.leaf(&from(&base, &chain));
    let manifest = raw(&state, &address);
    let layers = manifest["layers"].as_array().unwrap();
    assert!(layers.len() > 1, "{manifest}");
    for layer in layers {
        let index = &layer["annotations"]["containerd.io/snapshot/stargz/toc.digest"];
        assert!(index.as_str().is_some_and(|digest| digest.starts_with("sha256:")), "{layer}");
    }
    let there = Session::start(&state);
    let look = r#"withExec(args: ["sh", "-c", "cat /f; ls /old /stargz.index.json 2>&1"], expect: ANY) { stdout }"#;
    let seen = there.leaf(&from(&address, look));
    assert!(seen.as_str().unwrap().starts_with('f'), "{seen}");
    assert!(seen.as_str().unwrap().contains("/old: No such file"), "{seen}");
    // Another program that reads images reads these.
    let tool = state.program(std::path::Path::new("/usr/bin/skopeo"));
    let copied = tool
        .args([
            "--insecure-policy",
            "copy",
            "--src-tls-verify=false",
            &format!("docker://{address}"),
            "oci:out:1",
        ])
        .run();
    copied.ok();
    let unpacked = state
        .program(std::path::Path::new("/usr/bin/umoci"))
        .args(["raw", "unpack", "--image=out:1", "tree"])
        .run();
    unpacked.ok();
    assert_eq!(std::fs::read_to_string(state.workdir().join("tree/f")).unwrap(), "f");
    assert!(!state.workdir().join("tree/old").exists());
}

#[test]
fn equal_containers_give_equal_bytes() {
    let registry = Registry::start();
    let state = State::new();
    let chain =
        r#"withExec(args: ["sh", "-c", "date > /now"]) { withNewFile(path: "/f", contents: "f") {"#;
    let digest = |session: &Session, name: &str| {
        let address = format!("{}/{name}:1", registry.address());
        publish(session, chain, &address, "").split_once('@').unwrap().1.to_owned()
    };
    let first = digest(&Session::start(&state), "one");
    assert_eq!(digest(&Session::start(&state), "two"), first);
    state.stop();
    assert_eq!(digest(&Session::start(&state), "three"), first);
}

#[test]
fn an_empty_container_has_no_layers() {
    let registry = Registry::start();
    let state = State::new();
    let session = Session::start(&state);
    let address = format!("{}/empty:1", registry.address());
    session.leaf(&format!("{{ container {{ publish(address: {}) }} }}", json!(address)));
    assert_eq!(raw(&state, &address)["layers"], json!([]));
    let there = Session::start(&state);
    assert_eq!(there.leaf(&from(&address, "rootfs { entries }")), json!([]));
}

#[test]
fn names_that_lead_nowhere_are_told() {
    let registry = Registry::start();
    let state = State::new();
    let session = Session::start(&state);
    let missing = format!("{}/nothing:1", registry.address());
    let said = session.error(&from(&missing, "id rootfs { entries }"));
    assert!(said.contains("nothing:1") && said.contains("not found"), "{said}");
    for (address, reason) in
        [("localhost:1/UPPER:1", "lower case"), ("http://x/y", "http://"), ("a@sha256:1", "digest")]
    {
        let said = session.error(&from(address, "rootfs { entries }"));
        assert!(said.contains(reason), "{said}");
    }
    let digest = format!("{}@sha256:{}", missing, "0".repeat(64));
    let said = session.error(&format!("{{ container {{ publish(address: {}) }} }}", json!(digest)));
    assert!(said.contains("under a tag"), "{said}");
}

#[test]
fn a_tag_means_the_same_for_a_whole_session() {
    let registry = Registry::start();
    let state = State::new();
    let maker = Session::start(&state);
    let address = format!("{}/moving:1", registry.address());
    publish(&maker, r#"withNewFile(path: "/v", contents: "1") {"#, &address, "");
    let other = state.another();
    let early = Session::start(&other);
    let read = r#"file(path: "/v") { contents }"#;
    assert_eq!(early.leaf(&from(&address, read)), "1");
    publish(&maker, r#"withNewFile(path: "/v", contents: "2") {"#, &address, "");
    let late = Session::start(&other);
    assert_eq!(late.leaf(&from(&address, read)), "2");
    let again = format!(
        r#"{{ container {{ withEnvVariable(name: "x", value: "y") {{ from(address: {}) {{ {read} }} }} }} }}"#,
        json!(address)
    );
    assert_eq!(early.leaf(&again), "1");
}

#[test]
fn many_layers_become_fewer() {
    let registry = Registry::start();
    let state = State::new();
    let files: Vec<Vec<(String, String)>> =
        (0..118).map(|number| vec![(format!("f{number}"), format!("{number}"))]).collect();
    let archive = super::image_files::layout(&files);
    let path = state.file("many.tar", archive);
    let session = Session::start(&state);
    let address = format!("{}/many:1", registry.address());
    let file =
        session.leaf(&format!("{{ host {{ file(path: {}) {{ id }} }} }}", json!(path.to_str())));
    // Each edit is written by a read before the next one comes.
    let mut id = session.leaf(&format!("{{ container {{ import(source: {file}) {{ id }} }} }}"));
    for number in 0..8 {
        let next = format!(
            r#"{{ loadContainerFromID(id: {id}) {{ withNewFile(path: "/g{number}", contents: "{number}") {{ sync }} }} }}"#
        );
        id = session.leaf(&next);
        session.leaf(&format!("{{ loadContainerFromID(id: {id}) {{ rootfs {{ entries }} }} }}"));
    }
    session.leaf(&format!(
        "{{ loadContainerFromID(id: {id}) {{ publish(address: {}) }} }}",
        json!(address)
    ));
    let layers = raw(&state, &address)["layers"].as_array().unwrap().len();
    assert!((119..=120).contains(&layers), "{layers}");
    let other = state.another();
    let there = Session::start(&other);
    let entries = there.leaf(&from(&address, "rootfs { entries }"));
    assert_eq!(entries.as_array().unwrap().len(), 126);
}

#[test]
fn blobs_that_are_gone_or_damaged_come_anew() {
    let registry = Registry::start();
    let target = Registry::start();
    let state = State::new();
    let session = Session::start(&state);
    let base = format!("{}/base:1", registry.address());
    publish(&session, "", &base, "");
    let other = state.another();
    let blobs = other.store().join("blobs/sha256");
    let files = || {
        let folders = std::fs::read_dir(&blobs).unwrap().map(|folder| folder.unwrap().path());
        let files = folders.flat_map(|folder| std::fs::read_dir(folder).unwrap());
        files.map(|file| file.unwrap().path()).collect::<Vec<_>>()
    };
    for (round, damage) in ["gone", "flipped", "none"].into_iter().enumerate() {
        let there = Session::start(&other);
        let address = format!("{}/copy{round}:1", target.address());
        let chain = |address: &str| {
            format!(
                r#"withNewFile(path: "/ours", contents: "ours") {{ publish(address: {}) }}"#,
                json!(address)
            )
        };
        // Ours is packed once; from then on both blobs are only a cache.
        there.leaf(&from(&base, &chain(&format!("{}/first{round}:1", registry.address()))));
        for file in files() {
            match damage {
                "gone" => std::fs::remove_file(file).unwrap(),
                "flipped" => {
                    let mut bytes = std::fs::read(&file).unwrap();
                    let middle = bytes.len() / 2;
                    bytes[middle] ^= 1;
                    std::fs::write(&file, bytes).unwrap();
                }
                _ => {}
            }
        }
        let published = there.leaf(&from(&base, &chain(&address)));
        let third = state.another();
        let look = Session::start(&third);
        let run = r#"withExec(args: ["cat", "/ours"]) { stdout }"#;
        assert_eq!(look.leaf(&from(published.as_str().unwrap(), run)), "ours", "{damage}");
    }
}

#[test]
fn another_program_publishes_and_we_start_from_it() {
    let registry = Registry::start();
    let state = State::new();
    let session = Session::start(&state);
    let ours = format!("{}/ours:1", registry.address());
    publish(&session, "", &ours, "");
    let theirs = format!("docker://{}/theirs:1", registry.address());
    // Another program unpacks nothing, but it writes all documents anew.
    for (options, name) in [
        (&["--format=v2s2"][..], "docker"),
        (&["--format=oci", "--dest-compress-format=zstd"], "zstd"),
    ] {
        let from_ours = format!("docker://{ours}");
        let mut args = vec!["copy", "--src-tls-verify=false", "--dest-tls-verify=false"];
        args.extend(options);
        args.extend([from_ours.as_str(), theirs.as_str()]);
        state.program(Path::new("skopeo")).args(args).run().ok();
        let there = Session::start(&state);
        let address = theirs.trim_start_matches("docker://");
        let run = r#"withExec(args: ["echo", "ran"]) { stdout }"#;
        assert_eq!(there.leaf(&from(address, run)), "ran\n", "{name}");
    }
}
