//! A link that takes a tenth of a second to answer: everything works, and little is asked.

use super::Remote;
use super::link::Link;
use crate::core::export_tree::{listing, sample};
use std::time::Duration;

const EACH_WAY: Duration = Duration::from_millis(50);

#[test]
fn files_go_in_and_out() {
    let remote = Remote::new();
    let link = Link::to(remote.port, EACH_WAY);
    let source = remote.client.workdir().join("src");
    sample(&source);
    for number in 0..200 {
        std::fs::write(source.join(format!("file{number}")), format!("{number}")).unwrap();
    }
    let words = ["core", "host", "directory", "--path=src", "-o", "copy"];
    let output = remote.cli_at(link.port, &words).run();
    output.ok();
    assert_eq!(listing(&remote.client.workdir().join("copy")), listing(&source));
    assert_eq!(link.connections(), 1, "for questions both ways");
    // Asking for every file would take 200 of these.
    assert!(link.turns() < 60, "{} round trips: {:?}", link.turns(), output.elapsed);
}

#[test]
fn commands_run_and_talk() {
    let remote = Remote::new();
    let link = Link::to(remote.port, EACH_WAY);
    let rootfs = format!("--directory={}", testkit::busybox().display());
    let script = "--args=sh,-c,for i in $(seq 2000); do echo line $i; done";
    let words = ["core", "container", "with-rootfs", &rootfs, "with-exec", script, "stdout"];
    let output = remote.cli_at(link.port, &words).run();
    assert_eq!(output.ok().lines().count(), 2000);
    assert!(output.stderr.contains("line 2000"), "progress came too: {}", output.stderr);
}
