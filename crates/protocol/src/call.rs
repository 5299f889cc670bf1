//! [`Call`]: the name of an object.
//!
//! An object is the chain of calls that makes it: `container` then `from(address)` then
//! `withExec(args)`. A call is immutable, its digest covers the whole chain behind it and is taken
//! once, from the digest of its receiver, when it is made. Chains reach 100,000 calls, so nothing
//! here recurses along a chain: not hashing, not dropping, not encoding.

use crate::{Digest, RecordValue, Value};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

/// One field applied to what another call makes.
pub struct Call {
    receiver: Option<Arc<Call>>,
    field: Box<str>,
    args: Vec<(Box<str>, Value)>,
    returns: Box<str>,
    scope: Option<Box<str>>,
    digest: Digest,
}

/// The stored form of one [`Call`], which names its neighbours by digest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallRecord {
    /// The call that makes the receiver; none for a field of `Query`.
    pub receiver: Option<Digest>,
    /// Name of the field.
    pub field: Box<str>,
    /// Arguments that were given, sorted by name.
    pub args: Vec<(Box<str>, RecordValue)>,
    /// Name of the object type that the call makes.
    pub returns: Box<str>,
    /// The session whose own thing this is, if it is one's own.
    pub scope: Option<Box<str>>,
}

/// A stored call cannot be read back.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// A record is not there, because it was never stored or has expired.
    #[error("the call {0} behind this id is not known here")]
    Missing(Digest),
    /// A record does not have the digest it is stored under.
    #[error("the record of call {0} is damaged")]
    Damaged(Digest),
}

impl Call {
    /// A call of `field`. Arguments are sorted, so that the order they were written in is no part
    /// of the identity. `scope` names the session when the result is that session's own.
    pub fn new(
        receiver: Option<Arc<Call>>,
        field: &str,
        mut args: Vec<(Box<str>, Value)>,
        returns: &str,
        scope: Option<&str>,
    ) -> Arc<Self> {
        args.sort_by(|a, b| a.0.cmp(&b.0));
        let mut builder = Digest::builder("call");
        match &receiver {
            Some(receiver) => builder.digest(&receiver.digest),
            None => builder.text("query"),
        };
        builder.text(field).text(returns).text(scope.unwrap_or_default());
        builder.number(args.len() as u64);
        for (name, value) in &args {
            builder.text(name);
            value.digest_into(&mut builder);
        }
        let digest = builder.finish();
        Arc::new(Self {
            receiver,
            field: field.into(),
            args,
            returns: returns.into(),
            scope: scope.map(Into::into),
            digest,
        })
    }

    /// The call that makes the receiver; none for a field of `Query`.
    pub fn receiver(&self) -> Option<&Arc<Call>> {
        self.receiver.as_ref()
    }

    /// Name of the field.
    pub fn field(&self) -> &str {
        &self.field
    }

    /// Arguments that were given, sorted by name.
    pub fn args(&self) -> &[(Box<str>, Value)] {
        &self.args
    }

    /// Name of the object type that the call makes.
    pub fn returns(&self) -> &str {
        &self.returns
    }

    /// The session whose own thing this is.
    pub fn scope(&self) -> Option<&str> {
        self.scope.as_deref()
    }

    /// The identity of the object.
    pub fn digest(&self) -> &Digest {
        &self.digest
    }

    /// The calls this one names: its receiver, then those in its arguments.
    pub fn inputs(&self) -> Vec<&Arc<Call>> {
        let mut inputs: Vec<_> = self.receiver.iter().collect();
        for (_, value) in &self.args {
            value.for_each_call(&mut |call| inputs.push(call));
        }
        inputs
    }

    /// The stored form of this one call.
    pub fn record(&self) -> CallRecord {
        CallRecord {
            receiver: self.receiver.as_ref().map(|receiver| receiver.digest),
            field: self.field.clone(),
            args: self.args.iter().map(|(name, arg)| (name.clone(), arg.to_record())).collect(),
            returns: self.returns.clone(),
            scope: self.scope.clone(),
        }
    }

    /// This call and every call behind it, inputs before users, leaving out whatever `known` says is
    /// known already: a known call's inputs are known too.
    pub fn closure(self: &Arc<Self>, known: &dyn Fn(&Digest) -> bool) -> Vec<Arc<Call>> {
        let mut seen = HashSet::new();
        let mut ordered = Vec::new();
        let mut stack = vec![(self.clone(), false)];
        while let Some((call, expanded)) = stack.pop() {
            if expanded {
                ordered.push(call);
                continue;
            }
            if known(&call.digest) || !seen.insert(call.digest) {
                continue;
            }
            let inputs: Vec<_> = call.inputs().into_iter().cloned().collect();
            stack.push((call, true));
            stack.extend(inputs.into_iter().map(|input| (input, false)));
        }
        ordered
    }

    /// Builds the call with this digest again from stored records.
    pub fn decode(
        digest: &Digest,
        record: &mut dyn FnMut(&Digest) -> Option<CallRecord>,
    ) -> Result<Arc<Call>, DecodeError> {
        let mut made: HashMap<Digest, Arc<Call>> = HashMap::new();
        let mut stack = vec![(*digest, None::<CallRecord>)];
        while let Some((digest, loaded)) = stack.pop() {
            if made.contains_key(&digest) {
                continue;
            }
            match loaded {
                None => {
                    let loaded = record(&digest).ok_or(DecodeError::Missing(digest))?;
                    let mut inputs: Vec<Digest> = loaded.receiver.into_iter().collect();
                    for (_, value) in &loaded.args {
                        value.for_each_call(&mut |input| inputs.push(input));
                    }
                    stack.push((digest, Some(loaded)));
                    stack.extend(inputs.into_iter().map(|input| (input, None)));
                }
                Some(loaded) => {
                    let call = loaded.revive(&made).ok_or(DecodeError::Damaged(digest))?;
                    if call.digest != digest {
                        return Err(DecodeError::Damaged(digest));
                    }
                    made.insert(digest, call);
                }
            }
        }
        made.remove(digest).ok_or(DecodeError::Missing(*digest))
    }
}

