//! Programs of the host that an attendant runs.

use crate::fixture::{Fixture, eventually, processes_with};
use crate::{Case, cases};
use sandbox::{Done, Errand, Error};
use std::sync::{Arc, Mutex};

pub(crate) fn cases() -> Vec<Case> {
    cases![
        a_program_gets_what_it_is_given_and_nothing_else,
        programs_that_cannot_run_are_told,
        what_nobody_waits_for_is_killed_with_all_it_started,
        many_run_at_once,
    ]
}

fn shell(line: &str) -> Errand {
    Errand {
        program: "sh".into(),
        arguments: vec!["-c".into(), line.into()],
        folder: "/".into(),
        limit: 1 << 20,
        ..Errand::default()
    }
}

async fn a_program_gets_what_it_is_given_and_nothing_else(fixture: Arc<Fixture>) {
    let heard = Arc::new(Mutex::new(vec![]));
    let copy = heard.clone();
    let errand = Errand {
        environment: vec![("A".into(), "b c".into())],
        folder: fixture.root.display().to_string(),
        input: b"given\n".to_vec(),
        heard: Some(Box::new(move |said| copy.lock().unwrap().extend_from_slice(said))),
        ..shell(
            "cat; pwd; /usr/bin/env | grep -v -e ^PWD -e ^_ -e ^SHLVL; ls /proc/self/fd | wc -l; echo talk >&2; exit 3",
        )
    };
    let done = fixture.errands.run(errand).await.unwrap();
    // The fourth descriptor is the listing's own.
    let stdout = format!("given\n{}\nA=b c\n4\n", fixture.root.display());
    let expect = Done { code: 3, stdout: stdout.into(), stderr: b"talk\n".to_vec() };
    assert_eq!(done, expect, "{}", String::from_utf8_lossy(&done.stdout));
    assert_eq!(*heard.lock().unwrap(), b"talk\n");
    let killed = fixture.errands.run(shell("kill -9 $$")).await.unwrap();
    assert_eq!(killed.code, 137);
    // What a program leaves behind does not hold up its end.
    let left = fixture.errands.run(shell("sleep 98761.5 & echo done")).await.unwrap();
    assert_eq!((left.code, &*left.stdout), (0, &b"done\n"[..]));
    eventually("nothing is left", || processes_with("98761.5").is_empty()).await;
}

async fn programs_that_cannot_run_are_told(fixture: Arc<Fixture>) {
    let missing = Errand { program: "no-such-program".into(), ..shell("") };
    let error = fixture.errands.run(missing).await.unwrap_err();
    assert!(matches!(error, Error::Program { code: 127, .. }), "{error}");
    let nowhere = Errand { folder: "/no/such/folder".into(), ..shell("true") };
    assert_eq!(fixture.errands.run(nowhere).await.unwrap().code, 126);
    let chatty = Errand { limit: 1000, ..shell("head -c 5000 /dev/zero") };
    assert!(fixture.errands.run(chatty).await.unwrap_err().to_string().contains("more than 1000"));
    let long = Errand { input: vec![], arguments: vec!["x".repeat(1 << 20)], ..shell("") };
    assert!(fixture.errands.run(long).await.unwrap_err().to_string().contains("too long"));
}

async fn what_nobody_waits_for_is_killed_with_all_it_started(fixture: Arc<Fixture>) {
    let running = fixture.errands.run(shell("trap '' TERM; sleep 98762.5 & sleep 98762.5"));
    tokio::select! {
        ended = running => panic!("ended by itself: {ended:?}"),
        () = eventually("it runs", || processes_with("98762.5").len() >= 3) => {}
    }
    eventually("it is gone", || processes_with("98762.5").is_empty()).await;
}

async fn many_run_at_once(fixture: Arc<Fixture>) {
    let mut running = tokio::task::JoinSet::new();
    for number in 0..100 {
        let fixture = fixture.clone();
        running.spawn(async move {
            let done = fixture.errands.run(shell(&format!("echo {number}"))).await.unwrap();
            assert_eq!(String::from_utf8(done.stdout).unwrap(), format!("{number}\n"));
        });
    }
    while let Some(ended) = running.join_next().await {
        ended.unwrap();
    }
}
