//! What a task needs of the system, installed by package name when it is missing.
//!
//! The names are Debian's. On another system a missing program is named, and nothing is tried.

use crate::command::{exists, output, quietly, run as show};
use anyhow::{Result, bail};
use std::process::Command;
use std::time::Duration;

/// A program or file that has to be there, and the package that brings it.
struct Need {
    package: &'static str,
    present: fn() -> bool,
}

/// What a task is about to do, and so what it needs.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Purpose {
    /// Compile, and run containers on Debian packages.
    Build,
    /// All that and the tests.
    Test,
    /// All that and the tools we measure ourselves against.
    Bench,
}

const BUILD: &[Need] = &[
    Need { package: "gcc", present: || exists("cc") },
    Need { package: "libc6-dev", present: || file("/usr/include/stdlib.h") },
    Need { package: "ca-certificates", present: || file("/etc/ssl/certs/ca-certificates.crt") },
    Need {
        package: "debian-archive-keyring",
        present: || file("/usr/share/keyrings/debian-archive-keyring.gpg"),
    },
];

const TEST: &[Need] = &[
    Need { package: "e2fsprogs", present: || exists("mkfs.ext4") },
    Need { package: "util-linux", present: || exists("unshare") },
    Need { package: "mount", present: || exists("mount") },
    Need { package: "busybox-static", present: static_busybox },
    Need { package: "git", present: || exists("git") },
    Need { package: "git-lfs", present: || exists("git-lfs") },
    Need { package: "python3", present: || exists("python3") },
    Need { package: "xz-utils", present: || exists("xz") },
    Need { package: "zstd", present: || exists("zstd") },
    Need { package: "docker-registry", present: || exists("docker-registry") },
    Need { package: "skopeo", present: || exists("skopeo") },
    Need { package: "umoci", present: || exists("umoci") },
    Need { package: "podman", present: || exists("podman") },
    Need { package: "crun", present: || exists("crun") },
    Need { package: "runc", present: || exists("runc") },
    Need { package: "passwd", present: || exists("useradd") },
    Need { package: "uidmap", present: || exists("newuidmap") },
    Need { package: "iproute2", present: || exists("ip") },
    Need { package: "nftables", present: || exists("nft") },
    Need { package: "passt", present: || exists("pasta") },
    Need { package: "openssh-client", present: || exists("ssh") && exists("ssh-keygen") },
    Need { package: "openssh-server", present: || file("/usr/sbin/sshd") },
    Need { package: "sshfs", present: || exists("sshfs") },
    Need { package: "git", present: || exists("git") },
    Need { package: "qemu-user-static", present: || exists("qemu-aarch64-static") },
    Need { package: "python3-venv", present: python_venv },
    Need { package: "nodejs", present: || exists("node") },
    Need { package: "npm", present: || exists("npm") },
    Need { package: "golang", present: || exists("go") },
];

const BENCH: &[Need] = &[
    Need { package: "buildah", present: || exists("buildah") },
    Need { package: "crun", present: || exists("crun") },
    Need { package: "runc", present: || exists("runc") },
    Need { package: "mmdebstrap", present: || exists("mmdebstrap") },
    Need { package: "ripgrep", present: || exists("rg") },
];

const ATTEMPTS: u32 = 4;

/// `setup [for]`: installs what is missing.
pub(crate) fn run(words: &[&str]) -> Result<()> {
    match words {
        [] | ["test"] => require(Purpose::Test),
        ["build"] => require(Purpose::Build),
        ["bench"] => require(Purpose::Bench),
        _ => bail!("usage: cargo xtask setup [build|test|bench|clients]"),
    }
}

/// Installs what is missing for a purpose; does nothing when all is there.
pub(crate) fn require(purpose: Purpose) -> Result<()> {
    let missing = missing(purpose);
    if missing.is_empty() {
        return Ok(());
    }
    if !exists("apt-get") {
        bail!("missing here: {} (names of Debian packages)", missing.join(", "));
    }
    install(&missing)?;
    let still = self::missing(purpose);
    if !still.is_empty() {
        bail!("installed, yet not usable: {}", still.join(", "));
    }
    Ok(())
}

fn missing(purpose: Purpose) -> Vec<&'static str> {
    let mut needs: Vec<&Need> = BUILD.iter().collect();
    if purpose != Purpose::Build {
        needs.extend(TEST);
    }
    if purpose == Purpose::Bench {
        needs.extend(BENCH);
    }
    needs.iter().filter(|need| !(need.present)()).map(|need| need.package).collect()
}

/// Installs packages, with a few attempts: an archive may be out of reach for a moment.
fn install(packages: &[&str]) -> Result<()> {
    for attempt in 1..=ATTEMPTS {
        // The list may be old or absent; the install is what counts.
        let _ = quietly(Command::new("apt-get").args(["update", "-q=2"]));
        let mut command = Command::new("apt-get");
        command.args(["install", "-q=2", "-y", "--no-install-recommends"]).args(packages);
        command.env("DEBIAN_FRONTEND", "noninteractive");
        match show(&mut command) {
            Ok(()) => return Ok(()),
            Err(error) if attempt == ATTEMPTS => return Err(error),
            Err(error) => println!("{error:#}; trying again"),
        }
        std::thread::sleep(Duration::from_secs(5 << attempt));
    }
    Ok(())
}

fn file(path: &str) -> bool {
    std::path::Path::new(path).exists()
}

/// Whether the busybox here runs in an empty root file system.
fn static_busybox() -> bool {
    ["/bin/busybox", "/usr/bin/busybox"].iter().any(|path| {
        file(path) && output(Command::new("ldd").arg(path)).is_none_or(|text| text.is_empty())
    })
}

/// Whether Python can make an environment with a package manager in it.
fn python_venv() -> bool {
    output(Command::new("python3").args(["-c", "import venv, ensurepip"])).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_purpose_includes_the_ones_before() {
        let count = |purpose| {
            let all: &[&[Need]] = match purpose {
                Purpose::Build => &[BUILD],
                Purpose::Test => &[BUILD, TEST],
                Purpose::Bench => &[BUILD, TEST, BENCH],
            };
            all.iter().map(|needs| needs.len()).sum::<usize>()
        };
        assert!(count(Purpose::Build) < count(Purpose::Test));
        assert!(missing(Purpose::Build).len() <= missing(Purpose::Bench).len());
    }
}
