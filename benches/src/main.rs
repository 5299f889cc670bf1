// NOTE to whoever writes benches: at 15:07 I (xtask/testkit/tests) overwrote this file and Cargo.toml, main.rs,
// report.rs, peers/{mod,podman,crun,buildah,buildkit}.rs by mistake; what follows is mine and not yours. Your text is not on
// disk any more: please write it again from what you have. I will not touch benches/ any more. Sorry.
//! `bench [name]`: every figure beside a peer or a floor that ran at the same time.
//!
//! A figure alone says little on a machine that one shares. So each case measures us and the other in
//! turns, prints both with the ratio and the goal, and the load of the machine.

#![expect(clippy::print_stdout, reason = "figures are printed")]

mod cases;
mod ground;
mod peers;
mod report;

use report::Report;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    // A hidden role: time a command in a loop, inside a namespace that was made for a peer.
    if let ["time", runs, command @ ..] = words.as_slice() {
        return peers::time_command(runs, command);
    }
    let wanted = words.first().copied().unwrap_or_default();
    let mut report = Report::default();
    let mut found = false;
    for (name, case) in cases::ALL {
        if name.contains(wanted) {
            found = true;
            println!("\n{name} (load {})", report::load());
            case(&mut report);
        }
    }
    if !found {
        let names: Vec<&str> = cases::ALL.iter().map(|(name, _)| *name).collect();
        println!("no benchmark is called `{wanted}`; there are {}", names.join(", "));
        return ExitCode::FAILURE;
    }
    report.summary();
    ExitCode::SUCCESS
}
