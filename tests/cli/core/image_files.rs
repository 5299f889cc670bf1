//! Images in files: what other programs load and what they save.

use image::archive::{Blob, Contents, Source, Stream};
use image::tar::{Entry, Kind, Writer};
use image::{
    Compression, Config, Descriptor, Digest, Family, ImageConfig, Manifest, Platform, Role,
};
use serde_json::{Value, json};
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use testkit::{Session, State};

/// The bytes of a layer with these files.
pub(crate) fn layer(files: &[(String, String)]) -> Vec<u8> {
    let mut writer = Writer::new(vec![]);
    for (path, contents) in files {
        let size = contents.len() as u64;
        let entry = Entry { size, ..Entry::new(path.as_str(), Kind::File, 0o644) };
        writer.entry(&entry, &mut contents.as_bytes()).unwrap();
    }
    writer.finish().unwrap()
}

/// An archive of an image with these plain layers, for this machine.
pub(crate) fn archive(layers: Vec<Vec<u8>>) -> Vec<u8> {
    let diff_ids = layers.iter().map(|layer| Digest::of(layer)).collect();
    archive_of(layers, diff_ids)
}

/// The same, with a configuration that promises these layers.
pub(crate) fn archive_of(layers: Vec<Vec<u8>>, diff_ids: Vec<Digest>) -> Vec<u8> {
    let mut config = ImageConfig { config: Config::default(), ..ImageConfig::default() };
    config.platform =
        Platform::parse(if cfg!(target_arch = "aarch64") { "linux/arm64" } else { "linux/amd64" });
    config.rootfs.diff_ids = diff_ids;
    archive_with(layers, &config.to_bytes())
}

/// The same, with any configuration.
pub(crate) fn archive_with(layers: Vec<Vec<u8>>, config: &[u8]) -> Vec<u8> {
    let family = Family::Oci;
    let media_type = family.media_type(Role::Layer(Compression::None));
    let named = layers.iter().map(|layer| Descriptor::of(media_type, layer)).collect();
    let config_named = Descriptor::of(family.media_type(Role::Config), config);
    let manifest = Manifest::new(family, config_named, named).to_bytes();
    let top = vec![Descriptor::of(family.media_type(Role::Manifest), &manifest)];
    let bytes = layers.into_iter().chain([config.to_vec(), manifest]);
    let blobs = bytes.map(|bytes| Blob {
        digest: Digest::of(&bytes),
        size: bytes.len() as u64,
        source: Source::Bytes(bytes),
    });
    let mut whole = vec![];
    let contents = Contents { top, blobs: blobs.collect(), docker: None };
    Stream::new(contents).read_to_end(&mut whole).unwrap();
    whole
}

/// An archive of an image with these files, one list a layer.
pub(crate) fn layout(layers: &[Vec<(String, String)>]) -> Vec<u8> {
    archive(layers.iter().map(|files| layer(files)).collect())
}

/// The id of a file of the host.
fn host_file(session: &Session, path: &Path) -> Value {
    session.leaf(&format!("{{ host {{ file(path: {}) {{ id }} }} }}", json!(path.to_str())))
}

/// A field of the container that begins from an archive.
fn imported(session: &Session, path: &Path, tag: &str, chain: &str) -> Value {
    let file = host_file(session, path);
    session.leaf(&format!(
        "{{ container {{ import(source: {file}, tag: {}) {{ {chain} }} }} }}",
        json!(tag)
    ))
}

/// Writes the static root file system with something on top to a file.
fn export(session: &Session, path: &Path, arguments: &str) -> PathBuf {
    let chain = format!(
        r#"withExec(args: ["sh", "-c", "mkdir /d; echo x > /d/x; ln /d/x /d/y; chown 12:34 /d/x; chmod 4711 /d/x"]) {{
            withLabel(name: "made", value: "here") {{ export(path: {}{arguments}) }} }}"#,
        json!(path.to_str())
    );
    PathBuf::from(session.container(&chain))
}

/// Runs another program and gives what it printed.
fn run(state: &State, program: &str, args: &[&str]) -> String {
    state.program(Path::new(program)).args(args).run().ok().to_owned()
}

