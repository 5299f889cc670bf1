//! Room on the disk: how much everything takes, who may have more, and what goes when there is none.
//!
//! Everything is measured once, in the background, by what its inodes take ([`Measure`]); the
//! [`Ledger`] adds that up with each inode counted once. [`Limits`] say how much there may be. What
//! the engine writes asks for [`Room`] first; what commands write is watched while they run. When
//! there is too little room, or a session has ended, the store [collects](collect).

pub(crate) mod ballast;
mod collect;
mod disk;
mod ledger;
mod limits;
mod list;
mod measure;
mod room;
mod unmeasured;
mod watch;

pub use collect::Collected;
pub use limits::Limits;
pub use list::CacheEntry;
pub(crate) use measure::Measure;
pub use room::Full;
pub(crate) use room::Room;
pub(crate) use unmeasured::{Thing, Unmeasured};
pub use watch::RunWatch;

use crate::database::Database;
use crate::idle_thread::IdleThread;
use crate::snapshot::LayerId;
use crate::state::{self, StateDir};
use crate::stub::Plans;
use crate::volume::VolumeId;
use crate::{Error, blob};
use disk::Disk;
use ledger::Ledger;
use room::Account;
use rustix::fs::{AtFlags, statat};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use watch::Watched;

/// How often the limits are looked at when nothing happens.
const TICK: Duration = Duration::from_secs(30);
/// How long what was made gathers before it is measured, so that nobody waits for the disk with us.
const GATHER: Duration = Duration::from_millis(500);
/// How long after the end of a session its leftovers are collected.
const AFTER_SESSION: Duration = Duration::from_secs(1);
/// Collecting after sessions takes at most one part in so many of the time.
const SHARE_OF_TIME: u32 = 20;

/// The threads that measure, collect and watch.
pub(crate) struct Space {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    /// Measures, which nobody waits for.
    measuring: Option<IdleThread>,
}

/// What those threads and who asks have in common.
pub(crate) struct Shared {
    state: Arc<StateDir>,
    database: Arc<Database>,
    plans: Arc<Plans>,
    limits: Limits,
    ledger: Mutex<Ledger>,
    /// Held while one thing is measured.
    measuring: Mutex<()>,
    /// Held by the one collection at a time.
    collecting: Mutex<()>,
    account: Mutex<Option<Account>>,
    /// There is an account.
    accounted: Condvar,
    /// Bytes that were granted to who writes.
    granted: AtomicU64,
    /// How often something had been let go of when the last collection began.
    collected_at: AtomicU64,
    /// When a collection last gave nothing, and how much had been let go of until then.
    fruitless: Mutex<Option<(Instant, u64)>>,
    watched: Watched,
    /// When the disk was last seen full.
    seen_full: Mutex<Option<Instant>>,
    orders: Mutex<Orders>,
    changed: Condvar,
}

#[derive(Default)]
struct Orders {
    collect_at: Option<Instant>,
    /// How long the last collection of the thread took.
    last_took: Duration,
    /// Whether what was on disk at the start is known.
    loaded: bool,
    stop: bool,
}

impl Space {
    pub(crate) fn start(
        state: &Arc<StateDir>,
        database: &Arc<Database>,
        plans: &Arc<Plans>,
        limits: impl FnOnce(u64) -> Limits,
    ) -> Result<Self, Error> {
        let limits = limits(Disk::of(state.path()).size);
        let shared = Arc::new(Shared {
            state: Arc::clone(state),
            database: Arc::clone(database),
            plans: Arc::clone(plans),
            limits,
            ledger: Mutex::default(),
            measuring: Mutex::default(),
            collecting: Mutex::default(),
            account: Mutex::default(),
            accounted: Condvar::new(),
            granted: AtomicU64::new(0),
            collected_at: AtomicU64::new(u64::MAX),
            fruitless: Mutex::default(),
            watched: Watched::default(),
            seen_full: Mutex::default(),
            orders: Mutex::default(),
            changed: Condvar::new(),
        });
        state.room().govern(Arc::downgrade(&shared));
        let mut space = Self { shared, threads: vec![], measuring: None };
        space.measuring = Some(space.measure()?);
        if limits.collect {
            space.shared.collect_soon();
            space.spawn("collect", Shared::collect_always)?;
        }
        space.spawn("watch", Shared::watch_always)?;
        Ok(space)
    }

