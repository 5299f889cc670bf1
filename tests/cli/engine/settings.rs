//! `engine.toml`.

use testkit::{Session, State};

#[test]
fn a_wrong_file_is_an_error_that_names_key_and_file() {
    for (config, expected) in [
        ("no-such-key = 1", "no-such-key"),
        ("grace = 10", "grace"),
        ("network = \"moon\"", "moon"),
        ("memory-limit = \"much\"", "much"),
        ("this is no toml", "TOML"),
    ] {
        let state = State::with_config(config);
        let output = state.cli(["core", "version"]).run();
        let said = output.fails(1);
        assert!(said.contains(expected), "{config}: no `{expected}` in {said}");
        assert!(said.contains("engine.toml"), "{config}: {said}");
    }
}

#[test]
fn a_named_file_has_to_exist() {
    let state = State::new();
    let output =
        state.cli(["core", "version"]).env("CITOOL_ENGINE_CONFIG", "/no/such/file.toml").run();
    assert!(output.fails(1).contains("/no/such/file.toml"), "{output:#?}");
}

#[test]
fn the_file_beside_the_users_settings_is_read() {
    let state = State::new();
    let folder = state.home().join(".config/ci-tool");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("engine.toml"), "wrong-here = 1\n").unwrap();
    let output = state.cli(["core", "version"]).without_env("CITOOL_ENGINE_CONFIG").run();
    assert!(output.fails(1).contains("wrong-here"), "{output:#?}");
}

#[test]
fn network_none_has_loopback_only_and_host_has_the_hosts() {
    let asked = |config, command| {
        let state = State::with_config(config);
        Session::start(&state).shell(command)
    };
    let devices = asked("network = \"none\"", "cat /proc/net/dev");
    let names: Vec<&str> =
        devices.lines().filter_map(|line| Some(line.split_once(':')?.0.trim())).collect();
    assert_eq!(names, ["lo"]);
    // Not by the names of the devices: those of other engines come and go.
    let host = std::fs::read_link("/proc/self/ns/net").unwrap();
    let seen = asked("network = \"host\"", "readlink /proc/self/ns/net");
    assert_eq!(seen.trim(), host.to_str().unwrap());
}

#[test]
fn loopback_works_without_a_network() {
    let state = State::new();
    let session = Session::start(&state);
    // Either side may be gone before the other has read, so both try again.
    let script = "echo answer > /a; (while nc -l -p 4242 < /a; do :; done > /dev/null 2>&1 &) ; \
                  until said=$(nc 127.0.0.1 4242 < /dev/null 2> /dev/null); [ -n \"$said\" ]; \
                  do usleep 20000; done; echo $said";
    assert_eq!(session.shell(script), "answer\n");
}
