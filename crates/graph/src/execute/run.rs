//! [`Run`]: one request on its way to a reply.

use super::bind::Binding;
use super::collect::{Selected, collect};
use super::force::{Answers, force};
use super::response::{Content, NodeId, Response};
use crate::coerce::Variables;
use crate::document::{Document, SetId};
use crate::introspect::{Answer, Meta, Question};
use crate::output::Outcome;
use crate::registry::{Behaviour, QUERY, Registry};
use crate::session::{Evaluation, Session};
use crate::{Call, Error, SpanId, Value, ids};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt as _};
use serde_json::Value as Json;
use std::sync::Arc;

/// One request on its way to a reply.
pub(super) struct Run {
    session: Arc<Session>,
    document: Arc<Document>,
    variables: Variables,
    parent: Option<SpanId>,
    answers: Arc<Answers>,
    response: Response,
    /// What can be done at once.
    todo: Vec<Select>,
    /// What waits for an evaluation.
    waiting: FuturesUnordered<BoxFuture<'static, (Forced, Evaluation)>>,
    /// The calls whose ids are in the reply.
    ids: Vec<Arc<Call>>,
}

/// Fields to select from something, into a place.
struct Select {
    node: NodeId,
    from: Source,
    sets: Vec<SetId>,
}

/// What fields are selected from.
enum Source {
    /// An object by the call that makes it; none is the root.
    Object(Option<Arc<Call>>),
    /// A part of the schema.
    Meta(Meta),
}

/// A field that had to be evaluated.
struct Forced {
    node: NodeId,
    call: Arc<Call>,
    sets: Vec<SetId>,
}

impl Run {
    pub(super) fn new(
        session: Arc<Session>,
        document: Arc<Document>,
        variables: Variables,
        parent: Option<SpanId>,
    ) -> Self {
        let response = Response::new();
        let waiting = FuturesUnordered::new();
        let (todo, ids, answers) = (vec![], vec![], Arc::default());
        Self { session, document, variables, parent, answers, response, todo, waiting, ids }
    }

    /// Works until the reply is whole, or an error ends it.
    pub(super) async fn finish(&mut self, set: SetId) -> Result<(), Error> {
        let from = Source::Object(None);
        self.todo.push(Select { node: Response::ROOT, from, sets: vec![set] });
        loop {
            while let Some(select) = self.todo.pop() {
                self.select(select)?;
            }
            match self.waiting.next().await {
                Some((forced, Ok(outcome))) => self.place(forced, outcome),
                Some((forced, Err(error))) => {
                    return Err(self.response.locate(forced.node, error));
                }
                None => return Ok(()),
            }
        }
    }

    pub(super) fn ids(&self) -> &[Arc<Call>] {
        &self.ids
    }

    pub(super) fn into_reply(self) -> Vec<u8> {
        self.response.into_reply()
    }

    fn select(&mut self, select: Select) -> Result<(), Error> {
        let Select { node, from, sets } = select;
        let document = self.document.clone();
        let graph = self.session.graph().clone();
        let registry = graph.registry();
        let type_name = match &from {
            Source::Object(None) => QUERY,
            Source::Object(Some(call)) => call.returns(),
            Source::Meta(meta) => meta.type_name(),
        };
        let fields = collect(&document, registry, &self.variables, (type_name, &sets))
            .map_err(|error| self.response.locate(node, error))?;
        let keys = fields.iter().map(|selected| &selected.field.key);
        let places = self.response.set_object(node, keys);
        for (selected, place) in fields.into_iter().zip(places) {
            let done = match &from {
                Source::Object(call) => self.field(registry, place, call.as_ref(), selected),
                Source::Meta(meta) => self.meta(registry, place, meta, selected),
            };
            done.map_err(|error| self.response.locate(place, error))?;
        }
        Ok(())
    }

