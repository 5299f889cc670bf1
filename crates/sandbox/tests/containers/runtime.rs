//! The same through an installed program that makes containers.

use crate::fixture::{Fixture, MEMORY, Outcome, collector, eventually, mount, processes_with, run};
use crate::{Case, cases, commands, isolation, lifetime, mounts, parties, streams, terminals};
use sandbox::{Error, MountPoint, Source, Spec, Stdin, User};
use std::fs;
use std::sync::Arc;
use store::Mount;

pub(crate) fn cases() -> Vec<Case> {
    cases![
        crun_gives_streams_and_codes,
        crun_confines_as_we_do,
        crun_mounts_what_is_given,
        crun_keeps_the_limits,
        crun_is_cancelled_like_our_own,
        crun_says_what_it_cannot_do,
        crun_leaves_nothing_and_is_alone,
    ]
}

/// Cases of ours that hold for a program that makes containers too, but those in which it differs.
pub(crate) fn conforming(program: &str) -> Vec<Case> {
    let mut cases = commands::cases();
    cases.extend(streams::cases());
    cases.extend(terminals::cases());
    cases.extend(mounts::cases());
    cases.extend(isolation::cases());
    cases.extend(lifetime::cases());
    cases.extend(parties::cases());
    cases.retain(|(name, _)| !OURS.contains(name) && !DIFFERENT.contains(&(program, name)));
    cases
}

/// Cases about what only we have: how processes and files that are ours are called, the network of the
/// engine, the variables that are given and no other.
const OURS: &[&str] = &[
    "no_input_is_an_empty_input",
    "process_1_is_ours_and_cannot_be_looked_into",
    "processes_of_the_host_are_not_seen",
    "the_environment_is_exactly_the_given_one",
    "nothing_outlives_a_killed_engine",
    "members_reach_what_is_offered_by_name_and_nobody_else_does",
    "the_engine_reaches_a_service_and_listens_for_members",
    "what_runs_beside_a_member_has_its_address",
];

/// In what programs differ: which, and the case.
const DIFFERENT: &[(&str, &str)] = &[("crun", "only_the_default_devices_exist")];

async fn made(fixture: &Fixture, spec: Spec) -> Outcome {
    run(&fixture.crun, spec).await.unwrap()
}

async fn shell(fixture: &Fixture, line: &str) -> Outcome {
    made(fixture, fixture.spec(&["sh", "-c", line])).await
}

async fn crun_gives_streams_and_codes(fixture: Arc<Fixture>) {
    let both = shell(&fixture, "echo out; echo err >&2; exit 7").await;
    assert_eq!(both.exit.code, 7);
    assert_eq!((both.stdout.as_str(), both.stderr.as_str()), ("out\n", "err\n"));
    assert_eq!(shell(&fixture, "kill -9 $$").await.exit.code, 137);
    let spec = Spec { stdin: Stdin::Bytes(b"hello".to_vec()), ..fixture.spec(&["cat"]) };
    assert_eq!(made(&fixture, spec).await.text(), "hello");
    assert_eq!(shell(&fixture, "seq 1 100000 | tail -n 1; seq 1 20000 >&2").await.text(), "100000");
    let spec = Spec {
        env: vec![("PATH".into(), "/bin".into()), ("A".into(), "b c".into())],
        workdir: "/tmp".into(),
        user: User { uid: 1000, gid: 1001, groups: vec![1002] },
        ..fixture.spec(&["sh", "-c", "echo $A; pwd; id -u; id -G; hostname"])
    };
    assert_eq!(made(&fixture, spec).await.text(), "b c\n/tmp\n1000\n1001 1002\nci-tool");
}

