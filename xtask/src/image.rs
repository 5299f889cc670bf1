//! A private mount namespace with a plain ext4 in it, for everything that containers write.
//!
//! Tests and benchmarks make and delete many small files. On the machine's own file system that may
//! be slow, and what a crash leaves behind stays. Here the file system is an image in a sparse
//! file, mounted where only this run sees it: when the last process is gone, so is the mount.

use crate::command::{output, quietly};
use crate::project::Project;
use anyhow::{Context as _, Result, bail};
use std::fs::File;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Room in the image. The file is sparse: it takes what is written.
const IMAGE_BYTES: u64 = 24 << 30;

/// Runs this program again as `inside <words>` in a mount namespace of its own.
pub(crate) fn enter(words: &[&str]) -> Result<()> {
    let user = output(Command::new("id").arg("-u")).unwrap_or_default();
    if user.trim() != "0" {
        bail!("this task mounts file systems and makes users: run it as root");
    }
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "--"]);
    // This very program, even if a build has replaced it in the meantime.
    let own = format!("/proc/{}/exe", std::process::id());
    command.arg(own).arg(crate::INSIDE).args(words);
    let status = command.status().context("cannot start `unshare`")?;
    if !status.success() {
        bail!("`{}` failed", words.first().unwrap_or(&"the task"));
    }
    Ok(())
}

/// The mounted image. One run of a clone has it at a time.
pub(crate) struct Image {
    /// Where it is mounted.
    pub(crate) path: PathBuf,
    file: PathBuf,
    _turn: File,
}

impl Image {
    /// Makes a new file system and mounts it. Waits while another run of this clone has it.
    pub(crate) fn mount(project: &Project, name: &str) -> Result<Self> {
        let work = project.work()?;
        let turn = File::create(work.join(format!("{name}.lock")))?;
        turn.lock().context("cannot wait for the other run of this clone")?;
        let file = work.join(format!("{name}.img"));
        make_file_system(&file)?;
        let path = place(&work, name)?;
        quietly(Command::new("mount").args(["-o", "loop"]).arg(&file).arg(&path))?;
        open_tunnels(&path)?;
        Ok(Self { path, file, _turn: turn })
    }
}

impl Drop for Image {
    /// Unmounts and gives the space back. A process that still uses the mount keeps it until it
    /// ends; the namespace goes with it.
    fn drop(&mut self) {
        let _ = quietly(Command::new("umount").arg("--lazy").arg(&self.path));
        let _ = std::fs::remove_dir(&self.path);
        let _ = std::fs::remove_file(&self.file);
    }
}

/// Lets every user open the node that tunnels are made by, as most machines do. Where the machine does
/// not, a node in the image takes its place, for this namespace alone.
fn open_tunnels(image: &Path) -> Result<()> {
    let node = Path::new("/dev/net/tun");
    let Ok(found) = node.metadata() else { return Ok(()) };
    if found.permissions().mode() & 0o006 == 0o006 {
        return Ok(());
    }
    let open = image.join("tun");
    quietly(Command::new("mknod").args(["-m", "666"]).arg(&open).args(["c", "10", "200"]))?;
    quietly(Command::new("mount").arg("--bind").arg(&open).arg(node))
}

/// Where to mount. Sockets and some peers allow for short paths only, so it is not in the build
/// folder.
fn place(work: &Path, name: &str) -> Result<PathBuf> {
    let clone = work.file_name().map(|name| name.to_string_lossy().into_owned());
    let clone: String = clone.unwrap_or_default().chars().take(6).collect();
    let path = PathBuf::from(format!("/tmp/{name}-{clone}"));
    std::fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
    Ok(path)
}

fn make_file_system(file: &Path) -> Result<()> {
    // A new file, not the old one cut short: what is left of a killed run may still have that mounted.
    let _ = std::fs::remove_file(file);
    let image = File::create(file).with_context(|| format!("cannot make {}", file.display()))?;
    image.set_len(IMAGE_BYTES)?;
    drop(image);
    // The tables are written when first used, so that making the file system takes no time. More
    // inodes than usual, because a benchmark writes more than a million small files.
    let options =
        ["-q", "-F", "-m", "0", "-i", "4096", "-E", "lazy_itable_init=1,lazy_journal_init=1"];
    quietly(Command::new("mkfs.ext4").args(options).arg(file))
}
