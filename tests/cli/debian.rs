//! `deb://` images: assembled from packages, equal to what Debian's own tools make.

use testkit::{Session, State};

fn on_bookworm(script: &str) -> String {
    format!(
        r#"{{ container {{ from(address: "deb://bookworm") {{ withExec(args: ["sh", "-c", {script:?}]) {{ stdout }} }} }} }}"#
    )
}

#[test]
fn the_commands_of_the_readme() {
    let state = State::debian();
    let from = ["core", "container", "from", "--address=deb://bookworm"];
    let run = |rest: &[&str]| state.cli(from.iter().chain(rest).copied()).run();
    let output = run(&["with-exec", "--args=sh,-c,echo hello > /out; cat /out", "stdout"]);
    assert_eq!(output.ok(), "hello\n");
    let output =
        run(&["with-new-file", "--path=/a", "--contents=hi", "file", "--path=/a", "contents"]);
    assert_eq!(output.ok(), "hi");
    let output = run(&["with-exec", "--args=false", "stdout"]);
    assert!(output.fails(1).contains("exit code: 1"), "{output:#?}");
    let document = r#"{ container { from(address: "deb://bookworm") { withExec(args: ["uname","-a"]) { stdout } } } }"#;
    let output = state.cli(["query"]).stdin(document).run();
    assert!(output.ok().contains("Linux"), "{output:#?}");
}

#[test]
fn one_more_package() {
    let state = State::debian();
    let from = ["core", "container", "from", "--address=deb://bookworm+python3"];
    let exec = ["with-exec", "--args=python3,-c,print(6*7)", "stdout"];
    assert_eq!(state.cli(from.iter().chain(&exec)).run().ok(), "42\n");
}

#[test]
fn the_package_database_agrees_with_the_files() {
    let state = State::debian();
    let session = Session::start(&state);
    let verify = session.leaf(&on_bookworm("dpkg --verify; echo code $?"));
    assert_eq!(verify, "code 0\n", "nothing differs");
    let audit = session.leaf(&on_bookworm("dpkg --audit; echo code $?"));
    assert_eq!(audit, "code 0\n");
    let states = session.leaf(&on_bookworm("dpkg-query -W -f '${db:Status-Abbrev}\\n' | sort -u"));
    assert_eq!(states.as_str().unwrap().trim(), "ii", "every package is installed");
    let essential =
        session.leaf(&on_bookworm("dpkg-query -W -f '${Package}\\n' apt bash dpkg coreutils"));
    assert_eq!(essential.as_str().unwrap().lines().count(), 4);
}

#[test]
fn apt_installs_into_an_image() {
    let state = State::debian_with_config("network = \"host\"");
    let session = Session::start(&state);
    let script = "apt-get update -q=2 && apt-get install -q=2 -y --no-install-recommends hello >/dev/null 2>&1; hello";
    assert_eq!(session.leaf(&on_bookworm(script)), "Hello, world!\n");
    let sources = session.leaf(&on_bookworm(
        "cat /etc/apt/sources.list.d/* /etc/apt/sources.list 2>/dev/null; true",
    ));
    assert!(sources.as_str().unwrap().contains("bookworm"), "{sources}");
}

#[test]
fn wrong_addresses_are_errors_that_say_why() {
    let state = State::debian();
    let session = Session::start(&state);
    for (address, expected) in [
        ("deb://", "suite"),
        ("deb://no-such-suite-here", "no-such-suite-here"),
        ("deb://bookworm+no-such-package-here", "no-such-package-here"),
        ("deb://../../etc", ".."),
        ("deb://bookworm+", "bookworm+"),
    ] {
        let document = format!(r#"{{ container {{ from(address: "{address}") {{ sync }} }} }}"#);
        let said = session.error(&document);
        assert!(said.contains(expected), "{address}: no `{expected}` in {said}");
    }
}

#[test]
fn a_second_engine_needs_no_network_for_what_is_there() {
    let state = State::debian();
    let from = ["core", "container", "from", "--address=deb://bookworm"];
    let first = state
        .cli(from.iter().chain(&["with-exec", "--args=cat,/etc/debian_version", "stdout"]))
        .run();
    assert!(first.ok().starts_with("12"), "{first:#?}");
    state.stop();
    let again = state
        .cli(from.iter().chain(&["with-exec", "--args=cat,/etc/debian_version", "stdout"]))
        .run();
    assert_eq!(first.ok(), again.ok());
    assert!(again.stderr.contains("CACHED"), "{}", again.stderr);
}
