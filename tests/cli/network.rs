//! The network that commands in containers see.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use testkit::{Machine, Session, State};

/// Prints what a server says. Neither side closes before the server does: an old `pasta` forgets a
/// connection that is half closed.
fn fetch(address: impl ToString) -> String {
    let address = address.to_string().replace(':', " ");
    format!(
        "nc -w 10 {address} -e sh -c 'cat >/tmp/said' 2>&1 || echo failed; cat /tmp/said 2>/dev/null; true"
    )
}

#[test]
fn a_command_reaches_the_outside_by_the_machines_address() {
    let state = State::new();
    let machine = Machine::new(1380);
    machine.start_engine(&state);
    let session = Session::start(&state);
    let server = machine.server();
    assert_eq!(session.shell(&fetch(server)), "203.0.113.2");
    assert_eq!(session.shell("cat /sys/class/net/eth0/mtu"), "1380\n");
}

#[test]
fn without_a_network_there_is_only_the_loopback() {
    let state = State::with_config("network = \"none\"");
    let session = Session::start(&state);
    assert_eq!(session.shell("ls /sys/class/net; ls /etc/ssl 2>&1 | wc -l"), "lo\n1\n");
}

#[test]
fn the_hosts_network_is_the_hosts() {
    let state = State::with_config("network = \"host\"");
    let session = Session::start(&state);
    let own = std::fs::read_link("/proc/self/ns/net").unwrap();
    assert_eq!(session.shell("readlink /proc/self/ns/net").trim(), own.to_str().unwrap());
}

#[test]
fn a_subnet_of_ones_own_is_taken_and_one_of_the_hosts_is_refused() {
    let state = State::with_config("subnet = \"192.168.211.0/24\"");
    let machine = Machine::new(1500);
    machine.start_engine(&state);
    let session = Session::start(&state);
    let text = session.shell("ip -4 -o addr show eth0; cat /etc/resolv.conf");
    assert!(
        text.contains("inet 192.168.211.") && text.contains("nameserver 192.168.211.1\n"),
        "{text}"
    );
    drop(session);
    state.stop();
    machine.run("ip", &["route", "add", "192.168.211.128/25", "via", "203.0.113.1"]);
    let output = machine.cli(&state, &["core", "version"]).run();
    let said = output.fails(1);
    assert!(said.contains("the host has a route into the subnet `192.168.211.0/24`"), "{said}");
    assert!(said.contains("set another `subnet`"), "{said}");
}

