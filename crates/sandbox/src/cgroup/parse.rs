//! Where the control groups of this process are, from the two files of `/proc` that say so.
//!
//! Pure: text in, paths out.

use std::path::{Path, PathBuf};

/// One line of `/proc/self/cgroup`.
#[derive(Debug, PartialEq)]
pub(super) struct Membership {
    /// Empty for version 2.
    pub(super) controllers: Vec<String>,
    /// The group, as seen from this process's control group namespace.
    pub(super) path: String,
}

/// One mounted hierarchy of `/proc/self/mountinfo`.
#[derive(Debug, PartialEq)]
pub(super) struct Hierarchy {
    /// Empty for version 2.
    pub(super) controllers: Vec<String>,
    /// The group that is mounted.
    pub(super) root: String,
    /// Where.
    pub(super) mount_point: PathBuf,
}

impl Hierarchy {
    /// Whether this is the one hierarchy of version 2.
    pub(super) fn unified(&self) -> bool {
        self.controllers.is_empty()
    }

    /// The directory of a group in this hierarchy, unless the group lies outside of what is mounted.
    pub(super) fn directory(&self, path: &str) -> Option<PathBuf> {
        let inside = match self.root.as_str() {
            "/" => path,
            root => {
                path.strip_prefix(root).filter(|rest| rest.is_empty() || rest.starts_with('/'))?
            }
        };
        if inside.split('/').any(|part| part == "..") {
            return None;
        }
        Some(self.mount_point.join(inside.trim_start_matches('/')))
    }
}

/// The groups of this process.
#[derive(Debug, PartialEq)]
pub(super) struct Own {
    /// The version 2 group.
    pub(super) unified: Option<PathBuf>,
    /// The version 1 groups by controller.
    pub(super) memory: Option<PathBuf>,
    pub(super) pids: Option<PathBuf>,
    pub(super) cpu: Option<PathBuf>,
}

/// Finds the groups of this process. `cgroup` and `mountinfo` are the files of `/proc/self` so named.
pub(super) fn own(cgroup: &str, mountinfo: &str) -> Own {
    let memberships = memberships(cgroup);
    let hierarchies = hierarchies(mountinfo);
    let version1 = |controller: &str| {
        let has = |controllers: &[String]| controllers.iter().any(|name| name == controller);
        let membership = memberships.iter().find(|membership| has(&membership.controllers))?;
        let mounted = |hierarchy: &&Hierarchy| has(&hierarchy.controllers);
        hierarchies.iter().filter(mounted).find_map(|found| found.directory(&membership.path))
    };
    let unified = || {
        let membership = memberships.iter().find(|membership| membership.controllers.is_empty())?;
        let mut mounted = hierarchies.iter().filter(|hierarchy| hierarchy.unified());
        mounted.find_map(|hierarchy| hierarchy.directory(&membership.path))
    };
    Own {
        unified: unified(),
        memory: version1("memory"),
        pids: version1("pids"),
        cpu: version1("cpu"),
    }
}

/// Parses `/proc/self/cgroup`.
pub(super) fn memberships(text: &str) -> Vec<Membership> {
    let line = |line: &str| {
        let mut fields = line.splitn(3, ':').skip(1);
        let controllers = names(fields.next()?);
        Some(Membership { controllers, path: fields.next()?.to_owned() })
    };
    text.lines().filter_map(line).collect()
}

/// Parses the control group mounts of `/proc/self/mountinfo`. Version 1 hierarchies without a
/// controller, such as systemd's, are left out.
pub(super) fn hierarchies(text: &str) -> Vec<Hierarchy> {
    text.lines().filter_map(hierarchy).collect()
}

fn hierarchy(line: &str) -> Option<Hierarchy> {
    let (place, kind) = line.split_once(" - ")?;
    let mut kind = kind.split(' ');
    let file_system = kind.next()?;
    let options = kind.nth(1)?;
    let mut place = place.split(' ').skip(3);
    let root = unescape(place.next()?);
    let mount_point = PathBuf::from(unescape(place.next()?));
    let controllers = match file_system {
        "cgroup2" => Vec::new(),
        "cgroup" => names(options),
        _ => return None,
    };
    if file_system == "cgroup" && controllers.iter().any(|name| name.starts_with("name=")) {
        return None;
    }
    Some(Hierarchy { controllers, root, mount_point })
}

fn names(list: &str) -> Vec<String> {
    list.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// Undoes the octal escapes of blanks and backslashes.
fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        plain.push_str(before);
        let code = after.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code {
            Some(code) if code.is_ascii() => {
                plain.push(char::from(code));
                rest = &after[3..];
            }
            _ => {
                plain.push('\\');
                rest = after;
            }
        }
    }
    plain + rest
}

/// Every mounted hierarchy that groups of ours can be in.
pub(super) fn places(mountinfo: &str) -> Vec<PathBuf> {
    let ours = |hierarchy: &Hierarchy| {
        let used = |name: &String| ["memory", "pids", "cpu"].contains(&name.as_str());
        hierarchy.unified() || hierarchy.controllers.iter().any(used)
    };
    let mut places: Vec<PathBuf> =
        hierarchies(mountinfo).into_iter().filter(ours).map(|found| found.mount_point).collect();
    places.sort();
    places.dedup();
    places
}

/// Whether a list of controllers, as in `cgroup.controllers`, has all that are needed.
pub(super) fn has_all(list: &str, needed: &[&str]) -> bool {
    needed.iter().all(|name| list.split_ascii_whitespace().any(|found| found == *name))
}

/// The value of `key` in a file of `key value` lines.
pub(super) fn value(text: &str, key: &str) -> Option<u64> {
    let pair = |line: &str| line.split_once(' ').map(|(k, v)| (k == key).then(|| v.trim().parse()));
    text.lines().filter_map(pair).flatten().next()?.ok()
}

/// Whether a directory is the top of what is mounted there.
pub(super) fn is_top(mountinfo: &str, directory: &Path) -> bool {
    hierarchies(mountinfo)
        .iter()
        .any(|hierarchy| hierarchy.mount_point == directory && hierarchy.root == "/")
}
