//! `cargo xtask release`: the static binary, and proof that it is one.

use crate::packages::{Purpose, require};
use crate::project::Project;
use crate::selection::build_release;
use anyhow::{Context as _, Result, bail};
use std::process::Command;

/// Builds the release and reports its size; fails when the binary needs a shared library.
pub(crate) fn run(project: &Project) -> Result<()> {
    require(Purpose::Build)?;
    let binary = build_release(project)?.join("ci-tool");
    let size = std::fs::metadata(&binary)
        .with_context(|| format!("cannot find {}", binary.display()))?
        .len();
    println!("{}: {:.1} MB", binary.display(), size as f64 / 1e6);
    let libraries = Command::new("ldd").arg(&binary).output().context("cannot start `ldd`")?;
    let text = String::from_utf8_lossy(&libraries.stdout);
    // `ldd` says "statically linked" on standard output, or fails for a file it cannot load.
    if libraries.status.success() && !text.contains("statically linked") {
        bail!("the binary needs shared libraries:\n{text}");
    }
    println!("static: needs no shared library");
    Ok(())
}
