//! [`Project`]: where the sources are and where built things go.
//!
//! The build folder may be shared between clones. What a task makes there lies in a folder whose
//! name is taken from the path of the clone, so that two clones never meet.

use anyhow::{Context as _, Result};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};

/// The folders of one clone.
pub(crate) struct Project {
    /// Top folder of the sources.
    pub(crate) root: PathBuf,
    /// Cargo's build folder.
    pub(crate) target: PathBuf,
}

impl Project {
    /// Finds both folders: the sources from cargo, the build folder from where this program lies.
    pub(crate) fn find() -> Result<Self> {
        let manifest = variable("CARGO_MANIFEST_DIR")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        let root = manifest.parent().context("the manifest has no parent folder")?.to_path_buf();
        let program = std::env::current_exe()?;
        let target = program.ancestors().nth(2).context("this program lies in no build folder")?;
        Ok(Self { root, target: target.to_path_buf() })
    }

    /// Folder for what tasks of this clone make, created when missing.
    pub(crate) fn work(&self) -> Result<PathBuf> {
        let mut hasher = DefaultHasher::new();
        self.root.hash(&mut hasher);
        let path = self.target.join("xtask").join(format!("{:016x}", hasher.finish()));
        std::fs::create_dir_all(&path)
            .with_context(|| format!("cannot make {}", path.display()))?;
        Ok(path)
    }

    /// Folder of downloaded Debian packages, shared by all clones: its content is verified by digest.
    pub(crate) fn debian_cache(&self) -> PathBuf {
        self.target.join("xtask/debian-cache")
    }

    /// A program of the development profile.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.target.join("debug").join(name)
    }

    /// A second name for a built program, which a build of another clone cannot replace meanwhile.
    pub(crate) fn pin(&self, program: &Path) -> Result<PathBuf> {
        let name = program.file_name().context("a program has a name")?;
        let pinned = self.work()?.join(name);
        let _ = std::fs::remove_file(&pinned);
        std::fs::hard_link(program, &pinned)
            .with_context(|| format!("cannot link {}", program.display()))?;
        Ok(pinned)
    }
}

/// A variable of the environment, if it is set and not empty.
#[expect(clippy::disallowed_methods, reason = "a program of its own: this is its only reader")]
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
