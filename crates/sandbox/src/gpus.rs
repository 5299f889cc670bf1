//! The graphics processors of the machine, by their device nodes.
//!
//! Which nodes belong together is known for the drivers that have been around for long: those of
//! NVIDIA, and all that use the kernel's own (`/dev/dri`).

use std::fs;
use std::path::{Path, PathBuf};

/// Nodes that every processor of NVIDIA needs besides its own.
const NVIDIA: [&str; 4] = ["nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset"];
/// The node that AMD's processors compute through.
const AMD: &str = "kfd";
/// The first number of nodes that only compute and draw.
const FIRST_RENDER: u32 = 128;

/// A graphics processor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gpu {
    /// Its number, as its driver counts.
    pub number: u32,
    /// Device nodes that it is used through.
    pub nodes: Vec<PathBuf>,
}

/// All graphics processors of this machine.
pub fn gpus() -> Vec<Gpu> {
    found(Path::new("/dev"))
}

fn found(dev: &Path) -> Vec<Gpu> {
    let nvidia = numbered(dev, "nvidia");
    if !nvidia.is_empty() {
        let rest = present(dev, &NVIDIA);
        return nvidia
            .into_iter()
            .map(|(number, node)| Gpu { number, nodes: [vec![node], rest.clone()].concat() })
            .collect();
    }
    let drm = dev.join("dri");
    let cards = numbered(&drm, "card");
    let rest = present(dev, &[AMD]);
    let render = numbered(&drm, "renderD").into_iter();
    render
        .filter_map(|(number, node)| {
            let number = number.checked_sub(FIRST_RENDER)?;
            let card = cards.iter().find(|(card, _)| *card == number).map(|(_, node)| node.clone());
            let nodes = [node].into_iter().chain(card).chain(rest.iter().cloned()).collect();
            Some(Gpu { number, nodes })
        })
        .collect()
}

/// What a folder has under a name and a number, by number.
fn numbered(folder: &Path, name: &str) -> Vec<(u32, PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let mut found: Vec<(u32, PathBuf)> = entries
        .filter_map(|entry| {
            let number = entry.file_name().to_str()?.strip_prefix(name)?.parse().ok()?;
            Some((number, entry.path()))
        })
        .collect();
    found.sort();
    found
}

fn present(folder: &Path, names: &[&str]) -> Vec<PathBuf> {
    names.iter().map(|name| folder.join(name)).filter(|node| node.exists()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(nodes: &[&str]) -> Vec<(u32, Vec<String>)> {
        let dev = tempfile::tempdir().unwrap();
        for node in nodes {
            let path = dev.path().join(node);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let name =
            |node: &PathBuf| node.strip_prefix(dev.path()).unwrap().to_str().unwrap().to_owned();
        let of = |gpu: &Gpu| (gpu.number, gpu.nodes.iter().map(name).collect());
        found(dev.path()).iter().map(of).collect()
    }

    #[test]
    fn nodes_that_belong_together_are_found() {
        assert_eq!(machine(&["null", "dri/by-path/x"]), []);
        let nvidia = ["nvidia10", "nvidia2", "nvidiactl", "nvidia-uvm", "dri/renderD128"];
        let (own, shared) =
            (|own: &str| own.to_owned(), ["nvidiactl", "nvidia-uvm"].map(String::from));
        let nodes = |node: &str| [vec![own(node)], shared.to_vec()].concat();
        assert_eq!(machine(&nvidia), [(2, nodes("nvidia2")), (10, nodes("nvidia10"))]);
        let amd = machine(&["dri/renderD129", "dri/card1", "dri/card0", "kfd"]);
        assert_eq!(amd, [(1, ["dri/renderD129", "dri/card1", "kfd"].map(String::from).to_vec())]);
    }
}
