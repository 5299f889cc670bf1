//! [`Session`]: one client's view of the graph, and all that is remembered for it.
//!
//! A session remembers results by call, the ids it handed out and took in, and its sensitive texts.
//! Everything goes when the session goes; only what [`crate::Memo`] keeps outlives it.

use crate::builder::Graph;
use crate::flight::Flights;
use crate::op::{Resolver, Scope};
use crate::output::Outcome;
use crate::span::{EventSink, SpanSource};
use crate::{Call, Digest, Error, Extensions, SpanId, Value};
use std::borrow::Borrow;
use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A request as it came over the wire.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The document.
    pub query: String,
    /// Values of its variables.
    pub variables: Option<serde_json::Map<String, serde_json::Value>>,
    /// Which of its operations to run; none or empty when there is only one.
    pub operation_name: Option<String>,
    /// Whether every error shall say its kind and its hints.
    pub error_kinds: bool,
    /// The span under which the calls appear.
    pub parent_span: Option<SpanId>,
}

/// A call as the key of a table: its digest is in it already, and need not be kept twice.
struct ByDigest(Arc<Call>);

impl Hash for ByDigest {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.digest().hash(state);
    }
}

impl PartialEq for ByDigest {
    fn eq(&self, other: &Self) -> bool {
        self.0.digest() == other.0.digest()
    }
}

impl Eq for ByDigest {}

impl Borrow<Digest> for ByDigest {
    fn borrow(&self) -> &Digest {
        self.0.digest()
    }
}

/// What a call came to.
struct Remembered {
    outcome: Arc<Outcome>,
    resolver: Arc<dyn Resolver>,
    /// Whether somebody asked for it since it was last its turn to go.
    asked: bool,
}

/// How many results of [`Scope::Recent`] a session keeps.
const RECENT: usize = 128;

/// All that a session remembers by call.
#[derive(Default)]
struct Results {
    table: HashMap<ByDigest, Remembered>,
    /// Those of [`Scope::Recent`], oldest first.
    recent: VecDeque<Digest>,
}

impl Results {
    /// Notes a result that is kept for a while, and lets go of an older one that nobody asked for
    /// meanwhile. One that was asked for waits for another turn.
    fn note_recent(&mut self, digest: Digest) {
        self.recent.push_back(digest);
        while self.recent.len() > RECENT
            && let Some(oldest) = self.recent.pop_front()
        {
            let result = self.table.get_mut(&oldest);
            if result.is_some_and(|result| std::mem::take(&mut result.asked)) {
                self.recent.push_back(oldest);
            } else {
                self.table.remove(&oldest);
            }
        }
    }
}

/// What a call came to, shared by all who wait for it.
pub(crate) type Evaluation = Result<Arc<Outcome>, Error>;

/// One client's view of the graph.
pub struct Session {
    id: String,
    graph: Arc<Graph>,
    extensions: Extensions,
    spans: SpanSource,
    results: Mutex<Results>,
    flights: Arc<Flights<Evaluation>>,
    vault: Vault,
    /// Calls by handle, so that an id is decoded once.
    calls: Mutex<HashMap<u64, Arc<Call>>>,
    /// Calls whose records this session stored, with all that is behind them.
    stored: Mutex<HashSet<Digest>>,
    numbers: AtomicI64,
}

impl Session {
    pub(crate) fn new(
        graph: Arc<Graph>,
        id: String,
        extensions: Extensions,
        sink: Arc<dyn EventSink>,
    ) -> Arc<Self> {
        let spans = SpanSource::new(sink, graph.span_counter().clone());
        Arc::new(Self {
            id,
            graph,
            extensions,
            spans,
            results: Mutex::default(),
            flights: Flights::new(),
            vault: Vault::default(),
            calls: Mutex::default(),
            stored: Mutex::default(),
            numbers: AtomicI64::new(0),
        })
    }

    /// Name of the session.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Runs a request and gives the reply as JSON. Dropping the future cancels what only it waits
    /// for.
    pub async fn execute(self: &Arc<Self>, request: Request) -> Vec<u8> {
        crate::execute::execute(self, request).await
    }

    /// A number that the session gives once.
    pub(crate) fn next_number(&self) -> i64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn graph(&self) -> &Arc<Graph> {
        &self.graph
    }

    pub(crate) fn extensions(&self) -> &Extensions {
        &self.extensions
    }