async fn crun_confines_as_we_do(fixture: Arc<Fixture>) {
    let seen = "grep -E 'Cap(Prm|Bnd)|NoNewPrivs|Seccomp:' /proc/self/status; ls /sys/class/net; \
        cat /proc/1/comm; ls /dev | tr '\\n' ' '; mount -t tmpfs x /tmp 2>&1; wc -c < /proc/keys; \
        touch /proc/sys/x 2>&1 | wc -l";
    let ours = fixture.shell(seen).await;
    let theirs = shell(&fixture, seen).await;
    let same = |text: &str| text.replace("console ", "").replace("core ", "");
    assert_eq!(same(&theirs.stdout), same(&ours.stdout));
    let spec = Spec { init: false, ..fixture.spec(&["sh", "-c", "echo $$"]) };
    assert_eq!(made(&fixture, spec).await.text(), "1");
    let all = "grep CapEff /proc/self/status; cat /proc/sys/kernel/ostype";
    let spec =
        |sandbox| (sandbox, Spec { all_capabilities: true, ..fixture.spec(&["sh", "-c", all]) });
    let (ours, theirs) = (spec(&fixture.plain), spec(&fixture.crun));
    let (ours, theirs) =
        (run(ours.0, ours.1).await.unwrap(), run(theirs.0, theirs.1).await.unwrap());
    assert_eq!(theirs.text(), ours.text());
}

async fn crun_mounts_what_is_given(fixture: Arc<Fixture>) {
    let given = fixture.outside("given-to-crun");
    fs::write(given.join("file"), "text").unwrap();
    let bound = || Source::Mount(Mount::bind(&given).unwrap());
    let spec = Spec {
        mounts: vec![
            mount("/new/place", bound()),
            MountPoint { read_only: true, ..mount("/closed", bound()) },
            mount("/one", Source::Mount(Mount::bind(&given.join("file")).unwrap())),
            mount("/memory", Source::Tmpfs { size: Some(1 << 20) }),
        ],
        ..fixture.spec(&["sh", "-c", "cat /new/place/file /one; echo x > /new/place/written; \
            touch /closed/x 2>/dev/null || echo closed; df -k /memory | tail -n 1 | awk '{print $2}'"])
    };
    assert_eq!(made(&fixture, spec).await.text(), "texttextclosed\n1024");
    assert_eq!(fs::read_to_string(given.join("written")).unwrap(), "x\n");
}

async fn crun_keeps_the_limits(fixture: Arc<Fixture>) {
    let eat = "x=$(head -c 200000000 /dev/zero | tr '\\0' x); echo survived";
    let outcome = shell(&fixture, eat).await;
    assert_eq!(outcome.exit.oom.map(|oom| oom.limit), Some(MEMORY), "{outcome:?}");
    let many = "for i in $(seq 1 100); do sleep 5 & done 2>&1 | grep -c -i 'fork' | head -n 1";
    let forked = shell(&fixture, many).await;
    assert_ne!(forked.stdout.trim(), "0", "{forked:?}");
}

async fn crun_is_cancelled_like_our_own(fixture: Arc<Fixture>) {
    for line in ["exec sleep 87654321", "trap '' TERM; while :; do sleep 87654321; done"] {
        let (_, output) = collector();
        let spec = fixture.spec(&["sh", "-c", line]);
        let sandbox = fixture.crun.clone();
        let task = tokio::spawn(async move { sandbox.run(spec, output).await });
        eventually("it runs", || !processes_with("sleep\087654321").is_empty()).await;
        task.abort();
        eventually("it is gone", || processes_with("sleep\087654321").is_empty()).await;
    }
}

async fn crun_says_what_it_cannot_do(fixture: Arc<Fixture>) {
    let missing = run(&fixture.crun, fixture.spec(&["no-such-program"])).await;
    assert!(matches!(missing, Err(Error::Program { code: 127, .. })), "{missing:?}");
    let directory = run(&fixture.crun, fixture.spec(&["/etc"])).await;
    assert!(matches!(directory, Err(Error::Program { .. } | Error::Runtime(_))), "{directory:?}");
}

async fn crun_leaves_nothing_and_is_alone(fixture: Arc<Fixture>) {
    let runs = (0..8).map(|number| {
        let fixture = fixture.clone();
        tokio::spawn(
            async move { shell(&fixture, &format!("echo {number}")).await.text().to_owned() },
        )
    });
    for (number, run) in runs.enumerate().collect::<Vec<_>>() {
        assert_eq!(run.await.unwrap(), number.to_string());
    }
    let place = fixture.directory.path().join("bundles");
    assert_eq!(fs::read_dir(&place).unwrap().count(), 0, "bundles are in memory of others");
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!table.contains(&place.display().to_string()));
}
