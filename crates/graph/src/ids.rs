//! Ids: from a call to the text that clients hold, and back through the memo.
//!
//! The root and the elements of lists are calls too, under names that no schema can have.

use crate::session::Session;
use crate::{Call, Error};
use protocol::{DecodeError, Id};
use std::collections::HashSet;
use std::sync::Arc;

/// Field of the call that stands for the root object.
const ROOT: &str = "#root";

/// The call that stands for the root object.
pub(crate) fn root_call() -> Arc<Call> {
    Call::new(None, ROOT, vec![], crate::registry::QUERY, None)
}

/// Whether a call stands for the root object.
pub(crate) fn is_root(call: &Call) -> bool {
    call.field() == ROOT
}

/// The call that stands for one element of a list of objects.
pub(crate) fn element_call(list: &Arc<Call>, index: usize) -> Arc<Call> {
    Call::new(Some(list.clone()), &format!("#{index}"), vec![], list.returns(), None)
}

/// Which element a call stands for, if it stands for one.
pub(crate) fn element_index(call: &Call) -> Option<usize> {
    call.field().strip_prefix('#')?.parse().ok()
}

/// The text that stands for a call.
pub(crate) fn id_of(call: &Call) -> String {
    Id { handle: call.digest().handle(), type_name: call.returns().to_owned() }.to_string()
}

/// The call behind an id. Ids of other sessions and of earlier engines are found through the memo.
pub(crate) fn load(session: &Session, text: &str) -> Result<Arc<Call>, Error> {
    let malformed = || Error::user("malformed id");
    let id: Id = text.parse().map_err(|_| malformed())?;
    let call = match session.known_call(id.handle) {
        Some(call) => call,
        None => decode(session, id.handle)?,
    };
    if call.returns() != id.type_name {
        return Err(malformed());
    }
    Ok(call)
}

fn decode(session: &Session, handle: u64) -> Result<Arc<Call>, Error> {
    let memo = session.graph().memo();
    let (digest, record) = memo.call_by_handle(handle).ok_or_else(|| {
        Error::user("the object behind this id is not known here")
            .with_hint("ids are kept for 7 days after their last use")
    })?;
    let mut first = Some(record);
    let call = Call::decode(&digest, &mut |wanted| match first.take_if(|_| *wanted == digest) {
        Some(record) => Some(record),
        None => memo.call(wanted),
    });
    let call = call.map_err(|error| match error {
        DecodeError::Missing(_) => Error::user(error.to_string()),
        DecodeError::Damaged(_) => Error::environment(error.to_string()),
    })?;
    session.note_call(&call);
    session.note_stored(std::iter::once(digest));
    Ok(call)
}

/// Stores the records behind ids that are about to be handed out.
pub(crate) fn store(session: &Session, calls: &[Arc<Call>]) -> Result<(), Error> {
    let mut fresh = HashSet::new();
    let mut records = vec![];
    for call in calls {
        let known = |digest: &_| fresh.contains(digest) || session.is_stored(digest);
        for call in call.closure(&known) {
            fresh.insert(*call.digest());
            records.push((*call.digest(), call.record()));
        }
        session.note_call(call);
    }
    if records.is_empty() {
        return Ok(());
    }
    session.graph().memo().put_calls(records)?;
    session.note_stored(fresh.into_iter());
    Ok(())
}
