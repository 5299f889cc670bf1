//! Files and sockets in memory, and output that is changed on its way.

use crate::fixture::{Fixture, run};
use crate::{Case, cases};
use sandbox::{Filter, MEMORY_ENTRY, MountPoint, Source, Stream, User};
use std::fs;
use std::sync::Arc;
use store::{Mount, Store};

pub(crate) fn cases() -> Vec<Case> {
    cases![
        a_file_in_memory_has_its_mode_and_owner,
        a_socket_in_memory_is_for_its_owner,
        output_passes_through_the_filter,
    ]
}

/// The one entry of a file system in memory, at a path of the container.
fn entry(fixture: &Fixture, whole: &Mount, target: &str, read_only: bool) -> MountPoint {
    let store = Store::open(&fixture.outside("store")).unwrap();
    let part = store.part(whole, MEMORY_ENTRY).unwrap();
    MountPoint { target: target.into(), source: Source::Mount(part), read_only }
}

async fn a_file_in_memory_has_its_mode_and_owner(fixture: Arc<Fixture>) {
    fs::write(fixture.root.join("tmp/secret"), "").unwrap();
    let line = "stat -c '%a %u:%g' /tmp/secret; cat /tmp/secret; echo; \
                grep ' /tmp/secret ' /proc/self/mountinfo | sed 's/.* - //' | cut -d ' ' -f 1; \
                echo x > /tmp/secret";
    let mut spec = fixture.spec(&["sh", "-c", line]);
    let whole = sandbox::memory_file(b"hunter2", 0o440, (1000, 1001)).unwrap();
    spec.mounts.push(entry(&fixture, &whole, "/tmp/secret", true));
    let outcome = run(&fixture.plain, spec).await.unwrap();
    assert_eq!(outcome.stdout, "440 1000:1001\nhunter2\ntmpfs\n");
    assert!(outcome.stderr.contains("Read-only file system"), "{outcome:?}");
    assert_eq!(fs::read(fixture.root.join("tmp/secret")).unwrap(), b"");
    let mut spec = fixture.spec(&["cat", "/tmp/secret"]);
    spec.user = User { uid: 1002, gid: 1002, groups: vec![] };
    spec.mounts.push(entry(&fixture, &whole, "/tmp/secret", true));
    assert_ne!(run(&fixture.plain, spec).await.unwrap().exit.code, 0);
}

async fn a_socket_in_memory_is_for_its_owner(fixture: Arc<Fixture>) {
    fs::write(fixture.root.join("tmp/socket"), "").unwrap();
    let (whole, _listener) = sandbox::memory_socket((1000, 1001)).unwrap();
    let mut spec = fixture.spec(&["stat", "-c", "%a %u:%g %F", "/tmp/socket"]);
    spec.mounts.push(entry(&fixture, &whole, "/tmp/socket", false));
    assert_eq!(run(&fixture.plain, spec).await.unwrap().text(), "600 1000:1001 socket");
}

/// Puts lines into capitals, and holds back what is no whole line yet.
#[derive(Default)]
struct Shouting([Vec<u8>; 2]);

impl Filter for Shouting {
    fn pass(&mut self, stream: Stream, piece: &[u8], passed: &mut Vec<u8>) {
        let held = &mut self.0[usize::from(stream == Stream::Stderr)];
        held.extend(piece.to_ascii_uppercase());
        let lines = held.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        passed.extend(held.drain(..lines));
    }

    fn end(&mut self, stream: Stream, passed: &mut Vec<u8>) {
        passed.append(&mut self.0[usize::from(stream == Stream::Stderr)]);
    }
}

async fn output_passes_through_the_filter(fixture: Arc<Fixture>) {
    let mut spec = fixture.spec(&["sh", "-c", "echo one; printf two; printf three >&2"]);
    spec.redirect_stdout = Some("/tmp/shouted".into());
    spec.filter = Some(Box::new(Shouting::default()));
    let outcome = run(&fixture.plain, spec).await.unwrap();
    assert_eq!((outcome.stdout.as_str(), outcome.stderr.as_str()), ("ONE\nTWO", "THREE"));
    assert_eq!(fs::read_to_string(fixture.root.join("tmp/shouted")).unwrap(), "ONE\nTWO");
}
