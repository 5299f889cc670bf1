//! Programs that tests write, to be run at once.
//!
//! A program that is open for writing cannot be run, and whatever another thread starts at that moment has
//! it open too until it has become what it is to be. So the last to write one is another process.

use std::path::Path;
use std::process::Command;

/// Writes a program, or a script that begins with `#!`.
pub fn write_program(path: &Path, contents: impl AsRef<[u8]>) {
    let text = path.with_added_extension("text");
    std::fs::write(&text, contents).expect("a file can be written");
    copy_program(&text, path);
    std::fs::remove_file(&text).expect("a file can be removed");
}

/// Copies a program; everybody may run the copy.
pub(crate) fn copy_program(from: &Path, to: &Path) {
    let status = Command::new("install").args(["-m", "755"]).arg(from).arg(to).status();
    assert!(status.is_ok_and(|status| status.success()), "cannot install {}", to.display());
}
