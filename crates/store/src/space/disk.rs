//! The disk that the state folder is on.

use rustix::fs::statvfs;
use std::fmt;
use std::path::Path;

/// How full the disk is, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Disk {
    pub(crate) size: u64,
    pub(crate) used: u64,
    pub(crate) free: u64,
}

impl Disk {
    /// Looks at the disk of a folder. One that cannot be looked at is taken as endless: whatever is
    /// wrong with it, it is not that it is full.
    pub(crate) fn of(folder: &Path) -> Self {
        let Ok(found) = statvfs(folder) else {
            return Self { size: u64::MAX, used: 0, free: u64::MAX };
        };
        let unit = found.f_frsize;
        Self {
            size: found.f_blocks * unit,
            used: found.f_blocks.saturating_sub(found.f_bfree) * unit,
            free: found.f_bavail * unit,
        }
    }
}

/// Bytes for people.
pub(crate) struct Bytes(pub(crate) u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 5] = ["B", "kB", "MB", "GB", "TB"];
        let mut number = self.0 as f64;
        let mut unit = 0;
        while number >= 1000.0 && unit + 1 < UNITS.len() {
            number /= 1000.0;
            unit += 1;
        }
        match unit {
            0 => write!(f, "{} B", self.0),
            _ => write!(f, "{number:.1} {}", UNITS[unit]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shown_in_the_largest_unit() {
        let shown = [0, 999, 1000, 1_234_567, 75_000_000_000].map(|bytes| Bytes(bytes).to_string());
        assert_eq!(shown, ["0 B", "999 B", "1.0 kB", "1.2 MB", "75.0 GB"]);
    }

    #[test]
    fn a_disk_has_a_size() {
        let disk = Disk::of(Path::new("/"));
        assert!(disk.size >= disk.used && disk.size > 0, "{disk:?}");
    }
}
