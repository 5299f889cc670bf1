//! The forms in which a secret turns up in logs: base64, hex, URL and JSON.

/// Every form of a secret. Some are equal to each other, and some to the secret itself.
pub(crate) fn all(secret: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = vec![];
    base64(secret, &mut forms);
    forms.push(secret.iter().flat_map(|byte| hex(*byte, LOWER)).collect());
    forms.push(secret.iter().flat_map(|byte| hex(*byte, UPPER)).collect());
    url(secret, &mut forms);
    json(secret, &mut forms);
    forms
}

const LOWER: &[u8; 16] = b"0123456789abcdef";
const UPPER: &[u8; 16] = b"0123456789ABCDEF";

fn hex(byte: u8, digits: &[u8; 16]) -> [u8; 2] {
    [digits[usize::from(byte >> 4)], digits[usize::from(byte & 15)]]
}

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL_SAFE: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Lengths at which programs break lines of base64.
const LINES: [usize; 2] = [64, 76];

/// Base64 of the secret at every place in a longer text. Three bytes make four characters, so there
/// are three ways to be cut; characters that are also made of what stands around the secret are left
/// out. What is encoded alone is also looked for up to its end, and with line breaks.
fn base64(secret: &[u8], forms: &mut Vec<Vec<u8>>) {
    for alphabet in [STANDARD, URL_SAFE] {
        for before in 0..3 {
            let bytes = [&[0; 2][..before], secret].concat();
            let encoded = encode(&bytes, alphabet);
            let own = before * 8 / 6 + usize::from(before > 0)..bytes.len() * 8 / 6;
            forms.push(encoded.get(own).unwrap_or_default().to_vec());
        }
        let mut alone = encode(secret, alphabet);
        forms.push(alone.clone());
        alone.resize(alone.len().next_multiple_of(4), b'=');
        for length in LINES {
            forms.push(alone.chunks(length).collect::<Vec<_>>().join(&b'\n'));
        }
        forms.push(alone);
    }
}

/// Base64 without padding.
fn encode(bytes: &[u8], alphabet: &[u8; 64]) -> Vec<u8> {
    let mut encoded = Vec::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let bits = (0..3).fold(0, |bits: u32, index| {
            bits << 8 | u32::from(chunk.get(index).copied().unwrap_or(0))
        });
        for place in 0..=chunk.len() {
            encoded.push(alphabet[(bits >> (18 - 6 * place) & 63) as usize]);
        }
    }
    encoded
}

/// What nobody escapes in a URL, and what is left alone when a whole URL is escaped.
const UNRESERVED: &[u8] = b"-._~";
const RESERVED: &[u8] = b"-._~!*'();:@&=+$,/?#[]";
/// What browsers leave alone in a part of a URL.
const COMPONENT: &[u8] = b"-._~!*'()";
/// What browsers and many libraries leave alone in a form.
const FORM: &[u8] = b"-._*";

fn url(secret: &[u8], forms: &mut Vec<Vec<u8>>) {
    for digits in [UPPER, LOWER] {
        for (kept, space) in [
            (UNRESERVED, None),
            (UNRESERVED, Some(b'+')),
            (RESERVED, None),
            (COMPONENT, None),
            (FORM, Some(b'+')),
        ] {
            let mut escaped = vec![];
            for byte in secret {
                match *byte {
                    b' ' if space.is_some() => escaped.extend(space),
                    byte if byte.is_ascii_alphanumeric() || kept.contains(&byte) => {
                        escaped.push(byte);
                    }
                    byte => {
                        escaped.push(b'%');
                        escaped.extend(hex(byte, digits));
                    }
                }
            }
            forms.push(escaped);
        }
    }
}

/// How a program writes texts in JSON.
#[derive(Clone, Copy)]
struct Escapes {
    /// Whether everything outside of ASCII is escaped.
    ascii: bool,
    /// Whether what means something in HTML is escaped.
    html: bool,
    slash: bool,
    digits: &'static [u8; 16],
}

fn json(secret: &[u8], forms: &mut Vec<Vec<u8>>) {
    let Ok(text) = std::str::from_utf8(secret) else { return };
    for ascii in [false, true] {
        for (html, slash) in [(false, false), (true, false), (false, true)] {
            for digits in [LOWER, UPPER] {
                let escapes = Escapes { ascii, html, slash, digits };
                let once = escaped(text, escapes);
                // JSON is often put into JSON, as one text.
                forms.push(escaped(&once, escapes).into_bytes());
                forms.push(once.into_bytes());
            }
        }
    }
}

fn escaped(text: &str, escapes: Escapes) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '/' if escapes.slash => out.push_str("\\/"),
            '<' | '>' | '&' if escapes.html => unicode(character, escapes, &mut out),
            _ if character.is_control() => unicode(character, escapes, &mut out),
            _ if escapes.ascii && !character.is_ascii() => unicode(character, escapes, &mut out),
            _ => out.push(character),
        }
    }
    out
}

fn unicode(character: char, escapes: Escapes, out: &mut String) {
    for unit in character.encode_utf16(&mut [0; 2]) {
        let [high, low] = unit.to_be_bytes();
        out.push_str("\\u");
        let digits = [hex(high, escapes.digits), hex(low, escapes.digits)].concat();
        out.extend(digits.into_iter().map(char::from));
    }
}
