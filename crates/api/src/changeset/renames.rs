//! Which removed files are added ones under another name.
//!
//! As git finds them: equal contents first, files of the same name before others, then those that
//! have at least half of their bytes in common. With very many files the second is left out.

use patch::{Fingerprint, similarity};
use protocol::Digest;
use std::collections::{BTreeMap, HashMap};

/// Least hundredths that a renamed file has in common with what it was.
const LEAST: u8 = 50;
/// Most pairs that are compared.
const MOST_PAIRS: usize = 250_000;

/// A file that came or went, with what is known of its contents.
pub(super) struct Candidate {
    pub(super) path: Vec<u8>,
    pub(super) length: u64,
    pub(super) digest: Digest,
    /// None of what is too long to be looked at closely.
    pub(super) fingerprint: Option<Fingerprint>,
}

/// For files that came, by their index, the index of the file that each of them was.
pub(super) fn find(gone: &[&Candidate], came: &[&Candidate]) -> HashMap<usize, usize> {
    let mut finding = Finding { gone, came, taken: vec![false; gone.len()], found: HashMap::new() };
    finding.equal();
    finding.similar();
    finding.found
}

struct Finding<'a> {
    gone: &'a [&'a Candidate],
    came: &'a [&'a Candidate],
    taken: Vec<bool>,
    found: HashMap<usize, usize>,
}

impl Finding<'_> {
    fn equal(&mut self) {
        let mut by_digest: HashMap<Digest, Vec<usize>> = HashMap::new();
        for (index, gone) in self.gone.iter().enumerate() {
            by_digest.entry(gone.digest).or_default().push(index);
        }
        for same_name in [true, false] {
            for (index, came) in self.came.iter().enumerate() {
                let Some(equal) = by_digest.get(&came.digest) else { continue };
                let fits = |old: &&usize| {
                    !self.taken[**old] && (!same_name || name(self.gone[**old]) == name(came))
                };
                if let Some(old) = equal.iter().find(fits).copied()
                    && !self.found.contains_key(&index)
                {
                    self.taken[old] = true;
                    self.found.insert(index, old);
                }
            }
        }
    }

    fn similar(&mut self) {
        let gone: Vec<usize> = (0..self.gone.len()).filter(|index| !self.taken[*index]).collect();
        let came: Vec<usize> =
            (0..self.came.len()).filter(|index| !self.found.contains_key(index)).collect();
        if gone.len().saturating_mul(came.len()) > MOST_PAIRS {
            return;
        }
        // The best pairs come last, the first of equal ones too.
        let mut pairs = BTreeMap::new();
        for new in came {
            for old in &gone {
                let score = self.score(*old, new);
                if score >= LEAST {
                    let same_name = name(self.gone[*old]) == name(self.came[new]);
                    pairs.insert((score, same_name, usize::MAX - new, usize::MAX - old), ());
                }
            }
        }
        for (_, _, new, old) in pairs.into_keys().rev() {
            let (new, old) = (usize::MAX - new, usize::MAX - old);
            if !self.taken[old] && !self.found.contains_key(&new) {
                self.taken[old] = true;
                self.found.insert(new, old);
            }
        }
    }

    fn score(&self, old: usize, new: usize) -> u8 {
        let (old, new) = (self.gone[old], self.came[new]);
        let (shorter, longer) = (old.length.min(new.length), old.length.max(new.length));
        if shorter.saturating_mul(2) < longer {
            return 0;
        }
        match (&old.fingerprint, &new.fingerprint) {
            (Some(old), Some(new)) => similarity(old, new),
            _ => 0,
        }
    }
}

fn name(candidate: &Candidate) -> &[u8] {
    candidate.path.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates(files: &[(&str, &str)]) -> Vec<Candidate> {
        let candidate = |(path, contents): &(&str, &str)| Candidate {
            path: path.as_bytes().to_vec(),
            length: contents.len() as u64,
            digest: Digest::of(contents.as_bytes()),
            fingerprint: Some(Fingerprint::of(contents.as_bytes())),
        };
        files.iter().map(candidate).collect()
    }

    fn found(gone: &[(&str, &str)], came: &[(&str, &str)]) -> Vec<String> {
        let (old, new) = (candidates(gone), candidates(came));
        let found = find(&Vec::from_iter(&old), &Vec::from_iter(&new));
        let mut said: Vec<String> =
            found.iter().map(|(new, old)| format!("{} {}", gone[*old].0, came[*new].0)).collect();
        said.sort();
        said
    }

    #[test]
    fn equal_contents_are_found_first_and_by_name() {
        let gone = [("a/x", "1\n2\n"), ("a/y", "1\n2\n"), ("z", "other\n")];
        let came = [("b/y", "1\n2\n"), ("b/q", "1\n2\n"), ("new", "fresh\n")];
        assert_eq!(found(&gone, &came), ["a/x b/q", "a/y b/y"]);
    }

    #[test]
    fn similar_contents_are_found_best_first() {
        let gone = [("one", "a\nb\nc\nd\n"), ("two", "a\nb\nx\ny\n")];
        let came = [("new", "a\nb\nc\ne\n"), ("far", "q\n")];
        assert_eq!(found(&gone, &came), ["one new"]);
    }
}
