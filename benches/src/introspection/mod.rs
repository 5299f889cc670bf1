//! What does the whole schema cost, asked for in the words of published clients?
//!
//! Some libraries ask it before anything else. A question that was asked before is answered from
//! memory: that is the floor, the same bytes over the same connection with no work behind them. A
//! remark makes the question new each time.

use crate::measure::{Sample, ratio, time};
use crate::ours::{Ours, fresh};
use crate::report::Report;
use anyhow::Result;
use std::time::Duration;

pub(crate) const TITLE: &str = "the whole schema, beside the same bytes from memory";

/// The standard question, as the GraphQL library of Python writes it.
const QUESTION: &str = include_str!("../../../tests/cli/graph/introspection.graphql");
const ROUNDS: usize = 50;
const LIMIT: Duration = Duration::from_millis(20);

pub(crate) fn ask(report: &mut Report) -> Result<()> {
    let ours = Ours::alone();
    let (_session, mut wire) = ours.session()?;
    let (mut new, mut again) = (Sample::default(), Sample::default());
    wire.ask(QUESTION, "queryType")?;
    for _ in 0..ROUNDS {
        let question = format!("{QUESTION}\n# {}", fresh());
        for sample in [&mut new, &mut again] {
            let (took, _) = time(|| wire.ask(&question, "queryType"))?;
            sample.push(took);
        }
    }
    report.sample("a question that is new", &new);
    report.sample("the same question again", &again);
    report.compare("new / again", ratio(&new, &again));
    report.time_at_most("a question that is new", new.median(), LIMIT);
    Ok(())
}
