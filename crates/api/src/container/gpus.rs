//! Graphics processors of the engine's machine, for the commands of a container.

use super::Container;
use graph::{Args, Builder, Context, Op};
use protocol::Error;
use sandbox::Gpu;
use std::path::Path;
use store::Mount;

pub(super) fn install(builder: &mut Builder) {
    builder.install::<WithGpu>().install::<WithAllGpus>();
}

/// Lets commands use graphics processors of the engine's machine: their device nodes are in `/dev`.
/// What programs need besides, such as libraries of the driver, comes with the image.
#[derive(Args)]
struct WithGpu {
    /// Which of them, by their numbers, e.g. `["0"]`.
    devices: Vec<String>,
}

impl Op for WithGpu {
    type Parent = Container;
    type Output = Container;
    const NAME: &'static str = "experimentalWithGPU";

    async fn run(&self, container: &Container, _: &Context) -> Result<Container, Error> {
        let there = there()?;
        let wanted = self.devices.iter().map(|name| {
            let found = there.iter().find(|gpu| gpu.number.to_string() == *name);
            found.cloned().ok_or_else(|| {
                let numbers: Vec<String> = there.iter().map(|gpu| gpu.number.to_string()).collect();
                let message = format!("the engine's machine has no GPU `{name}`");
                Error::user(message).with_hint(format!("there are: {}", numbers.join(", ")))
            })
        });
        Ok(container.with_gpus(&wanted.collect::<Result<Vec<Gpu>, Error>>()?))
    }
}

/// Lets commands use all graphics processors of the engine's machine.
#[derive(Args)]
struct WithAllGpus {}

impl Op for WithAllGpus {
    type Parent = Container;
    type Output = Container;
    const NAME: &'static str = "experimentalWithAllGPUs";

    async fn run(&self, container: &Container, _: &Context) -> Result<Container, Error> {
        Ok(container.with_gpus(&there()?))
    }
}

/// The processors of this machine, or what to do where there is none.
fn there() -> Result<Vec<Gpu>, Error> {
    let there = sandbox::gpus();
    if there.is_empty() {
        let hint = "a GPU shows as `/dev/nvidia0` or `/dev/dri/renderD128` where the engine runs: \
                    install its driver there, or use an engine on a machine that has one";
        return Err(Error::environment("the engine's machine has no GPU").with_hint(hint));
    }
    Ok(there)
}

impl Container {
    fn with_gpus(&self, gpus: &[Gpu]) -> Self {
        let mut changed = self.clone();
        for node in gpus.iter().flat_map(|gpu| &gpu.nodes) {
            let node = node.to_string_lossy().into_owned();
            if !changed.gpus.contains(&node) {
                changed.gpus.push(node);
            }
        }
        changed
    }

    /// The device nodes, each in its own place.
    pub(super) fn gpu_mounts(&self) -> Result<Vec<sandbox::MountPoint>, Error> {
        let mount = |node: &String| {
            let source = sandbox::Source::Device(Mount::bind_file(Path::new(node))?);
            Ok(sandbox::MountPoint { target: node.clone(), source, read_only: false })
        };
        self.gpus.iter().map(mount).collect()
    }
}
