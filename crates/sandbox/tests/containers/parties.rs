//! Commands in the background, who reaches them, and commands beside them.

use super::{Case, cases};
use crate::fixture::{Fixture, Outcome, eventually, processes_with, run};
use sandbox::network::Party;
use sandbox::{Begun, Company, Error, Exit, Lead, Process, Root, Spec, Wish};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;
use tokio::io::AsyncReadExt;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

pub(crate) fn cases() -> Vec<Case> {
    cases![
        members_reach_what_is_offered_by_name_and_nobody_else_does,
        the_engine_reaches_a_service_and_listens_for_members,
        a_command_in_the_background_ends_as_somebody_wishes,
        what_runs_beside_a_member_has_its_address,
        a_command_runs_beside_another,
        what_runs_beside_a_container_that_has_just_begun_is_in_it,
        what_runs_beside_ends_with_either_side,
        what_ran_beside_and_was_killed_does_not_hold_up_the_end,
        what_is_called_off_as_soon_as_it_runs_beside_ends,
    ]
}

/// A command in the background.
struct Running {
    begun: Begun,
    wish: watch::Sender<Wish>,
    ended: JoinHandle<Result<Exit, Error>>,
}

impl Running {
    async fn start(fixture: &Arc<Fixture>, party: Option<&Party>, line: &str) -> Running {
        let (sender, begun) = oneshot::channel();
        let (wish, wishes) = watch::channel(Wish::Run);
        let company = party.map(|party| company(party, &[], true));
        let lead = Some(Lead { begun: sender, wish: wishes });
        let spec = Spec { company, lead, ..fixture.spec(&["sh", "-c", line]) };
        let fixture = fixture.clone();
        let ended =
            tokio::spawn(async move { fixture.bridged.run(spec, Box::new(|_, _| ())).await });
        Running { begun: begun.await.unwrap(), wish, ended }
    }

    fn address(&self) -> Ipv4Addr {
        self.begun.address.unwrap()
    }

    async fn end(self, wish: Wish) -> i32 {
        self.wish.send_replace(wish);
        self.ended.await.unwrap().unwrap().code
    }
}

fn company(party: &Party, aliases: &[(&str, Ipv4Addr)], always: bool) -> Company {
    let aliases = aliases.iter().map(|(name, address)| ((*name).to_owned(), *address)).collect();
    Company { party: party.clone(), aliases, always }
}

async fn shell_of(fixture: &Fixture, company: Option<Company>, line: &str) -> String {
    let spec = Spec { company, ..fixture.spec(&["sh", "-c", line]) };
    run(&fixture.bridged, spec).await.unwrap().text().to_owned()
}

