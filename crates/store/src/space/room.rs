//! Asking for room before something is written.
//!
//! Most asking is one subtraction: room is granted in advance, in pieces. When a piece is used up the
//! store is looked at, and if there is too little room something is collected first.

use super::disk::{Bytes, Disk};
use super::{Limits, Shared};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Most bytes that are granted in advance.
const MOST_GRANTED: u64 = 64 << 20;
/// How long a collection that gave nothing is not tried again, unless something was let go.
const FRUITLESS: Duration = Duration::from_secs(1);
/// How long what is known of the store is trusted at least.
const TRUSTED: Duration = Duration::from_secs(1);
/// How long the first who writes waits for the store to be known.
const KNOWN_AFTER: Duration = Duration::from_millis(100);

/// There is no room, and nothing more can be collected.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}", self.describe())]
pub struct Full {
    /// The state folder.
    pub path: PathBuf,
    /// Bytes that the store uses.
    pub used: u64,
    /// Bytes that it may use; the greatest number when it is the disk that is full.
    pub max_used: u64,
    /// Bytes that are free on its disk.
    pub free: u64,
    /// Bytes that are to stay free there, if that is why.
    pub floor: u64,
}

impl Full {
    /// A way out.
    pub const HINT: &str = "make room on this disk, or remove cached results with `ci-tool core engine local-cache prune`";

    fn describe(&self) -> String {
        let path = self.path.display();
        if self.floor > 0 {
            let (free, floor) = (Bytes(self.free), Bytes(self.floor));
            return format!(
                "the disk of `{path}` is full as far as this engine may fill it: {free} are free, and `min-free-space` is {floor}"
            );
        }
        if self.max_used < u64::MAX {
            let (used, most) = (Bytes(self.used), Bytes(self.max_used));
            return format!(
                "the cache in `{path}` is full: it uses {used}, may use {most}, and all of it is in use"
            );
        }
        format!("the disk of `{path}` is full: {} are free", Bytes(self.free))
    }
}

impl From<Full> for io::Error {
    fn from(full: Full) -> Self {
        Self::new(io::ErrorKind::StorageFull, full)
    }
}

/// Grants room to who writes.
#[derive(Default)]
pub(crate) struct Room {
    granted: AtomicI64,
    shared: OnceLock<Weak<Shared>>,
}

impl Room {
    /// From now on what is granted depends on what there is.
    pub(super) fn govern(&self, shared: Weak<Shared>) {
        // A room has one store.
        let _ = self.shared.set(shared);
    }

    /// Asks for room for so many bytes that are about to be written.
    pub(crate) fn admit(&self, bytes: u64) -> Result<(), Full> {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        if self.granted.fetch_sub(bytes, Ordering::Relaxed) >= bytes {
            return Ok(());
        }
        let Some(shared) = self.shared.get().and_then(Weak::upgrade) else { return Ok(()) };
        let granted = shared.make_room(bytes.unsigned_abs())?;
        self.granted.store(granted.cast_signed() - bytes, Ordering::Relaxed);
        Ok(())
    }
}

/// What is known of how much is used, and when that was true.
#[derive(Clone, Copy, Debug)]
pub(super) struct Account {
    /// Bytes that the store used.
    store: u64,
    /// Bytes that everybody used of the disk.
    disk: u64,
    /// Bytes that had been granted.
    granted: u64,
    made: Instant,
}

impl Shared {
    /// Finds room for so many bytes, by collecting if need be, and grants at least that.
    pub(super) fn make_room(&self, bytes: u64) -> Result<u64, Full> {
        if let Some(room) = self.room_now(bytes) {
            return Ok(room);
        }
        let mut last = self.fruitless.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever held the lock may have made room for both.
        if let Some(room) = self.room_now(bytes) {
            return Ok(room);
        }
        let released = self.state.pins().layers.released();
        let again = |(tried, then): (Instant, u64)| tried.elapsed() > FRUITLESS || released != then;
        // What they keep is quickly made again.
        self.plans.forget();
        self.state.trash().empty_now();
        if let Some(room) = self.room_now(bytes) {
            return Ok(room);
        }
        if self.limits.collect && last.is_none_or(again) {
            let limits = self.pressing(bytes);
            let freed = self.collect(&limits).bytes;
            self.state.trash().empty_now();
            *last = (freed == 0).then(|| (Instant::now(), released));
        }
        self.room_now(bytes).ok_or_else(|| self.full())
    }

