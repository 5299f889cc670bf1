//! Standard input, output of any size, redirects.

use crate::fixture::{Fixture, Outcome, mount, run};
use crate::{Case, cases};
use sandbox::{Error, Source, Spec, Stdin, Stream, User};
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use store::Mount;

pub(crate) fn cases() -> Vec<Case> {
    cases![
        streams_are_told_apart,
        no_input_is_an_empty_input,
        input_of_any_size_goes_through_a_command,
        unread_input_does_no_harm,
        input_comes_from_a_file_of_the_container,
        output_goes_to_files_too,
        both_streams_go_to_one_file,
        redirects_are_made_as_the_user,
        redirects_go_to_regular_files_only,
        redirects_do_not_leave_the_container,
        a_full_disk_under_a_redirect_is_an_error,
        much_output_needs_little_memory,
        output_ends_with_the_container,
        a_panic_over_output_ends_the_command,
    ]
}

async fn streams_are_told_apart(fixture: Arc<Fixture>) {
    let outcome = fixture.shell("echo out; echo err >&2; printf end").await;
    assert_eq!((outcome.stdout.as_str(), outcome.stderr.as_str()), ("out\nend", "err\n"));
}

async fn no_input_is_an_empty_input(fixture: Arc<Fixture>) {
    assert_eq!(fixture.shell("cat; readlink /proc/self/fd/0").await.text(), "/null");
}

fn with_input(fixture: &Fixture, args: &[&str], stdin: Stdin) -> Spec {
    let mut spec = fixture.spec(args);
    spec.stdin = stdin;
    spec
}

async fn input_of_any_size_goes_through_a_command(fixture: Arc<Fixture>) {
    for size in [0, 1, 5_000_000] {
        let bytes = vec![b'x'; size];
        let spec = with_input(&fixture, &["cat"], Stdin::Bytes(bytes.clone()));
        let outcome = run(&fixture.plain, spec).await.unwrap();
        assert_eq!(outcome.stdout.as_bytes(), bytes);
    }
}

async fn unread_input_does_no_harm(fixture: Arc<Fixture>) {
    let input = Stdin::Bytes(vec![b'x'; 5_000_000]);
    let spec = with_input(&fixture, &["head", "-c", "1"], input);
    assert_eq!(run(&fixture.plain, spec).await.unwrap().text(), "x");
}

async fn input_comes_from_a_file_of_the_container(fixture: Arc<Fixture>) {
    fs::write(fixture.root.join("tmp/input"), "from a file").unwrap();
    let file = |path: &str| Stdin::File(path.to_owned());
    let mut spec = with_input(&fixture, &["cat"], file("input"));
    spec.workdir = "/tmp".into();
    assert_eq!(run(&fixture.plain, spec).await.unwrap().text(), "from a file");
    let spec = with_input(&fixture, &["cat"], file("/dev/null"));
    assert_eq!(run(&fixture.plain, spec).await.unwrap().text(), "");
    let fifo = fixture.shell("mkfifo /tmp/input-fifo").await;
    assert_eq!(fifo.text(), "");
    for path in ["/tmp/missing", "/tmp", "/tmp/input-fifo", "/proc/self/exe", "/proc/self/fd/1"] {
        let spec = with_input(&fixture, &["cat"], file(path));
        let error = run(&fixture.plain, spec).await.unwrap_err();
        assert!(matches!(&error, Error::Stdin { path: told, .. } if told == path), "{error}");
    }
}

fn redirected(fixture: &Fixture, line: &str, stdout: Option<&str>, stderr: Option<&str>) -> Spec {
    let mut spec = fixture.spec(&["sh", "-c", line]);
    spec.redirect_stdout = stdout.map(str::to_owned);
    spec.redirect_stderr = stderr.map(str::to_owned);
    spec
}

fn check(outcome: &Outcome, stdout: &str, stderr: &str) {
    assert_eq!((outcome.stdout.as_str(), outcome.stderr.as_str()), (stdout, stderr));
}

async fn output_goes_to_files_too(fixture: Arc<Fixture>) {
    let outside = fixture.outside("redirects");
    fs::write(outside.join("out"), "much longer than what comes").unwrap();
    let line = "echo one; echo two >&2";
    let mut spec = redirected(&fixture, line, Some("m/out"), Some("/tmp/m/err"));
    spec.workdir = "/tmp".into();
    spec.mounts.push(mount("/tmp/m", Source::Mount(Mount::bind(&outside).unwrap())));
    check(&run(&fixture.plain, spec).await.unwrap(), "one\n", "two\n");
    assert_eq!(fs::read_to_string(outside.join("out")).unwrap(), "one\n");
    assert_eq!(fs::read_to_string(outside.join("err")).unwrap(), "two\n");
    let spec = redirected(&fixture, "head -c 3000000 /dev/zero", Some("/tmp/zeros"), None);
    assert_eq!(run(&fixture.plain, spec).await.unwrap().stdout.len(), 3_000_000);
    assert_eq!(fs::metadata(fixture.root.join("tmp/zeros")).unwrap().len(), 3_000_000);
}

