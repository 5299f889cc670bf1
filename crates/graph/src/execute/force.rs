//! Evaluates a call with everything behind it.
//!
//! Chains reach 100,000 calls, so nothing recurses: the calls that are not remembered yet are listed
//! inputs first, and whatever has all its inputs runs, side by side. Each single call goes through
//! the session's flights, so that requests which need the same call share one evaluation, and it is
//! dropped when the last of them is.

use super::name::{name_of, name_without};
use crate::flight::{Flight, Joined};
use crate::input::ArgValues;
use crate::op::{Resolver, Root, Scope};
use crate::output::{ObjectValue, Outcome};
use crate::registry::QUERY;
use crate::session::{Evaluation, Session};
use crate::span::{Span, SpanStart};
use crate::{Call, Context, Digest, Error, ErrorKind, SpanId, SpanKind, SpanOutcome, ids, reply};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt as _};
use serde_json::Value as Json;
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};

/// Longest text of a leaf that a session remembers: asking for a longer one again runs its op again,
/// which finds its work done.
const MAX_REMEMBERED: usize = 64 << 10;

/// What calls that no session remembers came to in one request: asked for twice, they run once.
#[derive(Default)]
pub(super) struct Answers(Mutex<HashMap<Digest, Arc<Outcome>>>);

impl Answers {
    fn get(&self, digest: &Digest) -> Option<Arc<Outcome>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(digest).cloned()
    }

    fn keep(&self, digest: Digest, outcome: &Arc<Outcome>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(digest, outcome.clone());
    }
}

/// Evaluates a call for a request that has these answers.
pub(super) async fn force(
    (session, answers): (Arc<Session>, Arc<Answers>),
    call: Arc<Call>,
    parent: Option<SpanId>,
) -> Evaluation {
    if let Some(outcome) = session.result(call.digest()) {
        return Ok(outcome);
    }
    let mut plan = Plan::new((session, answers), &call, parent)?;
    let mut flying = FuturesUnordered::new();
    loop {
        while let Some(index) = plan.ready.pop() {
            match plan.begin(index)? {
                Begun::Finished(outcome) => plan.finish(index, outcome),
                Begun::Flying(flight) => flying.push(flight.map(move |result| (index, result))),
            }
        }
        match flying.next().await {
            Some((index, result)) => plan.finish(index, result?),
            None => return plan.take(call.digest()),
        }
    }
}

/// The calls to evaluate and who waits for whom.
struct Plan {
    session: Arc<Session>,
    answers: Arc<Answers>,
    parent: Option<SpanId>,
    steps: Vec<Step>,
    index: HashMap<Digest, usize>,
    ready: Vec<usize>,
}

struct Step {
    call: Arc<Call>,
    outcome: Option<Arc<Outcome>>,
    /// How many inputs are missing.
    missing: usize,
    /// The steps that wait for this one.
    users: Vec<usize>,
}

enum Begun {
    Finished(Arc<Outcome>),
    Flying(Flight<Evaluation>),
}

impl Plan {
    /// Lists what is to be evaluated. What is remembered is a step that is done.
    fn new(
        (session, answers): (Arc<Session>, Arc<Answers>),
        call: &Arc<Call>,
        parent: Option<SpanId>,
    ) -> Result<Self, Error> {
        let (steps, index, ready) = (vec![], HashMap::new(), vec![]);
        let mut plan = Self { session, answers, parent, steps, index, ready };
        plan.add(call)?;
        let mut next = 0;
        while next < plan.steps.len() {
            let call = plan.steps[next].call.clone();
            if plan.steps[next].outcome.is_none() {
                for input in call.inputs() {
                    let input = plan.add(input)?;
                    if plan.steps[input].outcome.is_none() {
                        plan.steps[input].users.push(next);
                        plan.steps[next].missing += 1;
                    }
                }
                if plan.steps[next].missing == 0 {
                    plan.ready.push(next);
                }
            }
            next += 1;
        }
        Ok(plan)
    }

    fn add(&mut self, call: &Arc<Call>) -> Result<usize, Error> {
        if let Some(index) = self.index.get(call.digest()) {
            return Ok(*index);
        }
        if call.scope().is_some_and(|scope| scope != self.session.id()) {
            return Err(Error::user(format!("`{}` belongs to another session", name_of(call))));
        }
        let outcome = self.session.result(call.digest());
        let outcome = outcome.or_else(|| self.answers.get(call.digest()));
        self.steps.push(Step { call: call.clone(), outcome, missing: 0, users: vec![] });
        self.index.insert(*call.digest(), self.steps.len() - 1);
        Ok(self.steps.len() - 1)
    }

    fn finish(&mut self, index: usize, outcome: Arc<Outcome>) {
        let call = &self.steps[index].call;
        if self.resolver(call).is_some_and(|resolver| resolver.scope() == Scope::Request) {
            self.answers.keep(*call.digest(), &outcome);
        }
        self.steps[index].outcome = Some(outcome);
        for user in std::mem::take(&mut self.steps[index].users) {
            self.steps[user].missing -= 1;
            if self.steps[user].missing == 0 {
                self.ready.push(user);
            }
        }
    }

    fn take(&self, digest: &Digest) -> Evaluation {
        self.outcome(digest)
            .cloned()
            .ok_or_else(|| Error::internal("a call was evaluated and left no result"))
    }

    fn outcome(&self, digest: &Digest) -> Option<&Arc<Outcome>> {
        self.steps[*self.index.get(digest)?].outcome.as_ref()
    }

