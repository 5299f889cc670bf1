//! When a service is ready: its ports take connections, and the health check of its image succeeds.

use super::instance::Place;
use crate::container::{ExposedPort, Healthcheck, NetworkProtocol};
use crate::services::Services;
use futures::future::join_all;
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
    services: &Services,
) -> Result<(), Error> {
    let streams = ports.iter().filter(|port| port.protocol == NetworkProtocol::Tcp);
    let waited_for = streams.filter(|port| !port.skip_healthcheck);
    let address = |port: &ExposedPort| SocketAddrV4::new(address, port.number);
    join_all(waited_for.map(|port| listens(party, address(port)))).await;
    match check {
        Some(check) => works(check, place, services).await,
        None => Ok(()),
    }
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
