//! [`View::glob`]: entries whose paths match a pattern.

use super::{Entry, View, failure};
use crate::{Error, ViewError};
use selection::{Glob, clean};

impl View {
    /// Every entry whose path matches, in the order of [`View::walk`], named by its path. `*`, `?` and
    /// `[...]` stay within one name, `**` spans directories, `{a,b}` is either; links are not followed.
    pub fn glob(&self, pattern: &str) -> Result<Vec<Entry>, Error> {
        if let Some(id) = self.tree.lost {
            return Err(ViewError::Lost(id).into());
        }
        let names = clean(pattern);
        let matcher = Glob::with_alternatives(&names.join("/"))?;
        // Alternatives may hold slashes, so that the names of the pattern say nothing about depth.
        let any_depth = pattern.contains("**") || pattern.contains('{');
        let deepest = if any_depth { usize::MAX } else { names.len() };
        let fixed: Vec<&str> = names.iter().copied().take_while(|name| is_plain(name)).collect();
        let fixed = if any_depth && pattern.contains('{') { vec![] } else { fixed };
        let unread = |path: &[u8], errno| failure(&String::from_utf8_lossy(path), errno);
        let mut ahead = vec![(self.tree.root().map_err(|errno| unread(b"", errno))?, 0)];
        let mut found = vec![];
        while let Some((node, depth)) = ahead.pop() {
            if depth > 0 && matcher.is_match(&node.path) {
                let name = String::from_utf8_lossy(&node.path).into_owned();
                found.push(Entry { name, metadata: node.metadata });
            }
            if !node.metadata.is_directory() || depth == deepest {
                continue;
            }
            if let Some(name) = fixed.get(depth) {
                let child = self.tree.lookup(&node, name.as_bytes());
                let child = child.map_err(|errno| unread(&node.path, errno))?;
                ahead.extend(child.map(|child| (child, depth + 1)));
                continue;
            }
            let children = self.tree.children(&node).map_err(|errno| unread(&node.path, errno))?;
            ahead.extend(children.into_iter().rev().map(|child| (child, depth + 1)));
        }
        Ok(found)
    }
}

/// Whether a name of a pattern is the name of one entry, and could be one.
fn is_plain(name: &str) -> bool {
    name.len() <= 255 && !name.contains(['*', '?', '[', '\\', '{', '}', '\0'])
}