    pub(crate) fn spans(&self) -> &SpanSource {
        &self.spans
    }

    pub(crate) fn vault(&self) -> &Vault {
        &self.vault
    }

    pub(crate) fn flights(&self) -> &Arc<Flights<Evaluation>> {
        &self.flights
    }

    /// What a call came to before.
    pub(crate) fn result(&self, digest: &Digest) -> Option<Arc<Outcome>> {
        let mut results = lock(&self.results);
        let result = results.table.get_mut(digest)?;
        result.asked = true;
        Some(result.outcome.clone())
    }

    pub(crate) fn remember(
        &self,
        call: Arc<Call>,
        outcome: Arc<Outcome>,
        resolver: Arc<dyn Resolver>,
    ) {
        let mut results = lock(&self.results);
        let (digest, scope) = (*call.digest(), resolver.scope());
        let remembered = Remembered { outcome, resolver, asked: false };
        let known = results.table.insert(ByDigest(call), remembered);
        if scope == Scope::Recent && known.is_none() {
            results.note_recent(digest);
        }
    }

    /// Forgets what is not whole any more, and everything that came of it, so that it is evaluated
    /// again.
    pub(crate) fn forget_lost(&self) {
        let mut results = lock(&self.results);
        let Results { table, recent } = &mut *results;
        let is_lost =
            |result: &Remembered| !result.resolver.is_whole(&result.outcome, &self.extensions);
        let lost = table.iter().filter(|(_, result)| is_lost(result));
        let mut lost: Vec<Digest> = lost.map(|(ByDigest(call), _)| *call.digest()).collect();
        let mut users = users(table.keys().map(|ByDigest(call)| call));
        while let Some(digest) = lost.pop() {
            table.remove(&digest);
            lost.extend(users.remove(&digest).unwrap_or_default());
        }
        recent.retain(|digest| table.contains_key(digest));
    }

    /// A call by the handle of its id, if the session met it before.
    pub(crate) fn known_call(&self, handle: u64) -> Option<Arc<Call>> {
        lock(&self.calls).get(&handle).cloned()
    }

    /// The calls of this field of `Query` whose ids the session handed out or took in.
    pub(crate) fn calls_of(&self, field: &str) -> Vec<Arc<Call>> {
        let calls = lock(&self.calls);
        let of_field = |call: &&Arc<Call>| call.receiver().is_none() && call.field() == field;
        calls.values().filter(of_field).cloned().collect()
    }

    pub(crate) fn note_call(&self, call: &Arc<Call>) {
        lock(&self.calls).insert(call.digest().handle(), call.clone());
    }

    pub(crate) fn is_stored(&self, digest: &Digest) -> bool {
        lock(&self.stored).contains(digest)
    }

    pub(crate) fn note_stored(&self, digests: impl Iterator<Item = Digest>) {
        lock(&self.stored).extend(digests);
    }
}

/// The sensitive texts of a session by their keyed digest.
#[derive(Default)]
pub(crate) struct Vault(Mutex<HashMap<Digest, Arc<str>>>);

impl Vault {
    pub(crate) fn get(&self, sealed: &Digest) -> Option<Arc<str>> {
        lock(&self.0).get(sealed).cloned()
    }

    /// Takes a text in and gives the value that stands for it. The digest is keyed, so that it says
    /// nothing of the text to who does not have the key of the engine.
    pub(crate) fn seal(&self, key: &[u8; 32], text: Arc<str>) -> Value {
        let sealed = Digest::builder("sealed").bytes(key).text(&text).finish();
        lock(&self.0).insert(sealed, text);
        Value::Sealed(sealed)
    }
}

/// Who uses which call, through calls in between that nobody remembers.
fn users<'a>(calls: impl Iterator<Item = &'a Arc<Call>>) -> HashMap<Digest, Vec<Digest>> {
    let mut users: HashMap<Digest, Vec<Digest>> = HashMap::new();
    let mut ahead: Vec<&Arc<Call>> = calls.collect();
    let mut seen: HashSet<Digest> = ahead.iter().map(|call| *call.digest()).collect();
    while let Some(call) = ahead.pop() {
        for input in call.inputs() {
            users.entry(*input.digest()).or_default().push(*call.digest());
            if seen.insert(*input.digest()) {
                ahead.push(input);
            }
        }
    }
    users
}

/// Every change under these locks is one insert: a panic elsewhere leaves the tables whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
