//! What does a command cost in the engine of a user without root, beside the same in root's?
//!
//! The same session, the same root file system and the same commands on two engines of the same program,
//! in turns.

use crate::measure::{Sample, ratio};
use crate::ours::{Connection, Ours, fresh};
use crate::peers::Peers;
use crate::report::Report;
use anyhow::Result;
use std::time::Duration;

pub(crate) const TITLE: &str = "one withExec([\"true\"]) of a user without root, beside root's";

const ROUNDS: usize = 20;
const WARM_UP: usize = 20;
/// Of each, in each round.
const STARTS: usize = 10;
/// Steps of the chain.
const STEPS: usize = 20;

pub(crate) fn ask(report: &mut Report) -> Result<()> {
    let peers = Peers::prepare()?;
    let roots = Ours::alone();
    let users = roots.of_user();
    let mut root = roots.connect(&peers.root())?;
    let mut user = users.connect(&peers.root())?;
    for _ in 0..WARM_UP {
        step(&mut root)?;
        step(&mut user)?;
    }
    let (mut root_steps, mut user_steps) = (Sample::default(), Sample::default());
    let (mut root_chains, mut user_chains) = (Sample::default(), Sample::default());
    for _ in 0..ROUNDS {
        for _ in 0..STARTS {
            root_steps.push(step(&mut root)?);
        }
        for _ in 0..STARTS {
            user_steps.push(step(&mut user)?);
        }
        root_chains.push(chain(&mut root)?);
        user_chains.push(chain(&mut user)?);
    }
    report.sample("root: a step", &root_steps);
    report.sample("user: a step", &user_steps);
    report.sample("root: a chain of 20 steps that write", &root_chains);
    report.sample("user: the same chain", &user_chains);
    report.ratio_at_most("user's step / root's step", ratio(&user_steps, &root_steps), 1.3);
    report.ratio_at_most("user's chain / root's chain", ratio(&user_chains, &root_chains), 1.3);
    Ok(())
}

fn step(connection: &mut Connection) -> Result<Duration> {
    connection.time_exit(connection.document().env("ROUND", &fresh()).exec(&["true"]))
}

fn chain(connection: &mut Connection) -> Result<Duration> {
    connection.time_exit(connection.document().env("ROUND", &fresh()).touches(0..STEPS))
}