    /// Evaluates a step whose inputs are there.
    fn begin(&self, index: usize) -> Result<Begun, Error> {
        let call = &self.steps[index].call;
        if ids::is_root(call) {
            return Ok(Begun::Finished(Arc::new(Outcome::Object(Some(Arc::new(Root))))));
        }
        if let Some(element) = ids::element_index(call) {
            return self.element(call, element).map(Begun::Finished);
        }
        let digest = *call.digest();
        let work = self.work(call)?;
        let session = &self.session;
        let start = || work.run().boxed() as BoxFuture<'static, Evaluation>;
        Ok(match session.flights().join(digest, |_| session.result(&digest), start) {
            Joined::Finished(outcome) => Begun::Finished(outcome),
            Joined::Flying(flight) => Begun::Flying(flight),
        })
    }

    fn resolver(&self, call: &Call) -> Option<&Arc<dyn Resolver>> {
        let field = self.session.graph().registry().field(owner(call), call.field());
        field.and_then(|field| field.resolver.as_ref())
    }

    fn work(&self, call: &Arc<Call>) -> Result<Work, Error> {
        let place = || format!("`{}.{}`", owner(call), call.field());
        let resolver = self.resolver(call).cloned();
        let receiver = match call.receiver() {
            Some(receiver) => self.object(receiver)?,
            None => Arc::new(Root),
        };
        let mut objects = HashMap::new();
        let mut problem = None;
        for (_, value) in call.args() {
            value.for_each_call(&mut |call| match self.object(call) {
                Ok(object) => {
                    objects.insert(*call.digest(), object);
                }
                Err(error) => problem = Some(error),
            });
        }
        if let Some(error) = problem {
            return Err(error);
        }
        Ok(Work {
            session: self.session.clone(),
            call: call.clone(),
            parent: self.parent,
            resolver: resolver.ok_or_else(|| reply::not_implemented(place()))?,
            receiver,
            objects,
        })
    }

    /// The object that an evaluated call made.
    fn object(&self, call: &Arc<Call>) -> Result<ObjectValue, Error> {
        match self.outcome(call.digest()).map(|outcome| &**outcome) {
            Some(Outcome::Object(Some(object))) => Ok(object.clone()),
            Some(Outcome::Object(None)) => Err(Error::user(format!("`{}` is null", name_of(call)))),
            _ => Err(Error::internal(format!("`{}` made no object", name_of(call)))),
        }
    }

    fn element(&self, call: &Arc<Call>, index: usize) -> Evaluation {
        let list = call.receiver().and_then(|list| self.outcome(list.digest()));
        let element = match list.map(|outcome| &**outcome) {
            Some(Outcome::Objects(items)) => items.get(index).cloned(),
            _ => None,
        };
        let element = element.ok_or_else(|| {
            let list = call.receiver().map(|list| name_of(list)).unwrap_or_default();
            Error::user(format!("`{list}` has no element {index} any more"))
        })?;
        Ok(Arc::new(Outcome::Object(element)))
    }
}

/// The type whose field is called.
fn owner(call: &Call) -> &str {
    call.receiver().map_or(QUERY, |receiver| receiver.returns())
}

/// One call with everything it needs, so that it borrows nothing.
struct Work {
    session: Arc<Session>,
    call: Arc<Call>,
    parent: Option<SpanId>,
    resolver: Arc<dyn Resolver>,
    receiver: ObjectValue,
    objects: HashMap<Digest, ObjectValue>,
}

impl Work {
    /// Runs the op in its span and remembers the result before the flight lands.
    async fn run(self) -> Evaluation {
        let digest = *self.call.digest();
        let start = SpanStart { parent: self.parent, kind: SpanKind::Call, call: Some(digest) };
        let spans = self.session.spans();
        let span = spans.start(start, || name_without(&self.call, &|text| spans.conceal(text)));
        let result = self.run_op(&span).await.map(Arc::new);
        match &result {
            Ok(outcome) => {
                if self.resolver.scope() != Scope::Request && is_small(outcome) {
                    let (call, resolver) = (self.call.clone(), self.resolver.clone());
                    self.session.remember(call, outcome.clone(), resolver);
                }
                span.done();
            }
            // It is begun again, with a span of its own.
            Err(error) if error.kind == ErrorKind::Lost => span.end(SpanOutcome::Cancelled),
            Err(error) => span.end(SpanOutcome::Failed(error.message.clone())),
        }
        result
    }

    async fn run_op(&self, span: &Span) -> Result<Outcome, Error> {
        let registry = self.session.graph().registry();
        let owner = owner(&self.call);
        let field = registry.field(owner, self.call.field());
        let values = ArgValues {
            given: self.call.args(),
            defaults: field.map(|field| field.defaults.as_slice()).unwrap_or_default(),
            objects: &self.objects,
            vault: self.session.vault(),
        };
        let context = Context::new(self.session.clone(), self.call.clone(), span.clone());
        let op = self.resolver.start(self.receiver.clone(), &values, context)?;
        let run = AssertUnwindSafe(op).catch_unwind().await;
        run.unwrap_or_else(|_| {
            Err(Error::internal(format!("`{owner}.{}` panicked", self.call.field())))
        })
    }
}

/// Whether an outcome is small enough to keep for the whole session.
fn is_small(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Leaf(Json::String(text)) => text.len() <= MAX_REMEMBERED,
        Outcome::Leaf(Json::Array(items)) => items.len() <= MAX_REMEMBERED / 64,
        _ => true,
    }
}
