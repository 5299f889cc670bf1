//! A list of changes for people: a line a file, and how much it is altogether.

use serde_json::Value;
use std::collections::BTreeMap;
use tui::{Paint, clean, width};

/// What stands for the middle of a path that is too long.
const LEFT_OUT: &str = "...";

/// Changes as they are told.
#[derive(Debug)]
pub(super) struct Summary {
    /// By their paths.
    lines: BTreeMap<String, Line>,
    files: usize,
}

#[derive(Debug)]
struct Line {
    name: String,
    kind: Kind,
    added: u64,
    removed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Added,
    Removed,
    Modified,
}

impl Summary {
    /// Reads what the engine says about a changeset.
    pub(super) fn of(found: &Value) -> Summary {
        let folders = |name: &str| -> Vec<String> {
            let paths = found[name].as_array().into_iter().flatten().filter_map(Value::as_str);
            paths.filter(|path| path.ends_with('/')).map(str::to_owned).collect()
        };
        let stats = found["diffStats"].as_array().cloned().unwrap_or_default();
        let mut summary = Summary { lines: BTreeMap::new(), files: stats.len() };
        let gone = folders("removedPaths");
        for path in &gone {
            summary.put(path.clone(), Line::folder(path, Kind::Removed));
        }
        for stat in &stats {
            summary.add(stat, &gone);
        }
        for path in folders("addedPaths") {
            if !summary.lines.keys().any(|line| line.starts_with(&path)) {
                summary.put(path.clone(), Line::folder(&path, Kind::Added));
            }
        }
        summary
    }

    fn put(&mut self, path: String, line: Line) {
        self.lines.insert(path, line);
    }

    fn add(&mut self, stat: &Value, gone: &[String]) {
        let path = stat["path"].as_str().unwrap_or_default();
        let line = Line::of(stat);
        let folder = gone.iter().find(|folder| path.starts_with(folder.as_str()));
        match folder.filter(|_| line.kind == Kind::Removed) {
            // All that was in a directory that is gone is told with it.
            Some(folder) => {
                if let Some(told) = self.lines.get_mut(folder) {
                    told.removed += line.removed;
                }
            }
            None => self.put(path.to_owned(), line),
        }
    }

    /// The text, at most that wide.
    pub(super) fn render(&self, columns: usize, paint: Paint) -> String {
        let counts = self.lines.values().map(|line| line.counts().len()).max().unwrap_or(0);
        let room = columns.saturating_sub(counts + 1).max(LEFT_OUT.len() + 2);
        let names: Vec<String> =
            self.lines.values().map(|line| shorten(&line.name, room)).collect();
        let widest = names.iter().map(|name| width(name)).max().unwrap_or(0);
        let mut text = String::new();
        for (line, name) in self.lines.values().zip(&names) {
            text.push_str(&line.kind.painted(name, paint));
            if !line.counts().is_empty() {
                text.push_str(&" ".repeat(widest - width(name) + 1));
                text.push_str(&line.painted_counts(paint));
            }
            text.push('\n');
        }
        text.push_str(&format!("\n{}\n", self.total()));
        text
    }

    fn total(&self) -> String {
        let sum = |of: fn(&Line) -> u64| self.lines.values().map(of).sum::<u64>();
        let (added, removed) = (sum(|line| line.added), sum(|line| line.removed));
        let files = match self.files {
            1 => "1 file changed".to_owned(),
            files => format!("{files} files changed"),
        };
        match counts(added, removed) {
            counts if counts.is_empty() => files,
            counts => format!("{files}, {counts} lines"),
        }
    }
}

impl Line {
    fn folder(path: &str, kind: Kind) -> Line {
        Line { name: clean(path, false), kind, added: 0, removed: 0 }
    }

    fn of(stat: &Value) -> Line {
        let path = clean(stat["path"].as_str().unwrap_or_default(), false);
        let name = match stat["oldPath"].as_str().filter(|old| !old.is_empty()) {
            Some(old) if stat["kind"] == "RENAMED" => format!("{} => {path}", clean(old, false)),
            _ => path,
        };
        let kind = match stat["kind"].as_str() {
            Some("ADDED") => Kind::Added,
            Some("REMOVED") => Kind::Removed,
            _ => Kind::Modified,
        };
        let number = |name: &str| stat[name].as_u64().unwrap_or(0);
        Line { name, kind, added: number("addedLines"), removed: number("removedLines") }
    }

