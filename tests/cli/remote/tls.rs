//! Certificates: what works over them, and who is kept out.

use super::{Remote, identify, write};
use crate::clients;
use crate::core::export_tree::{listing, sample};
use std::fs;
use testkit::State;
use testkit::registry::Authority;

#[test]
fn commands_use_the_files_of_the_clients_machine() {
    let remote = Remote::new();
    let source = remote.client.workdir().join("src");
    sample(&source);
    remote.cli(&["core", "host", "directory", "--path=src", "-o", "copy"]).run().ok();
    assert_eq!(listing(&remote.client.workdir().join("copy")), listing(&source));
    let rootfs = format!("--directory={}", testkit::busybox().display());
    let exec = ["core", "container", "with-rootfs", &rootfs, "with-exec"];
    let output = remote.cli(&[&exec[..], &["--args=echo,there", "stdout"]].concat()).run();
    assert_eq!(output.ok(), "there\n");
    let output = remote.cli(&[&exec[..], &["--args=sh,-c,exit 7", "stdout"]].concat()).run();
    output.fails(7);
    let output = remote.cli(&["core", "host", "file", "--path=nothing", "contents"]).run();
    assert!(output.fails(1).contains("nothing: no such file or directory"), "{output:#?}");
    let script = "echo '{ directory { entries } }' | $0 query";
    let binary = testkit::binary();
    let output = remote.cli(&["run", "sh", "-c", script, binary.to_str().unwrap()]).run();
    assert!(output.ok().contains("entries"), "{output:#?}");
    let engines = testkit::leftovers::engines(&remote.client.dir());
    assert!(engines.is_empty(), "no engine of the client's own: {engines:?}");
}

#[test]
fn secrets_come_from_the_clients_machine() {
    let remote = Remote::new();
    let script = "sh,-c,test $T = of-the-client && echo right; echo $T";
    let words = crate::secrets::words("--secret=env://TOKEN", script);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let output = remote.cli(&words).env("TOKEN", "of-the-client").run();
    assert_eq!(output.ok(), "right\n***\n");
}

#[test]
fn programs_for_client_libraries_work_there_too() {
    let remote = Remote::on(State::debian());
    let program = testkit::client_program("go-newest");
    let program = remote.cli(&["--silent", "run", "--", program.to_str().unwrap()]);
    clients::every_case_passes(program, clients::FEWEST_CASES);
}

#[test]
fn many_sessions_at_once() {
    let remote = Remote::new();
    std::thread::scope(|scope| {
        for number in 0..8 {
            let remote = &remote;
            scope.spawn(move || {
                let contents = format!("--contents=text {number}");
                let words = ["core", "file", "--name=f", &contents, "contents"];
                assert_eq!(remote.cli(&words).run().ok(), format!("text {number}"));
            });
        }
    });
}

#[test]
fn the_engine_can_be_asked_about_and_stopped() {
    let remote = Remote::new();
    let status = remote.cli(&["engine", "status"]).run();
    let pid = format!("pid:      {}\n", remote.engine.engine().pid);
    assert!(status.ok().contains(&pid), "{status:#?}");
    let output = remote.cli(&["engine", "stop"]).run();
    assert!(output.status.success(), "{output:#?}");
    let output = remote.cli(&["core", "version"]).run();
    let said = output.fails(1);
    assert!(said.contains("cannot reach the engine at `tcp://127.0.0.1:"), "{said}");
    assert!(said.contains("refused"), "{said}");
}

#[test]
fn strangers_are_kept_out() {
    let remote = Remote::new();
    let kept_out = |what: &str, words: &str| {
        let output = remote.cli(&["core", "version"]).run();
        let said = output.fails(1).to_owned();
        assert!(said.contains("cannot reach the engine at `tcp://"), "{what}: {said}");
        assert!(said.to_lowercase().contains(words), "{what}: {said}");
    };
    let stranger = Authority::new();
    let right = ["client.pem", "client.key", "ca.pem"].map(|name| remote.file(name));
    let texts = right.clone().map(|path| fs::read_to_string(path).unwrap());
    identify(&remote.client.home(), "client", stranger.issue_for(&["client"]));
    kept_out("a certificate of another authority", "certificate");
    write(&right[0], &texts[0]);
    write(&right[1], &texts[1]);
    write(&right[2], &stranger.certificate());
    kept_out("an engine of another authority", "certificate");
    for path in &right {
        fs::remove_file(path).unwrap();
    }
    kept_out("no certificate at all", "");
    for (path, text) in right.iter().zip(&texts) {
        write(path, text);
    }
    remote.cli(&["core", "version"]).run().ok();
}

#[test]
fn a_name_that_the_certificate_does_not_have_is_refused() {
    let remote = Remote::new();
    let address = format!("tcp://127.0.0.2:{}", remote.port);
    let output = remote.cli(&["core", "version"]).env("CITOOL_ENGINE", address).run();
    assert!(output.fails(1).contains("cannot reach the engine"), "{output:#?}");
}
