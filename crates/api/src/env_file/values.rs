//! What the variables of an env file are: each other's values put in where they are referred to, then
//! those of the caller's machine. Order does not matter; circles are errors.

use super::text::{Part, parts};
use protocol::Error;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// Longest value that references may make.
const LONGEST: usize = 1 << 20;

/// The variables that references of a file can mean, by name.
pub(super) struct Values<'a> {
    parts: HashMap<&'a str, Vec<Part>>,
}

impl<'a> Values<'a> {
    /// Reads the values of definitions; a later one of a name wins.
    pub(super) fn read(
        definitions: impl Iterator<Item = (&'a Arc<str>, &'a Arc<str>)>,
        expand: bool,
    ) -> Result<Self, Error> {
        let mut raws: HashMap<&str, &str> = HashMap::new();
        raws.extend(definitions.map(|(name, raw)| (&**name, &**raw)));
        let read = |(name, raw): (&'a str, &str)| match parts(raw, expand) {
            Ok(parts) => Ok((name, parts)),
            Err(mut error) => {
                error.message = format!("variable `{name}`: {}", error.message);
                Err(error)
            }
        };
        Ok(Self { parts: raws.into_iter().map(read).collect::<Result<_, _>>()? })
    }

    /// Names that these variables need and that the file does not set.
    pub(super) fn outside(&self, wanted: &[&str]) -> BTreeSet<String> {
        let mut todo: Vec<&str> = wanted.to_vec();
        let mut seen: BTreeSet<&str> = todo.iter().copied().collect();
        let mut outside = BTreeSet::new();
        while let Some(name) = todo.pop() {
            match self.parts.get(name) {
                None => {
                    outside.insert(name.to_owned());
                }
                Some(parts) => {
                    todo.extend(references(parts).filter(|needed| seen.insert(needed)));
                }
            }
        }
        outside
    }

    /// The values of these variables; `around` are those that the file does not set.
    pub(super) fn of(
        &self,
        wanted: &[&str],
        around: &HashMap<String, String>,
    ) -> Result<Vec<String>, Error> {
        let mut done: HashMap<&str, String> = HashMap::new();
        for name in wanted {
            self.resolve(name, around, &mut done)?;
        }
        Ok(wanted.iter().map(|name| done.get(name).cloned().unwrap_or_default()).collect())
    }

    /// Resolves a variable after all that it needs. References may be many thousand deep, so there
    /// is a list of what is to be done and no recursion.
    fn resolve<'s>(
        &'s self,
        name: &'s str,
        around: &HashMap<String, String>,
        done: &mut HashMap<&'s str, String>,
    ) -> Result<(), Error> {
        let mut path: Vec<&str> = vec![name];
        let mut on_path: BTreeSet<&str> = BTreeSet::from([name]);
        while let Some(&name) = path.last() {
            let Some(parts) = self.parts.get(name) else {
                path.pop();
                continue;
            };
            let open =
                |needed: &&str| self.parts.contains_key(needed) && !done.contains_key(needed);
            if let Some(needed) = references(parts).find(open) {
                if !on_path.insert(needed) {
                    let start = path.iter().position(|on| *on == needed).unwrap_or(0);
                    let circle = [&path[start..], &[needed]].concat().join("` -> `");
                    let message = format!("variables refer to each other in a circle: `{circle}`");
                    return Err(Error::user(message));
                }
                path.push(needed);
                continue;
            }
            let value = joined(name, parts, |needed| done.get(needed).or(around.get(needed)))?;
            done.insert(name, value);
            on_path.remove(name);
            path.pop();
        }
        Ok(())
    }
}

fn references(parts: &[Part]) -> impl Iterator<Item = &str> {
    parts.iter().filter_map(|part| match part {
        Part::Reference(name, _) => Some(name.as_str()),
        Part::Text(_) => None,
    })
}

fn joined<'v>(
    name: &str,
    parts: &[Part],
    value: impl Fn(&str) -> Option<&'v String>,
) -> Result<String, Error> {
    let mut joined = String::new();
    for part in parts {
        match part {
            Part::Text(text) => joined.push_str(text),
            Part::Reference(needed, default) => match (value(needed), default) {
                (None, None) => return Err(missing(name, needed)),
                (Some(value), None) => joined.push_str(value),
                (Some(value), Some(_)) if !value.is_empty() => joined.push_str(value),
                (_, Some(default)) => joined.push_str(default),
            },
        }
        if joined.len() > LONGEST {
            let message = format!("the value of `{name}` is longer than {LONGEST} bytes");
            return Err(Error::user(message));
        }
    }
    Ok(joined)
}

fn missing(name: &str, needed: &str) -> Error {
    let message = format!(
        "variable `{name}` refers to `{needed}`, which neither the env file nor your environment sets"
    );
    Error::user(message).with_hint(format!("set it, or write `${{{needed}:-default}}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(definitions: &[(&str, &str)], wanted: &str) -> Result<String, String> {
        let owned: Vec<(Arc<str>, Arc<str>)> =
            definitions.iter().map(|(name, raw)| ((*name).into(), (*raw).into())).collect();
        let pairs = owned.iter().map(|(name, raw)| (name, raw));
        let values = Values::read(pairs, true).map_err(|error| error.message)?;
        let around = HashMap::from([("HOST".to_owned(), "here".to_owned())]);
        let made = values.of(&[wanted], &around).map_err(|error| error.message)?;
        Ok(made[0].clone())
    }

    #[test]
    fn order_does_not_matter_and_the_last_wins() {
        let file = [("A", "${B}-$HOST"), ("B", "old"), ("B", "'$new'"), ("C", "${NO:-none}$A")];
        assert_eq!(check(&file, "A").unwrap(), "$new-here");
        assert_eq!(check(&file, "C").unwrap(), "none$new-here");
    }

    #[test]
    fn what_is_missing_or_circular_is_named() {
        let error = check(&[("A", "$NOPE")], "A").unwrap_err();
        assert!(error.contains("`A` refers to `NOPE`"), "{error}");
        let error = check(&[("A", "$B"), ("B", "$C"), ("C", "$B")], "A").unwrap_err();
        assert!(error.contains("`B` -> `C` -> `B`"), "{error}");
        assert!(check(&[("A", "$A")], "A").is_err());
        assert!(check(&[("A", "$(x)")], "A").unwrap_err().contains("variable `A`: commands"));
    }

    #[test]
    fn long_chains_and_bombs_are_bounded() {
        let names: Vec<(String, String)> =
            (0..50_000).map(|n| (format!("V{n}"), format!("$V{}", n + 1))).collect();
        let mut file: Vec<(&str, &str)> =
            names.iter().map(|(name, raw)| (name.as_str(), raw.as_str())).collect();
        file.push(("V50000", "end"));
        assert_eq!(check(&file, "V0").unwrap(), "end");
        let bomb: Vec<(String, String)> =
            (0..40).map(|n| (format!("V{n}"), format!("$V{0}$V{0}", n + 1))).collect();
        let mut file: Vec<(&str, &str)> =
            bomb.iter().map(|(name, raw)| (name.as_str(), raw.as_str())).collect();
        file.push(("V40", "x"));
        assert!(check(&file, "V0").unwrap_err().contains("longer than"));
    }
}
