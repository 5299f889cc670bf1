//! No package registry's host and no path of one's machine in the project.
//!
//! Hosts are reached by package name through the configured clients. Which hosts those are is read
//! from the clients' own settings, so that none has to be written down here either.

use super::{Finding, TextFile};
use crate::command::output;
use crate::project::Project;
use std::path::Path;
use std::process::Command;

/// What must not stand in any file.
#[derive(Debug, Default)]
pub(super) struct Forbidden {
    hosts: Vec<String>,
    paths: Vec<String>,
}

/// Reads the settings of the package clients, and where this clone lies.
pub(super) fn forbidden(project: &Project) -> Forbidden {
    let mut texts = Vec::new();
    read_below(Path::new("/etc/apt"), &mut texts);
    texts.extend(output(Command::new("npm").args(["config", "get", "registry"])));
    texts.extend(output(Command::new("go").args(["env", "GOPROXY"])));
    let mut hosts: Vec<String> = texts.iter().flat_map(|text| hosts_in(text)).collect();
    let python = "from pip._internal.models.index import PyPI as p; \
                  print(p.netloc); print(p.file_storage_domain)";
    let python = output(Command::new("python3").args(["-c", python])).unwrap_or_default();
    hosts.extend(python.lines().filter(|host| host.contains('.')).map(str::to_owned));
    hosts.sort();
    hosts.dedup();
    // A clone directly below `/` has a path too plain to look for.
    let paths = [&project.root, &project.target].into_iter();
    let paths = paths.filter(|path| path.components().count() > 2);
    let paths = paths.map(|path| path.to_string_lossy().into_owned()).collect();
    Forbidden { hosts, paths }
}

/// Findings about all files.
pub(super) fn check(files: &[TextFile], forbidden: &Forbidden) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        for (index, line) in file.text.lines().enumerate() {
            if forbidden.hosts.iter().any(|host| names_host(line, host)) {
                let message = "a package registry's host is named";
                findings.push(Finding::of_line(&file.path, index + 1, message));
            }
            if forbidden.paths.iter().any(|path| line.contains(path.as_str())) {
                findings.push(Finding::of_line(&file.path, index + 1, "a path of this machine"));
            }
        }
    }
    findings
}

/// A host counts where it is used as one: in an address, or quoted.
fn names_host(line: &str, host: &str) -> bool {
    line.match_indices(host).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + host.len()..]);
        let begins = before.ends_with("//") || before.ends_with('"');
        begins && !after.starts_with(|c: char| c.is_alphanumeric() || c == '-')
    })
}

/// Hosts of the addresses in a text.
fn hosts_in(text: &str) -> Vec<String> {
    let ends = |c: char| c.is_whitespace() || "/,;\"'|:".contains(c);
    let addresses = text.split("//").skip(1);
    let hosts = addresses.filter_map(|rest| rest.split(ends).next()).map(str::to_owned);
    hosts.filter(|host| host.contains('.')).collect()
}

/// The texts of the source lists below apt's folder.
fn read_below(folder: &Path, texts: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            read_below(&path, texts);
        } else if path.extension().is_some_and(|end| end == "list" || end == "sources") {
            texts.extend(std::fs::read_to_string(&path));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let files = [TextFile { path: "a.md".to_owned(), text: text.to_owned() }];
        let forbidden = Forbidden {
            hosts: vec!["registry.example".to_owned()],
            paths: vec!["/home/me/clone".to_owned()],
        };
        check(&files, &forbidden).iter().map(|finding| finding.message.clone()).collect()
    }

    #[test]
    fn hosts_are_found_where_they_are_used() {
        for text in ["http://registry.example/x", "host = \"registry.example\""] {
            assert_eq!(found(text), ["a package registry's host is named"], "{text}");
        }
        for text in ["about registry.example", "http://other.example/", "//registry.examples/"] {
            assert_eq!(found(text), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn paths_of_the_machine_are_found() {
        assert_eq!(found("see /home/me/clone/README.md"), ["a path of this machine"]);
    }

    #[test]
    fn hosts_are_read_from_settings() {
        let text =
            "deb http://one.example/debian x\nURIs: https://two.example:8080/y\n# //localhost/";
        assert_eq!(hosts_in(text), ["one.example", "two.example"]);
    }
}
