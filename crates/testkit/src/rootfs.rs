//! A root file system of one static program, for tests that need a container and no distribution.

use crate::surroundings::root;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// Names that the one program answers to.
const NAMES: &[&str] = &[
    "ash",
    "awk",
    "base64",
    "cat",
    "chmod",
    "chown",
    "cp",
    "cut",
    "date",
    "dd",
    "df",
    "dmesg",
    "echo",
    "env",
    "expr",
    "false",
    "find",
    "getopt",
    "grep",
    "head",
    "hostname",
    "id",
    "ip",
    "kill",
    "ln",
    "ls",
    "mkdir",
    "mknod",
    "mktemp",
    "mount",
    "mv",
    "nc",
    "od",
    "ping",
    "printf",
    "ps",
    "pwd",
    "readlink",
    "rm",
    "rmdir",
    "sed",
    "seq",
    "setsid",
    "sh",
    "sha256sum",
    "sleep",
    "sort",
    "stat",
    "sync",
    "tail",
    "tee",
    "test",
    "timeout",
    "touch",
    "tr",
    "true",
    "tty",
    "uname",
    "uniq",
    "unshare",
    "usleep",
    "wc",
    "wget",
    "whoami",
    "xargs",
    "yes",
];

/// Folder with the root file system, made once.
pub fn busybox() -> PathBuf {
    let path = root().join("busybox");
    let lock = fs::File::create(root().join("busybox.lock")).expect("a lock can be made");
    lock.lock().expect("the lock can be waited for");
    if !path.exists() {
        let half = root().join("busybox.half");
        let _ = fs::remove_dir_all(&half);
        fill(&half).expect("the root file system can be made");
        fs::rename(&half, &path).expect("a folder can be renamed");
    }
    path
}

fn fill(path: &Path) -> std::io::Result<()> {
    let program = ["/bin/busybox", "/usr/bin/busybox"].iter().find(|path| Path::new(path).exists());
    let program = program.ok_or_else(|| std::io::Error::other("install busybox-static"))?;
    for folder in ["bin", "etc", "tmp", "root"] {
        fs::create_dir_all(path.join(folder))?;
    }
    fs::copy(program, path.join("bin/busybox"))?;
    for name in NAMES {
        symlink("busybox", path.join("bin").join(name))?;
    }
    fs::write(
        path.join("etc/passwd"),
        "root:x:0:0::/root:/bin/sh\nguest:x:1000:1000::/:/bin/sh\n",
    )?;
    fs::write(path.join("etc/group"), "root:x:0:\nguest:x:1000:\n")?;
    Ok(())
}
