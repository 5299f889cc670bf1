//! How containers end: cancelled, killed, orphaned.

use crate::fixture::{
    Collected, Fixture, LONG_GRACE, SHORT_GRACE, Zygotes, children_of, collector, eventually,
    mount, processes_with, run, spec_in,
};
use crate::{Case, cases};
use sandbox::{Errand, Sandbox, Source, Spec};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::Mount;
use tokio::sync::oneshot;

pub(crate) fn cases() -> Vec<Case> {
    cases![
        a_cancelled_command_may_tidy_up,
        a_stubborn_command_is_killed_after_the_grace,
        a_cancel_at_any_moment_leaves_nothing,
        what_is_kept_is_kept_to_the_end,
        orphans_are_buried,
        signals_reach_the_command,
        usage_is_told,
        descriptors_do_not_pile_up,
        nothing_outlives_a_killed_engine,
    ]
}

/// A value whose end can be waited for.
fn watched() -> (Box<oneshot::Sender<()>>, oneshot::Receiver<()>) {
    let (sender, receiver) = oneshot::channel();
    (Box::new(sender), receiver)
}

/// Starts a command, waits until it has written something, and lets go of it.
async fn cancel_once_up(sandbox: &Sandbox, mut spec: Spec) -> (Duration, Collected) {
    let (keep, gone) = watched();
    spec.keep = keep;
    let (collected, output) = collector();
    let cancelled = {
        let running = sandbox.run(spec, output);
        tokio::select! {
            ended = running => panic!("ended by itself: {ended:?}"),
            () = eventually("the command is up", || !collected.lock().unwrap().0.is_empty()) => {}
        }
        Instant::now()
    };
    gone.await.unwrap_err();
    (cancelled.elapsed(), collected)
}

async fn a_cancelled_command_may_tidy_up(fixture: Arc<Fixture>) {
    let outside = fixture.outside("tidy");
    let line =
        "trap 'echo tidied > /tmp/tidy/file; exit 0' TERM; echo up; while :; do sleep 0.05; done";
    for init in [true, false] {
        let mut spec = fixture.spec(&["sh", "-c", line]);
        spec.init = init;
        spec.mounts.push(mount("/tmp/tidy", Source::Mount(Mount::bind(&outside).unwrap())));
        let (took, _) = cancel_once_up(&fixture.host, spec).await;
        assert!(took < LONG_GRACE / 2, "{took:?}");
        assert_eq!(fs::read_to_string(outside.join("file")).unwrap(), "tidied\n");
        fs::remove_file(outside.join("file")).unwrap();
    }
}

async fn a_stubborn_command_is_killed_after_the_grace(fixture: Arc<Fixture>) {
    let mark = "98761.25";
    let line =
        format!("trap '' TERM INT HUP; sleep {mark} & echo up; while :; do sleep {mark}; done");
    for init in [true, false] {
        let mut spec = fixture.spec(&["sh", "-c", &line]);
        spec.init = init;
        let (took, _) = cancel_once_up(&fixture.plain, spec).await;
        assert!(took >= SHORT_GRACE, "{took:?}");
        assert!(took < SHORT_GRACE + Duration::from_secs(20), "{took:?}");
        assert_eq!(processes_with(mark).len(), 0);
    }
}

async fn a_cancel_at_any_moment_leaves_nothing(fixture: Arc<Fixture>) {
    let mark = "98762.25";
    for step in 0..40u64 {
        let (keep, gone) = watched();
        let mut spec = fixture.spec(&["sleep", mark]);
        spec.keep = keep;
        let (_, output) = collector();
        let limit = Duration::from_micros(step * 150);
        assert!(tokio::time::timeout(limit, fixture.host.run(spec, output)).await.is_err());
        gone.await.unwrap_err();
    }
    assert_eq!(processes_with(mark).len(), 0);
    assert_eq!(fixture.run(&["true"]).await.exit.code, 0);
}

async fn what_is_kept_is_kept_to_the_end(fixture: Arc<Fixture>) {
    let (keep, mut gone) = watched();
    let mut spec = fixture.spec(&["true"]);
    spec.keep = keep;
    run(&fixture.plain, spec).await.unwrap();
    assert!(gone.try_recv().is_err());
    let (keep, mut gone) = watched();
    let mut spec = fixture.spec(&["/no/such"]);
    spec.keep = keep;
    run(&fixture.plain, spec).await.unwrap_err();
    assert!(matches!(gone.try_recv(), Err(oneshot::error::TryRecvError::Closed)));
}

