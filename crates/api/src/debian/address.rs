//! `deb://<suite>[+package...]`: what a Debian image is called.
//!
//! Package names may hold plus signs themselves. A single plus separates; two in a row belong to the
//! name (`g++`, `libstdc++6`); of three the last separates (`g+++curl`). `%2b` is always a plus of a
//! name (`dvd%2brw-tools`).

use protocol::Error;
use std::fmt;

const SCHEME: &str = "deb://";

/// A Debian image by its name: a suite, and packages beside those that every image has.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    suite: String,
    /// Sorted, each once.
    packages: Vec<String>,
}

impl Address {
    /// Reads an address, or gives none for one of another scheme.
    pub fn parse(text: &str) -> Result<Option<Self>, Error> {
        let Some(rest) = text.strip_prefix(SCHEME) else { return Ok(None) };
        let mut names = split(rest).into_iter();
        let suite = names.next().unwrap_or_default();
        let example =
            "write a suite and packages, e.g. deb://bookworm or deb://bookworm+python3+git";
        if !is_suite(&suite) {
            let message = format!("image `{text}`: `{suite}` is not the name of a suite");
            return Err(Error::user(message).with_hint(example));
        }
        let mut packages: Vec<String> = names.collect();
        if let Some(wrong) = packages.iter().find(|name| !is_package(name)) {
            let message = format!("image `{text}`: `{wrong}` is not the name of a package");
            return Err(Error::user(message).with_hint(example));
        }
        packages.sort();
        packages.dedup();
        Ok(Some(Self { suite, packages }))
    }

    /// The suite.
    pub fn suite(&self) -> &str {
        &self.suite
    }

    /// The packages beside those that every image has.
    pub fn packages(&self) -> &[String] {
        &self.packages
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}", self.suite)?;
        self.packages.iter().try_for_each(|name| write!(f, "+{name}"))
    }
}

fn split(text: &str) -> Vec<String> {
    let bytes = text.as_bytes();
    let mut names = vec![];
    let mut name = String::new();
    let mut at = 0;
    while at < bytes.len() {
        let run = bytes[at..].iter().take_while(|byte| **byte == b'+').count();
        if run == 0 {
            let end = text[at..].find('+').map_or(text.len(), |length| at + length);
            name.push_str(&text[at..end].replace("%2b", "+").replace("%2B", "+"));
            at = end;
            continue;
        }
        at += run;
        let separates = run != 2 && bytes.get(at).is_some_and(u8::is_ascii_alphanumeric);
        let literal = if separates { run - 1 } else { run };
        name.extend(std::iter::repeat_n('+', literal));
        if separates {
            names.push(std::mem::take(&mut name));
        }
    }
    names.push(name);
    names
}

fn is_suite(name: &str) -> bool {
    let usual = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric())
        && name.bytes().all(usual)
        && !name.contains("..")
}

fn is_package(name: &str) -> bool {
    let usual =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"+-.".contains(&byte);
    name.len() > 1
        && name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric())
        && name.bytes().all(usual)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let table = [
            ("deb://bookworm", "bookworm", vec![]),
            ("deb://bookworm+python3", "bookworm", vec!["python3"]),
            ("deb://s+git+curl+git", "s", vec!["curl", "git"]),
            ("deb://s+g++", "s", vec!["g++"]),
            ("deb://s+g+++curl", "s", vec!["curl", "g++"]),
            ("deb://s+libstdc++6+curl", "s", vec!["curl", "libstdc++6"]),
            ("deb://s+libstdc++-12-dev", "s", vec!["libstdc++-12-dev"]),
            ("deb://s+dvd%2brw-tools", "s", vec!["dvd+rw-tools"]),
        ];
        for (text, suite, packages) in table {
            let address = Address::parse(text).unwrap().unwrap();
            assert_eq!(
                (address.suite(), address.packages().to_vec()),
                (suite, { packages.iter().map(|name| (*name).to_owned()).collect() }),
                "{text}"
            );
        }
    }

    #[test]
    fn others_and_wrong_ones() {
        assert!(Address::parse("alpine:3").unwrap().is_none());
        for text in ["deb://", "deb://../x", "deb://s/t", "deb://s+x", "deb://s+A B", "deb://s+a/b"]
        {
            assert!(Address::parse(text).is_err(), "{text}");
        }
    }
}
