//! Real containers, through the crate's face. Needs root and Debian's `busybox-static`, `crun` and `runc`.
//!
//! This is not libtest: zygotes are started from `main`, before any thread, and are this same binary in
//! another role. A word on the command line selects the cases whose names contain it.
#![expect(clippy::unwrap_used, reason = "a failed case is told by its panic")]

mod cgroups;
mod commands;
mod errands;
mod fixture;
mod isolation;
mod lifetime;
mod memory;
mod mounts;
mod network;
mod parties;
mod runtime;
mod streams;
mod terminals;

use fixture::{Fixture, Zygotes};
use std::future::Future;
use std::io::Write;
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// No case takes longer, or something hangs.
const CASE_LIMIT: Duration = Duration::from_secs(120);

type Work = fn(Arc<Fixture>) -> Pin<Box<dyn Future<Output = ()> + Send>>;

type Case = (&'static str, Work);

/// Lists functions as cases, by their names.
macro_rules! cases {
    ($($function:path),* $(,)?) => {
        vec![$((stringify!($function), |fixture| Box::pin($function(fixture)))),*]
    };
}
pub(crate) use cases;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.first().map(String::as_str) {
        Some("zygote") => return ExitCode::from(sandbox::zygote_main() as u8),
        Some("errands") => return ExitCode::from(sandbox::errands_main() as u8),
        Some("guard") => return ExitCode::from(sandbox::network::guard_main() as u8),
        Some("victim") => return lifetime::victim(&words[1..]),
        _ => {}
    }
    let zygotes = Zygotes::start();
    let filter = words.into_iter().find(|word| !word.starts_with('-')).unwrap_or_default();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let failed = runtime.block_on(run_all(zygotes, &filter));
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn run_all(zygotes: Zygotes, filter: &str) -> usize {
    let fixture = Arc::new(Fixture::new(zygotes));
    let mut cases: Vec<Case> = commands::cases();
    cases.extend(isolation::cases());
    cases.extend(mounts::cases());
    cases.extend(memory::cases());
    cases.extend(streams::cases());
    cases.extend(terminals::cases());
    cases.extend(lifetime::cases());
    cases.extend(cgroups::cases());
    cases.extend(network::cases());
    cases.extend(parties::cases());
    cases.extend(runtime::cases());
    cases.extend(errands::cases());
    let own = cases.into_iter().map(|(name, case)| (name.to_owned(), case, fixture.clone()));
    let mut all: Vec<(String, Work, Arc<Fixture>)> = own.collect();
    for (program, sandbox) in &fixture.programs {
        let through = Arc::new(fixture.through(sandbox));
        let cases = runtime::conforming(program).into_iter();
        all.extend(cases.map(|(name, case)| (format!("{program}: {name}"), case, through.clone())));
    }
    let (mut failed, mut passed) = (0, 0);
    for (name, case, fixture) in all.into_iter().filter(|(name, ..)| name.contains(filter)) {
        let task = tokio::spawn(tokio::time::timeout(CASE_LIMIT, case(fixture)));
        let told = match task.await {
            Ok(Ok(())) => "ok",
            Ok(Err(_)) => "TIMED OUT",
            Err(_) => "FAILED",
        };
        if told == "ok" {
            passed += 1;
        } else {
            failed += 1;
        }
        tell(&format!("test {name} ... {told}"));
    }
    cgroups::nothing_is_left_after_shutdown(&fixture).await;
    tell(&format!("\n{passed} passed, {failed} failed"));
    failed
}

fn tell(line: &str) {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{line}").and_then(|()| stdout.flush()).unwrap();
}
