//! Newer Go and Node.js than Debian has, where a client library needs them.
//!
//! Both come by name from the package managers that are there: the Go proxy has toolchains as modules, npm has Node.js as a
//! package. They are put into a folder that all clones share and nothing of the system is changed.

use crate::command::{output, quietly};
use anyhow::{Context as _, Result};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// From here on Go gets the toolchain that a module names by itself.
const GO_THAT_HELPS_ITSELF: (u32, u32) = (1, 21);
/// The oldest Node.js that libraries run on, and what is installed where there is none.
const OLDEST_NODE: (u32, u32) = (20, 0);
const NODE: &str = "22.20.0";

/// A `go` that builds the module of this `go.mod`.
pub(crate) fn go(shared: &Path, module: &Path) -> Result<PathBuf> {
    let there = output(Command::new("go").arg("version")).unwrap_or_default();
    let text = fs::read_to_string(module)?;
    let wanted = go_of_module(&text).context("the module says no version of Go")?;
    let found = there.split_whitespace().find_map(|word| word.strip_prefix("go1."));
    let found = found.and_then(|rest| version(&format!("1.{rest}")));
    if found.is_some_and(|found| found >= GO_THAT_HELPS_ITSELF || Some(found) >= version(wanted)) {
        return Ok("go".into());
    }
    let architecture = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
    let name = format!("toolchain@v0.0.1-go{wanted}.linux-{architecture}");
    let cache = shared.join("go-toolchains");
    let folder = cache.join("golang.org").join(&name);
    if !folder.join("bin/go").exists() {
        fs::create_dir_all(&cache)?;
        let mut download = Command::new("go");
        download.args(["mod", "download", &format!("golang.org/{name}")]);
        quietly(download.env("GOMODCACHE", &cache).env("GOFLAGS", "-modcacherw"))?;
    }
    // A module cannot have another one in it, so the library's own description has another name.
    fs::copy(folder.join("src/_go.mod"), folder.join("src/go.mod"))?;
    // Modules come without the right to run them.
    let tools = folder.join("pkg/tool").join(format!("linux_{architecture}"));
    for programs in [folder.join("bin"), tools] {
        make_executable(&programs)?;
    }
    Ok(folder.join("bin/go"))
}

/// A `node` that libraries run on.
pub(crate) fn node(shared: &Path) -> Result<PathBuf> {
    let there = output(Command::new("node").arg("--version")).unwrap_or_default();
    let found = version(there.trim().trim_start_matches('v'));
    if found.is_some_and(|found| found >= OLDEST_NODE) {
        return Ok("node".into());
    }
    let architecture = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    let (folder, package) = (shared.join("node"), format!("node-linux-{architecture}"));
    let program = folder.join("node_modules").join(&package).join("bin/node");
    if !program.exists() {
        fs::create_dir_all(&folder)?;
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]);
        quietly(npm.arg("--prefix").arg(&folder).arg(format!("{package}@{NODE}")))?;
    }
    Ok(program)
}

/// The version after `go ` in a `go.mod`.
fn go_of_module(text: &str) -> Option<&str> {
    text.lines().find_map(|line| line.strip_prefix("go ")).map(str::trim)
}

/// The first two numbers of a version.
fn version(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.split('.');
    let mut next = || parts.next()?.parse().ok();
    Some((next()?, next()?))
}

fn make_executable(folder: &Path) -> Result<()> {
    let listed = fs::read_dir(folder).with_context(|| format!("no {}", folder.display()))?;
    for entry in listed {
        fs::set_permissions(entry?.path(), fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_number() {
        assert_eq!(version("1.19.8"), Some((1, 19)));
        assert_eq!(version("20.20.2"), Some((20, 20)));
        assert!(version("1.9").unwrap() < version("1.19").unwrap());
        assert_eq!(version("devel"), None);
        assert_eq!(go_of_module("module x\n\ngo 1.26.1\n"), Some("1.26.1"));
    }
}
