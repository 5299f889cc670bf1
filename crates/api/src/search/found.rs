//! [`Kept`]: what was found so far, in the order of paths, and no more than was asked for.

use super::result::Line;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A path as it is ordered: names are compared one by one, so that what is in a directory stays together.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key(Vec<u8>);

impl Key {
    /// No name holds the byte that stands for a slash here, and it comes before all others.
    fn new(path: &[u8]) -> Self {
        Self(path.iter().map(|byte| if *byte == b'/' { 0 } else { *byte }).collect())
    }

    fn path(&self) -> String {
        let bytes: Vec<u8> =
            self.0.iter().map(|byte| if *byte == 0 { b'/' } else { *byte }).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// What was found so far.
pub(super) struct Kept {
    limit: Option<usize>,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    files: BTreeMap<Key, Vec<Line>>,
    /// Lines of all of them.
    count: usize,
}

impl Kept {
    pub(super) fn new(limit: Option<usize>) -> Self {
        Self { limit, inner: Mutex::default() }
    }

    /// Adds what was found in a file. What is beyond the limit then is dropped.
    pub(super) fn add(&self, path: &[u8], lines: Vec<Line>) {
        let mut inner = self.lock();
        let key = Key::new(path);
        if inner.files.contains_key(&key) {
            return;
        }
        inner.count += lines.len();
        inner.files.insert(key, lines);
        let Some(limit) = self.limit else { return };
        while let Some(last) = inner.last_lines()
            && inner.count - last >= limit
        {
            inner.files.pop_last();
            inner.count -= last;
        }
    }

    /// Whether something found at this path, or below it, would be told.
    pub(super) fn wants(&self, path: &[u8]) -> bool {
        let Some(limit) = self.limit else { return true };
        let inner = self.lock();
        let last = inner.files.last_key_value();
        inner.count < limit || last.is_none_or(|(last, _)| Key::new(path) <= *last)
    }

    /// Everything in order, with the paths of the files.
    pub(super) fn finish(self) -> Vec<(String, Vec<Line>)> {
        let inner = self.inner.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut left = self.limit.unwrap_or(usize::MAX);
        let files = inner.files.into_iter().map(|(key, mut lines)| {
            lines.truncate(left);
            left -= lines.len();
            (key.path(), lines)
        });
        files.collect()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Lines of the last file.
    fn last_lines(&self) -> Option<usize> {
        self.files.last_key_value().map(|(_, lines)| lines.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(count: usize) -> Vec<Line> {
        (0..count).map(|number| Line { number: number as u64, ..Line::default() }).collect()
    }

    fn told(kept: Kept) -> Vec<String> {
        kept.finish().into_iter().map(|(path, lines)| format!("{path}:{}", lines.len())).collect()
    }

    #[test]
    fn files_come_in_the_order_of_a_walk() {
        let kept = Kept::new(None);
        for path in ["b", "a/b", "a.txt", "a/a/z", "a-b/x", "b"] {
            kept.add(path.as_bytes(), lines(1));
        }
        assert_eq!(told(kept), ["a/a/z:1", "a/b:1", "a-b/x:1", "a.txt:1", "b:1"]);
    }

    #[test]
    fn a_limit_keeps_the_first_ones_whatever_comes_first() {
        for order in [["a", "b", "c"], ["c", "b", "a"], ["b", "c", "a"]] {
            let kept = Kept::new(Some(5));
            for path in order {
                kept.add(path.as_bytes(), lines(3));
            }
            assert!(kept.wants(b"a") && kept.wants(b"aa/x") && kept.wants(b"b"), "{order:?}");
            assert!(!kept.wants(b"c") && !kept.wants(b"d/x"), "{order:?}");
            assert_eq!(told(kept), ["a:3", "b:2"], "{order:?}");
        }
    }
}
