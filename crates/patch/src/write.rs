//! What became of a file, as git's patches say it.

use crate::lines::{Hunk, differences, is_binary, split};
use crate::name::quote;
use crate::{binary, similar};
use sha1::{Digest as _, Sha1};

/// Lines of context around a change.
const CONTEXT: usize = 3;
/// The object that stands for no file.
const NO_OBJECT: &str = "0000000000000000000000000000000000000000";

/// A file as it is before or after.
#[derive(Clone, Copy, Debug)]
pub struct Version<'a> {
    /// Where it is.
    pub path: &'a [u8],
    /// What git says of its kind and mode: `0o100644`, `0o100755` or `0o120000`.
    pub mode: u32,
    /// Its bytes, or the target of a link.
    pub contents: &'a [u8],
}

/// What became of one file. At least one of the two is there.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// None for a new file.
    pub before: Option<Version<'a>>,
    /// None for a removed one.
    pub after: Option<Version<'a>>,
}

/// The name of these contents as an object of git's.
pub fn object_name(contents: &[u8]) -> String {
    let mut hasher = Sha1::new();
    hasher.update(format!("blob {}\0", contents.len()));
    hasher.update(contents);
    hex::encode(hasher.finalize())
}

/// Writes what became of one file. A link and a file are two things: one goes and the other comes.
pub fn write(out: &mut Vec<u8>, entry: &Entry<'_>) {
    if let Entry { before: Some(before), after: Some(after) } = entry
        && before.mode & 0o170_000 != after.mode & 0o170_000
    {
        write_one(out, &Entry { after: None, ..*entry });
        return write_one(out, &Entry { before: None, ..*entry });
    }
    write_one(out, entry);
}

fn write_one(out: &mut Vec<u8>, entry: &Entry<'_>) {
    let (before, after) = (entry.before, entry.after);
    let Some(any) = before.or(after) else { return };
    let old_path = before.map_or(any.path, |version| version.path);
    let new_path = after.map_or(any.path, |version| version.path);
    line(out, &[b"diff --git ", &quote("a/", old_path), b" ", &quote("b/", new_path)]);
    let contents = |version: Option<Version<'_>>| version.map_or(Vec::new(), |v| v.contents.into());
    let (old, new) = (contents(before), contents(after));
    let mut same_mode = String::new();
    match (before, after) {
        (Some(before), Some(after)) => {
            if before.mode == after.mode {
                same_mode = format!(" {:o}", after.mode);
            } else {
                text(out, &format!("old mode {:o}\nnew mode {:o}", before.mode, after.mode));
            }
            if old_path != new_path {
                let fingerprint = similar::Fingerprint::of;
                let percent = match old == new {
                    true => 100,
                    false => similar::similarity(&fingerprint(&old), &fingerprint(&new)),
                };
                text(out, &format!("similarity index {percent}%"));
                line(out, &[b"rename from ", &quote("", old_path)]);
                line(out, &[b"rename to ", &quote("", new_path)]);
            }
            if old == new {
                return;
            }
        }
        (None, Some(after)) => text(out, &format!("new file mode {:o}", after.mode)),
        (Some(before), None) => text(out, &format!("deleted file mode {:o}", before.mode)),
        (None, None) => {}
    }
    let object = |version: Option<Version<'_>>| {
        version.map_or(NO_OBJECT.to_owned(), |version| object_name(version.contents))
    };
    text(out, &format!("index {}..{}{same_mode}", object(before), object(after)));
    if is_binary(&old) || is_binary(&new) {
        text(out, "GIT binary patch");
        binary::encode(out, &new);
        binary::encode(out, &old);
    } else if old != new {
        file_line(out, "--- ", before.map(|version| quote("a/", version.path)));
        file_line(out, "+++ ", after.map(|version| quote("b/", version.path)));
        write_hunks(out, &split(&old), &split(&new));
    }
}

/// Names one side. A name with a space is followed by a tab, so that it is known where it ends.
fn file_line(out: &mut Vec<u8>, sign: &str, name: Option<Vec<u8>>) {
    let name = name.unwrap_or_else(|| b"/dev/null".to_vec());
    let end: &[u8] = if name.contains(&b' ') { b"\t" } else { b"" };
    line(out, &[sign.as_bytes(), &name, end]);
}

