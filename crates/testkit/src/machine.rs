//! [`Machine`]: a machine's network and its internet, in network namespaces of the test's own.
//!
//! ```text
//! the machine: wan 203.0.113.2 ---- 203.0.113.1 lan :the internet
//! ```
//!
//! An engine that is started in the machine finds the machine's network in place of the host's: what it does
//! there, and what it leaves, concerns nobody else.

use crate::cli::Cli;
use crate::process::wait_until;
use crate::state::State;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How long the namespaces may take to be there.
const START_TIME: Duration = Duration::from_secs(60);

/// A machine with a way out.
pub struct Machine {
    machine: Child,
    internet: Child,
}

impl Machine {
    /// Address of the machine.
    pub const ADDRESS: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 2);
    /// Address of everybody else.
    pub const INTERNET: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);

    /// A machine whose link takes packets of this size.
    pub fn new(mtu: u32) -> Self {
        let machine = Self { machine: holder(&["--net", "--mount"]), internet: holder(&["--net"]) };
        let (inside, outside) = (machine.machine.id(), machine.internet.id());
        let internet = outside.to_string();
        let mtu = mtu.to_string();
        machine.ip(
            inside,
            &[
                "link", "add", "wan", "mtu", &mtu, "type", "veth", "peer", "name", "lan", "mtu",
                &mtu, "netns", &internet,
            ],
        );
        for (pid, link, address) in
            [(inside, "wan", Self::ADDRESS), (outside, "lan", Self::INTERNET)]
        {
            machine.ip(pid, &["addr", "add", &format!("{address}/24"), "dev", link]);
            machine.ip(pid, &["link", "set", link, "up"]);
            machine.ip(pid, &["link", "set", "lo", "up"]);
        }
        machine.ip(inside, &["route", "add", "default", "via", &Self::INTERNET.to_string()]);
        // What engines tell each other about the host's network is about another network here.
        machine.run("mount", &["-t", "tmpfs", "tmpfs", "/run"]);
        machine
    }

    /// A server out there that tells who asked it.
    pub fn server(&self) -> SocketAddr {
        let bind = || TcpListener::bind((Self::INTERNET, 0)).expect("a port is free");
        let listener = self.outside(bind);
        let address = listener.local_addr().expect("a listener has an address");
        std::thread::spawn(move || {
            while let Ok((mut stream, asker)) = listener.accept() {
                // Who asked may be gone already.
                let _ = stream.write_all(asker.ip().to_string().as_bytes());
            }
        });
        address
    }

    /// A run of the program under test in the machine.
    pub fn cli<'a>(&self, state: &'a State, args: &[&str]) -> Cli<'a> {
        let program = state.binary().display().to_string();
        let nsenter = state.program(Path::new("/usr/bin/nsenter"));
        nsenter.args(self.entrance()).args([program]).args(args)
    }

    /// Arguments of `nsenter` that lead into the machine.
    pub fn entrance(&self) -> [String; 5] {
        let pid = self.machine.id().to_string();
        ["--target", &pid, "--net", "--mount", "--"].map(str::to_owned)
    }

    /// Starts the engine of a state folder in the machine. Clients find it from everywhere.
    #[track_caller]
    pub fn start_engine(&self, state: &State) {
        self.cli(state, &["core", "version"]).run().ok();
    }

    /// Runs a program in the machine and gives what it says.
    #[track_caller]
    pub fn run(&self, program: &str, args: &[&str]) -> String {
        let mut command = Command::new("nsenter");
        command.args(self.entrance()).arg(program).args(args);
        let output = command.output().expect("nsenter can be started");
        assert!(
            output.status.success(),
            "{command:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Lays a file over one of the machine's.
    pub fn lay(&self, file: &Path, over: &str) {
        self.run("mount", &["--bind", &file.display().to_string(), over]);
    }

    /// Runs something in the machine's network. Sockets that are made there stay there.
    pub fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        within(self.machine.id(), work)
    }

    /// Runs something in the internet's network.
    pub fn outside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        within(self.internet.id(), work)
    }

    /// What can be said about the machine's network but for IPv6, which the kernel changes by itself: links, addresses, routes, rules, settings.
    pub fn network(&self) -> String {
        let settings = "cd /proc/sys/net/ipv4; grep . ip_forward conf/*/forwarding | sort";
        let parts = [
            self.run("ip", &["-4", "-o", "addr"]),
            self.run("ip", &["-o", "link"]),
            self.run("ip", &["-4", "route", "show", "table", "all"]),
            self.run("nft", &["list", "ruleset"]),
            self.run("sh", &["-c", settings]),
        ];
        parts.join("\n")
    }

    fn ip(&self, pid: u32, args: &[&str]) {
        let pid = pid.to_string();
        let output = Command::new("nsenter")
            .args(["--target", &pid, "--net", "--", "ip"])
            .args(args)
            .output();
        let output = output.expect("nsenter can be started");
        assert!(
            output.status.success(),
            "ip {args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        for holder in [&mut self.machine, &mut self.internet] {
            let _ = holder.kill();
            let _ = holder.wait();
        }
    }
}

/// A process that is in new namespaces and does nothing.
fn holder(namespaces: &[&str]) -> Child {
    let mut command = Command::new("unshare");
    command.args(namespaces).args(["--", "sleep", "3600"]).stdin(Stdio::null()).process_group(0);
    let child = command.spawn().expect("unshare can be started");
    let name = |pid: &str| std::fs::read_link(format!("/proc/{pid}/ns/net")).ok();
    let (own, pid) = (name("self"), child.id().to_string());
    let there = || name(&pid).is_some_and(|found| Some(found) != own) && slept(&pid);
    assert!(wait_until(START_TIME, there), "the namespaces are made");
    child
}

/// Whether the process has become what it is to be: then all its namespaces are there.
fn slept(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "sleep")
}

fn within<T: Send>(pid: u32, work: impl FnOnce() -> T + Send) -> T {
    let namespace = File::open(format!("/proc/{pid}/ns/net")).expect("the namespace is there");
    std::thread::scope(|scope| {
        let entered = scope.spawn(|| {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
                .expect("a namespace can be entered");
            work()
        });
        entered.join().expect("no panic in the namespace")
    })
}
