//! [`Reply`]: an answer whose bytes are read with a limit on silence, and what its status means.

use super::clients::host_of;
use crate::Error;
use crate::error::cause;
use bytes::Bytes;
use reqwest::header::{HeaderMap, HeaderName, RETRY_AFTER};
use reqwest::{Response, StatusCode, Url};
use serde::Deserialize;
use std::time::{Duration, SystemTime};

/// Most of an error's text that is read.
const ERROR_LIMIT: u64 = 64 << 10;

/// Most of what a registry says that is repeated.
const MESSAGE_LIMIT: usize = 300;

/// An answer on its way.
#[derive(Debug)]
pub(crate) struct Reply {
    response: Response,
    what: String,
    stall: Duration,
}

impl Reply {
    pub(crate) fn new(response: Response, what: &str, stall: Duration) -> Self {
        Self { response, what: what.to_owned(), stall }
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.response.status()
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    pub(crate) fn url(&self) -> &Url {
        self.response.url()
    }

    pub(crate) fn length(&self) -> Option<u64> {
        self.response.content_length()
    }

    /// A header as text.
    pub(crate) fn text_of(&self, name: HeaderName) -> Option<&str> {
        self.headers().get(name)?.to_str().ok()
    }

    /// The next bytes, none at the end.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        match tokio::time::timeout(self.stall, self.response.chunk()).await {
            Ok(Ok(chunk)) => Ok(chunk),
            Ok(Err(error)) => Err(refine(&self.what, self.response.url(), &error)),
            Err(_) => Err(stalled(&self.what, self.response.url(), self.stall)),
        }
    }

    /// All bytes, up to a limit.
    pub(crate) async fn bytes(&mut self, limit: u64) -> Result<Vec<u8>, Error> {
        let mut bytes = vec![];
        while let Some(chunk) = self.chunk().await? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() as u64 > limit {
                return Err(Error::TooLarge { what: self.what.clone(), limit });
            }
        }
        Ok(bytes)
    }

    /// The error that a status of refusal means.
    pub(crate) async fn into_error(mut self, registry: &str) -> Error {
        let (status, after) = (self.status(), retry_after(self.headers()));
        let text = self.bytes(ERROR_LIMIT).await.unwrap_or_default();
        let message = message(&text);
        let (what, registry) = (self.what, registry.to_owned());
        match status {
            StatusCode::NOT_FOUND | StatusCode::GONE => Error::NotFound { what },
            StatusCode::UNAUTHORIZED => {
                let reason = match message.is_empty() {
                    true => "it does not accept what it was shown".to_owned(),
                    false => message,
                };
                Error::Unauthorized { what, registry, reason }
            }
            StatusCode::FORBIDDEN => Error::Denied { what, registry, message },
            StatusCode::TOO_MANY_REQUESTS => Error::RateLimit { what, registry, after },
            _ => Error::Status { what, registry, status: status.as_u16(), message, after },
        }
    }
}

/// The error of a request as one of ours.
pub(crate) fn refine(what: &str, url: &Url, error: &reqwest::Error) -> Error {
    let (what, host, reason) = (what.to_owned(), host_of(url), cause(error));
    if error.is_connect() && reason.contains("certificate") {
        Error::Certificate { what, host, reason }
    } else if error.is_connect() {
        Error::Connect { what, host, reason }
    } else {
        Error::Broken { what, host, reason }
    }
}

pub(crate) fn stalled(what: &str, url: &Url, waited: Duration) -> Error {
    Error::Stalled { what: what.to_owned(), host: host_of(url), waited }
}

/// How long to wait, in seconds or until a date.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    pause(headers.get(RETRY_AFTER)?.to_str().ok()?.trim(), SystemTime::now())
}

fn pause(text: &str, now: SystemTime) -> Option<Duration> {
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let until = httpdate::parse_http_date(text).ok()?;
    // One that has passed is no reason to wait.
    Some(until.duration_since(now).unwrap_or_default())
}

#[derive(Deserialize)]
struct Errors {
    errors: Vec<Said>,
}

#[derive(Deserialize)]
struct Said {
    #[serde(default)]
    code: String,
    #[serde(default)]
    message: String,
}

/// What a registry says in the form it should, in one line.
fn message(text: &[u8]) -> String {
    let Ok(Errors { errors }) = serde_json::from_slice(text) else { return String::new() };
    let said = errors.iter().map(|said| match said.message.is_empty() {
        true => said.code.as_str(),
        false => said.message.as_str(),
    });
    let line = said.filter(|text| !text.is_empty()).collect::<Vec<_>>().join(", ");
    line.chars().filter(|c| !c.is_control()).take(MESSAGE_LIMIT).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registries_say_how_long_to_wait_in_two_ways() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_770);
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        assert_eq!(pause("120", now), Some(Duration::from_secs(120)));
        assert_eq!(pause(date, now), Some(Duration::from_secs(7)));
        assert_eq!(pause(date, SystemTime::now()), Some(Duration::ZERO));
        assert_eq!(pause("soon", now), None);
    }

    #[test]
    fn messages_are_taken_from_the_usual_form() {
        let long = format!("{{\"errors\":[{{\"message\":\"{}\"}}]}}", "x".repeat(1000));
        let table = [
            ("{\"errors\":[{\"code\":\"DENIED\",\"message\":\"no way\"}]}", "no way".to_owned()),
            (
                "{\"errors\":[{\"code\":\"DENIED\"},{\"message\":\"b\\nc\"}]}",
                "DENIED, bc".to_owned(),
            ),
            ("<html>", String::new()),
            (&long, "x".repeat(MESSAGE_LIMIT)),
        ];
        for (text, expect) in table {
            assert_eq!(message(text.as_bytes()), expect);
        }
    }
}
