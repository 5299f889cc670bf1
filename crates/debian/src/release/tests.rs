//! Signing and refusing, with keys made on the spot.

use super::*;
use pgp::composed::{
    ArmorOptions, CleartextSignedMessage, EncryptionCaps, KeyType, SecretKeyParamsBuilder,
    SignedPublicKey, SignedSecretKey, SubkeyParamsBuilder,
};
use pgp::ser::Serialize;
use pgp::types::{KeyDetails, Password};

const TEXT: &str = "Origin: Example\nSuite: oldstable\nCodename: bookworm\n\
    Date: Sat, 07 Jun 2025 09:13:06 UTC\nValid-Until: Sat, 14 Jun 2025 09:13:06 UTC\n\
    Acquire-By-Hash: yes\nMD5Sum:\n 00 1 main/binary-amd64/Packages\nSHA256:\n \
    00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff  12 main/binary-amd64/Packages\n \
    10112233445566778899aabbccddeeff00112233445566778899aabbccddeeff    7 main/binary-amd64/Packages.xz";
const DAY: i64 = 86_400;
const SIGNED_AT: i64 = 1_749_287_586;

fn key(subkey: bool) -> SignedSecretKey {
    let mut parameters = SecretKeyParamsBuilder::default();
    parameters
        .key_type(KeyType::Ed25519Legacy)
        .can_certify(true)
        .can_sign(!subkey)
        .can_encrypt(EncryptionCaps::None)
        .primary_user_id("Archive <archive@debian.example>".into());
    if subkey {
        let mut signing = SubkeyParamsBuilder::default();
        signing.key_type(KeyType::Ed25519Legacy).can_sign(true).can_encrypt(EncryptionCaps::None);
        parameters.subkeys(vec![signing.build().unwrap()]);
    }
    parameters.build().unwrap().generate(rand::thread_rng()).unwrap()
}

fn keyring(keys: &[&SignedSecretKey]) -> Keyring {
    let mut bytes = vec![];
    for key in keys {
        SignedPublicKey::from((*key).clone()).to_writer(&mut bytes).unwrap();
    }
    let mut keyring = Keyring::default();
    keyring.add(&bytes).unwrap();
    keyring
}

fn sign(key: &SignedSecretKey) -> String {
    let (rng, password) = (rand::thread_rng(), Password::empty());
    let message = match key.secret_subkeys.first() {
        Some(subkey) => CleartextSignedMessage::sign(rng, TEXT, &subkey.key, &password),
        None => CleartextSignedMessage::sign(rng, TEXT, &key.primary_key, &password),
    };
    message.unwrap().to_armored_string(ArmorOptions::default()).unwrap()
}

#[test]
fn a_signed_release_is_read() {
    for subkey in [false, true] {
        let (key, other) = (key(subkey), key(false));
        let signed = sign(&key);
        let release = verify(signed.as_bytes(), &keyring(&[&other, &key]), SIGNED_AT).unwrap();
        assert_eq!(release.codename.as_deref(), Some("bookworm"));
        assert_eq!((release.date, release.by_hash), (Some(SIGNED_AT), true));
        let (name, file) = release.packages("main", "amd64").unwrap();
        assert_eq!((name.as_str(), file.size), ("main/binary-amd64/Packages.xz", 7));
        assert!(release.packages("main", "arm64").is_none());
        assert_eq!(
            path(&release, "bookworm", &name, &file),
            "dists/bookworm/main/binary-amd64/by-hash/SHA256/\
             10112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
        );
    }
}

#[test]
fn tampering_is_refused() {
    let key = key(false);
    let signed = sign(&key);
    let keyring = keyring(&[&key]);
    let refuse = |text: &str| verify(text.as_bytes(), &keyring, SIGNED_AT).unwrap_err();
    let changed = signed.replace("0011223344", "0111223344");
    assert!(matches!(refuse(&changed), Error::Signature { .. }));
    assert!(matches!(refuse(&format!("Evil: 1\n{signed}")), Error::Unsigned(_)));
    assert!(matches!(refuse(&format!("{signed}\nEvil: 1\n")), Error::Unsigned(_)));
    assert!(matches!(refuse(TEXT), Error::Unsigned(_)));
}

#[test]
fn a_stranger_is_refused() {
    let (key, other) = (key(false), key(false));
    let error = verify(sign(&key).as_bytes(), &keyring(&[&other]), SIGNED_AT).unwrap_err();
    assert_eq!(error.to_string(), "no signature of it is valid: none of the 1 keys made it");
}

#[test]
fn fingerprints_restrict_a_keyring() {
    let (key, other) = (key(false), key(false));
    let signed = sign(&key);
    let mut ring = keyring(&[&key, &other]);
    ring.restrict(&[format!("{:X}", other.primary_key.fingerprint())]);
    assert!(verify(signed.as_bytes(), &ring, SIGNED_AT).is_err());
    let mut ring = keyring(&[&key, &other]);
    ring.restrict(&[format!("{:X}", key.primary_key.fingerprint())]);
    assert!(verify(signed.as_bytes(), &ring, SIGNED_AT).is_ok());
}

#[test]
fn armored_keyrings_with_several_blocks() {
    let (key, other) = (key(false), key(false));
    let armor = |key: &SignedSecretKey| {
        SignedPublicKey::from(key.clone()).to_armored_string(ArmorOptions::default()).unwrap()
    };
    let mut ring = Keyring::default();
    ring.add(format!("{}\n{}", armor(&other), armor(&key)).as_bytes()).unwrap();
    assert!(verify(sign(&key).as_bytes(), &ring, SIGNED_AT).is_ok());
    assert!(Keyring::default().add(b"nothing").is_err());
    assert!(Keyring::default().add(b"").is_err());
}

#[test]
fn a_trusted_archive_needs_no_key() {
    for text in [sign(&key(false)), TEXT.to_owned()] {
        let release = read_unverified(text.as_bytes(), SIGNED_AT).unwrap();
        assert_eq!(release.codename.as_deref(), Some("bookworm"));
        assert!(release.packages("main", "amd64").is_some());
    }
}

#[test]
fn a_release_past_its_time_is_refused() {
    let key = key(false);
    let error = verify(sign(&key).as_bytes(), &keyring(&[&key]), SIGNED_AT + 8 * DAY).unwrap_err();
    assert!(matches!(error, Error::Expired(seconds) if seconds == DAY), "{error}");
}

#[test]
fn a_release_without_strong_digests_is_refused() {
    let weak = "Suite: x\nMD5Sum:\n 00 1 main/binary-amd64/Packages\n";
    assert!(matches!(parse(weak, 0), Err(Error::Field("SHA256"))));
    assert!(matches!(parse("SHA256:\n zz 1 x\n", 0), Err(Error::Field("SHA256"))));
    assert!(matches!(parse("Date: never\nSHA256:\n", 0), Err(Error::Field("Date"))));
}

#[test]
fn ranks() {
    let rank = |text: &str| parse(&format!("{text}SHA256:\n"), 0).unwrap().rank;
    assert_eq!(rank(""), Rank::Usual);
    assert_eq!(rank("NotAutomatic: yes\n"), Rank::Last);
    assert_eq!(rank("NotAutomatic: yes\nButAutomaticUpgrades: yes\n"), Rank::Later);
    assert!(Rank::Last < Rank::Later && Rank::Later < Rank::Usual);
}
