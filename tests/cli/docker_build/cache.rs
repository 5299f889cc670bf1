//! What a build shares: with itself, with other sessions, with pipelines without a Dockerfile.

use super::{World, exec, with};
use serde_json::json;
use testkit::Session;

const BASE: &str = "ARG BASE\nFROM $BASE\n";
/// A line that differs each time it really runs.
const RANDOM: &str = "head -c 9 /dev/urandom | base64";

#[test]
fn only_what_changed_runs_again() {
    let world = World::new();
    let dockerfile =
        format!("{BASE}COPY a /a\nRUN {RANDOM} > /one\nCOPY b /b\nRUN {RANDOM} > /two\nCMD x\n");
    let build = |a: &str, b: &str, other: &str| {
        let files = [("a", a), ("b", b), ("other", other)];
        let text = world.shell(&dockerfile, &files, "cat /one /two");
        let mut lines = text.lines().map(str::to_owned);
        (lines.next().unwrap(), lines.next().unwrap())
    };
    let first = build("1", "1", "1");
    assert_eq!(build("1", "1", "2"), first, "a file that is not copied does not matter");
    let second = build("1", "2", "1");
    assert_eq!(second.0, first.0);
    assert_ne!(second.1, first.1);
    let third = build("2", "1", "1");
    assert!(third.0 != first.0 && third.1 != first.1);
    // Another session, another name of the command: the same step.
    let there = Session::start(&world.state);
    let document =
        world.document(&with(&dockerfile, &[("a", "1"), ("b", "1")]), "", &exec("cat /one"));
    assert_eq!(there.leaf(&document), format!("{}\n", first.0));
}

#[test]
fn a_pipeline_finds_what_a_dockerfile_ran() {
    let world = World::new();
    let script = format!("{RANDOM} > /r");
    let built = world.shell(&format!("{BASE}RUN {script}\n"), &[], "cat /r");
    let document = format!(
        "{{ container {{ from(address: {}) {{ withExec(args: [\"/bin/sh\", \"-c\", {}]) {{ {} }} }} }} }}",
        json!(world.base()),
        json!(script),
        exec("cat /r")
    );
    assert_eq!(world.session.leaf(&document), built);
}

#[test]
fn stages_run_side_by_side() {
    let world = World::new();
    // Each waits for the other in a directory that both see: one after the other they would never end.
    let wait = |mine: &str, other: &str| {
        format!(
            "RUN --mount=type=cache,id=meet,target=/m touch /m/{mine}; for i in $(seq 2000); do test -e /m/{other} && exit 0; usleep 10000; done; exit 1\n"
        )
    };
    let dockerfile = format!(
        "ARG BASE\nFROM $BASE AS a\n{}FROM $BASE AS b\n{}FROM $BASE\nCOPY --from=a /etc/group /a\nCOPY --from=b /etc/group /b\n",
        wait("a", "b"),
        wait("b", "a")
    );
    assert_eq!(world.shell(&dockerfile, &[], "ls /a /b"), "/a\n/b\n");
    // The first failure ends the rest.
    let failing = "ARG BASE\nFROM $BASE AS slow\nRUN sleep 600\nFROM $BASE AS bad\nRUN exit 5\nFROM slow\nCOPY --from=bad /etc/group /g\n";
    assert!(world.error(failing, &[]).contains("Dockerfile:5: `RUN exit 5`"));
}

#[test]
fn how_the_network_is_reached_makes_no_other_step_unless_it_is_declared() {
    let world = World::new();
    let built = |dockerfile: &str, proxy: &str| {
        let proxy = json!(proxy);
        let options = format!("buildArgs: [{{name: \"HTTP_PROXY\", value: {proxy}}}]");
        let document = world.document(&with(dockerfile, &[]), &options, &exec("cat /r /p"));
        world.session.leaf(&document).as_str().unwrap().to_owned()
    };
    let seen = format!("{RANDOM} > /r; echo $HTTP_PROXY $http_proxy > /p");
    let plain = format!("{BASE}RUN {seen}\n");
    let first = built(&plain, "http://one:1");
    assert!(first.ends_with("http://one:1 http://one:1\n"), "{first}");
    assert_eq!(built(&plain, "http://two:2"), first, "the step is the same");
    let image = "envVariable(name: \"HTTP_PROXY\")";
    let options = r#"buildArgs: [{name: "HTTP_PROXY", value: "x"}]"#;
    let left = world.session.leaf(&world.document(&with(&plain, &[]), options, image));
    assert_eq!(left, json!(null), "nothing of it is left in the image");
    let declared = format!("{BASE}ARG HTTP_PROXY\nRUN {seen}\n");
    let first = built(&declared, "http://one:1");
    let second = built(&declared, "http://two:2");
    assert!(second.ends_with("http://two:2 http://two:2\n"), "{second}");
    assert_ne!(first.lines().next(), second.lines().next(), "another value is another step");
}
