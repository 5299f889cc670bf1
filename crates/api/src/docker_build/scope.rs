//! [`Scope`]: which names have values where, and what is known before the first line.

use crate::platform;
use dockerfile::{Argument, Dockerfile, Expander};
use std::collections::BTreeMap;

/// Arguments that commands get without being asked for, in capital and in small letters whichever were given.
const PROXIES: &[&str] = &["HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "NO_PROXY", "ALL_PROXY"];

/// Values of names before the first stage.
#[derive(Debug)]
pub(super) struct Scope {
    /// What the user gave.
    given: BTreeMap<String, String>,
    /// What stands before the first stage, and what every build knows.
    globals: BTreeMap<String, String>,
    escape: char,
}

impl Scope {
    pub(super) fn new(
        file: &Dockerfile,
        given: Vec<(String, String)>,
        (platform, target): (&str, &str),
    ) -> Result<Self, dockerfile::Error> {
        let mut globals = of_platform("TARGET", platform);
        globals.extend(of_platform("BUILD", platform::current()));
        let target = if target.is_empty() { "default" } else { target };
        globals.insert("TARGETSTAGE".to_owned(), target.to_owned());
        let given: BTreeMap<String, String> = given.into_iter().collect();
        for (name, value) in &given {
            if globals.contains_key(name) {
                globals.insert(name.clone(), value.clone());
            }
        }
        let mut scope = Self { given, globals, escape: file.escape };
        for Argument { line, name, default } in &file.arguments {
            let value = match (scope.given.get(name), default) {
                (Some(given), _) => Some(given.clone()),
                (None, Some(default)) => {
                    let at = |error| dockerfile::Error { line: *line, ..error };
                    Some(scope.expand(default).map_err(at)?)
                }
                (None, None) => None,
            };
            if let Some(value) = value {
                scope.globals.insert(name.clone(), value);
            }
        }
        Ok(scope)
    }

    /// A text of `FROM`, with what is known before the first stage.
    pub(super) fn expand(&self, text: &str) -> Result<String, dockerfile::Error> {
        Expander::new(self.escape, &|name| self.globals.get(name).cloned()).word(text)
    }

    /// Replaces variables by those of a stage.
    pub(super) fn with<T>(
        &self,
        env: &[(String, String)],
        work: impl FnOnce(&Expander<'_>) -> Result<T, dockerfile::Error>,
    ) -> Result<T, dockerfile::Error> {
        let value = |name: &str| {
            env.iter().rfind(|(known, _)| known == name).map(|(_, value)| value.clone())
        };
        work(&Expander::new(self.escape, &value))
    }

    /// What the user gave for an argument of a stage.
    pub(super) fn given(&self, name: &str) -> Option<&String> {
        self.given.get(name)
    }

    /// What an argument of a stage is without a word of the user or a default.
    pub(super) fn global(&self, name: &str) -> Option<&String> {
        self.globals.get(name)
    }

    /// Arguments that commands get without being asked for. How this machine reaches the network makes no other
    /// command of one, so they are for no key; those that a stage has declared are among its variables already.
    pub(super) fn proxies(&self, declared: &[(String, String)]) -> Vec<(String, String)> {
        let given = |capital: &&str| {
            let small = capital.to_lowercase();
            let value = self.given.get(*capital).or_else(|| self.given.get(&small))?.clone();
            Some([((*capital).to_owned(), value.clone()), (small, value)])
        };
        let undeclared = |(name, _): &(String, String)| declared.iter().all(|(own, _)| own != name);
        PROXIES.iter().filter_map(given).flatten().filter(undeclared).collect()
    }
}

fn of_platform(prefix: &str, platform: &str) -> BTreeMap<String, String> {
    let mut parts = platform.split('/');
    let mut next = || parts.next().unwrap_or_default().to_owned();
    let named = |name: &str, value: String| (format!("{prefix}{name}"), value);
    let (system, architecture, variant) = (next(), next(), next());
    BTreeMap::from([
        named("PLATFORM", platform.to_owned()),
        named("OS", system),
        named("ARCH", architecture),
        named("VARIANT", variant),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globals_are_what_the_user_gave_or_what_stands_there() {
        let text = "ARG A=1\nARG B=$A-${TARGETARCH}\nARG C\nFROM x";
        let file = Dockerfile::parse(text).unwrap();
        let given =
            vec![("A".to_owned(), "2".to_owned()), ("TARGETOS".to_owned(), "plan9".to_owned())];
        let scope = Scope::new(&file, given, ("linux/arm/v7", "")).unwrap();
        assert_eq!(
            scope.expand("$A $B [$C] $TARGETVARIANT $TARGETOS").unwrap(),
            "2 2-arm [] v7 plan9"
        );
        assert_eq!(scope.global("TARGETSTAGE").unwrap(), "default");
        let wrong = Dockerfile::parse("ARG A=1\nARG B=${A\nFROM x").unwrap();
        assert_eq!(Scope::new(&wrong, vec![], ("linux/amd64", "")).unwrap_err().line, 2);
    }

    #[test]
    fn proxies_are_given_in_both_spellings_unless_a_stage_has_its_own() {
        let file = Dockerfile::parse("FROM x").unwrap();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let given = vec![pair("http_proxy", "a"), pair("NO_PROXY", "b"), pair("OTHER", "c")];
        let scope = Scope::new(&file, given, ("linux/amd64", "")).unwrap();
        let declared = [pair("HTTP_PROXY", "own"), pair("x", "y")];
        let expect = [pair("http_proxy", "a"), pair("NO_PROXY", "b"), pair("no_proxy", "b")];
        assert_eq!(scope.proxies(&declared), expect);
    }
}
