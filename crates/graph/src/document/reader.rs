//! [`Reader`]: parses and validates documents, on threads with a deep stack.
//!
//! The parser's view of the schema borrows from itself, so one thread owns it. That thread reads the
//! usual short document itself, and lends the schema to a short-lived thread for any other. Parser
//! and validator recurse along the nesting of a document; the stack of such a thread is sized for
//! [`super::limits::MAX_DEPTH`] levels in an unoptimised build, and is given back with the thread.

use super::ast::{Schema, with_schema};
use super::limits::{MAX_DEPTH, MAX_TOKENS, check_nesting, check_size};
use super::{Document, Refusal, convert};
use crate::Error;
use crate::registry::{META_FIELDS, Registry, complete_sdl, read};
use bluejay_parser::ast::executable::ExecutableDocument;
use bluejay_parser::ast::{Parse as _, ParseOptions};
use bluejay_validator::executable::Cache;
use bluejay_validator::executable::document::{Error as Invalid, Orchestrator, rules};
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// Stack of a reading thread. Only what is touched takes memory.
const STACK_BYTES: usize = 64 << 20;
/// Stack of the thread that owns the schema: enough for [`SHALLOW`] levels many times over.
const OWNER_STACK_BYTES: usize = 8 << 20;
/// Deepest nesting that the owner of the schema reads itself.
const SHALLOW: usize = 64;
/// Longest document that the owner of the schema reads itself: others wait for it meanwhile.
const SHORT: usize = 16 << 10;
/// Documents above this size get no line and column in their errors.
const MAX_LOCATED: usize = 1 << 20;

/// The stock rules that hold here, in tuples of the sizes that the validator takes. Four are ours and
/// stand in `convert`: values, variable usages, possible fragments, leaf selections.
type Rules<'a, E, S> = (
    (
        rules::NamedOperationNameUniqueness<'a, E>,
        rules::LoneAnonymousOperation<'a, E>,
        rules::SubscriptionOperationSingleRootField<'a, E>,
        rules::FieldSelections<'a, E, S>,
        rules::FieldSelectionMerging<'a, E, S>,
        rules::OperationTypeIsDefined<'a, E, S>,
        rules::ArgumentNames<'a, E, S>,
        rules::ArgumentUniqueness<'a, E, S>,
        rules::RequiredArguments<'a, E, S>,
    ),
    (
        rules::FragmentNameUniqueness<'a, E>,
        rules::FragmentSpreadTypeExists<'a, E, S>,
        rules::FragmentsOnCompositeTypes<'a, E, S>,
        rules::FragmentsMustBeUsed<'a, E>,
        rules::FragmentSpreadTargetDefined<'a, E, S>,
        rules::FragmentSpreadsMustNotFormCycles<'a, E, S>,
    ),
    (
        rules::DirectivesAreDefined<'a, E, S>,
        rules::DirectivesAreInValidLocations<'a, E, S>,
        rules::DirectivesAreUniquePerLocation<'a, E, S>,
        rules::VariableUniqueness<'a, E, S>,
        rules::VariablesAreInputTypes<'a, E, S>,
        rules::AllVariableUsesDefined<'a, E, S>,
        rules::AllVariablesUsed<'a, E, S>,
    ),
);

/// Reads documents against one schema.
pub(crate) struct Reader {
    jobs: mpsc::Sender<Job>,
    /// Bounds how many documents are read at once.
    permits: Arc<Semaphore>,
}

struct Job {
    text: String,
    /// Whether a thread of its own would cost more than the reading.
    simple: bool,
    registry: Arc<Registry>,
    reply: oneshot::Sender<Result<Document, Refusal>>,
    /// Held until the thread is done, also when nobody waits for it any more.
    _permit: OwnedSemaphorePermit,
}

impl Reader {
    /// Parses the schema and starts the thread that owns it. The thread ends with the reader.
    pub(crate) fn start(sdl: &str) -> Result<(Self, Registry), Error> {
        Self::start_thread(sdl).map(|(reader, registry, _)| (reader, registry))
    }

    fn start_thread(sdl: &str) -> Result<(Self, Registry, JoinHandle<()>), Error> {
        let sdl = complete_sdl(sdl);
        let (ready, registry) = mpsc::channel();
        let (jobs, waiting) = mpsc::channel();
        let failed = |problem: String| Error::internal(format!("invalid schema: {problem}"));
        let thread = thread::Builder::new()
            .name("graph-schema".into())
            .stack_size(OWNER_STACK_BYTES)
            .spawn(move || {
                let served = with_schema(&sdl, |schema| {
                    let found = read(schema);
                    let usable = found.is_ok();
                    if ready.send(found).is_ok() && usable {
                        serve(schema, &waiting);
                    }
                });
                if let Err(problem) = served {
                    // Nobody waits any more only when the builder is gone, and its error with it.
                    let _ = ready.send(Err(problem));
                }
            })
            .map_err(|error| Error::environment(format!("cannot start a thread: {error}")))?;
        let registry = registry.recv().unwrap_or_else(|_| Err("its thread ended".into()));
        let at_once = thread::available_parallelism().map_or(2, usize::from);
        let reader = Self { jobs, permits: Arc::new(Semaphore::new(at_once)) };
        Ok((reader, registry.map_err(failed)?, thread))
    }