async fn orphans_are_buried(fixture: Arc<Fixture>) {
    // It ends when the last of them is buried, and never if one is not.
    let line = "for i in 1 2 3 4 5; do (sleep 0 & true) & done; wait; \
                while grep -q 'State:.Z' /proc/[0-9]*/status 2>/dev/null || pidof sleep >/dev/null; \
                do usleep 10000; done; echo buried";
    assert_eq!(fixture.shell(line).await.text(), "buried");
}

async fn signals_reach_the_command(fixture: Arc<Fixture>) {
    let outcome = fixture.shell("kill -TERM 1; exec sleep 1000").await;
    assert_eq!(outcome.exit.code, 143, "process 1 passes what it gets on to the command");
    let mut spec = fixture.spec(&["sh", "-c", "kill -KILL 1; echo still here"]);
    spec.init = true;
    assert_eq!(run(&fixture.plain, spec).await.unwrap().text(), "still here");
}

async fn usage_is_told(fixture: Arc<Fixture>) {
    let outcome = fixture.shell("i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done").await;
    let usage = outcome.exit.usage;
    assert!(usage.user > Duration::from_millis(20), "{usage:?}");
    assert!(usage.max_resident > 100 << 10, "{usage:?}");
}

async fn descriptors_do_not_pile_up(fixture: Arc<Fixture>) {
    let zygotes = children_of(std::process::id());
    let open = |pid: &str| fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count();
    let everywhere = || {
        let held = zygotes.iter().map(|pid| open(&pid.to_string())).sum::<usize>();
        (open("self"), held)
    };
    fixture.run(&["true"]).await;
    let before = everywhere();
    for _ in 0..100 {
        fixture.run(&["true"]).await;
        run(&fixture.plain, fixture.spec(&["/no/such"])).await.unwrap_err();
    }
    // The last runs may still be closing theirs; one that is left by every run would make 200.
    let few = || {
        let after = everywhere();
        after.0 < before.0 + 20 && after.1 < before.1 + 20
    };
    eventually("few descriptors are open", few).await;
}

/// By what the processes of a victim are found, and those of no other: how long they sleep.
fn mark(victim: u32) -> String {
    format!("98763.{victim:07}")
}

/// Another role of this binary: an engine that will be killed.
pub(crate) fn victim(words: &[String]) -> ExitCode {
    let [root] = words else { return ExitCode::FAILURE };
    let zygotes = Zygotes::start();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let fixture = Fixture::new(zygotes);
        let mark = mark(std::process::id());
        let line = format!("trap '' TERM HUP; setsid sleep {mark} & echo up; exec sleep {mark}");
        let spec = |init| {
            let mut spec = spec_in(Path::new(root), &["sh", "-c", &line]);
            spec.init = init;
            spec
        };
        let say = || Box::new(|_, bytes: &[u8]| crate::tell(String::from_utf8_lossy(bytes).trim()));
        let one = fixture.plain.run(spec(true), say());
        let two = fixture.limited.run(spec(false), say());
        let errand = Errand {
            program: "sh".into(),
            arguments: vec!["-c".into(), format!("trap '' TERM HUP; sleep {mark}")],
            folder: "/".into(),
            ..Errand::default()
        };
        let three = fixture.errands.run(errand);
        let _ended = tokio::join!(one, two, three);
    });
    ExitCode::FAILURE
}

async fn nothing_outlives_a_killed_engine(fixture: Arc<Fixture>) {
    let mut engine = Command::new(std::env::current_exe().unwrap())
        .env("TMPDIR", fixture.directory.path())
        .arg("victim")
        .arg(&fixture.root)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let stdout = engine.stdout.take().unwrap();
    let lines: Vec<String> = BufReader::new(stdout).lines().take(2).map(Result::unwrap).collect();
    assert_eq!(lines, ["up", "up"]);
    let zygotes = children_of(engine.id());
    assert_eq!(zygotes.len(), 9, "seven zygotes, the network's guard and who runs errands");
    let mark = mark(engine.id());
    let errand = || processes_with(&mark).len() >= 6;
    eventually("all are up", errand).await;
    engine.kill().unwrap();
    engine.wait().unwrap();
    eventually("all processes are gone", || processes_with(&mark).is_empty()).await;
    let gone = || zygotes.iter().all(|pid| !Path::new(&format!("/proc/{pid}")).exists());
    eventually("the zygotes are gone", gone).await;
    let name = format!("sandbox-test-{}", engine.id());
    assert!(sandbox::sweep(&name).unwrap() >= 3, "the dead engine's groups are swept");
    assert_eq!(sandbox::sweep(&name).unwrap(), 0);
}
