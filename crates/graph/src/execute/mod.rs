//! Runs a request: selections become calls, leaves are forced, and the answers fill a reply.
//!
//! Nothing here recurses along a document or a chain. A [`Run`] works off two lists: what can be done
//! at once (making calls, `id`, `__typename`, introspection) and what waits for an evaluation. The
//! reply grows as a flat table of [`response::Response`] nodes. The first error ends the run, which
//! drops, and so cancels, everything that still waits.

mod bind;
mod collect;
mod force;
mod name;
mod response;
mod run;

use crate::coerce::{Variables, coerce};
use crate::document::{Operation, Refusal};
use crate::literal::Literal;
use crate::session::{Request, Session};
use crate::{Digest, Error, ErrorKind, ids, reply};
use run::Run;
use serde_json::{Map, Value as Json};
use std::sync::Arc;

/// How often a request is run because something that was made before got lost. Each time more of
/// what is lost is known, so that a few rounds are enough.
const MAX_ROUNDS: usize = 32;

/// Runs a request and gives the reply as JSON.
pub(crate) async fn execute(session: &Arc<Session>, request: Request) -> Vec<u8> {
    let kinds = request.error_kinds;
    match answer(session, request).await {
        Ok(reply) => reply,
        Err(mut refusal) => {
            session.spans().conceal_in(&mut refusal.error);
            reply::failure(refusal, kinds)
        }
    }
}

async fn answer(session: &Arc<Session>, request: Request) -> Result<Vec<u8>, Refusal> {
    let graph = session.graph();
    let operation_name = request.operation_name.as_deref().filter(|name| !name.is_empty());
    let text = Digest::of(request.query.as_bytes());
    let asked =
        Digest::builder("request").digest(&text).text(operation_name.unwrap_or("")).finish();
    if let Some(reply) = graph.answers().get(&asked) {
        return Ok(reply.to_vec());
    }
    let document = graph.document(&request.query, text).await?;
    let operation = document.operation(operation_name).map_err(plain)?;
    let variables = variables(session, operation, request.variables).map_err(plain)?;
    let mut rounds = 1;
    let run = loop {
        let variables = variables.clone();
        let mut run = Run::new(session.clone(), document.clone(), variables, request.parent_span);
        match run.finish(operation.set).await {
            Ok(()) => break run,
            // The whole answer is made again, so that its parts fit each other.
            Err(error) if error.kind == ErrorKind::Lost && rounds < MAX_ROUNDS => {
                rounds += 1;
                session.forget_lost();
            }
            Err(error) => return Err(plain(error)),
        }
    };
    ids::store(session, run.ids()).map_err(plain)?;
    let reply = run.into_reply();
    if document.is_introspection(operation) {
        graph.answers().put(asked, &reply);
    }
    Ok(reply)
}

fn plain(error: Error) -> Refusal {
    Refusal { error, location: None }
}

/// The values of the declared variables. They are checked against their declared types here and
/// coerced where they are used.
fn variables(
    session: &Session,
    operation: &Operation,
    given: Option<Map<String, Json>>,
) -> Result<Variables, Error> {
    let registry = session.graph().registry();
    let given = given.unwrap_or_default();
    let mut values = Variables::new();
    for variable in &operation.variables {
        let (name, wanted) = (&variable.name, &variable.type_ref);
        let value = given.get(&**name).map(Literal::from).or_else(|| variable.default.clone());
        match value {
            Some(value) => {
                coerce(registry, &Variables::new(), &value, wanted)
                    .map_err(|problem| Error::user(format!("variable `${name}`: {problem}")))?;
                values.insert(name.clone(), value);
            }
            None if wanted.is_required() => {
                let message = format!("variable `${name}` of type `{wanted}` was not given");
                return Err(Error::user(message));
            }
            None => {}
        }
    }
    Ok(values)
}