    fn measure(&self) -> Result<IdleThread, Error> {
        let shared = Arc::clone(&self.shared);
        let thread = std::thread::Builder::new().name("measure".to_owned());
        IdleThread::spawn(thread, move || shared.measure_always())
            .map_err(Error::io("start the threads for", self.shared.state.path()))
    }

    fn spawn(&mut self, name: &str, work: fn(&Shared)) -> Result<(), Error> {
        let shared = Arc::clone(&self.shared);
        let thread = std::thread::Builder::new().name(name.to_owned());
        let thread = thread.spawn(move || work(&shared));
        let path = self.shared.state.path();
        self.threads.push(thread.map_err(Error::io("start the threads for", path))?);
        Ok(())
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        self.shared.orders().stop = true;
        self.shared.changed.notify_all();
        self.shared.state.unmeasured().close();
        self.shared.watched.stop();
        let measured = self.measuring.take().map_or(Ok(()), IdleThread::join);
        let ended = self.threads.drain(..).map(JoinHandle::join);
        for ended in ended.chain([measured]) {
            if ended.is_err() {
                tracing::warn!("a thread of the store panicked");
            }
        }
    }
}

impl Shared {
    fn orders(&self) -> MutexGuard<'_, Orders> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The limits of the store.
    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    /// Size of the disk.
    pub(crate) fn disk_size(&self) -> u64 {
        Disk::of(self.state.path()).size
    }

    /// Says so if hardly anything is free on the disk.
    pub(crate) fn full_disk(&self) -> Option<Full> {
        let disk = Disk::of(self.state.path());
        (disk.free < Limits::own_reserve(disk.size)).then(|| self.no_disk_left())
    }

    fn no_disk_left(&self) -> Full {
        let free = Disk::of(self.state.path()).free;
        Full { path: self.state.path().to_owned(), used: 0, max_used: u64::MAX, free, floor: 0 }
    }

    /// Has what is not needed any more collected a little later.
    pub(crate) fn collect_soon(&self) {
        let mut orders = self.orders();
        let pause = AFTER_SESSION.max(orders.last_took * SHARE_OF_TIME);
        orders.collect_at.get_or_insert_with(|| Instant::now() + pause);
        drop(orders);
        self.changed.notify_all();
    }

    /// How often the last pin of something was dropped.
    fn released(&self) -> u64 {
        let pins = self.state.pins();
        pins.layers.released() + pins.blobs.released()
    }

    /// Bytes that everything in the store takes, half-made things left out.
    pub(crate) fn used(&self) -> u64 {
        let size = |name| fs::metadata(self.state.path().join(name)).map_or(0, |file| file.len());
        let database: u64 = ["db.sqlite", "db.sqlite-wal"].into_iter().map(size).sum();
        self.ledger().total() + database
    }

    /// Bytes of what is being written.
    fn half_made(&self) -> u64 {
        let size = |folder: &str| Measure::of(&self.state, folder.as_bytes());
        ["work", "tmp"].into_iter().filter_map(|folder| size(folder).ok()).map(|m| m.own).sum()
    }

    /// Pauses the calling thread; says whether it is to go on.
    fn pause(&self, time: Duration) -> bool {
        let orders = self.orders();
        let waited = self.changed.wait_timeout_while(orders, time, |orders| !orders.stop);
        !waited.unwrap_or_else(PoisonError::into_inner).0.stop
    }

    /// The body of the thread that measures.
    fn measure_always(&self) {
        self.load();
        loop {
            while !self.orders().stop && self.measure_one() {}
            self.refresh_account();
            ballast::restore_if_room(self.state.path());
            self.state.unmeasured().wait(TICK);
            if !self.pause(GATHER) {
                return;
            }
        }
    }

