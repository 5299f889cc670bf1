//! A certificate authority for one test: for TLS, and for the signatures of tokens.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, IsCa, Issuer, KeyPair, SigningKey as _,
};

/// An authority with its key.
pub struct Authority {
    certificate: Certificate,
    params: CertificateParams,
    key: KeyPair,
}

impl Authority {
    /// A new one.
    #[expect(clippy::new_without_default, reason = "every one is another")]
    pub fn new() -> Self {
        let key = KeyPair::generate().expect("a key can be made");
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).expect("a certificate can be made");
        Self { certificate, params, key }
    }

    /// The certificate as PEM.
    pub fn certificate(&self) -> String {
        self.certificate.pem()
    }

    /// A certificate and its key, as PEM, for a server on loopback.
    pub fn issue(&self) -> (String, String) {
        self.issue_for(&["localhost", "127.0.0.1", "::1"])
    }

    /// A certificate and its key, as PEM, for these names.
    pub fn issue_for(&self, names: &[&str]) -> (String, String) {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let params = CertificateParams::new(names).expect("these are names of hosts");
        let key = KeyPair::generate().expect("a key can be made");
        let issuer = Issuer::from_params(&self.params, &self.key);
        let certificate = params.signed_by(&key, &issuer).expect("a certificate can be made");
        (certificate.pem(), key.serialize_pem())
    }

    /// The certificate in the form of tokens.
    pub(super) fn encoded_certificate(&self) -> String {
        STANDARD.encode(self.certificate.der())
    }

    /// A signature in the form of tokens: two numbers of 32 bytes.
    pub(super) fn sign(&self, message: &[u8]) -> Vec<u8> {
        plain(&self.key.sign(message).expect("the key signs"))
    }
}

/// `SEQUENCE { INTEGER, INTEGER }` as the two numbers.
fn plain(der: &[u8]) -> Vec<u8> {
    let mut rest = &der[2..];
    let mut numbers = vec![];
    for _ in 0..2 {
        let length = usize::from(rest[1]);
        let digits = &rest[2..2 + length];
        let digits = &digits[length.saturating_sub(32)..];
        numbers.resize(numbers.len() + 32 - digits.len(), 0);
        numbers.extend_from_slice(digits);
        rest = &rest[2 + length..];
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn signatures_become_two_numbers_of_equal_length() {
        let first = [&[0x02, 33, 0][..], &[0xff; 32]].concat();
        let second = [0x02, 1, 7];
        let der = [&[0x30, (first.len() + second.len()) as u8][..], &first, &second].concat();
        let expect = [&[0xff; 32][..], &[0; 31], &[7]].concat();
        assert_eq!(plain(&der), expect);
    }
}
