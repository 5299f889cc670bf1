//! How long does it take to push an image of which one layer is new?
//!
//! The registry has the other layers. Ours is a whole run of the program with the engine running and
//! the new layer made: it packs that, which nobody did before, and sends it. The peer is `skopeo copy` of such an
//! image from a folder in which everything is packed already. Each has its own new layer, which the registry never saw:
//! who finds the layer there sends nothing, and is not measured.

use crate::images::{Images, make_files};
use crate::measure::{Sample, output, ratio, time_command};
use crate::ours::{Ours, fresh};
use crate::report::Report;
use anyhow::{Context as _, Result, ensure};
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) const TITLE: &str = "push of a 100 MB image after a change of one layer";

const ROUNDS: u64 = 9;
const FILES: usize = 100;
const BYTES: usize = 2 << 20;

pub(crate) fn ask(report: &mut Report) -> Result<()> {
    let images = Images::prepare()?;
    let ours = Ours::new();
    let folder = testkit::root().join("bench-push");
    let (mut pushes, mut copies) = (Sample::default(), Sample::default());
    let mut seen = HashSet::new();
    for round in 0..ROUNDS {
        let change = Change::make(&ours, &images, &folder.join("ours"), 2 * round)?;
        let (pushed, copied) = (format!("app:{}", fresh()), format!("app:{}", fresh()));
        let address = format!("--address={}", images.address(&pushed));
        let push = time_command(&mut change.command(&ours, &["publish", &address]))?;
        let change = Change::make(&ours, &images, &folder.join("theirs"), 2 * round + 1)?;
        let layout = change.layout(&ours, &folder)?;
        let copy = time_command(&mut images.copy_command(&layout, &copied))?;
        for name in [&pushed, &copied] {
            let layer = new_layer(&images, name)?;
            ensure!(seen.insert(layer), "the registry had the new layer of {name} before");
        }
        // In the first round caches fill.
        if round > 0 {
            pushes.push(push);
            copies.push(copy);
        }
        fs::remove_dir_all(&folder)?;
    }
    report.sample("ours, the new layer not packed before", &pushes);
    report.sample("skopeo copy from a folder, packed before", &copies);
    report.ratio_at_most("ours / skopeo copy", ratio(&pushes, &copies), 1.2);
    Ok(())
}

/// A container with one more layer, which was never there before.
struct Change {
    base: String,
    files: String,
}

impl Change {
    /// Makes new files and has them put on top of the image.
    fn make(ours: &Ours, images: &Images, files: &Path, seed: u64) -> Result<Self> {
        make_files(files, FILES, BYTES, seed + 1000)?;
        let base = format!("--address={}", images.address("app:1"));
        let change = Self { base, files: format!("--directory={}", files.display()) };
        output(&mut change.command(ours, &["rootfs", "entries"]))
            .context("cannot change the image")?;
        Ok(change)
    }

    fn command(&self, ours: &Ours, rest: &[&str]) -> Command {
        let line = ["core", "container", "from", &self.base, "with-directory", "--path=/new"];
        ours.command(&[&line[..], &[&self.files], rest].concat())
    }

    /// The container as a folder in the layout of the Open Container Initiative.
    fn layout(&self, ours: &Ours, folder: &Path) -> Result<PathBuf> {
        let (archive, layout) = (folder.join("image.tar"), folder.join("layout"));
        let path = format!("--path={}", archive.display());
        output(&mut self.command(ours, &["export", &path])).context("cannot export the image")?;
        fs::create_dir(&layout)?;
        output(Command::new("tar").arg("-C").arg(&layout).arg("-xf").arg(&archive))?;
        Ok(layout)
    }
}

/// The uppermost layer of an image that was pushed and has as many layers as it should have.
fn new_layer(images: &Images, name: &str) -> Result<String> {
    let mut command = Command::new("skopeo");
    command.args([
        "inspect",
        "--tls-verify=false",
        "--format={{range .Layers}}{{println .}}{{end}}",
    ]);
    let layers = output(command.arg(format!("docker://{}", images.address(name))))?;
    let layers: Vec<&str> = layers.split_whitespace().collect();
    ensure!(layers.len() == 3, "the pushed image has {} layers", layers.len());
    Ok(layers[2].to_owned())
}
