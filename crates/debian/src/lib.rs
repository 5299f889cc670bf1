//! Debian's formats and rules, as pure functions over bytes and readers.
//!
//! Read in the order an image is made: [`sources`] says which archives there are, [`release`]
//! proves what they signed, [`index`] lists their packages, [`resolve`] chooses among them,
//! [`deb`] reads one package and [`database`] writes what dpkg would have written about it.
//! Nothing here opens a file, a socket or a clock: callers hand in bytes, readers and the time.

pub mod codec;
mod control;
pub mod database;
pub mod deb;
pub mod index;
pub mod relation;
pub mod release;
pub mod resolve;
pub mod sources;
pub mod version;

pub use control::{Paragraph, paragraphs};

/// Debian's name for the architecture this program runs on, where Debian has one.
pub fn native_architecture() -> Option<&'static str> {
    Some(match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "i386",
        "arm" => "armhf",
        "riscv64" => "riscv64",
        "powerpc64" => "ppc64el",
        "s390x" => "s390x",
        "loongarch64" => "loong64",
        _ => return None,
    })
}
