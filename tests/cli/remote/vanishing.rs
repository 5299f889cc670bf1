//! An engine that is suddenly not there any more: an error that says so, never a wait for ever.

use super::Remote;
use super::link::Link;
use std::time::Duration;
use testkit::{Random, Running};

/// A command that would run for ever, once it runs.
fn endless(remote: &Remote, port: u16) -> Running {
    let rootfs = format!("--directory={}", testkit::busybox().display());
    let word = Random::new("vanishing").word();
    let script = format!("--args=sh,-c,echo running {word}; sleep 1000000");
    let words = ["core", "container", "with-rootfs", &rootfs, "with-exec", &script, "stdout"];
    let mut running = remote.cli_at(port, &words).spawn();
    running.wait_for("| running");
    running
}

#[test]
fn an_engine_that_dies_is_noticed_at_once() {
    let remote = Remote::new();
    let running = endless(&remote, remote.port);
    remote.engine.kill_engine();
    let output = running.wait();
    assert!(output.fails(1).contains("the engine is gone"), "{output:#?}");
}

#[test]
fn a_link_that_goes_dead_is_noticed() {
    let remote = Remote::new();
    let link = Link::to(remote.port, Duration::ZERO);
    let running = endless(&remote, link.port);
    link.die();
    let output = running.wait();
    let said = output.fails(1);
    assert!(said.contains("the engine is gone: it does not answer any more"), "{said}");
}

#[test]
fn a_port_where_nobody_answers_is_given_up() {
    let remote = Remote::new();
    let link = Link::to(remote.port, Duration::ZERO);
    link.die();
    let output = remote.cli_at(link.port, &["core", "version"]).run();
    assert!(output.fails(1).contains("it does not answer"), "{output:#?}");
}
