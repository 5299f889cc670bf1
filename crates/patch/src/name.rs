//! Paths as they stand in a patch: in quotes, with escapes, where they hold anything odd.

/// A path after a prefix such as `a/`, in quotes if need be.
pub(crate) fn quote(prefix: &str, path: &[u8]) -> Vec<u8> {
    let odd = |byte: &u8| !(0x20..0x7f).contains(byte) || matches!(byte, b'"' | b'\\');
    if !path.iter().any(odd) {
        return [prefix.as_bytes(), path].concat();
    }
    let mut quoted = vec![b'"'];
    quoted.extend_from_slice(prefix.as_bytes());
    for byte in path {
        match byte {
            b'"' | b'\\' => quoted.extend([b'\\', *byte]),
            b'\n' => quoted.extend(b"\\n"),
            b'\t' => quoted.extend(b"\\t"),
            b'\r' => quoted.extend(b"\\r"),
            0x20..0x7f => quoted.push(*byte),
            _ => quoted.extend(format!("\\{byte:03o}").bytes()),
        }
    }
    quoted.push(b'"');
    quoted
}

/// Takes a name off the start of a text: up to its closing quote, or to its end. Gives the name
/// and what follows.
pub(crate) fn unquote(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let Some(mut rest) = text.strip_prefix(b"\"") else { return Some((text.to_vec(), &[])) };
    let mut name = vec![];
    loop {
        let (first, after) = rest.split_first()?;
        rest = after;
        match first {
            b'"' => return Some((name, rest)),
            b'\\' => {
                let (escape, after) = rest.split_first()?;
                rest = after;
                match escape {
                    b'0'..=b'3' => {
                        let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
                        let low = u8::from_str_radix(digits, 8).ok()?;
                        name.push((escape - b'0') << 6 | low);
                        rest = &rest[2..];
                    }
                    b'a' => name.push(7),
                    b'b' => name.push(8),
                    b't' => name.push(b'\t'),
                    b'n' => name.push(b'\n'),
                    b'v' => name.push(11),
                    b'f' => name.push(12),
                    b'r' => name.push(b'\r'),
                    b'"' | b'\\' => name.push(*escape),
                    _ => return None,
                }
            }
            other => name.push(*other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_names_are_quoted_and_read_back() {
        assert_eq!(quote("a/", b"plain name"), b"a/plain name");
        assert_eq!(quote("a/", b"q\"\\\n\xc3\xa4"), br#""a/q\"\\\n\303\244""#);
        let every: Vec<u8> = (1..=255).collect();
        let quoted = quote("b/", &every);
        let (name, rest) = unquote(&quoted).unwrap();
        assert_eq!(&name[2..], every);
        assert!(rest.is_empty());
    }

    #[test]
    fn broken_quotes_are_no_names() {
        for text in [r#""open"#, r#""\q""#, r#""\99""#, r#""\"#] {
            assert_eq!(unquote(text.as_bytes()), None, "{text}");
        }
    }
}