async fn connects(party: &Party, address: SocketAddrV4) {
    while party.connect(address).await.is_err() {
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
}

async fn members_reach_what_is_offered_by_name_and_nobody_else_does(fixture: Arc<Fixture>) {
    let party = fixture.bridged.party().unwrap();
    let line = "nc -ll -p 7777 -e echo tcp";
    let server = Running::start(&fixture, Some(&party), line).await;
    let offer = party.offer(&["web", "web.example"], server.address()).unwrap();
    connects(&party, SocketAddrV4::new(server.address(), 7777)).await;
    let ask = "nc -w 5 web 7777; nc -w 5 web.example 7777; nc -w 5 web.ci-tool.internal 7777";
    assert_eq!(shell_of(&fixture, Some(company(&party, &[], false)), ask).await, "tcp\ntcp\ntcp");
    let aliases = [("own", server.address())];
    let alias = "nc -w 5 own 7777";
    assert_eq!(shell_of(&fixture, Some(company(&party, &aliases, false)), alias).await, "tcp");
    let address = server.address();
    let not = format!(
        "nc -w 2 {address} 7777 || echo not; nslookup -type=a web.ci-tool.internal >/dev/null || echo unknown"
    );
    let other = fixture.bridged.party().unwrap();
    let theirs = Running::start(&fixture, Some(&other), "sleep 100").await;
    let _their_offer = other.offer(&["else"], theirs.address()).unwrap();
    for stranger in [None, Some(company(&other, &[], true))] {
        assert_eq!(shell_of(&fixture, stranger, &not).await, "not\nunknown");
    }
    drop(offer);
    assert_eq!(shell_of(&fixture, Some(company(&party, &[], true)), &not).await, "not\nunknown");
    assert_eq!(theirs.end(Wish::Kill).await, 137);
    assert_eq!(server.end(Wish::Kill).await, 137);
}

async fn the_engine_reaches_a_service_and_listens_for_members(fixture: Arc<Fixture>) {
    let party = fixture.bridged.party().unwrap();
    let line = "nc -ll -p 80 -e echo hello";
    let server = Running::start(&fixture, Some(&party), line).await;
    let address = SocketAddrV4::new(server.address(), 80);
    let mut stream = loop {
        match party.connect(address).await {
            Ok(stream) => break stream,
            Err(_) => tokio::time::sleep(std::time::Duration::from_millis(2)).await,
        }
    };
    let mut said = String::new();
    stream.read_to_string(&mut said).await.unwrap();
    assert_eq!(said, "hello\n");
    server.end(Wish::Kill).await;
    let stand = party.stand().unwrap();
    let _offer = party.offer(&["host"], stand.address()).unwrap();
    let listener = stand.listen(80).await.unwrap();
    let accepting = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut stream, b"from outside").await.unwrap();
    });
    let line = "nc -w 5 host 80";
    let heard = shell_of(&fixture, Some(company(&party, &[], false)), line).await;
    assert_eq!(heard, "from outside");
    accepting.await.unwrap();
    let again = stand.listen(80).await.unwrap();
    let line = format!("nc -w 2 {} 80 || echo not", stand.address());
    assert_eq!(shell_of(&fixture, None, &line).await, "not");
    drop((again, stand));
    let many: Vec<_> = (0..300).map(|_| party.stand().unwrap()).collect();
    let addresses: std::collections::HashSet<_> = many.iter().map(|it| it.address()).collect();
    assert_eq!(addresses.len(), 300);
}

async fn a_command_in_the_background_ends_as_somebody_wishes(fixture: Arc<Fixture>) {
    // How long each sleeps is what it is found by, and nobody else's.
    let time = |number: u32| format!("{number}.{:07}", std::process::id());
    let start = async |line: &str, time: String| {
        let line = format!("{line} sleep {time}");
        let running = Running::start(&fixture, None, &line).await;
        eventually("it runs", || !processes_with(&format!("sleep\0{time}")).is_empty()).await;
        running
    };
    let running =
        start("trap 'exit 7' TERM; wait_for() { \"$@\" & wait; }; wait_for", time(2000)).await;
    assert_eq!(running.end(Wish::End).await, 7);
    let running = start("trap '' TERM; exec", time(2001)).await;
    running.wish.send_replace(Wish::End);
    assert_eq!(running.end(Wish::Kill).await, 137);
    let running = start("trap '' TERM; exec", time(2002)).await;
    assert_eq!(running.end(Wish::End).await, 137, "the grace is over at some time");
}

fn beside(fixture: &Fixture, process: &Process, line: &str) -> Spec {
    Spec { root: Root::Of(process.clone()), ..fixture.spec(&["sh", "-c", line]) }
}

fn begin_beside(
    fixture: &Arc<Fixture>,
    running: &Running,
    line: &str,
) -> JoinHandle<Result<Exit, Error>> {
    let (there, spec) = (fixture.clone(), beside(fixture, &running.begun.process, line));
    tokio::spawn(async move { there.bridged.run(spec, Box::new(|_, _| ())).await })
}

async fn said(fixture: &Fixture, spec: Spec) -> Outcome {
    run(&fixture.bridged, spec).await.unwrap()
}

async fn what_runs_beside_a_member_has_its_address(fixture: Arc<Fixture>) {
    let party = fixture.bridged.party().unwrap();
    let running = Running::start(&fixture, Some(&party), "exec sleep 4320").await;
    let address = "ip -4 -o addr show eth0 | sed 's/.*inet //; s,/.*,,'";
    let outcome = said(&fixture, beside(&fixture, &running.begun.process, address)).await;
    assert_eq!(outcome.text(), running.address().to_string());
    running.end(Wish::Kill).await;
}

