//! `EngineCache`: remembered results and cache volumes, their limits, and getting rid of them.

use super::Engine;
use super::amount;
use super::entry::EntrySet;
use crate::services::Services;
use graph::{Args, Builder, Context, Object, Op, Scope};
use protocol::Error;
use store::Limits;

pub(super) fn install(builder: &mut Builder) {
    builder
        .install::<LocalCache>()
        .install::<EntrySetOf>()
        .install::<Prune>()
        .install::<KeepBytes>()
        .install::<MaxUsedSpace>()
        .install::<MinFreeSpace>()
        .install::<ReservedSpace>()
        .install::<TargetSpace>();
}

/// What an engine keeps on its disk.
pub(super) struct EngineCache;

impl Object for EngineCache {
    const TYPE: &'static str = "EngineCache";
}

/// What the engine keeps on its disk.
#[derive(Args)]
struct LocalCache {}

impl Op for LocalCache {
    type Parent = Engine;
    type Output = EngineCache;
    const NAME: &'static str = "localCache";

    async fn run(&self, _: &Engine, _: &Context) -> Result<EngineCache, Error> {
        Ok(EngineCache)
    }
}

/// Everything that is kept, as it is now.
#[derive(Args)]
struct EntrySetOf {
    /// Tells one look from another where a client remembers answers; the set is always the whole.
    #[arg(default = "\"\"")]
    #[expect(dead_code, reason = "a part of the call's name and nothing else")]
    key: String,
}

impl Op for EntrySetOf {
    type Parent = EngineCache;
    type Output = EntrySet;
    const NAME: &'static str = "entrySet";
    const SCOPE: Scope = Scope::Request;

    async fn run(&self, _: &EngineCache, cx: &Context) -> Result<EntrySet, Error> {
        let services = cx.get::<Services>()?;
        let store = services.store.clone();
        let entries = services.blocking(move || Ok::<_, Error>(store.entries())).await?;
        Ok(EntrySet::new(entries))
    }
}

/// Removes what is kept and not in use: all of it, or as much as the limits ask for. Returns when the
/// space is free.
#[derive(Args)]
struct Prune {
    /// Begin with the engine's own limits instead of none.
    #[arg(default = "false")]
    use_default_policy: bool,
    /// Most space that may be used, such as `200GB` or `80%`.
    #[arg(default = "\"\"")]
    max_used_space: String,
    /// Space that is never pruned, such as `10GB` or `5%`.
    #[arg(default = "\"\"")]
    reserved_space: String,
    /// Space to keep free on the disk, such as `20GB` or `20%`.
    #[arg(default = "\"\"")]
    min_free_space: String,
    /// How much may be left once pruning has begun, such as `100GB` or `50%`.
    #[arg(default = "\"\"")]
    target_space: String,
    /// The same as `maxUsedSpace`, in bytes.
    max_estimated_bytes: Option<i64>,
    /// The same as `targetSpace`, in bytes.
    target_estimated_bytes: Option<i64>,
}

impl Prune {
    /// What the arguments ask for.
    fn limits(&self, own: Limits, disk: u64) -> Result<Limits, Error> {
        let amount = |name, text: &str| amount::parse(name, text, disk);
        let bytes = |name: &str, given: Option<i64>| match given.map(u64::try_from) {
            Some(Err(_)) => Err(Error::user(format!("invalid {name} value: below zero"))),
            Some(Ok(bytes)) => Ok(Some(bytes)),
            None => Ok(None),
        };
        let max_used = amount("maxUsedSpace", &self.max_used_space)?
            .or(bytes("maxEstimatedBytes", self.max_estimated_bytes)?);
        let target = amount("targetSpace", &self.target_space)?
            .or(bytes("targetEstimatedBytes", self.target_estimated_bytes)?);
        let min_free = amount("minFreeSpace", &self.min_free_space)?;
        let reserved = amount("reservedSpace", &self.reserved_space)?;
        let limited = self.use_default_policy || min_free.is_some() || max_used.is_some();
        let base = match (self.use_default_policy, limited) {
            (true, _) => own,
            (false, true) => Limits::NONE,
            (false, false) => Limits::NOTHING,
        };
        let max_used = max_used.unwrap_or(base.max_used);
        Ok(Limits {
            max_used,
            min_free: min_free.unwrap_or(base.min_free),
            reserved: reserved.unwrap_or(base.reserved),
            target: target.unwrap_or(base.target.min(max_used)),
            ..base
        })
    }
}

impl Op for Prune {
    type Parent = EngineCache;
    type Output = ();
    const NAME: &'static str = "prune";
    const SCOPE: Scope = Scope::Request;

    async fn run(&self, _: &EngineCache, cx: &Context) -> Result<(), Error> {
        let services = cx.get::<Services>()?;
        let store = services.store.clone();
        let limits = self.limits(store.limits(), store.disk_size())?;
        let pruned = services.blocking(move || Ok::<_, Error>(store.collect(&limits))).await?;
        tracing::info!(?pruned, "the cache was pruned");
        Ok(())
    }
}

/// Declares a field that says one limit in bytes.
macro_rules! limit {
    ($op:ident, $name:literal, $doc:literal, $limits:ident => $value:expr) => {
        #[doc = $doc]
        #[derive(Args)]
        struct $op {}

        impl Op for $op {
            type Parent = EngineCache;
            type Output = i64;
            const NAME: &'static str = $name;

            async fn run(&self, _: &EngineCache, cx: &Context) -> Result<i64, Error> {
                let $limits = cx.get::<Services>()?.store.limits();
                Ok(i64::try_from($value).unwrap_or(i64::MAX))
            }
        }
    };
}

limit!(KeepBytes, "keepBytes", "Most space that is used, in bytes.", limits => limits.max_used);
limit!(MaxUsedSpace, "maxUsedSpace", "Most space that is used, in bytes.", limits => limits.max_used);
limit!(
    MinFreeSpace,
    "minFreeSpace",
    "Space that is kept free on the disk, in bytes.",
    limits => limits.min_free
);
limit!(
    ReservedSpace,
    "reservedSpace",
    "Space that is never collected, in bytes.",
    limits => limits.reserved
);
limit!(
    TargetSpace,
    "targetSpace",
    "How much is left once collecting has begun, in bytes.",
    limits => limits.target
);
