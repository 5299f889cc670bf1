//! What dpkg keeps about packages, written as dpkg would have after `--unpack`.
//!
//! The state written is "unpacked": files are in place, configuration files wait beside their
//! final names as `.dpkg-new`, and `dpkg --configure` does the rest. So maintainer scripts,
//! configuration files and triggers take dpkg's own way, and the result is dpkg's own state.

mod triggers;

pub use triggers::{Triggers, activations, interests};

use crate::control::{Paragraph, paragraphs};
use std::collections::BTreeMap;
use std::io::Read;

/// Where dpkg keeps its state, below the root.
pub const DIRECTORY: &str = "var/lib/dpkg";
/// Ending of a configuration file that is unpacked and not configured.
pub const NEW_CONFFILE: &str = ".dpkg-new";

/// The stem of a package's files in `info/`: packages that may be installed for several
/// architectures carry theirs.
pub fn info_name(control: &Paragraph) -> Option<String> {
    let name = control.get("Package")?;
    match control.get("Multi-Arch") {
        Some("same") => Some(format!("{name}:{}", control.get("Architecture")?)),
        _ => Some(name.to_owned()),
    }
}

/// The paths of a `conffiles` file. A line with a flag names a file to be removed, which the
/// package does not ship.
pub fn conffiles(text: &str) -> Vec<String> {
    text.lines()
        .map(str::trim_end)
        .filter(|line| line.starts_with('/'))
        .map(str::to_owned)
        .collect()
}

/// The paragraph of `status` for a package that is unpacked.
pub fn unpacked(control: &str, conffiles: &[String]) -> String {
    let mut stanza = String::with_capacity(control.len() + 64);
    let mut rest = vec![];
    for line in control.trim_end().lines() {
        if stanza.is_empty() && line.starts_with("Package:") {
            stanza.push_str(line);
            stanza.push_str("\nStatus: install ok unpacked\n");
        } else {
            rest.push(line);
        }
    }
    rest.iter().for_each(|line| {
        stanza.push_str(line);
        stanza.push('\n');
    });
    if !conffiles.is_empty() {
        stanza.push_str("Conffiles:\n");
        conffiles.iter().for_each(|path| stanza.push_str(&format!(" {path} newconffile\n")));
    }
    stanza
}

/// The text of `status` with paragraphs added. A package that is there already is replaced.
pub fn merge_status(existing: &str, added: &[String]) -> String {
    let mut all: BTreeMap<String, &str> = BTreeMap::new();
    let stanzas = existing.split("\n\n").chain(added.iter().map(String::as_str));
    for stanza in stanzas.map(|stanza| stanza.trim_matches('\n')) {
        let field = |name| stanza.lines().find_map(|line| line.strip_prefix(name));
        if let Some(package) = field("Package:") {
            let architecture = field("Architecture:").unwrap_or_default();
            all.insert(format!("{package} {architecture}"), stanza);
        }
    }
    let mut text = String::new();
    for stanza in all.values() {
        text.push_str(stanza);
        text.push_str("\n\n");
    }
    text
}

/// The `.list` of a package: every path of its data part, the root first.
pub fn file_list<'a>(paths: impl Iterator<Item = &'a str>) -> String {
    let mut list = "/.\n".to_owned();
    for path in paths {
        list.push('/');
        list.push_str(path);
        list.push('\n');
    }
    list
}

/// apt's record of packages that are there only because others need them.
pub fn extended_states(existing: &str, automatic: &[&str], architecture: &str) -> String {
    let mut text = existing.to_owned();
    for name in automatic {
        text.push_str(&format!(
            "Package: {name}\nArchitecture: {architecture}\nAuto-Installed: 1\n\n"
        ));
    }
    text
}

/// Fields of a stored paragraph, for who has only the text.
pub fn fields(stanza: &str) -> Paragraph {
    paragraphs(stanza).into_iter().next().unwrap_or_default()
}

/// A reader that computes the MD5 sum dpkg would list, for packages that bring no `md5sums`.
pub struct Summing<R> {
    reader: R,
    state: md5::Md5,
}

impl<R: Read> Summing<R> {
    /// Sums what passes through.
    pub fn new(reader: R) -> Self {
        Self { reader, state: md5::Digest::new() }
    }

    /// The line of `md5sums` for what was read.
    pub fn line(self, path: &str) -> String {
        let sum = hex::encode(md5::Digest::finalize(self.state));
        format!("{sum}  {path}\n")
    }
}

impl<R: Read> Read for Summing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.reader.read(buffer)?;
        md5::Digest::update(&mut self.state, &buffer[..count]);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn info_names() {
        for (control, expect) in [
            ("Package: a\nArchitecture: amd64\n", "a"),
            ("Package: a\nArchitecture: amd64\nMulti-Arch: foreign\n", "a"),
            ("Package: a\nArchitecture: amd64\nMulti-Arch: same\n", "a:amd64"),
        ] {
            assert_eq!(info_name(&fields(control)).as_deref(), Some(expect), "{control}");
        }
    }

    #[test]
    fn a_stanza_has_its_state_and_its_configuration_files() {
        let conffiles = conffiles("/etc/a\nremove-on-upgrade /etc/old\n/etc/b c\n");
        assert_eq!(conffiles, ["/etc/a", "/etc/b c"]);
        let stanza = unpacked("Package: a\nVersion: 1\nDescription: x\n y\n\n", &conffiles);
        let expect = "Package: a\nStatus: install ok unpacked\nVersion: 1\nDescription: x\n y\n\
            Conffiles:\n /etc/a newconffile\n /etc/b c newconffile\n";
        assert_eq!(stanza, expect);
    }

    #[test]
    fn status_is_merged_by_package() {
        let existing = "Package: b\nArchitecture: amd64\nVersion: 1\n\nPackage: c\nVersion: 1\n\n";
        let added = ["Package: a\nVersion: 1\n".to_owned(), "Package: c\nVersion: 2\n".to_owned()];
        let expect = "Package: a\nVersion: 1\n\nPackage: b\nArchitecture: amd64\nVersion: 1\n\n\
            Package: c\nVersion: 2\n\n";
        assert_eq!(merge_status(existing, &added), expect);
        assert_eq!(merge_status("", &[]), "");
    }

    #[test]
    fn lists_and_sums() {
        assert_eq!(file_list(["usr", "usr/a"].into_iter()), "/.\n/usr\n/usr/a\n");
        let mut reader = Summing::new(&b"hello"[..]);
        std::io::copy(&mut reader, &mut std::io::sink()).unwrap();
        assert_eq!(reader.line("usr/a"), "5d41402abc4b2a76b9719d911017c592  usr/a\n");
    }
}
