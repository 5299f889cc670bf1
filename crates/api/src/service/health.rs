//! When a service is ready: its ports take connections, and the health check of its image succeeds.

use super::instance::Place;
use crate::container::{ExposedPort, Healthcheck, NetworkProtocol};
use crate::services::Services;
use futures::future::try_join_all;
use graph::{LogStream, Span};
use protocol::Error;
use sandbox::network::Party;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// How long is waited after the first connection that was refused; a little longer after each.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);
/// How long one connection may take to come about.
const CONNECT_LIMIT: Duration = Duration::from_secs(1);

/// How long the ports of a service may take to open.
const PORTS: Limits = Limits { silent: Duration::from_secs(5), total: Duration::from_secs(5 * 60) };

/// What holds where a health check does not say.
const INTERVAL: Duration = Duration::from_secs(30);
const TIMEOUT: Duration = Duration::from_secs(30);
const RETRIES: u32 = 3;
/// The first pause between two checks that nobody set a time for, and the longest.
const FIRST_CHECK_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_CHECK_PAUSE: Duration = Duration::from_secs(2);

/// Waits until a service is ready. That may be never: who waits watches its end too.
pub(super) async fn wait(
    (party, address, place): (&Party, Ipv4Addr, &Place),
    ports: &[ExposedPort],
    check: Option<&Healthcheck>,
    (services, span): (&Services, &Span),
) -> Result<(), Error> {
    let streams = ports.iter().filter(|port| port.protocol == NetworkProtocol::Tcp);
    let waited_for = streams.filter(|port| !port.skip_healthcheck);
    let address = |port: &ExposedPort| SocketAddrV4::new(address, port.number);
    let tell = |line: String| span.log(LogStream::Notice, line);
    let opens = |port| patiently(listens(party, address(port)), port, PORTS, tell);
    try_join_all(waited_for.map(opens)).await?;
    match check {
        Some(check) => works(check, place, services).await,
        None => Ok(()),
    }
}

/// For how long nothing is said of what is waited for, and for how long that is waited for at all.
#[derive(Clone, Copy)]
struct Limits {
    silent: Duration,
    total: Duration,
}

/// Waits until a port is open, for as long as it may take.
async fn patiently(
    open: impl Future<Output = ()>,
    port: &ExposedPort,
    limits: Limits,
    tell: impl Fn(String),
) -> Result<(), Error> {
    let mut open = std::pin::pin!(open);
    if timeout(limits.silent, &mut open).await.is_ok() {
        return Ok(());
    }
    tell(format!("nobody listens on port {port} of the service yet\n"));
    timeout(limits.total.saturating_sub(limits.silent), open).await.map_err(|_| {
        let limit = limits.total.as_secs();
        let message = format!(
            "health check errored: nobody listens on port {port} of the service after {limit} seconds"
        );
        Error::user(message).with_hint(
            "expose the port that it listens on, let it listen on all addresses, or set `experimentalSkipHealthcheck`",
        )
    })
}

/// Waits until somebody takes connections there.
async fn listens(party: &Party, address: SocketAddrV4) {
    let mut pause = FIRST_PAUSE;
    loop {
        if matches!(timeout(CONNECT_LIMIT, party.connect(address)).await, Ok(Ok(_))) {
            return;
        }
        sleep(pause).await;
        pause = (pause * 5 / 4).min(LONGEST_PAUSE);
    }
}

/// Waits until the health check succeeds, for as long as the image lets it fail.
async fn works(check: &Healthcheck, place: &Place, services: &Services) -> Result<(), Error> {
    let Some((process, beside)) = &place.inside else { return Ok(()) };
    let patience = Patience::of(check);
    let until = Instant::now() + patience.total;
    let mut pause = patience.pause;
    loop {
        let run = beside.run(process, check.command(), services);
        let failed = match timeout(patience.timeout, run).await {
            Ok(Ok((0, _))) => return Ok(()),
            Ok(Ok((code, said))) if said.trim().is_empty() => format!("exit code: {code}"),
            Ok(Ok((code, said))) => format!("exit code: {code}: {}", said.trim()),
            Ok(Err(error)) => error.message,
            Err(_) => format!("it took longer than {:?}", patience.timeout),
        };
        if Instant::now() + pause > until {
            return Err(Error::user(format!("health check errored: {failed}")));
        }
        sleep(pause).await;
        if patience.grows {
            pause = (pause * 3 / 2).min(LONGEST_CHECK_PAUSE);
        }
    }
}

/// How long and how often a health check may fail.
#[derive(Debug, PartialEq, Eq)]
struct Patience {
    total: Duration,
    pause: Duration,
    /// Whether pauses become longer, because nobody said how long they are.
    grows: bool,
    timeout: Duration,
}

impl Patience {
    fn of(check: &Healthcheck) -> Self {
        let said = |span: Duration| (!span.is_zero()).then_some(span);
        let interval = said(check.interval);
        let retries = if check.retries == 0 { RETRIES } else { check.retries };
        let asked = said(check.start_interval).into_iter().chain(interval).min();
        Self {
            total: check.start_period + interval.unwrap_or(INTERVAL) * retries,
            pause: asked.unwrap_or(FIRST_CHECK_PAUSE),
            grows: asked.is_none(),
            timeout: said(check.timeout).unwrap_or(TIMEOUT),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_port_that_does_not_open_is_told_and_then_an_error() {
        let port = ExposedPort {
            number: 81,
            protocol: NetworkProtocol::Tcp,
            description: None,
            skip_healthcheck: false,
        };
        let limits = Limits { silent: Duration::ZERO, total: Duration::ZERO };
        let told = std::cell::RefCell::new(vec![]);
        let tell = |line| told.borrow_mut().push(line);
        let never = std::future::pending();
        let error = patiently(never, &port, limits, tell).await.unwrap_err();
        assert!(error.message.starts_with("health check errored: nobody listens on port 81/tcp"));
        assert_eq!(told.take(), ["nobody listens on port 81/tcp of the service yet\n"]);
        patiently(std::future::ready(()), &port, limits, |line| panic!("{line}")).await.unwrap();
    }

    #[test]
    fn a_health_check_has_as_much_time_as_its_image_says() {
        let second = Duration::from_secs(1);
        let usual = Patience::of(&Healthcheck::default());
        assert_eq!((usual.total, usual.grows, usual.timeout), (90 * second, true, 30 * second));
        let check = Healthcheck {
            interval: second,
            start_period: 5 * second,
            start_interval: second / 2,
            retries: 2,
            timeout: second,
            ..Healthcheck::default()
        };
        let said = Patience { total: 7 * second, pause: second / 2, grows: false, timeout: second };
        assert_eq!(Patience::of(&check), said);
    }
}
