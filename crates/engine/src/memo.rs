//! [`StoredMemo`]: what the graph remembers, kept in the store.
//!
//! Call records are stored as one byte of format and then postcard. A record of another format or a
//! damaged one is as good as none: whoever asks is told that the call is not known here.

use graph::{Memo, Remembered};
use protocol::{CallRecord, Digest, Error};
use store::Store;

/// Format of stored call records; a record with another is not read.
const FORMAT: u8 = 1;

/// The memo over a store.
pub struct StoredMemo(Store);

impl StoredMemo {
    /// Remembers in this store.
    pub fn new(store: Store) -> Self {
        Self(store)
    }
}

impl Memo for StoredMemo {
    fn action(&self, key: &Digest) -> Option<Vec<u8>> {
        self.0.action(key)
    }

    fn put_action(&self, key: Digest, remembered: Remembered) {
        let Remembered { value, kind, label, needs, hold } = remembered;
        self.0.put_action(key, store::Remembered { value, kind, label, needs });
        // Only now do rows keep what the result needs.
        drop(hold);
    }

    fn remove_action(&self, key: &Digest) {
        self.0.remove_action(key);
    }

    fn call(&self, digest: &Digest) -> Option<CallRecord> {
        decode(&self.0.call(digest)?)
    }

    fn call_by_handle(&self, handle: u64) -> Option<(Digest, CallRecord)> {
        let (digest, bytes) = self.0.call_by_handle(handle)?;
        Some((digest, decode(&bytes)?))
    }

    fn put_calls(&self, records: Vec<(Digest, CallRecord)>) -> Result<(), Error> {
        let encoded: Result<Vec<_>, Error> =
            records.iter().map(|(digest, record)| Ok((*digest, encode(record)?))).collect();
        self.0.put_calls(encoded?).map_err(Into::into)
    }
}

fn encode(record: &CallRecord) -> Result<Vec<u8>, Error> {
    postcard::to_extend(record, vec![FORMAT])
        .map_err(|error| Error::internal(format!("a call cannot be stored: {error}")))
}

fn decode(bytes: &[u8]) -> Option<CallRecord> {
    match bytes.split_first()? {
        (&FORMAT, rest) => postcard::from_bytes(rest).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::{Call, RecordValue, Value};

    #[test]
    fn records_of_every_value_read_back() {
        let inner = Call::new(None, "directory", vec![], "Directory", None);
        let args = vec![
            ("null".into(), Value::Null),
            ("bool".into(), Value::Bool(true)),
            ("int".into(), Value::Int(-1)),
            ("float".into(), Value::Float(0.5)),
            ("text".into(), Value::String("t".into())),
            ("enum".into(), Value::Enum("E".into())),
            ("list".into(), Value::List(vec![Value::Call(inner.clone())])),
            ("object".into(), Value::Object(vec![("k".into(), Value::Int(1))])),
            ("sealed".into(), Value::Sealed(Digest::of(b"s"))),
        ];
        let call = Call::new(Some(inner), "withAll", args, "Directory", Some("session"));
        let record = call.record();
        assert_eq!(decode(&encode(&record).unwrap()), Some(record));
    }

    #[test]
    fn another_format_and_damage_are_no_record() {
        let record = CallRecord {
            receiver: None,
            field: "f".into(),
            args: vec![("a".into(), RecordValue::Int(1))],
            returns: "T".into(),
            scope: None,
        };
        let bytes = encode(&record).unwrap();
        let mut other = bytes.clone();
        other[0] = FORMAT + 1;
        assert_eq!(decode(&other), None);
        assert_eq!(decode(&bytes[..bytes.len() - 2]), None);
        assert_eq!(decode(&[]), None);
    }
}
