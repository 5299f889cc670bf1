//! Paths inside containers and directories, as text. Nothing here looks at a disk: links are
//! resolved later, inside the tree, by the store.

/// Joins `path` to `base` unless it is absolute, and tidies `.`, `..` and slashes. `..` stops at `/`.
pub(crate) fn absolute(base: &str, path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    let joined = [if path.starts_with('/') { "" } else { base }, path];
    for part in joined.iter().flat_map(|text| text.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// What is left of `path` below `root`, both tidy and absolute: `""` for the root itself.
pub(crate) fn below<'a>(root: &str, path: &'a str) -> Option<&'a str> {
    if root == "/" {
        return Some(path.trim_start_matches('/'));
    }
    let rest = path.strip_prefix(root)?;
    if rest.is_empty() { Some("") } else { rest.strip_prefix('/') }
}

/// Joins two paths below one root without touching `..`: the tree resolves it.
pub(crate) fn join(base: &str, path: &str) -> String {
    let path = path.trim_start_matches('/');
    match (base.is_empty(), path.is_empty()) {
        (true, _) => path.to_owned(),
        (_, true) => base.to_owned(),
        _ => format!("{base}/{path}"),
    }
}

/// Whether a relative path climbs above where it starts, links aside.
pub(crate) fn climbs_out(path: &str) -> bool {
    let mut depth = 0i64;
    path.split('/').any(|part| {
        depth += match part {
            "" | "." => 0,
            ".." => -1,
            _ => 1,
        };
        depth < 0
    })
}

/// The last name of a path.
pub(crate) fn name(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absolute_paths() {
        for (base, path, expected) in [
            ("/", "", "/"),
            ("/a", "b", "/a/b"),
            ("/a", "/b", "/b"),
            ("/a", "..", "/"),
            ("/a", "../../../b", "/b"),
            ("/a/b", "./c//d/.", "/a/b/c/d"),
            ("", "x", "/x"),
        ] {
            assert_eq!(absolute(base, path), expected, "{base} {path}");
        }
    }

    #[test]
    fn rest_below_a_root() {
        for (root, path, expected) in [
            ("/", "/a", Some("a")),
            ("/a", "/a", Some("")),
            ("/a", "/a/b", Some("b")),
            ("/a", "/ab", None),
            ("/a/b", "/a", None),
        ] {
            assert_eq!(below(root, path), expected, "{root} {path}");
        }
    }

    #[test]
    fn paths_that_climb_out() {
        for (path, expected) in [
            ("..", true),
            ("a/../..", true),
            ("/../x", true),
            ("a/..", false),
            ("a/../b/./..", false),
            ("...", false),
        ] {
            assert_eq!(climbs_out(path), expected, "{path}");
        }
    }

    #[test]
    fn joined_paths_and_names() {
        assert_eq!(join("", "/a"), "a");
        assert_eq!(join("a", ""), "a");
        assert_eq!(join("a", "../b"), "a/../b");
        assert_eq!(name("/a/b/"), "b");
        assert_eq!(name("/"), "");
    }
}
