//! Patches and merges beside those of git itself, over random texts.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails, in its helpers too")]

use patch::{Action, Body, Entry, Labels, Merged, Reader, Version};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

const ROUNDS: u64 = 20;

/// A small generator of numbers that only depend on the seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

fn git(folder: &Path, words: &[&str]) -> Output {
    let mut command = Command::new("git");
    command.current_dir(folder).env("HOME", folder).env("GIT_CONFIG_NOSYSTEM", "1");
    command.env("GIT_CEILING_DIRECTORIES", folder.parent().unwrap());
    command.args(words).output().unwrap()
}

/// A text whose lines are all different, so that there is one way only to see what changed.
fn text(lines: u64) -> Vec<String> {
    (0..lines).map(|line| format!("line {line}\n")).collect()
}

/// Some lines replaced, removed or added.
fn changed(base: &[String], side: &str, random: &mut Random) -> Vec<String> {
    let mut lines = vec![];
    for (index, line) in base.iter().enumerate() {
        match random.below(12) {
            0 => {}
            1 => lines.push(format!("{side} {index}\n")),
            2 => lines.extend([line.clone(), format!("{side} after {index}\n")]),
            _ => lines.push(line.clone()),
        }
    }
    if random.below(4) == 0
        && let Some(last) = lines.last_mut()
    {
        last.pop();
    }
    lines
}

#[test]
fn merges_are_clean_where_gits_are_and_give_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let mut clean = 0;
    for seed in 1..=ROUNDS * 10 {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let base = text(random.below(30));
        let ours = changed(&base, "ours", &mut random).concat();
        let theirs = match random.below(3) {
            // Both sides do some of the same.
            0 => changed(&base, "ours", &mut random).concat(),
            _ => changed(&base, "theirs", &mut random).concat(),
        };
        let base = base.concat();
        for (name, text) in [("base", &base), ("ours", &ours), ("theirs", &theirs)] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let said = git(folder.path(), &["merge-file", "-p", "ours", "base", "theirs"]);
        let labels = Labels { ours: "ours", theirs: "theirs" };
        let merged = patch::merge(base.as_bytes(), ours.as_bytes(), theirs.as_bytes(), &labels);
        match merged {
            Merged::Clean(text) => {
                assert!(said.status.success(), "seed {seed}: git sees a conflict");
                assert_eq!(text, said.stdout, "seed {seed}");
                clean += 1;
            }
            Merged::Conflicts(text) => {
                assert!(!said.status.success(), "seed {seed}: git sees no conflict");
                let text = String::from_utf8(text).unwrap();
                assert!(text.contains("<<<<<<< ours\n") && text.contains(">>>>>>> theirs\n"));
            }
        }
    }
    assert!(clean > 10, "only {clean} were clean");
}

/// A random file: no text now and then.
fn contents(random: &mut Random) -> Vec<u8> {
    match random.below(5) {
        0 => (0..random.below(600)).map(|_| random.below(256) as u8).chain([0]).collect(),
        1 => vec![],
        _ => {
            let lines = random.below(40);
            let mut text: Vec<u8> =
                (0..lines).flat_map(|_| format!("{}\n", random.below(6)).into_bytes()).collect();
            if random.below(3) == 0 {
                text.pop();
            }
            text
        }
    }
}

struct Node {
    mode: u32,
    contents: Vec<u8>,
}

fn write(folder: &Path, name: &str, node: &Node) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let _ = fs::remove_file(&path);
    if node.mode == 0o120_000 {
        let target = String::from_utf8(node.contents.clone()).unwrap();
        return std::os::unix::fs::symlink(target, path).unwrap();
    }
    fs::write(&path, &node.contents).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(node.mode & 0o777)).unwrap();
}

fn read(folder: &Path, name: &str) -> Option<(u32, Vec<u8>)> {
    let path = folder.join(name);
    let metadata = path.symlink_metadata().ok()?;
    if metadata.is_symlink() {
        let target = fs::read_link(path).unwrap();
        return Some((0o120_000, target.into_os_string().into_encoded_bytes()));
    }
    Some((metadata.permissions().mode() & 0o100, fs::read(path).unwrap()))
}

fn node(random: &mut Random) -> Option<Node> {
    match random.below(7) {
        0 => None,
        1 => {
            let target = if random.below(2) == 0 { "here" } else { "there" };
            Some(Node { mode: 0o120_000, contents: target.into() })
        }
        2 => Some(Node { mode: 0o100_755, contents: contents(random) }),
        _ => Some(Node { mode: 0o100_644, contents: contents(random) }),
    }
}

