//! Values with a checksum. The database checks the structure of its pages and not what is in them: a
//! flipped byte inside a value would be a wrong result.

use protocol::Digest;
use rusqlite::Transaction;

/// Bytes of a checksum.
const LENGTH: usize = 16;

/// A value as it is stored: with a checksum of it and of its key at the end.
pub(super) fn seal(key: &Digest, value: &[u8]) -> Vec<u8> {
    [value, &checksum(key, value)].concat()
}

/// The value that was stored; none if it is damaged.
pub(super) fn unseal(key: &Digest, mut stored: Vec<u8>) -> Option<Vec<u8>> {
    let (value, found) = stored.split_last_chunk::<LENGTH>()?;
    if *found != checksum(key, value) {
        return None;
    }
    stored.truncate(stored.len() - LENGTH);
    Some(stored)
}

/// Seals the call records of a version that did not.
pub(super) fn seal_calls(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    let mut read = transaction.prepare("SELECT digest, record FROM calls")?;
    let mut write = transaction.prepare("UPDATE calls SET record = ?2 WHERE digest = ?1")?;
    let rows = read.query_map([], |row| Ok((row.get::<_, [u8; 32]>(0)?, row.get(1)?)))?;
    for (digest, record) in rows.collect::<rusqlite::Result<Vec<(_, Vec<u8>)>>>()? {
        write.execute((digest, seal(&Digest::from_bytes(digest), &record)))?;
    }
    Ok(())
}

fn checksum(key: &Digest, value: &[u8]) -> [u8; LENGTH] {
    let mut hasher = blake3::Hasher::new();
    let digest = hasher.update(key.as_bytes()).update(value).finalize();
    *digest.as_bytes().first_chunk().expect("a digest has 32 bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_value_and_another_key_are_noticed() {
        let key = Digest::of(b"key");
        let sealed = seal(&key, b"value");
        assert_eq!(unseal(&key, sealed.clone()).unwrap(), b"value");
        assert_eq!(unseal(&key, seal(&key, b"")).unwrap(), b"");
        assert_eq!(unseal(&Digest::of(b"other"), sealed.clone()), None);
        for at in 0..sealed.len() {
            let mut flipped = sealed.clone();
            flipped[at] ^= 4;
            assert_eq!(unseal(&key, flipped), None);
            assert_eq!(unseal(&key, sealed[..at].to_vec()), None);
        }
    }
}
