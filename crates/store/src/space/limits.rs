//! [`Limits`]: how much room the store may take, and when to give some back.

use super::disk::Disk;
use std::time::Duration;

/// How much room the store may take, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most that the store may use. More is refused or stopped.
    pub max_used: u64,
    /// What a collection keeps free on the disk.
    pub min_free: u64,
    /// What stays free on the disk whatever is written here: who would take more is refused or stopped, once the store
    /// uses more than is reserved for it.
    pub floor: u64,
    /// What a collection never goes below.
    pub reserved: u64,
    /// How far down a collection goes once it has begun.
    pub target: u64,
    /// What was used more recently goes last.
    pub keep: Duration,
    /// Whether the store collects by itself.
    pub collect: bool,
}

impl Limits {
    /// No limit but the disk itself; nothing is collected unasked.
    pub const NONE: Self = Self {
        max_used: u64::MAX,
        min_free: 0,
        floor: 0,
        reserved: 0,
        target: u64::MAX,
        keep: Duration::ZERO,
        collect: false,
    };

    /// Keeps nothing that can go.
    pub const NOTHING: Self = Self { max_used: 0, target: 0, ..Self::NONE };

    /// How much may stay of what is used, if something has to go.
    pub(crate) fn may_stay(&self, used: u64, free: u64) -> Option<u64> {
        let lacking = self.min_free.saturating_sub(free);
        let may = if lacking > 0 { used.saturating_sub(lacking) } else { u64::MAX };
        let may = may.min(self.max_used).max(self.reserved);
        (used > may).then(|| may.min(self.target).max(self.reserved))
    }

    /// Bytes that may still be written when so many are used.
    pub(super) fn spare(&self, disk: &Disk, used: u64) -> u64 {
        let free = disk.free.saturating_sub(Self::own_reserve(disk.size));
        let above_floor = disk.free.saturating_sub(self.floor);
        let granted = above_floor.max(self.reserved.saturating_sub(used));
        free.min(granted).min(self.max_used.saturating_sub(used))
    }

    /// Whether it matters how much is used.
    pub(super) fn depend_on_use(&self) -> bool {
        self.max_used < u64::MAX || self.floor > 0
    }

    /// What the engine keeps free of the disk for itself: enough to write down what it did and to
    /// clean up. Commands are stopped before they touch it.
    pub(crate) fn own_reserve(disk: u64) -> u64 {
        const MIB: u64 = 1 << 20;
        (disk / 100).clamp(8 * MIB, 1024 * MIB).min(disk / 20)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> Limits {
        Limits { max_used: 100, min_free: 20, reserved: 10, target: 90, ..Limits::NONE }
    }

    #[test]
    fn nothing_goes_while_all_limits_hold() {
        assert_eq!(limits().may_stay(100, 20), None);
        assert_eq!(limits().may_stay(5, 0), None, "the reserve is not collected");
        assert_eq!(Limits::NONE.may_stay(u64::MAX, 0), None);
    }

    #[test]
    fn a_collection_goes_down_to_the_target_and_not_below_the_reserve() {
        assert_eq!(limits().may_stay(101, 50), Some(90));
        assert_eq!(limits().may_stay(80, 15), Some(75), "free space lacks 5");
        assert_eq!(limits().may_stay(25, 0), Some(10), "free space lacks 20, 10 are reserved");
        assert_eq!(Limits::NOTHING.may_stay(1, u64::MAX), Some(0));
    }

    #[test]
    fn what_may_be_written_ends_at_the_floor_but_not_within_what_is_reserved() {
        const MIB: u64 = 1 << 20;
        let disk = |free: u64| Disk { size: 100 * MIB, used: 0, free: free * MIB };
        let limits = Limits { max_used: 80 * MIB, floor: 30 * MIB, reserved: 10 * MIB, ..limits() };
        let spare = |free: u64, used: u64| limits.spare(&disk(free), used * MIB) / MIB;
        assert_eq!(spare(90, 0), 60);
        assert_eq!(spare(90, 70), 10, "the quota");
        assert_eq!(spare(40, 20), 10, "the floor");
        assert_eq!(spare(30, 20), 0);
        assert_eq!(spare(20, 4), 6, "others took the rest");
        assert_eq!(spare(7, 0), 2, "the engine's own reserve is 5");
        let open = Limits { floor: 0, ..limits };
        assert_eq!(open.spare(&disk(30), 20 * MIB) / MIB, 25);
    }

    #[test]
    fn the_own_reserve_fits_small_and_large_disks() {
        assert_eq!(Limits::own_reserve(100 << 20), 5 << 20);
        assert_eq!(Limits::own_reserve(400 << 20), 8 << 20);
        assert_eq!(Limits::own_reserve(1 << 40), 1 << 30);
    }
}