    /// Finds room for a command to begin with.
    pub(crate) fn room_to_begin(&self) -> Result<(), Full> {
        let disk = Disk::of(self.state.path());
        let reserve = Limits::own_reserve(disk.size);
        if self.limits.spare(&disk, self.used_about(&disk)) > 0 {
            return Ok(());
        }
        // A cache that may hold little has no room for as much as a disk keeps back.
        self.make_room(reserve.min(self.limits.max_used / 16)).map(drop)
    }

    /// The limits of the store, tight enough for so many more bytes.
    fn pressing(&self, bytes: u64) -> Limits {
        let disk = Disk::of(self.state.path());
        let reserve = Limits::own_reserve(disk.size);
        // What is being written takes room too, and cannot be collected.
        let max_used = self.limits.max_used.saturating_sub(bytes + self.half_made());
        let needed = reserve.max(self.limits.floor).saturating_add(bytes);
        let min_free = self.limits.min_free.max(needed);
        let target = self.limits.target.min(max_used);
        // A disk that is really full costs what is reserved too.
        let has_room = disk.free >= reserve.saturating_add(bytes);
        let reserved = if has_room { self.limits.reserved.min(max_used) } else { 0 };
        Limits { max_used, min_free, reserved, target, ..self.limits }
    }

    /// What can be granted if there is room for so many bytes.
    fn room_now(&self, bytes: u64) -> Option<u64> {
        let disk = Disk::of(self.state.path());
        let free = disk.free.saturating_sub(Limits::own_reserve(disk.size));
        let mut room = self.limits.spare(&disk, self.used_about(&disk));
        if room < bytes && free >= bytes && self.limits.depend_on_use() {
            room = self.limits.spare(&disk, self.used_exactly());
        }
        let granted = (room >= bytes).then(|| (room / 2).min(MOST_GRANTED).max(bytes));
        self.granted.fetch_add(granted.unwrap_or(0), Ordering::Relaxed);
        granted
    }

    /// Bytes that the store uses, as far as that is known without a look at any file: what it used
    /// when that was last known, and what was granted or appeared on the disk since.
    pub(super) fn used_about(&self, disk: &Disk) -> u64 {
        if !self.limits.depend_on_use() {
            return 0;
        }
        let mut account = self.account.lock().unwrap_or_else(PoisonError::into_inner);
        if account.is_none() {
            // Just started. A large store takes a while to be known, and nobody waits for that.
            let unknown = |account: &mut Option<Account>| account.is_none();
            let waited = self.accounted.wait_timeout_while(account, KNOWN_AFTER, unknown);
            account = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let Some(account) = *account else { return 0 };
        let granted = self.granted.load(Ordering::Relaxed).saturating_sub(account.granted);
        account.store + granted.max(disk.used.saturating_sub(account.disk))
    }

    /// Looks again at what is used, if a command could have written much since the last time while
    /// others removed things.
    pub(super) fn refresh_account(&self) {
        if !self.limits.depend_on_use() {
            return;
        }
        let account = *self.account.lock().unwrap_or_else(PoisonError::into_inner);
        let trusted = account.is_some_and(|account| {
            let left = self.limits.spare(&Disk::of(self.state.path()), account.store);
            let soonest = Duration::from_millis(left / super::watch::SPEED);
            account.made.elapsed() < soonest.max(TRUSTED)
        });
        if !trusted {
            self.used_exactly();
        }
    }

    /// Bytes that the store uses, half-made things included.
    pub(super) fn used_exactly(&self) -> u64 {
        let disk = Disk::of(self.state.path()).used;
        let granted = self.granted.load(Ordering::Relaxed);
        self.measure_all();
        let store = self.used() + self.half_made();
        let mut account = self.account.lock().unwrap_or_else(PoisonError::into_inner);
        *account = Some(Account { store, disk, granted, made: Instant::now() });
        drop(account);
        self.accounted.notify_all();
        store
    }

    /// Says why there is no room.
    pub(super) fn full(&self) -> Full {
        let disk = Disk::of(self.state.path());
        if disk.free <= Limits::own_reserve(disk.size) {
            return self.no_disk_left();
        }
        let used = self.used_about(&disk);
        let within_quota = Limits { floor: 0, ..self.limits }.spare(&disk, used) > 0;
        Full {
            path: self.state.path().to_owned(),
            used,
            max_used: self.limits.max_used,
            free: disk.free,
            floor: if within_quota { self.limits.floor } else { 0 },
        }
    }
}
