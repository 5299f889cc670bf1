//! [`Builder`] and [`Graph`]: a schema, the ops behind its fields, and what all sessions share.

use crate::document::cache::DocumentCache;
use crate::document::reader::Reader;
use crate::document::{Document, Refusal};
use crate::flight::Flights;
use crate::introspect::AnswerCache;
use crate::memo::{Made, Memo};
use crate::op::Op;
use crate::registry::Registry;
use crate::session::Session;
use crate::span::EventSink;
use crate::{Digest, Error, Extensions};
use protocol::schema::Schema;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// The actions in flight in the whole engine.
pub(crate) type Actions = Flights<Result<Made, Error>>;

/// Collects the ops of a schema.
pub struct Builder {
    reader: Reader,
    registry: Registry,
    problems: Vec<String>,
}

/// A schema with its ops.
pub struct Graph {
    reader: Reader,
    documents: DocumentCache,
    answers: AnswerCache,
    registry: Arc<Registry>,
    schema: Schema,
    memo: Arc<dyn Memo>,
    actions: Arc<Actions>,
    span_counter: Arc<AtomicU64>,
    key: [u8; 32],
}

impl Graph {
    /// Reads a schema in SDL. Fields stay unanswered until ops are installed.
    pub fn builder(sdl: &str) -> Result<Builder, Error> {
        let (reader, registry) = Reader::new(sdl)?;
        Ok(Builder { reader, registry, problems: vec![] })
    }

    /// Opens a session. Objects that are a session's own are told apart by `id`.
    pub fn session(
        self: &Arc<Self>,
        id: String,
        extensions: Extensions,
        sink: Arc<dyn EventSink>,
    ) -> Arc<Session> {
        Session::new(self.clone(), id, extensions, sink)
    }

    /// The schema for our own command line.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    pub(crate) fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    pub(crate) fn memo(&self) -> &Arc<dyn Memo> {
        &self.memo
    }

    pub(crate) fn actions(&self) -> &Arc<Actions> {
        &self.actions
    }

    pub(crate) fn answers(&self) -> &AnswerCache {
        &self.answers
    }

    pub(crate) fn span_counter(&self) -> &Arc<AtomicU64> {
        &self.span_counter
    }

    pub(crate) fn key(&self) -> &[u8; 32] {
        &self.key
    }

    /// The checked document of a text.
    pub(crate) async fn document(
        &self,
        text: &str,
        digest: Digest,
    ) -> Result<Arc<Document>, Refusal> {
        if let Some(document) = self.documents.get(&digest) {
            return Ok(document);
        }
        let document = Arc::new(self.reader.read(text, &self.registry).await?);
        self.documents.put(digest, text.len(), &document);
        Ok(document)
    }
}

impl Builder {
    /// Puts an op behind its field. Where op and schema disagree, [`Builder::build`] fails.
    pub fn install<O: Op>(&mut self) -> &mut Self {
        let problems = self.registry.install::<O>();
        self.problems.extend(problems);
        self
    }

    /// Lets objects of the type `object` also answer fragments on the object type `other`, whose
    /// fields they all have.
    pub fn answer_for(&mut self, object: &str, other: &str) -> &mut Self {
        self.registry.let_answer_for(object, other);
        self
    }

    /// The graph, or every mismatch between ops and schema. `key` is the engine's own secret, under
    /// which sensitive arguments are sealed.
    pub fn build(mut self, memo: Arc<dyn Memo>, key: [u8; 32]) -> Result<Arc<Graph>, Error> {
        self.problems.extend(self.registry.settle());
        if !self.problems.is_empty() {
            let problems = self.problems.join("\n  ");
            return Err(Error::internal(format!("ops and schema disagree:\n  {problems}")));
        }
        Ok(Arc::new(Graph {
            reader: self.reader,
            documents: DocumentCache::default(),
            answers: AnswerCache::default(),
            schema: self.registry.describe(),
            registry: Arc::new(self.registry),
            memo,
            actions: Flights::new(),
            span_counter: Arc::default(),
            key,
        }))
    }
}