    /// Reads one document.
    pub(crate) async fn read(
        &self,
        text: &str,
        registry: &Arc<Registry>,
    ) -> Result<Document, Refusal> {
        let depth = check_nesting(text)?;
        // Fragments nest through each other, which brackets do not show.
        let simple = depth <= SHALLOW && text.len() <= SHORT && !text.contains("...");
        let gone = || Refusal {
            error: Error::internal("the reader of documents has ended"),
            location: None,
        };
        let permit = self.permits.clone().acquire_owned().await.map_err(|_| gone())?;
        let (reply, answer) = oneshot::channel();
        let registry = registry.clone();
        let job = Job { text: text.to_owned(), simple, registry, reply, _permit: permit };
        self.jobs.send(job).map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }
}

/// Reads simple documents, and lends the schema to one thread for each other, until the reader is gone.
fn serve(schema: &Schema<'_>, waiting: &mpsc::Receiver<Job>) {
    thread::scope(|scope| {
        for job in waiting {
            if job.simple {
                // A defect in the parser must not take the schema with it: who asked is told.
                let read = || read_document(&job.text, schema, &job.registry);
                if let Ok(document) = panic::catch_unwind(AssertUnwindSafe(read)) {
                    // Whoever asked may have gone.
                    let _ = job.reply.send(document);
                }
                continue;
            }
            let reading = thread::Builder::new()
                .name("graph-document".into())
                .stack_size(STACK_BYTES)
                .spawn_scoped(scope, move || {
                    let document = read_document(&job.text, schema, &job.registry);
                    // Whoever asked may have gone.
                    let _ = job.reply.send(document);
                });
            if let Err(error) = reading {
                tracing::error!(%error, "cannot start a thread to read a document");
            }
        }
    });
}

fn read_document(
    text: &str,
    schema: &Schema<'_>,
    registry: &Registry,
) -> Result<Document, Refusal> {
    let options = ParseOptions {
        graphql_ruby_compatibility: false,
        // A level of selections costs two, an argument in it a few more.
        max_depth: 2 * MAX_DEPTH + 64,
        max_tokens: Some(MAX_TOKENS),
    };
    let document = ExecutableDocument::parse_with_options(text, options)
        .result
        .map_err(|errors| first(text, errors))?;
    check_size(&document)?;
    let cache = Cache::new(&document, schema);
    let mut invalid = Orchestrator::<_, _, Rules<'_, _, _>>::validate(&document, schema, &cache)
        .filter(|error| !is_modern_meta_field(error));
    if let Some(error) = invalid.next() {
        return Err(first(text, [error]));
    }
    convert::convert(text, &document, registry)
}

/// The parser's own meta types are older than ours: fields that only ours have are fine.
fn is_modern_meta_field(error: &Invalid<'_, ExecutableDocument<'_>, Schema<'_>>) -> bool {
    let Invalid::FieldDoesNotExistOnType { field, r#type } = error else { return false };
    META_FIELDS.contains(&(r#type.name(), field.name().as_str()))
}

/// The first of the library's errors as ours.
fn first<E: Into<bluejay_parser::Error>>(
    text: &str,
    errors: impl IntoIterator<Item = E>,
) -> Refusal {
    let Some(error) = errors.into_iter().next().map(Into::into) else {
        return Refusal::new("the document is not valid");
    };
    let mut refusal = Refusal::new(uncapitalised(error.message()));
    if text.len() <= MAX_LOCATED {
        let located = bluejay_parser::Error::into_graphql_errors(text, [error]);
        if let Some(found) = located.first() {
            let location = found.locations.first();
            refusal.location = location.map(|location| (location.line, location.col));
            if refusal.error.message == "parse error" {
                let detail = uncapitalised(&found.message);
                refusal.error.message = format!("parse error: {detail}");
            }
        }
    }
    refusal
}

fn uncapitalised(message: &str) -> String {
    let mut letters = message.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thread_ends_with_the_reader() {
        let (reader, _, thread) = Reader::start_thread("type Query { a: Int }").unwrap();
        assert!(!thread.is_finished());
        drop(reader);
        thread.join().unwrap();
    }
}