fn write_hunks(out: &mut Vec<u8>, old: &[&[u8]], new: &[&[u8]]) {
    let changes = differences(old, new);
    let mut rest = changes.as_slice();
    while let Some(first) = rest.first() {
        // Changes whose context would meet are one hunk.
        let apart = rest
            .windows(2)
            .position(|pair| pair[1].before.start - pair[0].before.end > 2 * CONTEXT);
        let (together, later) = rest.split_at(apart.map_or(rest.len(), |index| index + 1));
        rest = later;
        let last = together.last().unwrap_or(first);
        let start = first.before.start.saturating_sub(CONTEXT);
        let lead = first.before.start - start;
        let end = (last.before.end + CONTEXT).min(old.len());
        let before = start..end;
        let after = first.after.start - lead..last.after.end + (end - last.before.end);
        let side = |range: &std::ops::Range<usize>| match range.len() {
            0 => format!("{},0", range.start),
            1 => format!("{}", range.start + 1),
            length => format!("{},{length}", range.start + 1),
        };
        text(out, &format!("@@ -{} +{} @@", side(&before), side(&after)));
        write_lines(out, (old, new), before, together);
    }
}

fn write_lines(
    out: &mut Vec<u8>,
    (old, new): (&[&[u8]], &[&[u8]]),
    before: std::ops::Range<usize>,
    changes: &[Hunk],
) {
    let mut at = before.start;
    for change in changes {
        old[at..change.before.start].iter().for_each(|line| signed(out, b' ', line));
        old[change.before.clone()].iter().for_each(|line| signed(out, b'-', line));
        new[change.after.clone()].iter().for_each(|line| signed(out, b'+', line));
        at = change.before.end;
    }
    old[at..before.end].iter().for_each(|line| signed(out, b' ', line));
}

fn signed(out: &mut Vec<u8>, sign: u8, line: &[u8]) {
    out.push(sign);
    out.extend_from_slice(line);
    if !line.ends_with(b"\n") {
        out.extend_from_slice(b"\n\\ No newline at end of file\n");
    }
}

fn text(out: &mut Vec<u8>, text: &str) {
    line(out, &[text.as_bytes()]);
}

fn line(out: &mut Vec<u8>, parts: &[&[u8]]) {
    parts.iter().for_each(|part| out.extend_from_slice(part));
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(before: Option<(&str, u32, &str)>, after: Option<(&str, u32, &str)>) -> String {
        let version = |(path, mode, contents): (&'static str, u32, &'static str)| Version {
            path: path.as_bytes(),
            mode,
            contents: contents.as_bytes(),
        };
        // The texts of these tests live as long as the program.
        let leak = |given: Option<(&str, u32, &str)>| {
            given.map(|(path, mode, contents)| {
                let text = |text: &str| -> &'static str { text.to_owned().leak() };
                version((text(path), mode, text(contents)))
            })
        };
        let mut out = vec![];
        write(&mut out, &Entry { before: leak(before), after: leak(after) });
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_change_has_its_context() {
        let old: String = (1..=20).map(|line| format!("{line}\n")).collect();
        let new = old.replace("\n2\n", "\ntwo\n").replace("20\n", "20");
        let said = written(Some(("f x", 0o100_644, &old)), Some(("f x", 0o100_644, &new)));
        let expected = "diff --git a/f x b/f x\n\
            index 0ff3bbb9c8bba2291654cd64067fa417ff54c508..ef9bf8ab3d2f2ee5ad5d6bb04c15dc77e4ab51ab 100644\n\
            --- a/f x\t\n+++ b/f x\t\n\
            @@ -1,5 +1,5 @@\n 1\n-2\n+two\n 3\n 4\n 5\n\
            @@ -17,4 +17,4 @@\n 17\n 18\n 19\n-20\n+20\n\\ No newline at end of file\n";
        let without_names = |text: &str| -> String {
            text.lines().filter(|line| !line.starts_with("index ")).collect::<Vec<_>>().join("\n")
        };
        assert_eq!(without_names(&said), without_names(expected));
        assert!(said.contains("index 0ff3bbb9c8bba2291654cd64067fa417ff54c508.."), "{said}");
    }

    #[test]
    fn modes_and_renames_are_said() {
        let said = written(Some(("a", 0o100_644, "x\n")), Some(("b", 0o100_755, "x\n")));
        assert_eq!(
            said,
            "diff --git a/a b/b\nold mode 100644\nnew mode 100755\nsimilarity index 100%\n\
             rename from a\nrename to b\n"
        );
        let said = written(None, Some(("link", 0o120_000, "to")));
        assert!(said.contains("new file mode 120000\n"), "{said}");
        assert!(said.ends_with("@@ -0,0 +1 @@\n+to\n\\ No newline at end of file\n"), "{said}");
        let said = written(Some(("f", 0o100_644, "x\n")), Some(("f", 0o120_000, "x")));
        assert!(said.contains("deleted file mode 100644") && said.contains("new file mode 120000"));
    }
}