    fn counts(&self) -> String {
        counts(self.added, self.removed)
    }

    fn painted_counts(&self, paint: Paint) -> String {
        let parts = [
            (self.added > 0).then(|| paint.green(&format!("+{}", self.added))),
            (self.removed > 0).then(|| paint.red(&format!("-{}", self.removed))),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }
}

impl Kind {
    fn painted(self, name: &str, paint: Paint) -> String {
        match self {
            Kind::Added => paint.green(name),
            Kind::Removed => paint.red(name),
            Kind::Modified => paint.yellow(name),
        }
    }
}

/// Numbers of lines that came and went; what is none is left out.
fn counts(added: u64, removed: u64) -> String {
    let parts =
        [(added > 0).then(|| format!("+{added}")), (removed > 0).then(|| format!("-{removed}"))];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// A path that fits, with its middle left out if it must be.
fn shorten(path: &str, columns: usize) -> String {
    if width(path) <= columns {
        return path.to_owned();
    }
    let room = columns.saturating_sub(LEFT_OUT.len());
    let (mut head, mut tail) = (String::new(), String::new());
    for character in path.chars() {
        if width(&head) + width(character.encode_utf8(&mut [0; 4])) > room / 2 {
            break;
        }
        head.push(character);
    }
    for character in path.chars().rev() {
        if width(&tail) + width(character.encode_utf8(&mut [0; 4])) > room - width(&head) {
            break;
        }
        tail.insert(0, character);
    }
    format!("{head}{LEFT_OUT}{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const PLAIN: Paint = Paint { colour: false };

    fn stat(kind: &str, path: &str, added: u64, removed: u64) -> Value {
        json!({ "kind": kind, "path": path, "addedLines": added, "removedLines": removed })
    }

    fn text(found: &Value, columns: usize) -> String {
        Summary::of(found).render(columns, PLAIN)
    }

    #[test]
    fn every_file_has_a_line_in_the_order_of_paths() {
        let mut renamed = stat("RENAMED", "to", 1, 1);
        renamed["oldPath"] = json!("from");
        let found = json!({ "diffStats": [
            stat("REMOVED", "z", 0, 4), stat("ADDED", "a/new", 12, 0), stat("MODIFIED", "m", 3, 2), renamed,
        ] });
        let expected = "a/new      +12\nm          +3 -2\nfrom => to +1 -1\nz          -4\n\n\
                        4 files changed, +16 -7 lines\n";
        assert_eq!(text(&found, 80), expected);
        let one = json!({ "diffStats": [stat("MODIFIED", "program", 0, 0)] });
        assert_eq!(text(&one, 80), "program\n\n1 file changed\n");
    }

    #[test]
    fn what_was_in_a_directory_that_is_gone_is_told_with_it() {
        let found = json!({
            "addedPaths": ["full/", "full/x", "void/"], "removedPaths": ["d/", "r"],
            "diffStats": [
                stat("REMOVED", "d/a", 0, 2), stat("REMOVED", "d/b/c", 0, 3), stat("REMOVED", "r", 0, 1),
                stat("ADDED", "full/x", 1, 0),
            ],
        });
        let expected = "d/     -5\nfull/x +1\nr      -1\nvoid/\n\n4 files changed, +1 -6 lines\n";
        assert_eq!(text(&found, 80), expected);
    }

    #[test]
    fn long_and_hostile_paths_do_no_harm() {
        let long = format!("begin/{}/end", "x".repeat(200));
        let found =
            json!({ "diffStats": [stat("ADDED", &long, 1, 0), stat("ADDED", "\x1b[2Jy", 1, 0)] });
        let text = text(&found, 40);
        assert!(text.lines().all(|line| width(line) <= 40), "{text}");
        assert!(
            text.contains("begin/") && text.contains("...") && text.contains("/end +1"),
            "{text}"
        );
        assert!(!text.contains('\x1b'), "{text:?}");
    }
}