#[test]
fn behind_a_firewall_that_forwards_nothing_pasta_is_the_way_out() {
    let state = State::new();
    let machine = Machine::new(1500);
    let chain = "{ type filter hook forward priority 0 ; policy drop ; }";
    machine.run("nft", &[&format!("add table inet theirs; add chain inet theirs forward {chain}")]);
    machine.start_engine(&state);
    let session = Session::start(&state);
    let server = machine.server();
    assert_eq!(session.shell(&fetch(server)), "203.0.113.2", "{}", state.log());
    assert!(state.log().contains("does not pass packets on"), "{}", state.log());
    let local = machine.inside(|| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
    let port = local.local_addr().unwrap().port();
    for address in ["127.0.0.1", "203.0.113.2", "203.0.113.1"] {
        let said = session.shell(&fetch(format!("{address}:{port}")));
        assert!(said.contains("failed"), "{address}: {said}");
    }
    drop(session);
    state.stop();
    let empty = state.file("empty", "");
    machine.lay(&empty, "/usr/bin/pasta");
    let output = machine.cli(&state, &["core", "version"]).run();
    let said = output.fails(1);
    assert!(
        said.contains("which is not installed") && said.contains("apt install passt"),
        "{said}"
    );
}

/// Answers names in the machine: `long.example` has many addresses, which do not fit into a packet.
struct Resolver {
    asked: Arc<AtomicUsize>,
}

const RESOLVER: &str = "127.0.0.53:53";

impl Resolver {
    fn start(machine: &Machine) -> Resolver {
        let (short, long) = machine
            .inside(|| (UdpSocket::bind(RESOLVER).unwrap(), TcpListener::bind(RESOLVER).unwrap()));
        let asked = Arc::new(AtomicUsize::new(0));
        let counter = asked.clone();
        std::thread::spawn(move || {
            let mut buffer = [0; 2048];
            while let Ok((length, asker)) = short.recv_from(&mut buffer) {
                counter.fetch_add(1, Ordering::Relaxed);
                let mut reply = answer(&buffer[..length]);
                if reply.len() > 512 {
                    reply = buffer[..length].to_vec();
                    reply[2] |= 0x82;
                    reply[3] |= 0x80;
                }
                let _ = short.send_to(&reply, asker);
            }
        });
        std::thread::spawn(move || {
            while let Ok((mut stream, _)) = long.accept() {
                let mut length = [0; 2];
                if stream.read_exact(&mut length).is_err() {
                    continue;
                }
                let mut packet = vec![0; usize::from(u16::from_be_bytes(length))];
                let _ = stream.read_exact(&mut packet);
                let reply = answer(&packet);
                let _ = stream.write_all(&(reply.len() as u16).to_be_bytes());
                let _ = stream.write_all(&reply);
            }
        });
        Resolver { asked }
    }
}

/// An answer to a question for addresses.
fn answer(packet: &[u8]) -> Vec<u8> {
    let name_ends = 12 + packet[12..].iter().position(|byte| *byte == 0).unwrap() + 1;
    let end = name_ends + 4;
    let kind = packet[name_ends + 1];
    let first = &packet[13..13 + usize::from(packet[12])];
    let count: u8 = match (first, kind) {
        (b"long", 1) => 60,
        (b"www", 1) => 1,
        _ => 0,
    };
    let mut reply = packet[..end].to_vec();
    reply[2] |= 0x80;
    reply[3] = if first == b"nobody" { 0x83 } else { 0x80 };
    reply[6..8].copy_from_slice(&[0, count]);
    reply[8..12].fill(0);
    for number in 0..count {
        reply.extend_from_slice(&[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 198, 51, 100, number]);
    }
    reply
}

#[test]
fn names_are_answered_by_the_machines_own_resolver() {
    let state = State::debian();
    let machine = Machine::new(1500);
    let settings =
        state.file("resolv.conf", "search corp.example\nnameserver 127.0.0.53\noptions ndots:1\n");
    machine.lay(&settings, "/etc/resolv.conf");
    let resolver = Resolver::start(&machine);
    machine.start_engine(&state);
    let session = Session::start(&state);
    let shell = |script: &str| {
        let script = serde_json::Value::from(script);
        let chain = format!(
            r#"{{ container {{ from(address: "deb://bookworm") {{ withExec(args: ["sh", "-c", {script}]) {{ stdout }} }} }} }}"#
        );
        session.leaf(&chain).as_str().unwrap().to_owned()
    };
    let text = shell("cat /etc/resolv.conf");
    assert!(text.ends_with("search ci-tool.internal corp.example\noptions ndots:1\n"), "{text}");
    assert_eq!(text.matches("nameserver").count(), 1, "{text}");
    assert!(shell("getent ahostsv4 www.example").starts_with("198.51.100.0 "));
    let before = resolver.asked.load(Ordering::Relaxed);
    assert_eq!(shell("getent ahostsv6 www.example | grep -v ^::ffff: || echo none"), "none\n");
    let many = shell("getent ahostsv4 long.example | grep -c STREAM");
    assert_eq!(many, "60\n", "the whole of a long answer");
    assert_eq!(shell("getent hosts nobody.example || echo unknown"), "unknown\n");
    assert!(resolver.asked.load(Ordering::Relaxed) > before);
}

#[test]
fn certificates_and_proxies_are_there_and_part_of_nothing() {
    let certificate =
        |body: &str| format!("-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n");
    let state = State::new();
    let file = state.file("own.pem", certificate("FIRST"));
    state.configure(&format!("ca-certificates = {:?}", file.display().to_string()));
    let script = "cat $SSL_CERT_FILE; echo $HTTP_PROXY; touch /etc/touched";
    let busybox = format!("--directory={}", testkit::busybox().display());
    let run = |proxy: &str, last: &[&str]| {
        let exec = format!("--args=sh,-c,{script}");
        let mut chain = vec!["core", "container", "with-rootfs", &busybox, "with-exec", &exec];
        chain.extend(last);
        state.cli(chain).env("HTTP_PROXY", proxy).run().ok().to_owned()
    };
    let first = run("http://first.example", &["stdout"]);
    assert_eq!(first, certificate("FIRST") + "http://first.example\n");
    let left = run("http://first.example", &["directory", "--path=/etc", "entries"]);
    assert!(left.contains("touched") && !left.contains("ssl"), "nothing of it stays: {left}");
    state.stop();
    std::fs::write(&file, certificate("SECOND")).unwrap();
    assert_eq!(run("http://second.example", &["stdout"]), first, "it was found in the cache");
    let own = [
        "core",
        "container",
        "with-rootfs",
        &busybox,
        "with-env-variable",
        "--name=http_proxy",
        "--value=own",
        "with-exec",
        "--args=sh,-c,cat $SSL_CERT_FILE; echo $http_proxy $HTTP_PROXY",
        "stdout",
    ];
    assert_eq!(state.cli(own).run().ok(), certificate("SECOND") + "own\n");
}

#[test]
fn what_an_image_trusts_itself_it_goes_on_trusting() {
    let certificate =
        |body: &str| format!("-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n");
    let state = State::new();
    let file = state.file("own.pem", certificate("HOST"));
    state.configure(&format!("ca-certificates = {:?}", file.display().to_string()));
    let session = Session::start(&state);
    let own = serde_json::Value::from(certificate("IMAGE"));
    let path = "/etc/ssl/certs/ca-certificates.crt";
    // As Debian's `update-ca-certificates` does it: a new file in the place of the old.
    let replace = format!("cp {path} /tmp/new; echo more >> /tmp/new; mv /tmp/new {path}");
    let replace = serde_json::Value::from(replace);
    let text = session.container(&format!(
        r#"withNewFile(path: "{path}", contents: {own}) {{ withExec(args: ["cat", "{path}"]) {{ stdout }} }}"#
    ));
    assert_eq!(text, certificate("IMAGE") + &certificate("HOST"));
    let kept = session.container(&format!(
        r#"withNewFile(path: "{path}", contents: {own}) {{ withExec(args: ["true"]) {{ file(path: "{path}") {{ contents }} }} }}"#
    ));
    assert_eq!(kept, certificate("IMAGE"), "the image's own file stays as it is");
    let replaced = session.container(&format!(
        r#"withNewFile(path: "{path}", contents: {own}) {{ withExec(args: ["sh", "-c", {replace}]) {{ file(path: "{path}") {{ contents }} }} }}"#
    ));
    assert!(replaced.ends_with("more\n"), "{replaced}");
}

#[test]
fn a_slow_answer_from_outside_holds_up_nobody() {
    let state = State::new();
    let machine = Machine::new(1500);
    let settings = state.file("resolv.conf", "nameserver 203.0.113.1\n");
    machine.lay(&settings, "/etc/resolv.conf");
    // It takes questions and says nothing.
    let silent = machine.outside(|| UdpSocket::bind((Machine::INTERNET, 53)).unwrap());
    silent.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    machine.start_engine(&state);
    let session = Session::start(&state);
    let text =
        session.shell("nslookup -type=a www.example >/dev/null 2>&1 && echo found || echo not");
    assert_eq!(text, "not\n");
    assert!(silent.recv(&mut [0; 512]).is_ok(), "it was asked");
    assert_eq!(session.shell("echo still here"), "still here\n");
}
