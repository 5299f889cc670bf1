//! What does it cost to watch?
//!
//! A pipeline of a thousand commands with the live display, on a real terminal, beside the same
//! without any. Then the share of a core that drawing takes once there are ten thousand steps to draw
//! from and one of them goes on.

use crate::document::Document;
use crate::measure::{Sample, ratio, time};
use crate::ours::{Ours, fresh};
use crate::report::Report;
use anyhow::{Result, ensure};
use std::time::{Duration, Instant};
use testkit::Terminal;
use testkit::process::Process;

pub(crate) const TITLE: &str = "a live display: 1,000 execs, and 10,000 steps to draw from";

/// What the pipelines start from: something that every session can name.
const IMAGE: &str = "deb://bookworm";
const ROUNDS: usize = 7;
/// Chains side by side, and how many commands each has: a document may not be nested deeper.
const CHAINS: usize = 2;
const EXECS: usize = 500;
/// The same for steps that cost nothing.
const WIDE: usize = 20;
const STEPS: usize = 500;
/// How long drawing is watched.
const WATCHED: Duration = Duration::from_secs(8);

pub(crate) fn ask(report: &mut Report) -> Result<()> {
    let ours = Ours::new();
    let mut samples = [("-s", Sample::default()), ("--progress=tty", Sample::default())];
    for (flag, _) in &samples {
        run(&ours, flag)?;
    }
    for _ in 0..ROUNDS {
        for (flag, sample) in &mut samples {
            sample.push(run(&ours, flag)?);
        }
    }
    let [(_, silent), (_, live)] = &samples;
    report.sample("1,000 execs without a display", silent);
    report.sample("1,000 execs with it", live);
    report.ratio_at_most("with / without", ratio(live, silent), 1.05);
    let share = share_of_a_core(&ours)?;
    report.ratio_at_most("share of a core while drawing from 10,000 steps", share, 0.05);
    Ok(())
}

/// Chains side by side, each ending in an exit code.
fn side_by_side(chains: impl IntoIterator<Item = Document>) -> String {
    let inner = chains.into_iter().enumerate().map(|(number, chain)| {
        let text = chain.ask("exitCode");
        let field = text.trim_start_matches('{').trim_end();
        format!("c{number}: {}", field.strip_suffix('}').unwrap_or(field).trim())
    });
    format!("{{ {} }}", inner.collect::<Vec<_>>().join("\n"))
}

/// How long a thousand commands take.
fn run(ours: &Ours, flag: &str) -> Result<Duration> {
    let chains = (0..CHAINS).map(|_| Document::from(IMAGE).env("ROUND", &fresh()));
    let document = side_by_side(chains.map(|chain| chain.touches(0..EXECS)));
    let (took, ended) = time(|| Ok(on_terminal(ours, flag, &document).wait()))?;
    ensure!(ended.status.success(), "{}", ended.everything);
    Ok(took)
}

fn on_terminal(ours: &Ours, flag: &str, document: &str) -> Terminal {
    let file = ours.file(document);
    ours.on_terminal(&[flag, "query", "--doc", &file.to_string_lossy()], 120, 40)
}

/// The share of a core that the client takes while one step runs and ten thousand have ended.
fn share_of_a_core(ours: &Ours) -> Result<f64> {
    let steps = |number: usize| {
        let begin = Document::from(IMAGE).env("CHAIN", &format!("{number}-{}", fresh()));
        (0..STEPS).fold(begin, |chain, step| chain.env("STEP", &step.to_string()))
    };
    let seconds = (WATCHED * 3).as_secs().to_string();
    let sleeper = Document::from(IMAGE).env("ROUND", &fresh()).exec(&["sleep", &seconds]);
    let chains = (0..WIDE).map(|number| steps(number).exec(&["true"]));
    let document = side_by_side(chains.chain([sleeper]));
    let mut terminal = on_terminal(ours, "--progress=tty", &document);
    // Two run at the end: the command, and the field that waits for it.
    let many = format!("{} done", WIDE * STEPS / 1000);
    terminal.wait_until(&many, |screen| is_all_done(&screen.text()));
    let client = Process::of(terminal.pid());
    let client = client.ok_or_else(|| anyhow::anyhow!("the client has ended"))?;
    let (before, began) = (client.processor_time(), Instant::now());
    std::thread::sleep(WATCHED);
    let used = client.processor_time().saturating_sub(before);
    let share = used.as_secs_f64() / began.elapsed().as_secs_f64();
    terminal.send("\x03");
    terminal.wait();
    Ok(share)
}

/// Whether the last line says that all steps but the ones that sleep are over.
fn is_all_done(screen: &str) -> bool {
    let last = screen.lines().last().unwrap_or_default();
    let count = |what: &str| {
        let part = last.split(" · ").find_map(|part| part.strip_suffix(what));
        part.and_then(|number| number.trim().parse::<usize>().ok()).unwrap_or(0)
    };
    count("done") + count("cached") >= WIDE * STEPS && count("running") <= 2
}