    /// Answers one field of an object, or lets it wait.
    fn field(
        &mut self,
        registry: &Arc<Registry>,
        node: NodeId,
        receiver: Option<&Arc<Call>>,
        selected: Selected<'_>,
    ) -> Result<(), Error> {
        let Selected { field, sets } = selected;
        let owner = receiver.map_or(QUERY, |call| call.returns());
        let definition = registry.field(owner, &field.name).ok_or_else(|| {
            Error::user(format!("field `{}` does not exist on type `{owner}`", field.name))
        })?;
        let session = self.session.clone();
        let variables = &self.variables;
        let binding = Binding { session: &session, variables, owner, definition, field };
        let receiver = receiver.cloned();
        match &definition.behaviour {
            Behaviour::Typename => {
                self.response.set(node, Content::Leaf(Json::from(owner)));
            }
            Behaviour::Id => self.put_id(node, receiver),
            Behaviour::Introspection => {
                return self.meta(registry, node, &Meta::Query, Selected { field, sets });
            }
            Behaviour::Node => {
                let call = binding.load(None)?;
                self.select_from(node, call, sets);
            }
            Behaviour::Load(expected) => {
                let call = binding.load(Some(expected))?;
                self.select_from(node, call, sets);
            }
            Behaviour::Object => {
                let call = binding.call(receiver)?;
                self.select_from(node, call, sets);
            }
            Behaviour::Leaf
            | Behaviour::EvaluatedObject
            | Behaviour::Objects
            | Behaviour::ObjectAsId => {
                let call = binding.call(receiver)?;
                let forced = Forced { node, call: call.clone(), sets };
                let with = (session.clone(), self.answers.clone());
                let evaluation = force(with, call, self.parent);
                self.waiting.push(evaluation.map(|result| (forced, result)).boxed());
            }
        }
        Ok(())
    }

    fn meta(
        &mut self,
        registry: &Arc<Registry>,
        node: NodeId,
        meta: &Meta,
        selected: Selected<'_>,
    ) -> Result<(), Error> {
        let Selected { field, sets } = selected;
        let owner = meta.type_name();
        let definition = registry.field(owner, &field.name).ok_or_else(|| {
            Error::internal(format!("introspection has no field `{owner}.{}`", field.name))
        })?;
        let (session, variables) = (&*self.session, &self.variables);
        let binding = Binding { session, variables, owner, definition, field };
        let deprecated = binding.value("includeDeprecated")?;
        let question = Question {
            field: &field.name,
            name: binding.value("name")?.and_then(|name| name.as_str().map(ToOwned::to_owned)),
            include_deprecated: matches!(deprecated, Some(Value::Bool(true))),
        };
        match meta.answer(registry, &question)? {
            Answer::Leaf(json) => self.response.set(node, Content::Leaf(json)),
            Answer::One(meta) => {
                self.todo.push(Select { node, from: Source::Meta(meta), sets });
            }
            Answer::Many(all) => {
                let places = self.response.set_list(node, all.len());
                for (node, meta) in places.into_iter().zip(all) {
                    self.todo.push(Select { node, from: Source::Meta(meta), sets: sets.clone() });
                }
            }
        }
        Ok(())
    }

    /// Puts what an evaluation came to into its place.
    fn place(&mut self, forced: Forced, outcome: Arc<Outcome>) {
        let Forced { node, call, sets } = forced;
        match &*outcome {
            Outcome::Leaf(_) => self.response.set(node, Content::Shared(outcome)),
            Outcome::Object(None) => self.response.set(node, Content::Null),
            Outcome::Object(Some(_)) if sets.is_empty() => self.put_id(node, Some(call)),
            Outcome::Object(Some(_)) => self.select_from(node, call, sets),
            Outcome::OwnId if sets.is_empty() => self.put_id(node, call.receiver().cloned()),
            Outcome::OwnId => {
                let from = Source::Object(call.receiver().cloned());
                self.todo.push(Select { node, from, sets });
            }
            Outcome::Objects(items) => {
                let places = self.response.set_list(node, items.len());
                for (index, (node, item)) in places.into_iter().zip(items).enumerate() {
                    if item.is_some() {
                        let element = ids::element_call(&call, index);
                        self.select_from(node, element, sets.clone());
                    }
                }
            }
        }
    }

    fn select_from(&mut self, node: NodeId, call: Arc<Call>, sets: Vec<SetId>) {
        let from = Source::Object((!ids::is_root(&call)).then_some(call));
        self.todo.push(Select { node, from, sets });
    }

    fn put_id(&mut self, node: NodeId, call: Option<Arc<Call>>) {
        let call = call.unwrap_or_else(ids::root_call);
        self.response.set(node, Content::Leaf(Json::from(ids::id_of(&call))));
        self.ids.push(call);
    }
}