impl CallRecord {
    /// The live call, given the live calls it names. A record that names itself has no live form.
    fn revive(&self, made: &HashMap<Digest, Arc<Call>>) -> Option<Arc<Call>> {
        let receiver = match &self.receiver {
            Some(digest) => Some(made.get(digest)?.clone()),
            None => None,
        };
        let lookup = |digest: &Digest| made.get(digest).cloned();
        let args = self
            .args
            .iter()
            .map(|(name, value)| Some((name.clone(), value.to_value(&lookup)?)))
            .collect::<Option<Vec<_>>>()?;
        Some(Call::new(receiver, &self.field, args, &self.returns, self.scope.as_deref()))
    }
}

impl Drop for Call {
    /// Takes the chain apart in a loop: the derived drop would recurse once a call.
    fn drop(&mut self) {
        let mut pending: Vec<Arc<Call>> = self.receiver.take().into_iter().collect();
        take_calls(&mut self.args, &mut pending);
        while let Some(call) = pending.pop() {
            if let Some(mut call) = Arc::into_inner(call) {
                pending.extend(call.receiver.take());
                take_calls(&mut call.args, &mut pending);
            }
        }
    }
}

/// Moves every call out of the arguments, so that dropping them cannot recurse.
fn take_calls(args: &mut Vec<(Box<str>, Value)>, into: &mut Vec<Arc<Call>>) {
    let mut values: Vec<Value> = args.drain(..).map(|(_, value)| value).collect();
    while let Some(value) = values.pop() {
        match value {
            Value::Call(call) => into.push(call),
            Value::List(items) => values.extend(items),
            Value::Object(fields) => values.extend(fields.into_iter().map(|(_, value)| value)),
            _ => {}
        }
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.field, &self.digest.to_string()[..12])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &str) -> Value {
        Value::String(value.into())
    }

    fn chain(length: usize) -> Arc<Call> {
        let mut call = Call::new(None, "container", vec![], "Container", None);
        for index in 0..length {
            let args = vec![("name".into(), text(&index.to_string())), ("value".into(), text(""))];
            call = Call::new(Some(call), "withEnvVariable", args, "Container", None);
        }
        call
    }

    #[test]
    fn order_of_arguments_is_no_part_of_the_identity() {
        let one = vec![("a".into(), text("1")), ("b".into(), text("2"))];
        let two = vec![("b".into(), text("2")), ("a".into(), text("1"))];
        assert_eq!(
            Call::new(None, "f", one, "T", None).digest(),
            Call::new(None, "f", two, "T", None).digest()
        );
    }

    #[test]
    fn scope_and_arguments_are_part_of_the_identity() {
        let plain = Call::new(None, "f", vec![], "T", None);
        assert_ne!(plain.digest(), Call::new(None, "f", vec![], "T", Some("s")).digest());
        let with = Call::new(None, "f", vec![("a".into(), Value::Null)], "T", None);
        assert_ne!(plain.digest(), with.digest());
    }

    #[test]
    fn a_chain_of_100_000_calls_is_encoded_decoded_and_dropped() {
        let call = chain(100_000);
        let records: HashMap<Digest, CallRecord> =
            call.closure(&|_| false).iter().map(|call| (*call.digest(), call.record())).collect();
        assert_eq!(records.len(), 100_001);
        let again = Call::decode(call.digest(), &mut |digest| records.get(digest).cloned());
        assert_eq!(again.unwrap().digest(), call.digest());
    }

    #[test]
    fn a_nest_of_100_000_arguments_is_encoded_and_dropped() {
        let mut call = Call::new(None, "directory", vec![], "Directory", None);
        for _ in 0..100_000 {
            let empty = Call::new(None, "directory", vec![], "Directory", None);
            let args = vec![("source".into(), Value::List(vec![Value::Call(call)]))];
            call = Call::new(Some(empty), "withDirectory", args, "Directory", None);
        }
        assert_eq!(call.closure(&|_| false).len(), 100_001);
    }

    #[test]
    fn closure_stops_at_what_is_known() {
        let call = chain(10);
        let known = *call.receiver().unwrap().digest();
        assert_eq!(call.closure(&|digest| *digest == known).len(), 1);
    }

    #[test]
    fn damaged_and_missing_records_are_told_apart() {
        let call = chain(1);
        let missing = Call::decode(call.digest(), &mut |_| None);
        assert!(matches!(missing, Err(DecodeError::Missing(_))));
        let other = chain(2);
        let damaged = Call::decode(call.digest(), &mut |digest| {
            let all = other.closure(&|_| false);
            let found = all.iter().find(|call| call.digest() == digest)?;
            let mut record = found.record();
            record.field = "other".into();
            Some(record)
        });
        assert!(matches!(damaged, Err(DecodeError::Damaged(_))));
    }

    #[test]
    fn a_record_that_names_itself_is_damaged() {
        let digest = Digest::of(b"loop");
        let record = CallRecord {
            receiver: Some(digest),
            field: "f".into(),
            args: vec![],
            returns: "T".into(),
            scope: None,
        };
        let mut reads = 0;
        let result = Call::decode(&digest, &mut |_| {
            reads += 1;
            (reads < 10).then(|| record.clone())
        });
        assert!(result.is_err());
    }
}
