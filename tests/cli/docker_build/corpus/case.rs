//! [`Case`]: one file that holds a Dockerfile, its context and how it is built.
//!
//! ```text
//! What it is about, in a line or more.
//! arg NAME=value          a build argument
//! target name             the stage
//! dockerfile path         the Dockerfile, if it has another name
//! secret name=text        a secret
//! -- path --              a file; `-- path 0755 --` with these permission bits
//! -- path/ --             an empty directory
//! -- path -> target --    a link
//! -- t.tar.gz <- path --  an archive of a directory that then goes
//! -- peer --              the same in words that the peer knows
//! -- differs --           lines of the peer (-), of BuildKit (+), and why (#)
//! ```

use serde_json::json;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;
use testkit::Session;

/// A Dockerfile with its context.
#[derive(Debug, Default)]
pub(super) struct Case {
    pub(super) name: String,
    pub(super) arguments: Vec<(String, String)>,
    pub(super) target: Option<String>,
    pub(super) dockerfile: Option<String>,
    pub(super) secrets: Vec<(String, String)>,
    sections: Vec<(String, String)>,
}

impl Case {
    /// All cases of a folder, sorted by name.
    pub(super) fn all(folder: &Path) -> Vec<Self> {
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let mut paths: Vec<_> =
            files.filter(|path| path.extension().is_some_and(|ending| ending == "case")).collect();
        paths.sort();
        paths.iter().map(|path| Self::read(path)).collect()
    }

    pub(super) fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let mut case = Self { name, ..Self::default() };
        for line in text.split_inclusive('\n') {
            let heading =
                line.trim_end().strip_prefix("-- ").and_then(|rest| rest.strip_suffix(" --"));
            match (heading, case.sections.last_mut()) {
                (Some(heading), _) => case.sections.push((heading.to_owned(), String::new())),
                (None, Some((_, text))) => text.push_str(line),
                (None, None) => case.option(line.trim_end()),
            }
        }
        case
    }

    fn option(&mut self, line: &str) {
        let pair = |text: &str| {
            let (name, value) = text.split_once('=').expect("an option is name=value");
            (name.to_owned(), value.to_owned())
        };
        match line.split_once(' ') {
            Some(("arg", rest)) => self.arguments.push(pair(rest)),
            Some(("secret", rest)) => self.secrets.push(pair(rest)),
            Some(("target", rest)) => self.target = Some(rest.to_owned()),
            Some(("dockerfile", rest)) => self.dockerfile = Some(rest.to_owned()),
            _ => {}
        }
    }

    /// Headings and texts of all sections.
    pub(super) fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.sections.iter().map(|(heading, text)| (heading.as_str(), text.as_str()))
    }

    /// What the peer builds instead of the Dockerfile.
    pub(super) fn for_peer(&self) -> Option<&str> {
        self.texts().find(|(heading, _)| *heading == "peer").map(|(_, text)| text)
    }

    /// Writes the context.
    pub(super) fn write_to(&self, folder: &Path) {
        for (heading, text) in
            self.texts().filter(|(heading, _)| !matches!(*heading, "peer" | "differs"))
        {
            write(folder, heading, text);
        }
    }

    /// The arguments of `dockerBuild`.
    pub(super) fn options(&self, session: &Session) -> String {
        let arguments = self.arguments.iter();
        let arguments: Vec<String> = arguments
            .map(|(name, value)| format!("{{name: {}, value: {}}}", json!(name), json!(value)))
            .collect();
        let secrets = self.secrets.iter().map(|(name, text)| {
            let (name, text) = (json!(name), json!(text));
            session
                .leaf(&format!("{{ setSecret(name: {name}, plaintext: {text}) {{ id }} }}"))
                .to_string()
        });
        let secrets: Vec<String> = secrets.collect();
        let mut options =
            format!("buildArgs: [{}], secrets: [{}]", arguments.join(", "), secrets.join(", "));
        for (name, value) in [("target", &self.target), ("dockerfile", &self.dockerfile)] {
            if let Some(value) = value {
                options.push_str(&format!(", {name}: {}", json!(value)));
            }
        }
        options
    }

    /// The listing of the peer with what it does otherwise than BuildKit put right, and what it does not say
    /// although the case has it so.
    pub(super) fn corrected(&self, mut lines: Vec<String>) -> (String, Vec<String>) {
        let (mut reasons, mut wrong) = (String::new(), vec![]);
        let differs = self.texts().find(|(heading, _)| *heading == "differs");
        for line in differs.map_or("", |(_, text)| text).lines() {
            match line.split_at_checked(1) {
                Some(("#", _)) => reasons.push_str(&format!("{line}\n")),
                Some(("+", rest)) => lines.push(rest.trim_start().to_owned()),
                Some(("-", rest)) => {
                    match lines.iter().position(|line| line == rest.trim_start()) {
                        Some(at) => drop(lines.remove(at)),
                        None => {
                            wrong.push(format!("{}: the peer does not say `{rest}`", self.name))
                        }
                    }
                }
                _ => wrong.push(format!("{}: `{line}` is no difference", self.name)),
            }
        }
        super::listing::sort(&mut lines);
        let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
        (reasons + &lines, wrong)
    }
}

fn write(folder: &Path, heading: &str, text: &str) {
    let place = |name: &str| {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    };
    if let Some((link, target)) = heading.split_once(" -> ") {
        return symlink(target, place(link)).unwrap();
    }
    if let Some((archive, source)) = heading.split_once(" <- ") {
        let mut tar = Command::new("tar");
        tar.current_dir(folder).args([
            "--sort=name",
            "--mtime=@0",
            "--owner=12",
            "--group=34",
            "-caf",
        ]);
        let archived = tar.arg(archive).args(["-C", source, "."]).status().unwrap();
        assert!(archived.success(), "{heading}");
        return std::fs::remove_dir_all(folder.join(source)).unwrap();
    }
    if let Some(directory) = heading.strip_suffix('/') {
        return std::fs::create_dir_all(place(directory)).unwrap();
    }
    let (name, mode) = match heading.rsplit_once(' ') {
        Some((name, bits)) if bits.len() == 4 && u32::from_str_radix(bits, 8).is_ok() => {
            (name, u32::from_str_radix(bits, 8).unwrap())
        }
        _ => (heading, 0o644),
    };
    let path = place(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
}
