//! Limits of the cache: as they are written, and as bytes of a disk of a given size.

use super::Engine;
use std::time::Duration;

const GB: u64 = 1_000_000_000;

/// An amount of space as it is written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// Bytes.
    Bytes(u64),
    /// Per cent of the file system.
    Share(f64),
}

/// Limits of the cache in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Most that the cache may use.
    pub max_used: u64,
    /// What stays free on the disk: the cache gives way.
    pub min_free: u64,
    /// What stays free on the disk whatever is written: the same, where somebody asked for it.
    pub floor: u64,
    /// What the cache may always use.
    pub reserved: u64,
    /// How far down a collection goes.
    pub target: u64,
    /// What was used more recently goes last.
    pub keep: Duration,
    /// Whether the engine collects by itself.
    pub gc: bool,
}

impl Amount {
    /// The amount on a file system of this size.
    pub fn of(self, disk: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Share(share) => (disk as f64 * share / 100.0) as u64,
        }
    }
}

impl Engine {
    /// The limits on a file system of this size.
    pub fn space(&self, disk: u64) -> Space {
        let at_most = |share, bytes| Amount::Share(share).of(disk).min(bytes);
        let or = |given: Option<Amount>, rule| given.map_or(rule, |amount| amount.of(disk));
        let max_used = self.max_used_space.of(disk);
        let reserved = or(self.reserved_space, at_most(10.0, 10 * GB)).min(max_used);
        Space {
            max_used,
            min_free: or(self.min_free_space, at_most(20.0, 20 * GB)),
            floor: or(self.min_free_space, 0),
            reserved,
            target: or(self.target_space, max_used / 10 * 9).clamp(reserved, max_used),
            keep: self.keep_duration,
            gc: self.gc,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    #[test]
    fn the_rules_take_the_lesser_of_a_share_and_an_amount() {
        let small = Engine::default().space(10 * GB);
        assert_eq!(
            (small.max_used, small.min_free, small.reserved, small.target),
            (7_500_000_000, 2 * GB, GB, 6_750_000_000)
        );
        assert_eq!(small.floor, 0, "nobody asked for it");
        let large = Engine::default().space(1000 * GB);
        assert_eq!((large.min_free, large.reserved), (20 * GB, 10 * GB));
    }

    #[test]
    fn the_target_lies_between_the_reserve_and_the_most() {
        let space = |text: &str| parse(text).unwrap().space(100 * GB);
        let low = space("reserved-space = \"5GB\"\ntarget-space = \"1GB\"");
        assert_eq!((low.reserved, low.target), (5 * GB, 5 * GB));
        let high = space("max-used-space = \"2GB\"\ntarget-space = \"50%\"");
        assert_eq!((high.max_used, high.reserved, high.target), (2 * GB, 2 * GB, 2 * GB));
    }
}
