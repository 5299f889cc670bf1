//! An image to move about: two layers of files that pack to about 50 MB each, in a registry on
//! loopback.

use crate::measure::output;
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use testkit::Random;
use testkit::registry::Registry;

const LAYERS: u64 = 2;
const FILES_A_LAYER: usize = 4_000;
const BYTES_A_LAYER: usize = 120 << 20;

/// A registry that holds the image.
pub(crate) struct Images {
    registry: Registry,
}

impl Images {
    /// Makes the image, where that was not done yet, and puts it into a registry of its own.
    pub(crate) fn prepare() -> Result<Self> {
        let folder = testkit::root().join("bench-image");
        let layout = folder.join("layout");
        if !layout.join("index.json").exists() {
            make_layout(&folder, &layout).context("cannot make an image")?;
        }
        let images = Self { registry: Registry::start() };
        images.copy(&layout, "app:1").context("cannot put the image into a registry")?;
        Ok(images)
    }

    /// The address of something in the registry.
    pub(crate) fn address(&self, name: &str) -> String {
        format!("{}/{name}", self.registry.address())
    }

    /// Copies an image from a folder into the registry.
    pub(crate) fn copy(&self, layout: &Path, name: &str) -> Result<()> {
        output(&mut self.copy_command(layout, name)).map(drop)
    }

    /// The command that does so.
    pub(crate) fn copy_command(&self, layout: &Path, name: &str) -> Command {
        let mut command = Command::new("skopeo");
        command.args(["copy", "--quiet", "--insecure-policy", "--dest-tls-verify=false"]);
        command.arg(format!("oci:{}", layout.display()));
        command.arg(format!("docker://{}", self.address(name)));
        command
    }
}

/// Files that pack to a bit less than half, as programs and texts do.
pub(crate) fn make_files(folder: &Path, files: usize, bytes: usize, seed: u64) -> Result<()> {
    let mut random = Random::from_seed(seed);
    let mut fill = |bytes: &mut Vec<u8>, count: usize| {
        (0..count).for_each(|_| bytes.extend(random.next_number().to_le_bytes()));
    };
    let mut pool = vec![];
    fill(&mut pool, 2048);
    let mut content = vec![];
    for file in 0..files {
        content.clear();
        // From none to twice the middle.
        let length = 2 * bytes / files * file / files;
        while content.len() < length {
            fill(&mut content, 3);
            let from = usize::from(content[content.len() - 1]) * 63;
            content.extend_from_slice(&pool[from..from + 40]);
        }
        let path = folder.join(format!("d{}/{}", file % 97, file % 7));
        fs::create_dir_all(&path)?;
        fs::write(path.join(format!("file-{file}")), &content)?;
    }
    Ok(())
}

fn make_layout(folder: &Path, layout: &Path) -> Result<()> {
    fs::create_dir_all(layout.join("blobs/sha256"))?;
    let (mut layers, mut contents) = (vec![], vec![]);
    for layer in 0..LAYERS {
        let files = folder.join("files");
        make_files(&files.join(format!("layer-{layer}")), FILES_A_LAYER, BYTES_A_LAYER, layer + 7)?;
        let tar = folder.join("layer.tar");
        let mut pack = Command::new("tar");
        pack.args(["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "-C"]).arg(&files);
        output(pack.arg("-cf").arg(&tar).arg("."))?;
        contents.push(digest(&tar)?);
        output(Command::new("gzip").arg("-nf").arg(&tar))?;
        layers.push(keep(layout, "layer.v1.tar+gzip", &folder.join("layer.tar.gz"))?);
        fs::remove_dir_all(&files)?;
    }
    let architecture = match std::env::consts::ARCH {
        "aarch64" => "arm64",
        _ => "amd64",
    };
    let config = json!({
        "architecture": architecture, "os": "linux", "config": {},
        "rootfs": { "type": "layers", "diff_ids": contents },
    });
    let config = keep_text(layout, folder, "config.v1+json", &config)?;
    let kind = "application/vnd.oci.image.manifest.v1+json";
    let manifest =
        json!({ "schemaVersion": 2, "mediaType": kind, "config": config, "layers": layers });
    let manifest = keep_text(layout, folder, "manifest.v1+json", &manifest)?;
    fs::write(layout.join("oci-layout"), json!({ "imageLayoutVersion": "1.0.0" }).to_string())?;
    let index = json!({ "schemaVersion": 2, "manifests": [manifest] });
    Ok(fs::write(layout.join("index.json"), index.to_string())?)
}

fn keep_text(layout: &Path, folder: &Path, kind: &str, text: &Value) -> Result<Value> {
    let file = folder.join("document");
    fs::write(&file, text.to_string())?;
    keep(layout, kind, &file)
}

/// Moves a file to where its digest says, and describes it.
fn keep(layout: &Path, kind: &str, file: &Path) -> Result<Value> {
    let (digest, size) = (digest(file)?, fs::metadata(file)?.len());
    fs::rename(file, blob(layout, &digest))?;
    let kind = format!("application/vnd.oci.image.{kind}");
    Ok(json!({ "mediaType": kind, "digest": digest, "size": size }))
}

fn blob(layout: &Path, digest: &str) -> PathBuf {
    layout.join("blobs").join(digest.replace(':', "/"))
}

fn digest(file: &Path) -> Result<String> {
    let said = output(Command::new("sha256sum").arg(file))?;
    let digits = said.split(' ').next().context("sha256sum says nothing")?;
    Ok(format!("sha256:{digits}"))
}
