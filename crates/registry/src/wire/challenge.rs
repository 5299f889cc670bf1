//! `WWW-Authenticate`: what a registry wants from who is to be let in.

use reqwest::header::{HeaderMap, WWW_AUTHENTICATE};

/// One way to log in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Challenge {
    /// User and password.
    Basic,
    /// A token of another server.
    Bearer {
        /// The address of that server.
        realm: String,
        service: Option<String>,
        scope: Option<String>,
    },
}

/// All ways that an answer offers and that we know.
pub(crate) fn challenges(headers: &HeaderMap) -> Vec<Challenge> {
    let lines = headers.get_all(WWW_AUTHENTICATE).iter();
    lines.filter_map(|line| line.to_str().ok()).flat_map(parse).collect()
}

/// A line holds schemes, each with parameters: `Bearer realm="a",service="b", Basic realm="c"`.
fn parse(line: &str) -> Vec<Challenge> {
    let mut found: Vec<(String, Vec<(String, String)>)> = vec![];
    let mut rest = line.trim_start_matches([' ', ',']);
    while !rest.is_empty() {
        let end = rest.find([' ', ',', '=']).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        rest = match after.strip_prefix('=') {
            Some(value) if !word.is_empty() => {
                let (value, after) = parameter(value);
                if let Some((_, parameters)) = found.last_mut() {
                    parameters.push((word.to_ascii_lowercase(), value));
                }
                after
            }
            Some(after) => after,
            None => {
                found.push((word.to_ascii_lowercase(), vec![]));
                after
            }
        };
        rest = rest.trim_start_matches([' ', ',']);
    }
    found.into_iter().filter_map(|(scheme, parameters)| known(&scheme, &parameters)).collect()
}

/// The value at the beginning of a text, and what follows it.
fn parameter(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let (value, rest) = text.split_at(text.find([',', ' ']).unwrap_or(text.len()));
        return (value.to_owned(), rest);
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((index, c)) = characters.next() {
        match c {
            '"' => return (value, &quoted[index + 1..]),
            '\\' => value.extend(characters.next().map(|(_, c)| c)),
            _ => value.push(c),
        }
    }
    (value, "")
}

fn known(scheme: &str, parameters: &[(String, String)]) -> Option<Challenge> {
    let get = |name: &str| {
        let found = parameters.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.clone()).filter(|value| !value.is_empty())
    };
    match scheme {
        "basic" => Some(Challenge::Basic),
        "bearer" => Some(Challenge::Bearer {
            realm: get("realm")?,
            service: get("service"),
            scope: get("scope"),
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bearer(realm: &str, service: Option<&str>, scope: Option<&str>) -> Challenge {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        Challenge::Bearer { realm: realm.to_owned(), service: owned(service), scope: owned(scope) }
    }

    #[test]
    fn lines_are_read() {
        let table = [
            ("Basic realm=\"x\"", vec![Challenge::Basic]),
            ("basic", vec![Challenge::Basic]),
            (
                "Bearer realm=\"https://auth.example/token\",service=\"r\",scope=\"repository:a:pull,push\"",
                vec![bearer(
                    "https://auth.example/token",
                    Some("r"),
                    Some("repository:a:pull,push"),
                )],
            ),
            (
                "Bearer realm=\"a\", Basic realm=\"b, c\"",
                vec![bearer("a", None, None), Challenge::Basic],
            ),
            ("Digest realm=\"a\", nonce=x", vec![]),
            ("Bearer service=\"x\"", vec![]),
            ("Bearer realm=\"a\\\"b\"", vec![bearer("a\"b", None, None)]),
            ("Bearer realm=\"open", vec![bearer("open", None, None)]),
            ("", vec![]),
            ("=,=\"", vec![]),
            (",,, ,", vec![]),
        ];
        for (line, expect) in table {
            assert_eq!(parse(line), expect, "{line}");
        }
    }
}
