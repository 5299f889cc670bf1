//! [`Reader`]: parses and validates documents, where needed on threads with a deep stack.
//!
//! Parser and validator recurse along the nesting of a document. The usual short document is read where
//! it arrives; any other on a thread whose stack is sized for [`super::limits::MAX_DEPTH`] levels in an
//! unoptimised build, and is given back with the thread.

use super::ast::{OwnedSchema, Schema};
use super::limits::{MAX_DEPTH, MAX_TOKENS, check_nesting, check_size};
use super::{Document, Refusal, convert};
use crate::Error;
use crate::registry::{META_FIELDS, Registry, complete_sdl, read};
use bluejay_parser::ast::executable::ExecutableDocument;
use bluejay_parser::ast::{Parse as _, ParseOptions};
use bluejay_validator::executable::Cache;
use bluejay_validator::executable::document::{Error as Invalid, Orchestrator, rules};
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::thread;
use tokio::sync::{Semaphore, oneshot};

/// Stack of a reading thread. Only what is touched takes memory.
const STACK_BYTES: usize = 64 << 20;
/// Deepest nesting that is read on the thread that asks; its stack has room for many times that.
const SHALLOW: usize = 64;
/// Longest document that is read on the thread that asks: others wait for it meanwhile.
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
    schema: Arc<OwnedSchema>,
    /// Bounds how many documents are read at once.
    permits: Arc<Semaphore>,
}

impl Reader {
    /// Parses the schema.
    pub(crate) fn new(sdl: &str) -> Result<(Self, Registry), Error> {
        let failed = |problem: String| Error::internal(format!("invalid schema: {problem}"));
        let schema = OwnedSchema::parse(complete_sdl(sdl)).map_err(failed)?;
        let registry = read(schema.get()).map_err(failed)?;
        let at_once = thread::available_parallelism().map_or(2, usize::from);
        let permits = Arc::new(Semaphore::new(at_once));
        Ok((Self { schema: Arc::new(schema), permits }, registry))
    }

    /// Reads one document.
    pub(crate) async fn read(
        &self,
        text: &str,
        registry: &Arc<Registry>,
    ) -> Result<Document, Refusal> {
        let depth = check_nesting(text)?;
        let defect =
            || Refusal { error: Error::internal("the reader of documents failed"), location: None };
        let permit = self.permits.clone().acquire_owned().await.map_err(|_| defect())?;
        // Fragments nest through each other, which brackets do not show.
        if depth <= SHALLOW && text.len() <= SHORT && !text.contains("...") {
            // A defect in the parser must not end whoever else is served here.
            let reading = || read_document(text, self.schema.get(), registry);
            return panic::catch_unwind(AssertUnwindSafe(reading))
                .unwrap_or_else(|_| Err(defect()));
        }
        let (reply, answer) = oneshot::channel();
        let (schema, registry, text) = (self.schema.clone(), registry.clone(), text.to_owned());
        let reading = thread::Builder::new().name("graph-document".into()).stack_size(STACK_BYTES);
        let reading = reading.spawn(move || {
            let document = read_document(&text, schema.get(), &registry);
            // Whoever asked may have gone.
            let _ = reply.send(document);
            // Held until now, also when nobody waits any more.
            drop(permit);
        });
        reading.map_err(|error| Refusal {
            error: Error::environment(format!("cannot start a thread: {error}")),
            location: None,
        })?;
        answer.await.map_err(|_| defect())?
    }
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
