//! [`Memo`]: what is remembered beyond a session. The graph decides what is remembered and under
//! which name; whoever implements this decides where it is kept and for how long.

use crate::{CallRecord, Digest, Error};

/// Where results of actions and records of calls are kept.
pub trait Memo: Send + Sync {
    /// The result of an action.
    fn action(&self, key: &Digest) -> Option<Vec<u8>>;
    /// Remembers the result of an action.
    fn put_action(&self, key: Digest, value: Vec<u8>);
    /// Forgets the result of an action, because it is not usable any more.
    fn remove_action(&self, key: &Digest);
    /// The record of a call.
    fn call(&self, digest: &Digest) -> Option<CallRecord>;
    /// The call behind the handle of an id.
    fn call_by_handle(&self, handle: u64) -> Option<(Digest, CallRecord)>;
    /// Remembers records of calls; they can be read when this returns.
    fn put_calls(&self, records: Vec<(Digest, CallRecord)>) -> Result<(), Error>;
}