async fn a_command_runs_beside_another(fixture: Arc<Fixture>) {
    let running = Running::start(&fixture, None, "exec sleep 4321").await;
    eventually("it runs", || !processes_with("sleep\x004321").is_empty()).await;
    let process = &running.begun.process;
    let outcome = said(&fixture, beside(&fixture, process, "ps | grep -c '[s]leep 4321'")).await;
    assert_eq!(outcome.text(), "1");
    let outcome = said(&fixture, beside(&fixture, process, "exit 3")).await;
    assert_eq!(outcome.exit.code, 3);
    let capabilities = "grep -E 'CapEff|Seccomp:|NoNewPrivs' /proc/self/status";
    let own = run(&fixture.bridged, fixture.spec(&["sh", "-c", capabilities])).await.unwrap();
    let outcome = said(&fixture, beside(&fixture, process, capabilities)).await;
    assert_eq!(outcome.text(), own.text(), "it may do no more than others");
    running.end(Wish::Kill).await;
}

async fn what_runs_beside_a_container_that_has_just_begun_is_in_it(fixture: Arc<Fixture>) {
    for _ in 0..20 {
        let running = Running::start(&fixture, None, "exec sleep 4323").await;
        let spec = beside(&fixture, &running.begun.process, "ls -d /bin");
        assert_eq!(said(&fixture, spec).await.text(), "/bin");
        assert_eq!(running.end(Wish::Kill).await, 137);
    }
}

async fn what_runs_beside_ends_with_either_side(fixture: Arc<Fixture>) {
    let running = Running::start(&fixture, None, "exec sleep 5432").await;
    let task = begin_beside(&fixture, &running, "exec sleep 6543");
    eventually("it runs", || !processes_with("sleep\x006543").is_empty()).await;
    task.abort();
    eventually("it is gone", || processes_with("sleep\x006543").is_empty()).await;
    assert!(!processes_with("sleep\x005432").is_empty(), "the other goes on");
    let task = begin_beside(&fixture, &running, "exec sleep 7654");
    eventually("it runs", || !processes_with("sleep\x007654").is_empty()).await;
    let process = running.begun.process.clone();
    running.end(Wish::Kill).await;
    assert_eq!(task.await.unwrap().unwrap().code, 137);
    let late = run(&fixture.bridged, beside(&fixture, &process, "true")).await.unwrap_err();
    assert!(late.to_string().contains("enter the container"), "{late}");
}

/// Makes this process one that gets all orphans and buries none, like process 1 of many a machine.
struct Careless;

impl Careless {
    fn new() -> Careless {
        rustix::process::set_child_subreaper(Some(rustix::process::getpid())).unwrap();
        Careless
    }
}

impl Drop for Careless {
    fn drop(&mut self) {
        rustix::process::set_child_subreaper(None).unwrap();
    }
}

async fn what_ran_beside_and_was_killed_does_not_hold_up_the_end(fixture: Arc<Fixture>) {
    let _careless = Careless::new();
    let running = Running::start(&fixture, None, "exec sleep 4321").await;
    let stubborn = "trap '' TERM; exec sleep 8765";
    let task = begin_beside(&fixture, &running, stubborn);
    eventually("it runs", || !processes_with("sleep\x008765").is_empty()).await;
    task.abort();
    eventually("it is gone", || processes_with("sleep\x008765").is_empty()).await;
    assert_eq!(running.end(Wish::Kill).await, 137);
}

async fn what_is_called_off_as_soon_as_it_runs_beside_ends(fixture: Arc<Fixture>) {
    let running = Running::start(&fixture, None, "exec sleep 4322").await;
    for _ in 0..20 {
        let task = begin_beside(&fixture, &running, "exec sleep 8766");
        // Whoever has started it may still be there.
        eventually("it runs", || !processes_with("sleep\x008766").is_empty()).await;
        task.abort();
        eventually("it is gone", || processes_with("sleep\x008766").is_empty()).await;
    }
    assert_eq!(running.end(Wish::Kill).await, 137);
}