    /// The body of the thread that collects.
    fn collect_always(&self) {
        let mut tick = Instant::now() + TICK;
        loop {
            let mut orders = self.orders();
            loop {
                if orders.stop {
                    return;
                }
                let due = orders.collect_at.map_or(tick, |at| at.min(tick));
                let Some(left) = due.checked_duration_since(Instant::now()) else { break };
                let waited = self.changed.wait_timeout(orders, left);
                orders = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
            let asked = orders.collect_at.is_some_and(|at| at <= Instant::now());
            if asked {
                orders.collect_at = None;
            }
            drop(orders);
            tick = Instant::now() + TICK;
            let free = Disk::of(self.state.path()).free;
            let news = asked && self.collected_at.load(Ordering::Relaxed) != self.released();
            if news || self.limits.may_stay(self.used(), free).is_some() {
                let began = Instant::now();
                let collected = self.collect(&self.limits);
                self.orders().last_took = began.elapsed();
                // It has looked at every row there is.
                crate::sys::give_back_memory();
                if collected != Collected::default() {
                    tracing::info!(?collected, "room was made");
                }
            }
        }
    }

    /// Measures everything that was not measured yet.
    pub(crate) fn measure_all(&self) {
        self.load();
        while self.measure_one() {}
        // The other thread may be at the last one.
        drop(self.measuring.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn measure_one(&self) -> bool {
        let _one_at_a_time = self.measuring.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(thing) = self.state.unmeasured().take() else { return false };
        match thing {
            Thing::Layer(id) => {
                let path = state::layer_path(id);
                let measured = Measure::of(&self.state, path.as_bytes()).map(Arc::new);
                // A collection renames before it strikes from the ledger: what is there now is
                // either kept or struck after us.
                let mut ledger = self.ledger();
                let there = statat(self.state.fd(), path, AtFlags::SYMLINK_NOFOLLOW).is_ok();
                match measured {
                    Ok(measure) if there => {
                        ledger.put_layer(id, Arc::clone(&measure));
                        self.database.put_size(id, measure);
                    }
                    _ => drop(ledger.remove_layer(&id)),
                }
            }
            Thing::Blob(id) => {
                let mut ledger = self.ledger();
                let place = blob::place(&self.state, &id);
                match statat(self.state.fd(), place, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) => ledger.put_blob(id, measure::bytes_of(&stat)),
                    Err(_) => drop(ledger.remove_blob(&id)),
                }
            }
            Thing::Volume(id) => {
                let measured = Measure::of(&self.state, id.path().as_bytes());
                let mut ledger = self.ledger();
                let there = statat(self.state.fd(), id.path(), AtFlags::SYMLINK_NOFOLLOW).is_ok();
                match measured {
                    Ok(measure) if there => ledger.put_volume(id, measure.own),
                    _ => drop(ledger.remove_volume(&id)),
                }
            }
        }
        true
    }

    /// Takes in what was on disk at the start; once.
    fn load(&self) {
        let _one_at_a_time = self.measuring.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::replace(&mut self.orders().loaded, true) {
            return;
        }
        let known = self.database.sizes();
        let (root, unmeasured) = (self.state.path(), self.state.unmeasured());
        let mut present = std::collections::HashSet::new();
        for id in names_below(&root.join("layers")).filter_map(|name| name.parse::<LayerId>().ok())
        {
            present.insert(id);
            match known.get(&id) {
                Some(measure) => self.ledger().put_layer(id, Arc::clone(measure)),
                None => unmeasured.note_layer(id),
            }
        }
        for name in names_below(&root.join("blobs/sha256")) {
            if let Ok(id) = name.parse() {
                unmeasured.note_blob(id);
            }
        }
        for (folder, name) in pairs_below(&root.join("volumes")) {
            let id = folder.parse().ok().and_then(|key| VolumeId::of_name(key, &name));
            id.into_iter().for_each(|id| unmeasured.note_volume(id));
        }
        let gone: Vec<LayerId> = known.into_keys().filter(|id| !present.contains(id)).collect();
        if !gone.is_empty() {
            self.database.forget_layers(&gone);
        }
    }
}

/// Names in the folders of a folder.
fn names_below(folder: &Path) -> impl Iterator<Item = String> {
    pairs_below(folder).map(|(_, name)| name)
}

/// Names in the folders of a folder, each with that of its folder.
fn pairs_below(folder: &Path) -> impl Iterator<Item = (String, String)> {
    let read = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten();
    read(folder).flat_map(move |folder| {
        let above = folder.file_name().to_string_lossy().into_owned();
        let below = read(&folder.path());
        below.map(move |entry| (above.clone(), entry.file_name().to_string_lossy().into_owned()))
    })
}
