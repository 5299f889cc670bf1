//! Limits, and that no group is left behind.

use crate::fixture::{Fixture, MEMORY, PIDS, collector, run};
use crate::{Case, cases};
use sandbox::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) fn cases() -> Vec<Case> {
    cases![
        memory_over_the_limit_is_told_with_figures,
        memory_below_the_limit_is_fine,
        a_fork_bomb_hits_the_limit,
        groups_look_like_the_top,
        groups_are_removed,
        leftovers_are_swept,
    ]
}

async fn memory_over_the_limit_is_told_with_figures(fixture: Arc<Fixture>) {
    let spec = fixture.spec(&["sh", "-c", "head -c 300m /dev/zero | tail -n 1 | wc -c"]);
    let outcome = run(&fixture.limited, spec).await.unwrap();
    let oom = outcome.exit.oom.expect("something was killed for want of memory");
    assert_eq!(oom.limit, MEMORY);
    let peak = oom.peak.expect("this kernel tells the peak");
    assert!(peak > MEMORY / 2 && peak <= MEMORY, "{peak}");
    let mut spec = fixture.spec(&["tail", "/dev/zero"]);
    spec.init = false;
    let outcome = run(&fixture.limited, spec).await.unwrap();
    assert_eq!(outcome.exit.code, 137);
    assert!(outcome.exit.oom.is_some());
}

async fn memory_below_the_limit_is_fine(fixture: Arc<Fixture>) {
    let spec = fixture.spec(&["sh", "-c", "head -c 8m /dev/zero | tail -n 1 | wc -c"]);
    let outcome = run(&fixture.limited, spec).await.unwrap();
    assert_eq!(outcome.text(), (8 << 20).to_string());
    assert_eq!(outcome.exit.oom, None);
}

async fn a_fork_bomb_hits_the_limit(fixture: Arc<Fixture>) {
    let spec = fixture.spec(&["sh", "-c", "while :; do sleep 1000 & done"]);
    let outcome = run(&fixture.limited, spec).await.unwrap();
    assert_ne!(outcome.exit.code, 0);
    assert!(outcome.stderr.contains("can't fork"), "{outcome:?}");
    let bomb = "bomb() { bomb | bomb & }; bomb; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; \
                ls -d /proc/[0-9]* | wc -l";
    let spec = fixture.spec(&["sh", "-c", bomb]);
    let outcome = run(&fixture.limited, spec).await.unwrap();
    let most: u64 = outcome.stdout.trim().parse().unwrap_or(0);
    assert!(most <= PIDS, "{most} processes");
    let outcome = run(&fixture.limited, fixture.spec(&["echo", "healthy"])).await.unwrap();
    assert_eq!(outcome.text(), "healthy");
}

async fn groups_look_like_the_top(fixture: Arc<Fixture>) {
    let spec = fixture.spec(&["cat", "/proc/self/cgroup"]);
    let outcome = run(&fixture.limited, spec).await.unwrap();
    for line in outcome.text().lines() {
        assert!(line.ends_with(":/"), "{line}");
    }
}

/// The engine's groups of runs, wherever control groups are mounted.
fn bases(name: &str) -> Vec<PathBuf> {
    fn search(directory: &Path, name: &str, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            if entry.file_name() == name {
                found.push(entry.path());
            }
            search(&entry.path(), name, found);
        }
    }
    let mut found = Vec::new();
    search(Path::new("/sys/fs/cgroup"), name, &mut found);
    found
}

fn groups_in(base: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(base).unwrap().flatten();
    let is_run = |path: &PathBuf| path.is_dir() && !path.ends_with("engine");
    entries.map(|entry| entry.path()).filter(is_run).collect()
}

async fn groups_are_removed(fixture: Arc<Fixture>) {
    run(&fixture.limited, fixture.spec(&["true"])).await.unwrap();
    run(&fixture.limited, fixture.spec(&["/no/such"])).await.unwrap_err();
    let bases = bases(&fixture.cgroup_name);
    assert!(!bases.is_empty());
    for base in bases {
        assert_eq!(groups_in(&base), Vec::<PathBuf>::new());
    }
}

async fn leftovers_are_swept(fixture: Arc<Fixture>) {
    let name = format!("{}-dead", fixture.cgroup_name);
    let base = bases(&fixture.cgroup_name).remove(0).with_file_name(&name);
    fs::create_dir_all(base.join("17/below")).unwrap();
    assert_eq!(sandbox::sweep(&name).unwrap(), 3);
    assert!(!base.exists());
    assert_eq!(sandbox::sweep(&name).unwrap(), 0);
    for bad in ["", "a/b", "..", "."] {
        assert!(matches!(sandbox::sweep(bad), Err(Error::Invalid(_))), "{bad}");
    }
}

/// The last of all cases: it ends the sandboxes, with something still running in one.
pub(crate) async fn nothing_is_left_after_shutdown(fixture: &Fixture) {
    let sandbox = fixture.limited.clone();
    let spec = fixture.spec(&["sleep", "98764.25"]);
    let (_, output) = collector();
    let running = tokio::spawn(async move { sandbox.run(spec, output).await });
    let mark = || !crate::fixture::processes_with("98764.25").is_empty();
    crate::fixture::eventually("the command is up", mark).await;
    let Fixture { plain, host, limited, bridged, crun, programs, .. } = fixture;
    let programs = programs.iter().map(|(_, sandbox)| sandbox);
    for sandbox in [plain, host, limited, bridged, crun].into_iter().chain(programs) {
        sandbox.shutdown().await;
    }
    let ended = running.await.unwrap();
    assert!(matches!(ended, Err(Error::Closed)), "{ended:?}");
    assert_eq!(bases(&fixture.cgroup_name), Vec::<PathBuf>::new());
    assert!(crate::fixture::processes_with("98764.25").is_empty());
    // Who runs errands is no sandbox's, and goes when it is dropped.
    assert_eq!(crate::fixture::children_of(std::process::id()).len(), 1);
    let refused = run(&fixture.limited, fixture.spec(&["true"])).await;
    assert!(matches!(refused, Err(Error::Closed)), "{refused:?}");
}
