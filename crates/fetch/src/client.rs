//! The HTTP client, built at first use, and the rule for trying again.

use crate::error::cause;
use crate::{Error, Settings};
use reqwest::header::HeaderMap;
use reqwest::{Certificate, Proxy, Response, StatusCode, redirect};
use std::net::SocketAddr;
use std::sync::OnceLock;
use std::time::Duration;

/// Longest pause between two tries.
const LONGEST_PAUSE: Duration = Duration::from_secs(8);

#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) settings: Settings,
    /// A host that is reached at another address than its name says.
    elsewhere: Option<(String, SocketAddr)>,
    built: OnceLock<Result<Built, String>>,
}

#[derive(Debug)]
struct Built {
    client: reqwest::Client,
    /// Why https is out of the question, on a machine without certificates.
    no_certificates: Option<String>,
}

impl Client {
    pub(crate) fn new(settings: Settings) -> Self {
        Self { settings, elsewhere: None, built: OnceLock::new() }
    }

    /// A client of its own that reaches a host at this address, and not through a proxy.
    pub(crate) fn leading(&self, elsewhere: (String, SocketAddr)) -> Self {
        let settings = Settings { proxy: None, ..self.settings.clone() };
        Self { settings, elsewhere: Some(elsewhere), built: OnceLock::new() }
    }

    /// Sends a GET and turns answers that are none into errors. 304 and 416 are answers.
    pub(crate) async fn get(&self, url: &str, headers: HeaderMap) -> Result<Response, Error> {
        let response = self.send(url, headers).await?;
        let status = response.status();
        let answers = [StatusCode::NOT_MODIFIED, StatusCode::RANGE_NOT_SATISFIABLE];
        if status.is_success() || answers.contains(&status) {
            return Ok(response);
        }
        let url = url.to_owned();
        match status {
            StatusCode::NOT_FOUND | StatusCode::GONE => Err(Error::NotFound { url }),
            _ => Err(Error::Status { url, status: status.as_u16() }),
        }
    }

    /// Sends a GET and gives whatever the server answers.
    pub(crate) async fn send(&self, url: &str, headers: HeaderMap) -> Result<Response, Error> {
        let response = self.client(url)?.get(url).headers(headers).send().await;
        response.map_err(|error| refine(url, &error))
    }

    /// Waits before try number `attempt` (from 1), or gives the error back when it makes no sense
    /// to try again.
    pub(crate) async fn pause_after(&self, error: Error, attempt: u32) -> Result<(), Error> {
        if !error.is_passing() || attempt >= self.settings.attempts {
            return Err(error);
        }
        tracing::debug!(%error, attempt, "trying again");
        let factor = 1_u32.checked_shl(attempt - 1).unwrap_or(u32::MAX);
        tokio::time::sleep(self.settings.pause.saturating_mul(factor).min(LONGEST_PAUSE)).await;
        Ok(())
    }

    fn client(&self, url: &str) -> Result<&reqwest::Client, Error> {
        let refuse =
            |reason: &String| Error::Address { url: url.to_owned(), reason: reason.clone() };
        let built = self
            .built
            .get_or_init(|| build(&self.settings, self.elsewhere.as_ref()))
            .as_ref()
            .map_err(refuse)?;
        let secure = url.get(..6).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https:"));
        match &built.no_certificates {
            Some(reason) if secure => {
                Err(Error::Certificates { url: url.to_owned(), reason: reason.clone() })
            }
            _ => Ok(&built.client),
        }
    }
}

/// A machine without certificates still gets a client: plain http needs none, and package
/// archives are signed by other means.
fn build(settings: &Settings, elsewhere: Option<&(String, SocketAddr)>) -> Result<Built, String> {
    let builder = || -> Result<reqwest::ClientBuilder, String> {
        let builder = reqwest::Client::builder()
            .user_agent(concat!("ci-tool/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(settings.connect_timeout)
            .read_timeout(settings.stall_timeout)
            .redirect(redirect::Policy::limited(5))
            .retry(reqwest::retry::never())
            .no_proxy();
        let builder = match elsewhere {
            Some((host, address)) => builder.resolve(host, *address),
            None => builder,
        };
        let Some(proxy) = &settings.proxy else { return Ok(builder) };
        let proxy = Proxy::all(proxy)
            .map_err(|error| format!("the proxy `{proxy}` makes no sense: {}", cause(&error)))?;
        Ok(builder.proxy(proxy))
    };
    let own = authorities(settings)?;
    match builder()?.tls_certs_merge(own.clone()).build() {
        Ok(client) => Ok(Built { client, no_certificates: None }),
        Err(error) => {
            let no_certificates = own.is_empty().then(|| cause(&error));
            let alone = builder()?.tls_certs_only(own).build().map_err(|error| cause(&error))?;
            Ok(Built { client: alone, no_certificates })
        }
    }
}

/// The authorities of the settings.
fn authorities(settings: &Settings) -> Result<Vec<Certificate>, String> {
    let Some(pem) = &settings.authorities else { return Ok(vec![]) };
    Certificate::from_pem_bundle(pem)
        .map_err(|error| format!("the certificates of the settings are no PEM: {}", cause(&error)))
}

/// The error of a request as one of ours.
pub(crate) fn refine(url: &str, error: &reqwest::Error) -> Error {
    let (url, reason) = (url.to_owned(), cause(error));
    if error.is_connect() {
        Error::Connect { url, reason }
    } else if error.is_builder() || error.is_redirect() {
        Error::Address { url, reason }
    } else if error.is_timeout() {
        Error::Broken { url, reason: "the server sends nothing any more".to_owned() }
    } else {
        Error::Broken { url, reason }
    }
}
