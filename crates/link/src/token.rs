//! [`Token`]: what lets a program in at the port of a session: made, written into a header, and checked.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::general_purpose::GeneralPurpose;
use base64::engine::{DecodePaddingMode, GeneralPurposeConfig};
use http::HeaderValue;
use std::hint::black_box;
use std::io;

/// Some clients leave the padding out.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The secret of one endpoint.
pub struct Token(String);

impl Token {
    /// 256 fresh random bits as 64 hex digits.
    pub fn random() -> io::Result<Self> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        Ok(Self(hex::encode(bytes)))
    }

    /// As programs present it.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Whether an `Authorization` header names this token as its user. The password is ignored.
    pub fn admits(&self, header: Option<&HeaderValue>) -> bool {
        let credentials = header.and_then(|value| value.to_str().ok()).and_then(credentials);
        let Some(credentials) = credentials else { return false };
        let user = credentials.split(|byte| *byte == b':').next().unwrap_or_default();
        equal(user, self.0.as_bytes())
    }
}

impl From<String> for Token {
    /// A token that was made before.
    fn from(text: String) -> Self {
        Self(text)
    }
}

/// The header that presents a token.
pub fn authorization(token: &str) -> HeaderValue {
    let value = format!("Basic {}", BASE64.encode(format!("{token}:")));
    let mut value = HeaderValue::from_str(&value).expect("base64 is ASCII");
    value.set_sensitive(true);
    value
}

/// The bytes behind `Basic`, in the standard or the URL-safe alphabet: both are in use.
fn credentials(header: &str) -> Option<Vec<u8>> {
    let (scheme, encoded) = header.trim().split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    BASE64.decode(encoded.trim().replace('-', "+").replace('_', "/")).ok()
}

/// Compares in a time that depends on the length alone, so that answers do not tell how much of a
/// guess was right.
fn equal(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    let difference = one.iter().zip(other).fold(0, |found, (a, b)| black_box(found | (a ^ b)));
    black_box(difference) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_let_in() {
        // Bytes whose base64 differs between the alphabets.
        let token = Token::from("t\u{f6}ken>?~".to_owned());
        let standard = |text: &str| format!("Basic {}", BASE64.encode(text));
        let url_safe = |text: &str| standard(text).replace('+', "-").replace('/', "_");
        let right = format!("{}:", token.text());
        assert_ne!(standard(&right), url_safe(&right));
        for (header, admitted) in [
            (standard(&right), true),
            (url_safe(&right), true),
            (standard(&right).trim_end_matches('=').to_owned(), true),
            (standard(&format!("{right}password")), true),
            (standard(token.text()), true),
            (standard(&right).replace("Basic", "basic"), true),
            (standard(&right).replace("Basic", "Bearer"), false),
            (standard(":"), false),
            (standard(&format!(":{}", token.text())), false),
            (standard("t\u{f6}ken>?!:"), false),
            (standard("t\u{f6}ken>?:"), false),
            (format!("Basic {}", token.text().len()), false),
            ("Basic ****".to_owned(), false),
            ("Basic".to_owned(), false),
            (String::new(), false),
        ] {
            let value = HeaderValue::from_str(&header).unwrap();
            assert_eq!(token.admits(Some(&value)), admitted, "{header}");
        }
        assert!(!token.admits(None));
    }

    #[test]
    fn tokens_are_64_hex_digits_and_differ() {
        let (one, two) = (Token::random().unwrap(), Token::random().unwrap());
        assert_eq!(one.text().len(), 64);
        assert!(one.text().bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert_ne!(one.text(), two.text());
        assert!(one.admits(Some(&authorization(one.text()))));
    }
}
