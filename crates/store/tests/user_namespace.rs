//! An engine without root keeps the same store in a user namespace, where the marks of layers have other
//! names. So the tests beside this one are run there once more.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Tests that make devices, which nobody may in a user namespace, and this one.
const LEFT_OUT: [&str; 3] =
    ["hostile::", "image_layers::changes_of_an_exec_are_found", "user_namespace::"];
/// How long the namespace may take to be there.
const START_TIME: Duration = Duration::from_secs(60);

#[test]
fn everything_holds_there_too() {
    let program = std::env::current_exe().unwrap();
    // It waits until it has ids, and then becomes the tests: executing makes it root of the namespace.
    let script = "read go; exec \"$0\" \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--user", "--mount", "--", "sh", "-c", script]).arg(program);
    command.args(LEFT_OUT.iter().flat_map(|name| ["--skip", name]));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let namespace = |pid: &str| std::fs::read_link(format!("/proc/{pid}/ns/user")).unwrap();
    let (own, pid) = (namespace("self"), child.id().to_string());
    let began = Instant::now();
    while namespace(&pid) == own {
        assert!(began.elapsed() < START_TIME, "there is no namespace");
        std::thread::yield_now();
    }
    for map in ["uid_map", "gid_map"] {
        std::fs::write(format!("/proc/{pid}/{map}"), "0 0 65536").unwrap();
    }
    child.stdin.take().unwrap().write_all(b"\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
}
