//! Hostile paths in every field that takes one: resolved inside the root or refused, and nothing
//! outside is touched.

mod fields;

use fields::FIELDS;
use serde_json::Value;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::Duration;
use testkit::{Random, Session, State, rounds};

/// A folder of the host that nothing may read or change.
struct Canary {
    folder: PathBuf,
    secret: String,
}

impl Canary {
    fn place(state: &State) -> Self {
        let secret = Random::new("canary").word();
        let folder = state.home().join("canary");
        std::fs::create_dir_all(folder.join("sub")).unwrap();
        std::fs::write(folder.join("secret"), &secret).unwrap();
        Self { folder, secret }
    }

    fn is_untouched(&self) {
        let mut names: Vec<_> = std::fs::read_dir(&self.folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, ["secret", "sub"]);
        assert_eq!(std::fs::read_dir(self.folder.join("sub")).unwrap().count(), 0);
        assert_eq!(std::fs::read_to_string(self.folder.join("secret")).unwrap(), self.secret);
    }
}

/// A root with links that lead out of it.
fn root_with_links(session: &Session, canary: &Path) -> String {
    let target = canary.display();
    session.container(&format!(
        r#"withExec(args: ["sh", "-c", "ln -s {target} /out; ln -s ../../../../../..{target} /up; ln -s / /self; ln -s /loop /loop; ln -s /proc/self/root/{target} /proc-out; mkdir /d; ln -s ../../../../{target}/secret /d/f; ln -s /proc/1/environ /env"]) {{ sync }}"#
    ))
}

/// Paths that a careless program follows to where it should not.
fn hostile(canary: &Path) -> Vec<String> {
    let target = canary.display();
    let mut paths: Vec<String> = [
        "..",
        "../..",
        "/..",
        ".",
        "/",
        "",
        "//",
        "/out",
        "/out/x",
        "/out/sub/x",
        "/up/x",
        "/loop",
        "/loop/x",
        "/self/self/self/out/x",
        "/proc-out/x",
        "/d/f",
        "/d/f/x",
        "/env",
        "/proc/self/environ",
        "/proc/1/root/x",
        "/proc/self/fd/0",
        "/proc/self/fd/1",
        "/proc/self/exe",
        "/proc/sysrq-trigger",
        "/dev/null",
        "/dev/zero",
        "/dev/sda",
        "/dev/mem",
        "/dev/kmsg",
        "/sys/kernel/x",
        "a\u{0}b",
        "*",
        "[",
        "{a,b}",
        "~",
        "~root/x",
        "-rf",
        "\n",
        "a/./../../b",
        "...",
        "\\..\\x",
        "%2e%2e/x",
        "$HOME/x",
        "file:///etc/passwd",
    ]
    .iter()
    .map(|path| (*path).to_owned())
    .collect();
    paths.push(format!("{}{target}/x", "../".repeat(40)));
    paths.push(format!("{target}/x"));
    paths.push(format!("/proc/self/root{target}/x"));
    paths.push("n".repeat(300));
    paths.push("d/".repeat(3000));
    paths
}