const LOOK: &str =
    r#"withExec(args: ["sh", "-c", "stat -c '%u:%g %a %h' /d/x; cat /d/y"]) { stdout }"#;
const SEEN: &str = "12:34 4711 2\nx\n";

#[test]
fn other_programs_load_what_we_write() {
    let state = State::new();
    let session = Session::start(&state);
    let path = export(&session, &state.workdir().join("deep/image.tar"), "");
    assert_eq!(path, state.workdir().join("deep/image.tar"));
    let mode = std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode, 0o600);
    let file = path.to_str().unwrap();
    for form in ["oci-archive", "docker-archive"] {
        let shown = run(&state, "skopeo", &["inspect", "--config", &format!("{form}:{file}")]);
        let shown: Value = serde_json::from_str(&shown).unwrap();
        assert_eq!(shown["config"]["Labels"]["made"], "here", "{form}");
    }
    let layout = format!("oci:{}:tag", state.workdir().join("layout").display());
    run(&state, "skopeo", &["copy", &format!("oci-archive:{file}"), &layout]);
    let (source, bundle) = (state.workdir().join("layout:tag"), state.workdir().join("bundle"));
    run(
        &state,
        "umoci",
        &["unpack", "--image", source.to_str().unwrap(), bundle.to_str().unwrap()],
    );
    assert_eq!(std::fs::read_to_string(bundle.join("rootfs/d/y")).unwrap(), "x\n");
    let metadata = std::fs::metadata(bundle.join("rootfs/d/x")).unwrap();
    assert_eq!(metadata.permissions().mode() & 0o7777, 0o4711);
    let loaded = podman(&state, &["load", "-q", "-i", file]);
    let image = loaded.trim().rsplit(' ').next().unwrap().to_owned();
    let shown = podman(&state, &["image", "inspect", &image]);
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown[0]["Labels"]["made"], "here");
}

/// Podman with a storage of its own.
fn podman(state: &State, args: &[&str]) -> String {
    let folder = state.workdir().join("podman");
    let (root, runroot) = (folder.join("root"), folder.join("run"));
    let own = ["--root", root.to_str().unwrap(), "--runroot", runroot.to_str().unwrap()];
    let driver = ["--storage-driver", "vfs"];
    run(state, "podman", &[&own[..], &driver, args].concat())
}