#[test]
fn git_applies_what_is_written_here() {
    for seed in 1..=ROUNDS * 5 {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let folder = tempfile::tempdir().unwrap();
        let name = *[&"f", &"a dir/f", &"\u{e4}\"\\f", &"d/with\ttab"][random.below(4) as usize];
        let (before, after) = (node(&mut random), node(&mut random));
        if let Some(before) = &before {
            write(folder.path(), name, before);
        }
        if before.is_none() && after.is_none() {
            continue;
        }
        fn of<'a>(name: &'a str, node: &'a Node) -> Version<'a> {
            Version { path: name.as_bytes(), mode: node.mode, contents: &node.contents }
        }
        let same = matches!((&before, &after), (Some(one), Some(other))
            if one.mode == other.mode && one.contents == other.contents);
        if same {
            continue;
        }
        let entry = Entry {
            before: before.as_ref().map(|node| of(name, node)),
            after: after.as_ref().map(|node| of(name, node)),
        };
        let mut text = vec![];
        patch::write(&mut text, &entry);
        fs::write(folder.path().join("the.patch"), &text).unwrap();
        let said = git(folder.path(), &["apply", "--whitespace=nowarn", "the.patch"]);
        let shown = String::from_utf8_lossy(&text);
        let error = String::from_utf8_lossy(&said.stderr);
        assert!(said.status.success(), "seed {seed}: {error}\n{shown}");
        let expected = after.as_ref().map(|node| match node.mode {
            0o120_000 => (node.mode, node.contents.clone()),
            mode => (mode & 0o100, node.contents.clone()),
        });
        assert_eq!(read(folder.path(), name), expected, "seed {seed}\n{shown}");
    }
}

#[test]
fn what_git_writes_is_applied_here() {
    for seed in 1..=ROUNDS * 5 {
        let mut random = Random(seed.wrapping_mul(0x2545_F491_4F6C_DD1D));
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (contents(&mut random), contents(&mut random));
        fs::create_dir_all(folder.path().join("a")).unwrap();
        fs::create_dir_all(folder.path().join("b")).unwrap();
        fs::write(folder.path().join("a/f"), &old).unwrap();
        fs::write(folder.path().join("b/f"), &new).unwrap();
        let words = ["diff", "--no-index", "--no-prefix", "--binary", "--full-index", "a", "b"];
        let text = git(folder.path(), &words).stdout;
        let Some(file) = Reader::new(text.as_slice()).next_patch().unwrap() else {
            assert_eq!(old, new, "seed {seed}");
            continue;
        };
        assert_eq!((file.action, file.path.as_slice()), (Action::Modify, b"f".as_slice()));
        let applied = match file.body {
            Body::Hunks(hunks) => patch::apply(&old, &hunks).unwrap(),
            Body::Binary(binary) => binary.apply(&old).unwrap(),
            other => panic!("seed {seed}: {other:?}"),
        };
        assert_eq!(applied, new, "seed {seed}\n{}", String::from_utf8_lossy(&text));
    }
}

#[test]
fn objects_are_named_as_git_names_them() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("f"), "some bytes\n").unwrap();
    let said = git(folder.path(), &["hash-object", "--no-filters", "f"]).stdout;
    assert_eq!(String::from_utf8(said).unwrap().trim(), patch::object_name(b"some bytes\n"));
}

#[test]
fn random_bytes_never_break_the_reader() {
    let whole = b"diff --git a/f b/f\nindex 1..2 100644\n--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n\
        diff --git a/g b/g\nnew file mode 100644\nindex 0..1\nGIT binary patch\nliteral 3\nKcmZQzU|?Wm00M6S\n\n";
    for seed in 1..=ROUNDS * 100 {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mut text = whole.to_vec();
        for _ in 0..=random.below(4) {
            let at = random.below(text.len() as u64) as usize;
            match random.below(3) {
                0 => text.truncate(at + 1),
                1 => text[at] = random.below(256) as u8,
                _ => text.insert(at, b"\n-+ @9\\"[random.below(7) as usize]),
            }
        }
        let mut reader = Reader::new(text.as_slice());
        while let Ok(Some(file)) = reader.next_patch() {
            if let Body::Hunks(hunks) = &file.body {
                let _ = patch::apply(b"a\nb\nc\n", hunks);
                let labels = Labels { ours: "workspace", theirs: "patch" };
                patch::apply_leaving_marks(b"a\nb\nc\n", hunks, &labels);
            }
        }
    }
}
