//! Mounts that a command asks for, and roots that try to lead them astray.

use crate::fixture::{Fixture, make_root, mount, run, spec_in};
use crate::{Case, cases};
use sandbox::{Error, MountPoint, Source};
use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use store::Mount;

pub(crate) fn cases() -> Vec<Case> {
    cases![
        a_tmpfs_holds_no_more_than_its_size,
        read_only_is_read_only,
        directories_and_files_are_mounted,
        mounts_lie_in_mounts,
        nothing_comes_back_to_the_host,
        links_lead_nowhere_out_of_the_root,
        system_places_may_not_be_links,
        a_root_without_its_places_is_an_error,
        device_nodes_do_not_work,
    ]
}

async fn a_tmpfs_holds_no_more_than_its_size(fixture: Arc<Fixture>) {
    let write =
        |name: &str, kib: u32| format!("dd if=/dev/zero of=/tmp/t/{name} bs=1k count={kib}");
    let line = format!("{} && {}", write("a", 500), write("b", 5000));
    let mut spec = fixture.spec(&["sh", "-c", &line]);
    spec.mounts.push(mount("/tmp/t", Source::Tmpfs { size: Some(1 << 20) }));
    let outcome = run(&fixture.plain, spec).await.unwrap();
    assert_ne!(outcome.exit.code, 0);
    assert!(outcome.stderr.contains("No space left"), "{outcome:?}");
    assert_eq!(fs::read_dir(fixture.root.join("tmp/t")).unwrap().count(), 0);
}

async fn read_only_is_read_only(fixture: Arc<Fixture>) {
    let outside = fixture.outside("read-only");
    fs::write(outside.join("file"), "kept").unwrap();
    let mut spec =
        fixture.spec(&["sh", "-c", "cat /tmp/ro/file; echo x > /tmp/ro/file; touch /tmp/ro/new"]);
    spec.mounts.push(MountPoint {
        target: "/tmp/ro".into(),
        source: Source::Mount(Mount::bind(&outside).unwrap()),
        read_only: true,
    });
    let outcome = run(&fixture.plain, spec).await.unwrap();
    assert_eq!(outcome.stdout, "kept");
    assert_eq!(outcome.stderr.matches("Read-only file system").count(), 2, "{outcome:?}");
    assert_eq!(fs::read(outside.join("file")).unwrap(), b"kept");
    let mut spec = fixture.spec(&["touch", "/tmp/rot/x"]);
    spec.mounts.push(MountPoint {
        target: "/tmp/rot".into(),
        source: Source::Tmpfs { size: None },
        read_only: true,
    });
    assert_ne!(run(&fixture.plain, spec).await.unwrap().exit.code, 0);
}

async fn directories_and_files_are_mounted(fixture: Arc<Fixture>) {
    let outside = fixture.outside("given");
    fs::write(outside.join("one"), "1").unwrap();
    let mut spec = fixture.spec(&["sh", "-c", "cat /tmp/g/one /tmp/single; echo new > /tmp/g/two"]);
    spec.mounts.push(mount("/tmp/g", Source::Mount(Mount::bind(&outside).unwrap())));
    let file = Mount::bind_file(&outside.join("one")).unwrap();
    spec.mounts.push(mount("/tmp/single", Source::Mount(file)));
    assert_eq!(run(&fixture.plain, spec).await.unwrap().text(), "11");
    assert_eq!(fs::read_to_string(outside.join("two")).unwrap(), "new\n");
}

async fn mounts_lie_in_mounts(fixture: Arc<Fixture>) {
    let outside = fixture.outside("nested");
    fs::write(outside.join("f"), "inner").unwrap();
    let line =
        "cat /tmp/n/a/b/f /tmp/n/a/b/deep/file; touch /tmp/n/a/x /tmp/n/y; ls /tmp/n /tmp/n/a";
    let mut spec = fixture.spec(&["sh", "-c", line]);
    let file = Mount::bind_file(&outside.join("f")).unwrap();
    spec.mounts.push(mount("/tmp/n/a/b/deep/file", Source::Mount(file)));
    spec.mounts.push(mount("/tmp/n/a/b", Source::Mount(Mount::bind(&outside).unwrap())));
    spec.mounts.push(mount("/tmp/n/a", Source::Tmpfs { size: None }));
    spec.mounts.push(mount("/tmp/n", Source::Tmpfs { size: None }));
    let outcome = run(&fixture.plain, spec).await.unwrap();
    assert_eq!(outcome.text(), "innerinner/tmp/n:\na\ny\n\n/tmp/n/a:\nb\nx");
}