#[test]
fn what_other_programs_save_is_imported() {
    let state = State::new();
    let session = Session::start(&state);
    let ours = export(&session, &state.workdir().join("image.tar"), "");
    let loaded = podman(&state, &["load", "-q", "-i", ours.to_str().unwrap()]);
    let image = loaded.trim().rsplit(' ').next().unwrap().to_owned();
    podman(&state, &["tag", &image, "localhost/app:one"]);
    let other = state.another();
    let there = Session::start(&other);
    for form in ["oci-archive", "docker-archive"] {
        let path = state.workdir().join(format!("{form}.tar"));
        podman(
            &state,
            &["save", "-q", "--format", form, "-o", path.to_str().unwrap(), "localhost/app:one"],
        );
        for tag in ["", "one"] {
            assert_eq!(imported(&there, &path, tag, LOOK), SEEN, "{form} {tag}");
        }
        assert_eq!(imported(&there, &path, "", r#"label(name: "made")"#), "here");
        let file = host_file(&there, &path);
        let said = there.error(&format!(
            r#"{{ container {{ import(source: {file}, tag: "two") {{ rootfs {{ entries }} }} }} }}"#
        ));
        assert!(said.contains("no image `two`") && said.contains("one"), "{said}");
    }
    let layout = format!("oci:{}:tag", state.workdir().join("layout").display());
    run(&state, "skopeo", &["copy", &format!("oci-archive:{}", ours.display()), &layout]);
    let tar = state.workdir().join("layout.tar.gz");
    let folder = state.workdir().join("layout");
    run(&state, "tar", &["-C", folder.to_str().unwrap(), "-czf", tar.to_str().unwrap(), "."]);
    assert_eq!(imported(&there, &tar, "", LOOK), SEEN);
    let zstd = state.workdir().join("layout.tar.zst");
    let bytes = std::fs::read(&ours).unwrap();
    let mut encoder = image::Encoder::new(vec![], Compression::Zstd).unwrap();
    std::io::copy(&mut &bytes[..], &mut encoder).unwrap();
    std::fs::write(&zstd, encoder.finish().unwrap()).unwrap();
    assert_eq!(imported(&there, &zstd, "", LOOK), SEEN);
}

#[test]
fn what_is_imported_goes_out_as_it_came() {
    let state = State::new();
    let session = Session::start(&state);
    let first = export(&session, &state.workdir().join("first.tar"), "");
    let other = state.another();
    let there = Session::start(&other);
    let second = state.workdir().join("second.tar");
    imported(&there, &first, "", &format!("export(path: {})", json!(second.to_str())));
    let layers = |path: &Path| {
        let text = run(
            &state,
            "skopeo",
            &["inspect", "--raw", &format!("oci-archive:{}", path.display())],
        );
        serde_json::from_str::<Value>(&text).unwrap()["layers"].clone()
    };
    assert_eq!(layers(&first), layers(&second));
}

#[test]
fn an_archive_is_the_same_in_every_session() {
    let state = State::new();
    let read = |name: &str| {
        let session = Session::start(&state);
        std::fs::read(export(&session, &state.workdir().join(name), "")).unwrap()
    };
    let first = read("one.tar");
    assert!(first == read("two.tar"));
    state.stop();
    assert!(first == read("three.tar"));
}

#[test]
fn archives_for_several_platforms() {
    let state = State::new();
    let session = Session::start(&state);
    let variant = |platform: &str| {
        let chain = format!(
            r#"{{ container(platform: "{platform}") {{ withNewFile(path: "/is", contents: "{platform}") {{ id }} }} }}"#
        );
        session.leaf(&chain)
    };
    let variants = json!(["linux/amd64", "linux/arm64"].map(variant));
    let path = state.workdir().join("many.tar");
    let export = format!(
        "{{ container {{ export(path: {}, platformVariants: {variants}) }} }}",
        json!(path.to_str())
    );
    session.leaf(&export);
    let names = run(&state, "tar", &["-tf", path.to_str().unwrap()]);
    assert!(names.contains("index.json") && !names.contains("manifest.json"), "{names}");
    let file = host_file(&session, &path);
    for platform in ["linux/amd64", "linux/arm64"] {
        let read = format!(
            r#"{{ container(platform: "{platform}") {{ import(source: {file}) {{ file(path: "/is") {{ contents }} }} }} }}"#
        );
        assert_eq!(session.leaf(&read), platform);
    }
}

#[test]
fn the_command_line_writes_images() {
    let state = State::new();
    let rootfs = format!("--directory={}", testkit::busybox().display());
    let chain = ["core", "container", "with-rootfs", &rootfs];
    let as_tarball = chain.iter().chain(&["as-tarball", "-o", "image.tar"]);
    state.cli(as_tarball).run().ok();
    let container = chain.iter().chain(&["-o", "container.tar"]);
    state.cli(container).run().ok();
    for name in ["image.tar", "container.tar"] {
        let path = format!("oci-archive:{}", state.workdir().join(name).display());
        run(&state, "skopeo", &["inspect", "--raw", &path]);
    }
}

#[test]
fn documents_and_layers_as_files() {
    let state = State::new();
    let session = Session::start(&state);
    let manifest = session.container("manifest { contents }");
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    let config = &manifest["config"]["digest"];
    let name = session.container("manifest { name }");
    assert!(name.ends_with(".json") && name.len() == 69, "{name}");
    let text = session.container(&format!("layer(id: {config}) {{ contents }}"));
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["rootfs"]["type"], "layers");
    let layer = &manifest["layers"][0];
    let chain = session.on_container(&format!("layer(id: {}) {{ size name }}", layer["digest"]));
    let found = &session.query(&chain)["container"]["withRootfs"]["layer"];
    assert_eq!(found["size"], layer["size"]);
    assert!(found["name"].as_str().unwrap().ends_with(".tar.gz"), "{found}");
}
