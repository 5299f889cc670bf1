//! What a container reaches, and what it does not.

use super::{Case, cases};
use crate::fixture::{Fixture, run};
use sandbox::{Network, Spec};
use std::collections::HashSet;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;

pub(crate) fn cases() -> Vec<Case> {
    cases![
        a_container_has_a_link_and_an_address_of_its_own,
        nobody_on_the_hosts_loopback_is_reached,
        one_container_does_not_reach_another,
        nothing_that_belongs_to_one_link_alone_is_reached,
        a_run_may_have_less_than_the_rest,
        those_that_run_at_once_have_an_address_each,
        a_namespace_is_used_again_unless_somebody_could_change_it,
    ]
}

/// A line of shell in the engine's network.
async fn shell(fixture: &Fixture, line: &str) -> String {
    run(&fixture.bridged, fixture.spec(&["sh", "-c", line])).await.unwrap().text().to_owned()
}

const OWN_ADDRESS: &str = "ip -4 -o addr show eth0 | sed 's/.*inet //; s,/.*,,'";

async fn a_container_has_a_link_and_an_address_of_its_own(fixture: Arc<Fixture>) {
    let address: Ipv4Addr = shell(&fixture, OWN_ADDRESS).await.parse().unwrap();
    assert!(address.is_private(), "{address}");
    let names = shell(&fixture, "ls /sys/class/net; cat /proc/net/if_inet6 | wc -l").await;
    assert_eq!(names, "eth0\nlo\n1", "the loopback alone speaks IPv6");
    let route = shell(&fixture, "ip route").await;
    let server = shell(&fixture, "sed -n 's/nameserver //p' /etc/resolv.conf").await;
    assert_eq!(route, format!("default via {server} dev eth0 onlink"));
    shell(&fixture, &format!("ping -c 1 -W 5 {server}")).await;
}

async fn nobody_on_the_hosts_loopback_is_reached(fixture: Arc<Fixture>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let gateway = shell(&fixture, "sed -n 's/nameserver //p' /etc/resolv.conf").await;
    let host = gateway.replace(".0.1", ".255.253");
    for address in ["127.0.0.1", &gateway, &host] {
        let line = format!("nc -w 3 {address} {port} </dev/null && echo reached || echo not");
        assert_eq!(shell(&fixture, &line).await, "not", "{address}");
    }
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "nobody came");
}

async fn one_container_does_not_reach_another(fixture: Arc<Fixture>) {
    let serving = fixture.clone();
    let (told, mut tell) = tokio::sync::mpsc::unbounded_channel();
    let line = format!("{OWN_ADDRESS}; nc -l -p 7777 -e echo reached");
    let server = tokio::spawn(async move {
        let output = Box::new(move |_, bytes: &[u8]| drop(told.send(bytes.to_vec())));
        let spec = serving.spec(&["sh", "-c", &line]);
        serving.bridged.run(spec, output).await
    });
    let address = tell.recv().await.unwrap();
    let address = String::from_utf8(address).unwrap();
    let line = format!(
        "ping -c 1 -W 1 {0} >/dev/null && echo pinged; nc -w 3 {0} 7777 || echo not",
        address.trim()
    );
    assert_eq!(shell(&fixture, &line).await, "not");
    server.abort();
}

async fn nothing_that_belongs_to_one_link_alone_is_reached(fixture: Arc<Fixture>) {
    let line = "nc -w 3 169.254.169.254 80 </dev/null 2>&1 || echo not";
    let said = shell(&fixture, line).await;
    assert!(said.ends_with("not") && said.contains("No route to host"), "{said}");
}

async fn a_run_may_have_less_than_the_rest(fixture: Arc<Fixture>) {
    let alone = Spec {
        network: Some(Network::None),
        ..fixture.spec(&[
            "sh",
            "-c",
            "ls /sys/class/net; wc -c </etc/resolv.conf; ping -c 1 127.0.0.1 >/dev/null",
        ])
    };
    let outcome = run(&fixture.bridged, alone).await.unwrap();
    assert_eq!(outcome.text(), "lo\n0");
    let plugged =
        Spec { network: Some(Network::Bridge), ..fixture.spec(&["ls", "/sys/class/net"]) };
    let error = run(&fixture.plain, plugged).await.unwrap_err();
    assert!(error.to_string().contains("network"), "{error}");
    let host =
        Spec { network: Some(Network::Host), ..fixture.spec(&["readlink", "/proc/self/ns/net"]) };
    let outcome = run(&fixture.bridged, host).await.unwrap();
    let ours = std::fs::read_link("/proc/self/ns/net").unwrap();
    assert_eq!(outcome.text(), ours.to_str().unwrap());
}

async fn those_that_run_at_once_have_an_address_each(fixture: Arc<Fixture>) {
    let mut all = tokio::task::JoinSet::new();
    let line =
        format!("cut -d' ' -f1 /proc/uptime; {OWN_ADDRESS}; sleep 0.1; cut -d' ' -f1 /proc/uptime");
    for _ in 0..20 {
        let (fixture, line) = (fixture.clone(), line.clone());
        all.spawn(async move { shell(&fixture, &line).await });
    }
    let runs: Vec<(f64, String, f64)> = all
        .join_all()
        .await
        .iter()
        .map(|text| {
            let lines: Vec<&str> = text.lines().collect();
            (lines[0].parse().unwrap(), lines[1].to_owned(), lines[2].parse().unwrap())
        })
        .collect();
    for (number, one) in runs.iter().enumerate() {
        for other in &runs[..number] {
            // The clock has steps of 10 ms.
            let together = one.0.max(other.0) + 0.02 < one.2.min(other.2);
            assert!(!together || one.1 != other.1, "{one:?} {other:?}");
        }
    }
    let addresses: HashSet<&String> = runs.iter().map(|(_, address, _)| address).collect();
    assert!(addresses.len() > 1);
}

async fn a_namespace_is_used_again_unless_somebody_could_change_it(fixture: Arc<Fixture>) {
    // The other end of its link has a number that a new one does not get for long.
    let mut seen = HashSet::new();
    let mut again = false;
    // The kernel takes a moment to forget the sockets that a namespace was made with.
    for _ in 0..200 {
        again = !seen.insert(shell(&fixture, "cat /sys/class/net/eth0/iflink").await);
        if again {
            break;
        }
    }
    assert!(again, "{seen:?}");
    let all_capabilities = true;
    for _ in 0..4 {
        let spec = fixture.spec(&["ip", "link", "set", "lo", "down"]);
        run(&fixture.bridged, Spec { all_capabilities, ..spec }).await.unwrap();
    }
    for _ in 0..8 {
        let link = shell(&fixture, "ip link show lo").await;
        assert!(link.contains("LOOPBACK,UP"), "{link}");
    }
}
