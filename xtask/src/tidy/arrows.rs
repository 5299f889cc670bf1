//! Which of our crates may import which: the table of `ARCHITECTURE.md`, as data.
//!
//! A new arrow is a change of its own, reviewed as one.

use super::{Finding, TextFile};

/// A package and the packages of ours that it may import.
const ARROWS: &[(&str, &[&str])] = &[
    ("protocol", &[]),
    ("config", &[]),
    ("selection", &[]),
    ("patch", &[]),
    ("redact", &[]),
    ("screen", &[]),
    ("telemetry", &["protocol", "screen"]),
    ("graph-macros", &[]),
    ("graph", &["graph-macros", "protocol"]),
    ("landing", &["protocol"]),
    ("link", &[]),
    ("store", &["landing", "protocol", "selection"]),
    ("sandbox", &["store"]),
    ("debian", &[]),
    ("fetch", &[]),
    ("git", &[]),
    ("registry", &[]),
    ("image", &[]),
    ("dockerfile", &[]),
    (
        "api",
        &[
            "debian",
            "dockerfile",
            "fetch",
            "git",
            "graph",
            "image",
            "patch",
            "protocol",
            "redact",
            "registry",
            "sandbox",
            "store",
        ],
    ),
    (
        "engine",
        &[
            "api",
            "config",
            "fetch",
            "graph",
            "link",
            "protocol",
            "redact",
            "registry",
            "sandbox",
            "store",
            "telemetry",
        ],
    ),
    ("client", &["config", "landing", "link", "protocol", "registry", "selection"]),
    ("tui", &["protocol", "screen", "telemetry"]),
    ("cli", &["client", "config", "protocol", "telemetry", "tui"]),
    ("ci-tool", &["cli", "engine", "protocol"]),
    // Development only: nothing above may import these, except for its tests.
    ("testkit", &["protocol", "screen"]),
    ("e2e", &["api", "config", "graph", "image", "protocol"]),
    ("benches", &["protocol", "store", "testkit"]),
    ("xtask", &[]),
    // Programs for published client libraries, outside the workspace.
    ("cases-newest", &[]),
    ("cases-oldest", &[]),
];

/// What any package may import for its tests, beside its own arrows.
const FOR_TESTS: &[&str] = &["testkit"];

/// Findings about all manifests of the project.
pub(super) fn check(files: &[TextFile]) -> Vec<Finding> {
    files
        .iter()
        .filter(|file| file.path.ends_with("/Cargo.toml"))
        .flat_map(check_manifest)
        .collect()
}

fn check_manifest(file: &TextFile) -> Vec<Finding> {
    let Some(package) = package_name(&file.text) else {
        return vec![Finding::of_file(&file.path, "the manifest names no package")];
    };
    let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == package) else {
        let message =
            format!("`{package}` is not in the table of arrows in xtask/src/tidy/arrows.rs");
        return vec![Finding::of_file(&file.path, message)];
    };
    let is_ours = |name: &str| ARROWS.iter().any(|(ours, _)| *ours == name);
    dependencies(&file.text)
        .filter(|dependency| is_ours(dependency.name))
        .filter(|dependency| !allowed.contains(&dependency.name))
        .filter(|dependency| !(dependency.for_tests && FOR_TESTS.contains(&dependency.name)))
        .map(|dependency| {
            let message = format!("`{package}` may not import `{}`", dependency.name);
            Finding::of_line(&file.path, dependency.line, message)
        })
        .collect()
}

fn package_name(manifest: &str) -> Option<&str> {
    let mut lines = manifest.lines().skip_while(|line| line.trim() != "[package]").skip(1);
    let line = lines.find(|line| line.starts_with("name"))?;
    Some(line.split_once('=')?.1.trim().trim_matches('"'))
}

struct Dependency<'a> {
    name: &'a str,
    line: usize,
    for_tests: bool,
}

/// The entries of all dependency tables, whatever target they are for.
fn dependencies(manifest: &str) -> impl Iterator<Item = Dependency<'_>> {
    let mut table = "";
    manifest.lines().enumerate().filter_map(move |(index, line)| {
        let line = line.trim();
        if let Some(heading) = line.strip_prefix('[') {
            table = heading.trim_end_matches(']');
            return None;
        }
        if !table.ends_with("dependencies") || line.starts_with('#') {
            return None;
        }
        let name = line.split_once('=')?.0.trim().split('.').next()?;
        Some(Dependency { name, line: index + 1, for_tests: table.ends_with("dev-dependencies") })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(package: &str, dependencies: &str) -> Vec<String> {
        let text = format!("[package]\nname = \"{package}\"\n{dependencies}");
        let path = format!("crates/{package}/Cargo.toml");
        check(&[TextFile { path, text }]).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn arrows_of_the_table_are_fine() {
        let found = messages("store", "[dependencies]\nprotocol.workspace = true\nserde = \"1\"\n");
        assert_eq!(found, Vec::<String>::new());
    }

    #[test]
    fn an_arrow_that_is_not_in_the_table_is_found() {
        let found = messages("store", "[dependencies]\nserde = \"1\"\nsandbox.workspace = true\n");
        assert_eq!(found, ["crates/store/Cargo.toml:5: `store` may not import `sandbox`"]);
        let target = "[target.'cfg(unix)'.dependencies]\nengine = { workspace = true }\n";
        assert_eq!(messages("cli", target).len(), 1);
    }

    #[test]
    fn testkit_is_for_tests_only() {
        assert!(messages("store", "[dev-dependencies]\ntestkit.workspace = true\n").is_empty());
        assert_eq!(messages("store", "[dependencies]\ntestkit.workspace = true\n").len(), 1);
    }

    #[test]
    fn a_package_outside_the_table_is_found() {
        assert!(messages("gadget", "")[0].contains("`gadget` is not in the table"));
    }

    #[test]
    fn no_arrow_of_the_table_points_up() {
        for (index, (name, imports)) in ARROWS.iter().enumerate() {
            for import in *imports {
                let below = ARROWS[..index].iter().any(|(earlier, _)| earlier == import);
                assert!(below, "`{name}` imports `{import}`, which stands after it");
            }
        }
    }
}
