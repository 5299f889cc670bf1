//! `EngineCacheEntrySet` and `EngineCacheEntry`: what is kept, listed.

use graph::{Args, Builder, Context, Object, Op, Scope};
use protocol::Error;
use store::CacheEntry;

/// What was kept when it was asked for.
pub(super) struct EntrySet(Vec<CacheEntry>);

impl EntrySet {
    pub(super) fn new(entries: Vec<CacheEntry>) -> Self {
        Self(entries)
    }
}

impl Object for EntrySet {
    const TYPE: &'static str = "EngineCacheEntrySet";
}

/// One thing that is kept.
pub(super) struct Entry(CacheEntry);

impl Object for Entry {
    const TYPE: &'static str = "EngineCacheEntry";
}

/// Declares a field: what it is called and what it says.
macro_rules! field {
    ($op:ident on $parent:ty, $name:literal -> $output:ty, $doc:literal, |$this:ident| $value:expr) => {
        #[doc = $doc]
        #[derive(Args)]
        struct $op {}

        impl Op for $op {
            type Parent = $parent;
            type Output = $output;
            const NAME: &'static str = $name;
            // The set is looked at anew each time, so nothing of an earlier look may be told.
            const SCOPE: Scope = Scope::Request;

            async fn run(&self, $this: &$parent, _: &Context) -> Result<$output, Error> {
                Ok($value)
            }
        }
    };
}

field!(Entries on EntrySet, "entries" -> Vec<Entry>, "Everything that is kept, oldest first.",
    |set| set.0.iter().cloned().map(Entry).collect());
field!(EntryCount on EntrySet, "entryCount" -> i64, "How many there are.",
    |set| set.0.len() as i64);
field!(SetBytes on EntrySet, "diskSpaceBytes" -> i64,
    "Bytes that all of it takes on disk, every file counted once.",
    |set| set.0.iter().map(|entry| entry.bytes as i64).sum());
field!(Description on Entry, "description" -> String, "What it is, in a line.",
    |entry| entry.0.label.clone());
field!(Bytes on Entry, "diskSpaceBytes" -> i64,
    "Bytes that it takes on disk and that no older entry accounts for.",
    |entry| entry.0.bytes as i64);
field!(Created on Entry, "createdTimeUnixNano" -> i64,
    "When it was made, in nanoseconds since 1970.", |entry| entry.0.created);
field!(LastUsed on Entry, "mostRecentUseTimeUnixNano" -> i64,
    "When it was last used, in nanoseconds since 1970.", |entry| entry.0.last_used);
field!(ActivelyUsed on Entry, "activelyUsed" -> bool,
    "Whether something uses it now, so that it is not pruned.", |entry| entry.0.in_use);
field!(Committed on Entry, "committed" -> bool,
    "Whether it survives the end of the engine, however that comes.", |entry| entry.0.committed);
field!(RecordType on Entry, "recordType" -> String, "What kind of thing it is, in a word.",
    |entry| entry.0.kind.clone());
field!(RecordTypes on Entry, "recordTypes" -> Vec<String>, "The same as a list.",
    |entry| vec![entry.0.kind.clone()]);
field!(DagqlCall on Entry, "dagqlCall" -> String, "The field that makes such things.",
    |entry| maker(&entry.0.kind).to_owned());

pub(super) fn install(builder: &mut Builder) {
    builder
        .install::<Entries>()
        .install::<EntryCount>()
        .install::<SetBytes>()
        .install::<Description>()
        .install::<Bytes>()
        .install::<Created>()
        .install::<LastUsed>()
        .install::<ActivelyUsed>()
        .install::<Committed>()
        .install::<RecordType>()
        .install::<RecordTypes>()
        .install::<DagqlCall>();
}

fn maker(kind: &str) -> &'static str {
    match kind {
        "exec" => "Container.withExec",
        "image" | "debian" => "Container.from",
        "import" => "Host.directory",
        "cache-volume" => "Query.cacheVolume",
        _ => "",
    }
}