struct Ground {
    session: Session,
    container: String,
    replacements: Vec<(&'static str, String)>,
    /// What the socket of the host leads to.
    _listener: UnixListener,
}

impl Ground {
    fn new(state: &State, canary: &Canary) -> Self {
        let project = state.workdir().join("project");
        std::fs::create_dir(&project).unwrap();
        testkit::git::work(&project, "git init -q; echo a > a; git add .; git commit -qm a");
        std::os::unix::fs::symlink(&canary.folder, project.join("out")).unwrap();
        let listener = UnixListener::bind(state.workdir().join("s.sock")).unwrap();
        let session = Session::start(state);
        let container = root_with_links(&session, &canary.folder);
        let id = |document: &str| session.leaf(document).to_string();
        let replacements = vec![
            ("FILE", id(r#"{ file(name: "f", contents: "payload") { id } }"#)),
            (
                "DIRECTORY",
                id(r#"{ directory { withNewFile(path: "sub/f", contents: "payload") { id } } }"#),
            ),
            ("CACHE", id(r#"{ cacheVolume(key: "hostile") { id } }"#)),
            ("SECRET", id(r#"{ setSecret(name: "hostile", plaintext: "hush") { id } }"#)),
            ("SOCKET", id(r#"{ host { unixSocket(path: "s.sock") { id } } }"#)),
            ("VOLUME", id(r#"{ engineVolume(name: "hostile") { id } }"#)),
            ("GIT_REF", id(r#"{ host { directory(path: "project") { asGit { head { id } } } } }"#)),
        ];
        Self { session, container, replacements, _listener: listener }
    }

    /// Asks a field with a path; any answer will do if it is one.
    fn ask(&self, field: &str, path: &str) -> String {
        let mut document = field.to_owned();
        if !field.starts_with('{') {
            let container = &self.container;
            document = format!(r#"{{ loadContainerFromID(id: "{container}") {{ {field} }} }}"#);
        }
        for (name, id) in &self.replacements {
            document = document.replace(name, id);
        }
        let reply = self.session.send(&document.replace("PATH", &Value::from(path).to_string()));
        let shown: String = path.chars().take(80).collect();
        assert_eq!(reply.status, 200, "{field} with {shown:?}");
        let text = reply.json().to_string();
        assert!(!text.to_lowercase().contains("panic"), "{field} with {shown:?}: {text}");
        text
    }
}

#[test]
fn hostile_paths_in_every_field_stay_inside() {
    let mut random = Random::new("hostile paths");
    let state = State::new();
    let canary = Canary::place(&state);
    let ground = Ground::new(&state, &canary);
    let paths = hostile(&canary.folder);
    // Every field sees every path once over the soak; the suite takes a share of them at random.
    for _ in 0..rounds() * 12 {
        let ((_, field), path) = (random.pick(FIELDS), random.pick(&paths));
        let text = ground.ask(field, path);
        assert!(!text.contains(&canary.secret), "{field} with {path:?} read the host: {text}");
    }
    canary.is_untouched();
}

#[test]
fn each_field_survives_the_worst_paths() {
    let state = State::new();
    let canary = Canary::place(&state);
    let ground = Ground::new(&state, &canary);
    let worst = format!("{}{}/x", "../".repeat(40), canary.folder.display());
    for (_, field) in FIELDS {
        for path in ["/out/x", "/up/sub", &worst, "/d/f"] {
            let text = ground.ask(field, path);
            assert!(!text.contains(&canary.secret), "{field} with {path:?} read the host: {text}");
        }
    }
    canary.is_untouched();
}

#[test]
fn paths_of_four_megabytes_are_refused_at_once() {
    let state = State::new();
    let canary = Canary::place(&state);
    let ground = Ground::new(&state, &canary);
    let paths = ["x".repeat(4 << 20), "a/".repeat(2 << 20), "../".repeat((4 << 20) / 3)];
    let engine = state.engine();
    // The suite takes a share of them that begins anywhere, the soak all.
    let begin = Random::new("long paths").below(FIELDS.len() as u64) as usize;
    let share = FIELDS.len().min(rounds() as usize);
    for (index, (_, field)) in FIELDS.iter().enumerate().cycle().skip(begin).take(share) {
        let before = engine.processor_time();
        let text = ground.ask(field, &paths[index % paths.len()]);
        let took = engine.processor_time() - before;
        assert!(took < Duration::from_secs(10), "{field}: {took:?}");
        // A failed command is shown as it was; anything else has no reason to repeat the path.
        let repeats = text.len() > 64 << 10 && !field.contains("args: [PATH]");
        assert!(!repeats, "{field}: an error of {} bytes", text.len());
    }
    assert_eq!(ground.session.shell("echo healthy"), "healthy\n");
    canary.is_untouched();
}

#[test]
fn links_are_resolved_inside_the_root() {
    let state = State::new();
    let canary = Canary::place(&state);
    let ground = Ground::new(&state, &canary);
    let text = ground.ask(
        r#"withNewFile(path: PATH, contents: "inside") { file(path: PATH) { contents } }"#,
        "/up/made",
    );
    assert!(text.contains("inside"), "the link leads to the same path inside the root: {text}");
    let text = ground.ask("file(path: PATH) { contents }", "/loop");
    assert!(text.contains("errors"), "{text}");
    let text = ground.ask("file(path: PATH) { contents }", "/env");
    assert!(text.contains("errors"), "the process table is no part of the tree: {text}");
    canary.is_untouched();
}
