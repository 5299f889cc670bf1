//! [`Context`]: everything an op sees of the world besides its receiver and its arguments.

use crate::flight::Joined;
use crate::memo::{Hold, Made, Remembered};
use crate::session::Session;
use crate::span::Span;
use crate::{Call, Digest, Error};
use futures::FutureExt as _;
use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;

/// What the session of an op was opened with, by type.
#[derive(Clone, Default)]
pub struct Extensions(HashMap<TypeId, Arc<dyn Any + Send + Sync>>);

impl Extensions {
    /// Nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a value; an earlier one of the same type is replaced.
    pub fn insert<T: Send + Sync + 'static>(&mut self, value: Arc<T>) -> &mut Self {
        // Boxed in one more `Arc` so that `get` can lend the caller's own `Arc`.
        self.0.insert(TypeId::of::<T>(), Arc::new(value));
        self
    }

    /// The value of this type.
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<&Arc<T>> {
        self.0.get(&TypeId::of::<T>())?.downcast_ref()
    }
}

/// Holds what a remembered result needs; none when that is gone.
type Usable<'a> = dyn Fn(&[u8]) -> Option<Hold> + Send + Sync + 'a;

/// What an op runs in.
#[derive(Clone)]
pub struct Context {
    session: Arc<Session>,
    call: Arc<Call>,
    span: Span,
}

impl Context {
    pub(crate) fn new(session: Arc<Session>, call: Arc<Call>, span: Span) -> Self {
        Self { session, call, span }
    }

    /// The call that runs: the name of its result.
    pub fn call(&self) -> &Arc<Call> {
        &self.call
    }

    /// Name of the session.
    pub fn session_id(&self) -> &str {
        self.session.id()
    }

    /// What the session was opened with.
    pub fn get<T: Send + Sync + 'static>(&self) -> Result<&Arc<T>, Error> {
        self.session.extensions().get().ok_or_else(|| {
            let name = std::any::type_name::<T>();
            Error::internal(format!("the session was opened without `{name}`"))
        })
    }

    /// All that the session was opened with, for a session inside of it.
    pub fn extensions(&self) -> &Extensions {
        self.session.extensions()
    }

    /// The span of this call.
    pub fn span(&self) -> &Span {
        &self.span
    }

    /// The calls of a field of `Query` whose ids this session handed out or took in, in no order.
    pub fn calls_of(&self, field: &str) -> Vec<Arc<Call>> {
        self.session.calls_of(field)
    }

    /// The same under another span: a part of the call that is watched by itself.
    #[must_use]
    pub fn under(&self, span: Span) -> Self {
        Self { span, ..self.clone() }
    }

    /// The plain text behind a sealed argument, in the session that brought it.
    pub fn unseal(&self, sealed: &Digest) -> Option<Arc<str>> {
        self.session.vault().get(sealed)
    }

    /// What stands for bytes that must not be told: a digest under the engine's own key.
    pub fn sealed(&self, bytes: &[u8]) -> Digest {
        Digest::builder("sealed").bytes(self.session.graph().key()).bytes(bytes).finish()
    }

    /// Work that outlives the session, named by all it can observe.
    ///
    /// A remembered result that is still `usable` is taken and marks the span as cached; one that
    /// cannot be held any more is forgotten. Equal work in flight is shared, also between sessions, and is cancelled when
    /// the last who waits goes. A failure is not remembered.
    pub async fn action(
        &self,
        key: Digest,
        usable: &Usable<'_>,
        work: impl Future<Output = Result<Remembered, Error>> + Send + 'static,
    ) -> Result<Made, Error> {
        self.fly(key, (key, usable), work).await
    }

    /// The same for work that uses something of this session which is no part of its name: what is in
    /// flight is not shared with other sessions, because it would fail when this one ends.
    pub async fn action_of_session(
        &self,
        key: Digest,
        usable: &Usable<'_>,
        work: impl Future<Output = Result<Remembered, Error>> + Send + 'static,
    ) -> Result<Made, Error> {
        let flight = Digest::builder("flight").digest(&key).text(self.session.id()).finish();
        self.fly(flight, (key, usable), work).await
    }

    async fn fly(
        &self,
        flight: Digest,
        (key, usable): (Digest, &Usable<'_>),
        work: impl Future<Output = Result<Remembered, Error>> + Send + 'static,
    ) -> Result<Made, Error> {
        let graph = self.session.graph();
        let landed = graph.actions().landed();
        if let Some(hit) = self.remembered(&key, usable) {
            self.span.mark_cached();
            return Ok(hit);
        }
        let memo = graph.memo().clone();
        let start = || {
            let work = async move {
                let remembered = work.await?;
                let made = Made::new(&remembered.value[..], remembered.hold.clone());
                memo.put_action(key, remembered);
                Ok(made)
            };
            work.boxed()
        };
        // What is remembered is read from disk: only if somebody can have put it there just now.
        let finished = |by_now| (by_now != landed).then(|| self.remembered(&key, usable)).flatten();
        match graph.actions().join(flight, finished, start) {
            Joined::Flying(flight) => flight.await,
            Joined::Finished(hit) => {
                self.span.mark_cached();
                Ok(hit)
            }
        }
    }

    fn remembered(&self, key: &Digest, usable: &Usable<'_>) -> Option<Made> {
        let memo = self.session.graph().memo();
        let value = memo.action(key)?;
        if let Some(hold) = usable(&value) {
            return Some(Made::new(value, hold));
        }
        memo.remove_action(key);
        None
    }
}
