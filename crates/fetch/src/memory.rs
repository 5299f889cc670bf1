//! Small documents, kept in memory, asked for only where they changed.

use crate::client::{Client, refine};
use crate::{Document, Error, Progress, Validators};
use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Response, StatusCode};

/// A signed index of an archive has some hundred kilobytes; this bounds what a hostile server can
/// make us hold.
pub(crate) const LIMIT: u64 = 64 << 20;

pub(crate) async fn fetch(
    client: &Client,
    url: &str,
    known: &Validators,
    progress: &mut Progress<'_>,
) -> Result<Option<Document>, Error> {
    let mut attempt = 1;
    loop {
        match try_once(client, url, known, progress).await {
            Ok(document) => return Ok(document),
            Err(error) => client.pause_after(error, attempt).await?,
        }
        attempt += 1;
    }
}

async fn try_once(
    client: &Client,
    url: &str,
    known: &Validators,
    progress: &mut Progress<'_>,
) -> Result<Option<Document>, Error> {
    let mut response = client.get(url, conditions(known)).await?;
    if response.status() == StatusCode::NOT_MODIFIED {
        return Ok(None);
    }
    let total = response.content_length();
    let mut bytes = vec![];
    while let Some(chunk) = response.chunk().await.map_err(|error| refine(url, &error))? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() as u64 > LIMIT {
            return Err(Error::TooLarge { url: url.to_owned(), limit: LIMIT });
        }
        progress(bytes.len() as u64, total);
    }
    Ok(Some(Document { bytes, validators: validators(&response) }))
}

pub(crate) fn conditions(known: &Validators) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let mut set = |name: HeaderName, value: &Option<String>| {
        let value = value.as_deref().and_then(|value| HeaderValue::from_str(value).ok());
        if let Some(value) = value {
            headers.insert(name, value);
        }
    };
    set(header::IF_NONE_MATCH, &known.etag);
    set(header::IF_MODIFIED_SINCE, &known.last_modified);
    headers
}

pub(crate) fn validators(response: &Response) -> Validators {
    let text = |name: HeaderName| {
        let value = response.headers().get(name)?;
        value.to_str().ok().map(str::to_owned)
    };
    Validators { etag: text(header::ETAG), last_modified: text(header::LAST_MODIFIED) }
}
