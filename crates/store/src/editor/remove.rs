//! Removing entries of an edited tree.

use super::{Editor, Remove};
use crate::Error;
use crate::draft::failed;
use crate::view::{Last, Located, Node, ViewError, shorten};
use selection::{Glob, clean, is_glob};

/// `Editor::remove`.
pub(super) fn remove(editor: &mut Editor, path: &str, kind: Remove) -> Result<(), Error> {
    match editor.top.tree.locate(path, Last::Keep) {
        Ok(Located::Found(node)) if node.path.is_empty() => match kind {
            Remove::Directory => empty_root(editor, &node),
            Remove::File => Err(ViewError::NotAFile(shorten(path)).into()),
        },
        Ok(Located::Found(node)) => editor.top.remove(&node),
        Ok(Located::Missing { .. }) | Err(ViewError::NotADirectory(_)) if is_glob(path) => {
            remove_matches(editor, path)
        }
        Ok(Located::Missing { .. }) | Err(ViewError::NotADirectory(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn empty_root(editor: &mut Editor, root: &Node) -> Result<(), Error> {
    let children = editor.top.tree.children(root).map_err(|errno| failed("read", b"", errno))?;
    children.iter().try_for_each(|child| editor.top.remove(child))
}

/// Removes what a glob matches. Links in the part before the first wildcard are followed.
fn remove_matches(editor: &mut Editor, pattern: &str) -> Result<(), Error> {
    let names = clean(pattern);
    let fixed = names.iter().take_while(|name| !is_glob(name)).count();
    let top = match editor.top.tree.find_directory(&names[..fixed].join("/")) {
        Ok(top) => top,
        Err(ViewError::NotFound(_) | ViewError::NotADirectory(_)) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let matcher = Glob::new(&names[fixed..].join("/"))?;
    let any_depth = names[fixed..].iter().any(|name| name.contains("**"));
    let deepest = if any_depth { usize::MAX } else { names.len() - fixed };
    let skipped = if top.path.is_empty() { 0 } else { top.path.len() + 1 };
    let mut ahead = vec![(top, 0)];
    while let Some((directory, depth)) = ahead.pop() {
        let unread = |errno| failed("read", &directory.path, errno);
        for child in editor.top.tree.children(&directory).map_err(unread)? {
            if matcher.is_match(&child.path[skipped..]) {
                editor.top.remove(&child)?;
            } else if child.metadata.is_directory() && depth + 1 < deepest {
                ahead.push((child, depth + 1));
            }
        }
    }
    Ok(())
}
