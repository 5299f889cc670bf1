//! Keys that may sign an archive, and the check of a cleartext signature against them.
//!
//! A signature counts when it is over a strong digest, not expired, and made by a key of the
//! ring, or by a signing subkey bound to one, that is neither revoked nor expired. One such
//! signature is enough: archives sign with the keys of several years at once.

use super::Error;
use pgp::composed::{CleartextSignedMessage, Deserializable, SignedPublicKey, SignedPublicSubKey};
use pgp::crypto::hash::HashAlgorithm;
use pgp::packet::{Signature, SignatureType};
use pgp::types::{KeyDetails, Tag};

const ARMOR: &str = "-----BEGIN PGP PUBLIC KEY BLOCK-----";

/// The keys whose signature is accepted.
#[derive(Clone, Debug, Default)]
pub struct Keyring {
    keys: Vec<SignedPublicKey>,
}

/// The bytes hold no key.
#[derive(Debug, thiserror::Error)]
#[error("not a keyring: {0}")]
pub struct KeyringError(String);

impl Keyring {
    /// Adds all keys of a keyring, binary or armored. Single keys in forms of the past that cannot
    /// be read are passed over, as long as one can.
    pub fn add(&mut self, bytes: &[u8]) -> Result<(), KeyringError> {
        let before = self.keys.len();
        let mut failure = "it is empty".to_owned();
        let blocks = match std::str::from_utf8(bytes) {
            Ok(text) if text.contains(ARMOR) => self.add_armored(text),
            _ => self.add_packets(SignedPublicKey::from_bytes_many(bytes)),
        };
        if let Err(error) = blocks {
            failure = error.to_string();
        }
        if self.keys.len() == before {
            return Err(KeyringError(failure));
        }
        Ok(())
    }

    fn add_armored(&mut self, text: &str) -> pgp::errors::Result<()> {
        for block in text.split(ARMOR).skip(1) {
            let block = format!("{ARMOR}{block}");
            let keys = SignedPublicKey::from_string_many(&block);
            self.add_packets(keys.map(|(keys, _)| keys))?;
        }
        Ok(())
    }

    fn add_packets<'a>(
        &mut self,
        keys: pgp::errors::Result<
            Box<dyn Iterator<Item = pgp::errors::Result<SignedPublicKey>> + 'a>,
        >,
    ) -> pgp::errors::Result<()> {
        let mut failure = None;
        for key in keys? {
            match key {
                Ok(key) => self.keys.push(key),
                Err(error) => failure = Some(error),
            }
        }
        failure.map_or(Ok(()), Err)
    }

    /// Keeps only keys with one of these fingerprints; an empty list keeps all.
    pub fn restrict(&mut self, fingerprints: &[String]) {
        let wanted: Vec<String> =
            fingerprints.iter().map(|text| text.trim_end_matches('!').to_lowercase()).collect();
        let matches = |key: &dyn KeyDetails| {
            wanted.contains(&format!("{:x}", key.fingerprint()).to_lowercase())
        };
        if !wanted.is_empty() {
            self.keys.retain(|key| {
                matches(&key.primary_key) || key.public_subkeys.iter().any(|sub| matches(&sub.key))
            });
        }
    }

    /// The text of a cleartext-signed message, once one of its signatures proved valid.
    pub(super) fn signed_text(&self, message: &[u8], now: i64) -> Result<String, Error> {
        let text = std::str::from_utf8(message).map_err(|e| Error::Unsigned(e.to_string()))?;
        let (message, _) = CleartextSignedMessage::from_string(text)
            .map_err(|error| Error::Unsigned(error.to_string()))?;
        let signed = message.signed_text();
        let mut reason = format!("none of the {} keys made it", self.keys.len());
        for signature in message.signatures() {
            match self.accepts(signature, &signed, now) {
                Ok(true) => return Ok(signed.replace("\r\n", "\n")),
                Ok(false) => {}
                Err(refusal) => reason = refusal,
            }
        }
        Err(Error::Signature { reason })
    }

    /// Whether a key of the ring made this signature; an error where one should have.
    fn accepts(&self, signature: &Signature, text: &str, now: i64) -> Result<bool, String> {
        let Some(key) = self.keys.iter().find(|key| names(signature, key)) else {
            return Ok(false);
        };
        let fingerprint = key.primary_key.fingerprint();
        let refuse = |why: &str| Err(format!("key {fingerprint:X}: {why}"));
        if !strong(signature) {
            return refuse("the signature uses a digest that is not safe");
        }
        if expired(signature.created(), signature.signature_expiration_time(), now) {
            return refuse("the signature expired");
        }
        if revoked(key) {
            return refuse("the key was revoked");
        }
        let Some(lifetime) = self_signature(key) else {
            return refuse("the key is not signed by itself");
        };
        if expired(Some(key.created_at()), lifetime.key_expiration_time(), now) {
            return refuse("the key expired");
        }
        if signature.verify(&key.primary_key, text.as_bytes()).is_ok() {
            return Ok(true);
        }
        let mut subkeys = key.public_subkeys.iter().filter(|subkey| may_sign(key, subkey, now));
        match subkeys.any(|subkey| signature.verify(&subkey.key, text.as_bytes()).is_ok()) {
            true => Ok(true),
            false => refuse("the text is not what was signed"),
        }
    }
}

