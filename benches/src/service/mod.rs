//! How long does it take until a service takes connections?
//!
//! The server is the smallest there is. Its own start is measured on the host, from the start of the program to
//! the first connection that it takes; ours is from the request to the answer that the service is ready.

use crate::document::quoted;
use crate::measure::{Sample, time};
use crate::ours::{Ours, fresh};
use crate::peers::Peers;
use crate::report::Report;
use anyhow::{Context as _, Result};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

pub(crate) const TITLE: &str = "a service from its start to the first connection that it takes";

const ROUNDS: usize = 40;
const WARM_UP: usize = 5;
/// How much longer than the server itself it may take.
const LIMIT: Duration = Duration::from_millis(15);

pub(crate) fn ask(report: &mut Report) -> Result<()> {
    let peers = Peers::prepare()?;
    let ours = Ours::new();
    let connection = ours.connect(&peers.root())?;
    let mut wire = connection.another()?;
    let (mut sample, mut floor) = (Sample::default(), Sample::default());
    for round in 0..WARM_UP + ROUNDS {
        let (container, value) = (quoted(&connection.container), quoted(&fresh()));
        let service = format!(
            "{{ loadContainerFromID(id: {container}) {{ withEnvVariable(name: \"ROUND\", value: {value}) \
             {{ withExposedPort(port: 80) {{ asService(args: [\"nc\", \"-ll\", \"-p\", \"80\", \"-e\", \"true\"]) \
             {{ start }} }} }} }} }}"
        );
        let (took, id) = time(|| wire.ask_text(&service, "start"))?;
        let stop = format!("{{ loadServiceFromID(id: {}) {{ stop(kill: true) }} }}", quoted(&id));
        wire.ask_text(&stop, "stop")?;
        let alone = alone(&peers.root())?;
        if round >= WARM_UP {
            sample.push(took);
            floor.push(alone);
        }
    }
    report.sample("ours", &sample);
    report.sample("the server alone, on the host", &floor);
    let above = sample.median().saturating_sub(floor.median());
    report.time_at_most("above the server's own start", above, LIMIT);
    Ok(())
}

/// Starts the server on the host and connects to it as soon as that works.
fn alone(root: &Path) -> Result<Duration> {
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
    let mut server = Command::new(root.join("bin/busybox"));
    server.args(["nc", "-ll", "-p", &port.to_string(), "-e", "true"]);
    server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let (took, mut child) = time(|| {
        let child = server.spawn().context("cannot start the server")?;
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            std::thread::yield_now();
        }
        Ok(child)
    })?;
    child.kill()?;
    child.wait()?;
    Ok(took)
}
