//! `--lock`: what look-ups came to, in `ci-tool.lock`.

use crate::nested::script_in_container;
use serde_json::{Value, json};
use std::path::PathBuf;
use testkit::registry::Registry;
use testkit::{Output, Session, State};

/// A project and a registry with one image in it.
struct World {
    registry: Registry,
    state: State,
}

impl World {
    fn new() -> Self {
        let state = State::new();
        std::fs::create_dir(state.workdir().join(".git")).unwrap();
        let world = Self { registry: Registry::start(), state };
        world.publish("one");
        world
    }

    fn address(&self) -> String {
        format!("{}/app:1", self.registry.address())
    }

    /// Puts another image under the same tag, and gives its full name.
    fn publish(&self, contents: &str) -> String {
        let session = Session::start(&self.state);
        let file = format!(r#"withNewFile(path: "/who", contents: "{contents}")"#);
        session.container(&format!("{file} {{ publish(address: {}) }}", json!(self.address())))
    }

    /// What the image of the tag is in a mode.
    fn run(&self, mode: &str) -> Output {
        let (mode, address) = (format!("--lock={mode}"), format!("--address={}", self.address()));
        let words = [&mode, "core", "container", "from", &address, "image-ref"];
        self.state.cli(words).run()
    }

    fn file(&self) -> PathBuf {
        self.state.workdir().join("ci-tool.lock")
    }

    fn lines(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.file()).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

#[test]
fn each_mode_does_what_it_is_for() {
    let world = World::new();
    let first = world.run("disabled").ok().trim().to_owned();
    assert!(!world.file().exists(), "nothing is recorded unless it is asked for");
    let said = world.run("frozen");
    let said = said.fails(1);
    assert!(said.contains("`ci-tool.lock` has no entry for container.from of"), "{said}");
    assert!(said.contains("--lock=pinned") && said.contains("linux/"), "{said}");
    assert!(!world.file().exists(), "a failure records nothing");

    assert_eq!(world.run("pinned").ok().trim(), first);
    let digest = first.split_once('@').unwrap().1;
    let lines = world.lines();
    assert_eq!(lines[0], json!([["version", "1"]]));
    assert_eq!(
        (&lines[1][1], &lines[1][2][0], &lines[1][3], &lines[1][4]),
        (&json!("container.from"), &json!(world.address()), &json!(digest), &json!("pin"))
    );
    let before = std::fs::read_to_string(world.file()).unwrap();

    let second = world.publish("two");
    assert_ne!(second, first);
    for mode in ["pinned", "frozen", "auto", "strict"] {
        assert_eq!(world.run(mode).ok().trim(), first, "{mode}");
    }
    assert_eq!(world.run("disabled").ok().trim(), second, "what is recorded is not looked at");
    assert_eq!(std::fs::read_to_string(world.file()).unwrap(), before);
    assert_eq!(world.run("live").ok().trim(), second);
    assert_eq!(world.run("frozen").ok().trim(), second);

    std::fs::write(world.file(), before.replace("\"pin\"", "\"float\"")).unwrap();
    assert_eq!(world.run("frozen").ok().trim(), first, "what floats is used as it is");
    assert_eq!(world.run("pinned").ok().trim(), second, "and is looked up where that is allowed");
    assert_eq!(world.lines()[1][4], "float", "the policy stays");

    std::fs::write(world.file(), before.replace(digest, "sha256:short")).unwrap();
    let said = world.run("frozen");
    assert!(said.fails(1).contains("is no digest of"), "{said:#?}");
    std::fs::write(world.file(), "junk").unwrap();
    let said = world.run("pinned");
    assert!(said.fails(1).contains("ci-tool.lock`: line 1"), "{said:#?}");
    let said = world.run("often");
    assert!(said.fails(1).contains("invalid lock mode"), "{said:#?}");
}

#[test]
fn outside_of_a_project_nothing_is_recorded_and_nothing_is_frozen() {
    let world = World::new();
    std::fs::remove_dir(world.state.workdir().join(".git")).unwrap();
    let first = world.run("disabled").ok().to_owned();
    for mode in ["pinned", "live"] {
        assert_eq!(world.run(mode).ok(), first, "{mode}");
    }
    assert!(!world.file().exists());
    assert!(world.run("frozen").fails(1).contains("there is no project"));
}

#[test]
fn two_runs_at_once_lose_nothing() {
    let world = World::new();
    let session = Session::start(&world.state);
    let names: Vec<String> =
        (0..6).map(|number| format!("{}/other:{number}", world.registry.address())).collect();
    for name in &names {
        session.container(&format!("publish(address: {})", json!(name)));
    }
    let flags: Vec<String> = names.iter().map(|name| format!("--address={name}")).collect();
    let running: Vec<_> = flags
        .iter()
        .map(|flag| ["--lock=live", "core", "container", "from", flag, "image-ref"])
        .map(|words| world.state.cli(words).spawn())
        .collect();
    running.into_iter().for_each(|run| drop(run.wait().ok().to_owned()));
    assert_eq!(world.lines().len(), 1 + names.len());
}

#[test]
fn a_debian_image_is_pinned_by_its_packages() {
    let state = State::debian();
    std::fs::create_dir(state.workdir().join(".git")).unwrap();
    let run = |mode: &str, package: &str| {
        let (mode, address) =
            (format!("--lock={mode}"), format!("--address=deb://bookworm{package}"));
        let exec = ["with-exec", "--args=sh,-c,dpkg-query -W | sort | sha256sum", "stdout"];
        state.cli([&mode, "core", "container", "from", &address]).args(exec).run()
    };
    let said = run("frozen", "");
    assert!(said.fails(1).contains("container.from of `deb://bookworm`"), "{said:#?}");
    let usual = run("disabled", "+python3").ok().to_owned();
    assert_eq!(run("pinned", "+python3").ok(), usual);
    assert_eq!(run("frozen", "+python3").ok(), usual, "the very same image");
    let path = state.workdir().join("ci-tool.lock");
    let text = std::fs::read_to_string(&path).unwrap();
    let entry: Value = serde_json::from_str(text.lines().nth(1).unwrap()).unwrap();
    assert_eq!(
        (&entry[1], &entry[2][0]),
        (&json!("container.from"), &json!("deb://bookworm+python3"))
    );
    let packages = entry[3].as_str().unwrap();
    assert!(packages.lines().any(|line| line.starts_with("python3 3.")), "{packages}");
    let mut wrong = entry.clone();
    wrong[3] = json!(packages.replacen(" amd64 ", " amd64 9", 1));
    std::fs::write(&path, format!("{}\n{wrong}", text.lines().next().unwrap())).unwrap();
    let said = run("frozen", "+python3");
    assert!(
        said.fails(1).contains("what `ci-tool.lock` says of the image cannot be used"),
        "{said:#?}"
    );
}

#[test]
fn what_is_looked_up_inside_a_command_is_recorded_outside() {
    let world = World::new();
    let script = format!(
        r#"wget -q -O - --header "Authorization: Basic $(printf %s: $CITOOL_SESSION_TOKEN | base64 -w 0)" \
        --post-data '{{"query":"{{ container {{ from(address: \"{}\") {{ imageRef }} }} }}"}}' \
        http://127.0.0.1:$CITOOL_SESSION_PORT/query"#,
        world.address()
    );
    let words = script_in_container(&world.state, &script);
    let said = world.state.cli(["--lock=pinned"]).args(words).run();
    assert!(said.ok().contains(&world.address()), "{said:#?}");
    assert_eq!(world.lines()[1][2][0], world.address());
}