async fn both_streams_go_to_one_file(fixture: Arc<Fixture>) {
    let line = "echo one; echo two >&2";
    let spec = redirected(&fixture, line, Some("/tmp/both"), Some("/tmp/both"));
    check(&run(&fixture.plain, spec).await.unwrap(), "one\n", "two\n");
    let both = fs::read_to_string(fixture.root.join("tmp/both")).unwrap();
    assert!(both == "one\ntwo\n" || both == "two\none\n", "{both}");
}

async fn redirects_are_made_as_the_user(fixture: Arc<Fixture>) {
    use std::os::unix::fs::MetadataExt;
    let user = User { uid: 1000, gid: 1001, groups: Vec::new() };
    let mut spec = redirected(&fixture, "echo x", Some("/tmp/t/mine"), None);
    spec.mounts
        .push(mount("/tmp/t", Source::Mount(Mount::bind(&fixture.outside("users")).unwrap())));
    spec.user = user.clone();
    let error = run(&fixture.plain, spec).await.unwrap_err();
    assert!(error.to_string().ends_with("permission denied"), "{error}");
    let open = fixture.outside("users-own");
    std::os::unix::fs::chown(&open, Some(1000), Some(1001)).unwrap();
    let mut spec = redirected(&fixture, "echo x", Some("/tmp/t/mine"), None);
    spec.mounts.push(mount("/tmp/t", Source::Mount(Mount::bind(&open).unwrap())));
    spec.user = user;
    check(&run(&fixture.plain, spec).await.unwrap(), "x\n", "");
    let made = fs::metadata(open.join("mine")).unwrap();
    assert_eq!((made.uid(), made.gid(), made.mode() & 0o777), (1000, 1001, 0o644));
}

async fn redirects_go_to_regular_files_only(fixture: Arc<Fixture>) {
    assert_eq!(fixture.shell("mkfifo /tmp/output-fifo").await.text(), "");
    for path in ["/tmp/output-fifo", "/dev/null", "/tmp", "/no/such/place", "/dev/stdout"] {
        for init in [true, false] {
            let mut spec = redirected(&fixture, "echo x", None, Some(path));
            spec.init = init;
            let error = run(&fixture.plain, spec).await.unwrap_err();
            let expected = matches!(&error, Error::Redirect { stream: "stderr", path: told, .. } if told == path);
            assert!(expected, "{path}: {error}");
        }
    }
}

async fn redirects_do_not_leave_the_container(fixture: Arc<Fixture>) {
    let outside = fixture.directory.path().join("escaped");
    let path = format!("/../../../../../../../../..{}", outside.display());
    let error = run(&fixture.plain, redirected(&fixture, "echo x", Some(&path), None)).await;
    assert!(matches!(error, Err(Error::Redirect { .. })), "{error:?}");
    for path in ["/proc/self/exe", "/proc/1/root/tmp/x", "/proc/self/root/tmp/x"] {
        let error = run(&fixture.plain, redirected(&fixture, "echo x", Some(path), None)).await;
        assert!(matches!(error, Err(Error::Redirect { .. })), "{path}: {error:?}");
    }
    assert!(!outside.exists());
}

async fn a_full_disk_under_a_redirect_is_an_error(fixture: Arc<Fixture>) {
    let mut spec = redirected(&fixture, "yes", Some("/tmp/small/out"), None);
    spec.mounts.push(mount("/tmp/small", Source::Tmpfs { size: Some(1 << 20) }));
    let error = run(&fixture.plain, spec).await.unwrap_err();
    assert!(matches!(error, Error::Redirect { stream: "stdout", .. }), "{error}");
}

fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_ascii_whitespace().nth(1).unwrap().parse().unwrap()
}

async fn much_output_needs_little_memory(fixture: Arc<Fixture>) {
    let (total, most) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (count, peak) = (total.clone(), most.clone());
    let before = resident();
    let output = move |stream: Stream, bytes: &[u8]| {
        assert_eq!(stream, Stream::Stdout);
        let so_far = count.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        if so_far % (16 << 20) < bytes.len() as u64 {
            peak.fetch_max(resident(), Ordering::Relaxed);
        }
    };
    let spec = fixture.spec(&["head", "-c", "200m", "/dev/zero"]);
    let exit = fixture.plain.run(spec, Box::new(output)).await.unwrap();
    assert_eq!(exit.code, 0);
    assert_eq!(total.load(Ordering::Relaxed), 200 << 20);
    let grown = most.load(Ordering::Relaxed).saturating_sub(before);
    assert!(grown < 8 << 10, "{grown} KiB more for 200 MiB of output");
}

async fn output_ends_with_the_container(fixture: Arc<Fixture>) {
    let outcome = fixture.shell("sleep 1000 & (sleep 1000; echo never) & echo done").await;
    check(&outcome, "done\n", "");
}

async fn a_panic_over_output_ends_the_command(fixture: Arc<Fixture>) {
    let spec = fixture.spec(&["sh", "-c", "echo x; exec sleep 1000"]);
    let output = |_: Stream, _: &[u8]| std::panic::resume_unwind(Box::new(()));
    let error = fixture.plain.run(spec, Box::new(output)).await.unwrap_err();
    assert!(error.to_string().contains("panicked"), "{error}");
}
