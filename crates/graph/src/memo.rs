//! [`Memo`]: what is remembered beyond a session. The graph decides what is remembered and under
//! which name; whoever implements this decides where it is kept and for how long.

use crate::{CallRecord, Digest, Error};
use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// Something that keeps a result usable for as long as it is held. The graph does not look into it.
#[derive(Clone)]
pub struct Hold(Arc<dyn Any + Send + Sync>);

impl Hold {
    /// Holds a value.
    pub fn new(value: impl Any + Send + Sync) -> Self {
        Self(Arc::new(value))
    }

    /// For a result that needs nothing.
    pub fn nothing() -> Self {
        Self::new(())
    }
}

impl fmt::Debug for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hold")
    }
}

/// What work has given, as it is to be remembered.
#[derive(Clone, Debug)]
pub struct Remembered {
    /// The result.
    pub value: Vec<u8>,
    /// What kind of work it was, in one word.
    pub kind: &'static str,
    /// A line for people.
    pub label: String,
    /// What the result is worth nothing without, in the encoding of whoever keeps it.
    pub needs: Vec<u8>,
    /// Keeps all that from going away while the result is on its way to who asked.
    pub hold: Hold,
}

/// The result of an action, usable for as long as it is held.
#[derive(Clone, Debug)]
pub struct Made {
    value: Arc<[u8]>,
    hold: Hold,
}

impl Made {
    pub(crate) fn new(value: impl Into<Arc<[u8]>>, hold: Hold) -> Self {
        Self { value: value.into(), hold }
    }

    /// What is held, for who holds the result itself and so need not read it.
    pub fn held<T: Any>(&self) -> Option<&T> {
        self.hold.0.downcast_ref()
    }
}

impl Deref for Made {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.value
    }
}

/// Where results of actions and records of calls are kept.
pub trait Memo: Send + Sync {
    /// The result of an action.
    fn action(&self, key: &Digest) -> Option<Vec<u8>>;
    /// Remembers the result of an action.
    fn put_action(&self, key: Digest, remembered: Remembered);
    /// Forgets the result of an action, because it is not usable any more.
    fn remove_action(&self, key: &Digest);
    /// The record of a call.
    fn call(&self, digest: &Digest) -> Option<CallRecord>;
    /// The call behind the handle of an id.
    fn call_by_handle(&self, handle: u64) -> Option<(Digest, CallRecord)>;
    /// Remembers records of calls; they can be read when this returns.
    fn put_calls(&self, records: Vec<(Digest, CallRecord)>) -> Result<(), Error>;
}

/// Remembers nothing: for who only looks at a schema, and for tests.
pub struct NoMemo;

impl Memo for NoMemo {
    fn action(&self, _: &Digest) -> Option<Vec<u8>> {
        None
    }

    fn put_action(&self, _: Digest, _: Remembered) {}

    fn remove_action(&self, _: &Digest) {}

    fn call(&self, _: &Digest) -> Option<CallRecord> {
        None
    }

    fn call_by_handle(&self, _: u64) -> Option<(Digest, CallRecord)> {
        None
    }

    fn put_calls(&self, _: Vec<(Digest, CallRecord)>) -> Result<(), Error> {
        Ok(())
    }
}
