//! A registry that cuts connections, answers 429 or 500, redirects or sends the wrong bytes: what is
//! pulled is right or a clear error, nothing wrong is stored, and the next pull succeeds. (That one
//! that hangs is given up is seen in the tests of the crate, which need not wait as long.)

use serde_json::json;
use testkit::registry::{Fault, FaultyProxy, Registry};
use testkit::{Random, Session, State, rounds};

/// Bytes of the file in the image; more than one piece of a transfer.
const SIZE: u64 = 300_000;

/// Publishes an image with a file that never was before, and gives the file's digest.
fn publish(session: &Session, address: &str, seed: u64) -> String {
    let make = format!("yes {seed} | head -c {SIZE} > /data; sha256sum /data");
    let make = json!(["sh", "-c", make]);
    let publish = format!("publish(address: {})", json!(address));
    session.container(&format!("withExec(args: {make}) {{ {publish} }}"));
    session.container(&format!("withExec(args: {make}) {{ stdout }}"))
}

fn pull(address: &str) -> String {
    let look = r#"withExec(args: ["sha256sum", "/data"]) { stdout }"#;
    format!("{{ container {{ from(address: {}) {{ {look} }} }} }}", json!(address))
}

fn random_fault(random: &mut Random) -> Fault {
    let at = random.below(2_000);
    match random.below(8) {
        0 => Fault::Status(500, ""),
        1 => Fault::Status(503, "retry-after: 1\r\n"),
        2 => Fault::Status(429, ""),
        3 => Fault::Status(429, "retry-after: 3600\r\n"),
        4 => Fault::Redirect,
        5 => Fault::CutAfter(at),
        6 => Fault::DigestHeader(format!("sha256:{at:064x}")),
        _ => Fault::Flip(at % 300),
    }
}

#[test]
fn a_faulty_registry_is_an_error_or_no_matter_and_nothing_wrong_is_kept() {
    let mut random = Random::new("registries");
    let registry = Registry::start();
    let proxy = FaultyProxy::before(&registry.address());
    let state = State::new();
    let (publisher, puller) = (Session::start(&state), state.another());
    for round in 0..rounds() {
        let name = format!("app{round}:1");
        let digest =
            publish(&publisher, &format!("{}/{name}", registry.address()), random.next_number());
        for _ in 0..=random.below(2) {
            let path = *random.pick(&["/manifests/", "/blobs/"]);
            let times = 1 + random.below(2) as u32;
            proxy.fault("GET", path, random_fault(&mut random), times);
        }
        let address = format!("{}/{name}", proxy.address());
        let answer = Session::start(&puller).send(&pull(&address)).json();
        match answer["errors"][0]["message"].as_str() {
            Some(said) => assert!(said.contains(&proxy.address()), "round {round}: {said}"),
            None => {
                let text = answer["data"].to_string();
                assert!(text.contains(digest.trim()), "round {round}: {text}, not {digest}");
            }
        }
        proxy.clear();
        assert_eq!(Session::start(&puller).leaf(&pull(&address)), digest, "round {round}");
    }
}