/// Whether a signature says that this key or one of its subkeys made it.
fn names(signature: &Signature, key: &SignedPublicKey) -> bool {
    let is = |candidate: &dyn KeyDetails| {
        let (id, fingerprint) = (candidate.legacy_key_id(), candidate.fingerprint());
        signature.issuer_key_id().contains(&&id)
            || signature.issuer_fingerprint().contains(&&fingerprint)
    };
    is(&key.primary_key) || key.public_subkeys.iter().any(|subkey| is(&subkey.key))
}

fn strong(signature: &Signature) -> bool {
    use HashAlgorithm::{Sha3_256, Sha3_512, Sha256, Sha384, Sha512};
    matches!(signature.hash_alg(), Some(Sha256 | Sha384 | Sha512 | Sha3_256 | Sha3_512))
        && matches!(signature.typ(), Some(SignatureType::Text | SignatureType::Binary))
}

fn expired(
    created: Option<pgp::types::Timestamp>,
    lifetime: Option<pgp::types::Duration>,
    now: i64,
) -> bool {
    let seconds = lifetime.map_or(0, |lifetime| i64::from(lifetime.as_secs()));
    // A lifetime of zero means that there is no end.
    seconds != 0 && created.is_none_or(|created| i64::from(created.as_secs()) + seconds < now)
}

fn revoked(key: &SignedPublicKey) -> bool {
    let revocations = &key.details.revocation_signatures;
    revocations.iter().any(|signature| signature.verify_key(&key.primary_key).is_ok())
}

/// The newest valid signature of a key about itself, which holds its lifetime.
fn self_signature(key: &SignedPublicKey) -> Option<&Signature> {
    let primary = &key.primary_key;
    let users = key.details.users.iter().flat_map(|user| {
        let valid = |signature: &&Signature| {
            names(signature, key)
                && signature.typ() != Some(SignatureType::CertRevocation)
                && signature.verify_certification(primary, Tag::UserId, &user.id).is_ok()
        };
        user.signatures.iter().filter(valid)
    });
    let direct = key.details.direct_signatures.iter();
    let direct = direct.filter(|signature| signature.verify_key(primary).is_ok());
    users.chain(direct).max_by_key(|signature| signature.created().map(|at| at.as_secs()))
}

fn may_sign(key: &SignedPublicKey, subkey: &SignedPublicSubKey, now: i64) -> bool {
    let valid = |signature: &&Signature| {
        signature.verify_subkey_binding(&key.primary_key, &subkey.key).is_ok()
    };
    let signatures: Vec<_> = subkey.signatures.iter().filter(valid).collect();
    if signatures.iter().any(|found| found.typ() == Some(SignatureType::SubkeyRevocation)) {
        return false;
    }
    let newest = signatures.iter().max_by_key(|found| found.created().map(|at| at.as_secs()));
    newest.is_some_and(|binding| {
        binding.key_flags().sign()
            && !expired(Some(subkey.key.created_at()), binding.key_expiration_time(), now)
            && binding.embedded_signature().is_some_and(|back| {
                back.verify_primary_key_binding(&subkey.key, &key.primary_key).is_ok()
            })
    })
}
