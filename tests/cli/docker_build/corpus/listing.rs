//! [`Listing`]: what is in an image, a line an entry.

use image::tar::{Kind, Reader};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Longest contents that are shown as they are.
const SHOWN: usize = 60;
/// What belongs to the machine that built, not to the image.
const OF_THE_MACHINE: &[&str] =
    &["dev", "proc", "sys", "run", "etc/hosts", "etc/hostname", "etc/resolv.conf", "etc/mtab"];
/// What only says who built it.
const OF_THE_BUILDER: &[&str] = &["Hostname", "Domainname", "Image"];

/// Entries by path, and the configuration.
#[derive(Debug, Default)]
pub(super) struct Listing {
    entries: BTreeMap<String, String>,
    config: Vec<String>,
}

impl Listing {
    /// Lists the entries of an archive of a root file system.
    pub(super) fn new(archive: &Path, config: &Value) -> Self {
        let mut reader = Reader::new(File::open(archive).unwrap());
        let mut entries = BTreeMap::new();
        // Names of one file are each a file here: which of them an archive has first means nothing.
        let mut contents = BTreeMap::new();
        while let Some(entry) = reader.next_entry().unwrap() {
            let path = String::from_utf8_lossy(&entry.path).into_owned();
            let path = path.trim_start_matches("./").trim_matches('/').to_owned();
            let above = |name: &&str| path == **name || path.starts_with(&format!("{name}/"));
            if OF_THE_MACHINE.iter().any(above) {
                continue;
            }
            let mut bytes = vec![];
            reader.contents().read_to_end(&mut bytes).unwrap();
            let meta = format!("{:04o} {}:{} /{path}", entry.mode, entry.uid, entry.gid);
            let line = match &entry.kind {
                Kind::Directory => format!("d {meta}"),
                Kind::File => {
                    contents.insert(path.clone(), bytes.clone());
                    format!("f {meta} {}", shown(&bytes))
                }
                Kind::HardLink(target) => {
                    let target =
                        String::from_utf8_lossy(target).trim_start_matches("./").to_owned();
                    format!("f {meta} {}", shown(contents.get(&target).map_or(&[], Vec::as_slice)))
                }
                Kind::Symlink(target) => format!(
                    "l {}:{} /{path} -> {}",
                    entry.uid,
                    entry.gid,
                    String::from_utf8_lossy(target)
                ),
                other => format!("? {meta} {other:?}"),
            };
            entries.insert(path, line);
        }
        Self { entries, config: config_lines(config) }
    }

    /// The lines that are not in the listing of what it began from, and what is gone of that.
    pub(super) fn without(self, base: &Self) -> Vec<String> {
        let nothing = BTreeMap::new();
        let shell = "bin/busybox";
        let begun = self.entries.get(shell) == base.entries.get(shell);
        let base = if begun { &base.entries } else { &nothing };
        let mut lines: Vec<String> = vec![];
        for (path, line) in self.entries.iter().filter(|(path, line)| base.get(*path) != Some(line))
        {
            // The root of an image from nothing is nobody's.
            if !path.is_empty() {
                lines.push(line.clone());
            }
        }
        for path in base.keys().filter(|path| !self.entries.contains_key(*path)) {
            let above = path.rsplit_once('/').map_or("", |(above, _)| above);
            if above.is_empty() || self.entries.contains_key(above) {
                lines.push(format!("gone /{path}"));
            }
        }
        lines.extend(self.config);
        sort(&mut lines);
        lines
    }
}

/// By path, the configuration last.
pub(super) fn sort(lines: &mut [String]) {
    let path = |line: &String| {
        line.split(' ').find(|word| word.starts_with('/')).unwrap_or_default().to_owned()
    };
    lines.sort_by_key(|line| (line.starts_with("config "), path(line), line.clone()));
}

fn shown(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text)
            if bytes.len() <= SHOWN && !text.contains(|c: char| c.is_control() && c != '\n') =>
        {
            format!("{text:?}")
        }
        _ => format!("{} bytes {}", bytes.len(), image::Digest::of(bytes)),
    }
}

/// What an image says of itself, without what is not said and who built it.
fn config_lines(config: &Value) -> Vec<String> {
    let mut lines = vec![];
    for (name, value) in config.as_object().into_iter().flatten() {
        let mut value = value.clone();
        if name == "Labels"
            && let Some(labels) = value.as_object_mut()
        {
            labels.retain(|label, _| !label.starts_with("io.buildah."));
        }
        let said = match &value {
            Value::Null | Value::Bool(false) => false,
            Value::String(text) => !text.is_empty(),
            Value::Array(list) => !list.is_empty(),
            Value::Object(fields) => !fields.is_empty(),
            _ => true,
        };
        if said && !OF_THE_BUILDER.contains(&name.as_str()) {
            lines.push(format!("config {name} {value}"));
        }
    }
    lines
}

/// The configuration in an image in one file.
pub(super) fn config_of_image(archive: &Path) -> Value {
    let read = |wanted: &str| {
        let mut reader = Reader::new(File::open(archive).unwrap());
        while let Some(entry) = reader.next_entry().unwrap() {
            if entry.path == wanted.as_bytes() {
                let mut text = String::new();
                reader.contents().read_to_string(&mut text).unwrap();
                return serde_json::from_str::<Value>(&text).unwrap();
            }
        }
        panic!("there is no {wanted} in {}", archive.display());
    };
    let manifest = read("manifest.json");
    read(manifest[0]["Config"].as_str().unwrap())["config"].clone()
}

/// What is missing and what is too much, in words.
pub(super) fn compare(name: &str, expected: &[&str], found: &[String]) -> Result<(), String> {
    let mut said = String::new();
    for line in expected.iter().filter(|line| !found.iter().any(|other| other == *line)) {
        said.push_str(&format!("  missing {line}\n"));
    }
    for line in found.iter().filter(|line| !expected.contains(&line.as_str())) {
        said.push_str(&format!("  instead {line}\n"));
    }
    if said.is_empty() { Ok(()) } else { Err(format!("{name}:\n{said}")) }
}