async fn nothing_comes_back_to_the_host(fixture: Arc<Fixture>) {
    let before = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let outside = fixture.outside("quiet");
    let mut spec = fixture.spec(&["true"]);
    spec.mounts.push(mount("/tmp/quiet", Source::Mount(Mount::bind(&outside).unwrap())));
    spec.mounts.push(mount("/tmp/quiet/t", Source::Tmpfs { size: None }));
    run(&fixture.plain, spec).await.unwrap();
    assert_eq!(fs::read_to_string("/proc/self/mountinfo").unwrap(), before);
}

async fn links_lead_nowhere_out_of_the_root(fixture: Arc<Fixture>) {
    let root = fixture.outside("linked");
    make_root(&root);
    let outside = fixture.outside("target-of-links");
    symlink(&outside, root.join("absolute")).unwrap();
    symlink("../../../../../..", root.join("up")).unwrap();
    fs::remove_file(root.join("etc/hosts")).unwrap();
    symlink("/../../../../../../../etc/real-hosts", root.join("etc/hosts")).unwrap();
    fs::write(root.join("etc/real-hosts"), "").unwrap();
    let inside = outside.strip_prefix("/").unwrap();
    fs::create_dir_all(root.join(inside)).unwrap();
    let mut spec =
        spec_in(&root, &["sh", "-c", "touch /absolute/x /up/t/y; ls /absolute /t; cat /etc/hosts"]);
    spec.mounts.push(mount("/absolute", Source::Tmpfs { size: None }));
    spec.mounts.push(mount("/up/t", Source::Tmpfs { size: None }));
    let outcome = run(&fixture.plain, spec).await.unwrap();
    assert!(outcome.text().starts_with("/absolute:\nx\n\n/t:\ny\n127.0.0.1"), "{outcome:?}");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    assert_eq!(fs::read_dir(root.join(inside)).unwrap().count(), 0);
}

async fn system_places_may_not_be_links(fixture: Arc<Fixture>) {
    for place in ["proc", "dev", "sys"] {
        let root = fixture.outside(&format!("linked-{place}"));
        make_root(&root);
        fs::remove_dir(root.join(place)).unwrap();
        symlink("/tmp", root.join(place)).unwrap();
        let error = run(&fixture.plain, spec_in(&root, &["true"])).await.unwrap_err();
        let expected = format!("/{place}");
        assert!(matches!(&error, Error::Mount { target, .. } if *target == expected), "{error}");
    }
}

async fn a_root_without_its_places_is_an_error(fixture: Arc<Fixture>) {
    let root = fixture.outside("bare");
    make_root(&root);
    fs::remove_dir(root.join("sys")).unwrap();
    let error = run(&fixture.plain, spec_in(&root, &["true"])).await.unwrap_err();
    assert_eq!(error.to_string(), "cannot mount at `/sys`: No such file or directory (os error 2)");
    let long = "/tmp/".repeat(1 << 20);
    let mut spec = fixture.spec(&["true"]);
    spec.mounts.push(mount(&long, Source::Tmpfs { size: None }));
    let error = run(&fixture.plain, spec).await.unwrap_err();
    assert!(matches!(&error, Error::Mount { target, .. } if target.len() < 300), "{error}");
    let many =
        (0..300).map(|number| mount(&format!("/tmp/{number}"), Source::Tmpfs { size: None }));
    let mut spec = fixture.spec(&["true"]);
    spec.mounts.extend(many);
    let error = run(&fixture.plain, spec).await.unwrap_err();
    assert!(matches!(error, Error::Invalid(_)), "{error}");
}

async fn device_nodes_do_not_work(fixture: Arc<Fixture>) {
    use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
    let node = fixture.root.join("tmp/zero-node");
    let mode = Mode::from_raw_mode(0o666);
    mknodat(CWD, &node, FileType::CharacterDevice, mode, makedev(1, 5)).unwrap();
    let outcome = fixture.run(&["head", "-c", "1", "/tmp/zero-node"]).await;
    fs::remove_file(&node).unwrap();
    assert!(outcome.stderr.contains("ermission denied"), "{outcome:?}");
}
