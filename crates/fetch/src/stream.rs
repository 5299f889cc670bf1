//! A file of unknown length and content, piece by piece, for who keeps it somewhere of their own.
//!
//! A cut connection is resumed where it stopped if the server says that it still has the same
//! version; otherwise the reader is told to begin anew.

use crate::client::{Client, refine};
use crate::memory::{conditions, validators};
use crate::{Error, Validators};
use bytes::Bytes;
use reqwest::header::{self, HeaderMap, HeaderValue};
use reqwest::{Response, StatusCode};
use sha2::{Digest as _, Sha256};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::SystemTime;

/// What to ask a server for.
#[derive(Clone, Debug)]
pub struct Request {
    /// The address, `http:` or `https:`.
    pub url: String,
    /// The `Authorization` header. It is not sent to other hosts that the server leads to.
    pub authorization: Option<String>,
    /// Of the version that is there already.
    pub known: Validators,
    /// A host that is reached at another address than its name says, directly.
    pub elsewhere: Option<(String, SocketAddr)>,
}

/// What a reader of a [`Stream`] gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// The next bytes.
    Data(Bytes),
    /// What came so far is void: the bytes come again, perhaps of another version.
    Restart,
    /// That was all.
    End,
}

/// A download on its way.
#[derive(Debug)]
pub struct Stream {
    client: Arc<Client>,
    request: Request,
    response: Response,
    version: Validators,
    /// Bytes that the reader has.
    length: u64,
    /// Of those.
    sum: Sha256,
    total: Option<u64>,
    attempt: u32,
}

/// Asks for a file; none where it is still the known version.
pub(crate) async fn open(client: Arc<Client>, request: Request) -> Result<Option<Stream>, Error> {
    let client = match &request.elsewhere {
        Some(elsewhere) => Arc::new(client.leading(elsewhere.clone())),
        None => client,
    };
    let mut attempt = 1;
    let response = loop {
        match ask(&client, &request, conditions(&request.known)).await {
            Ok(response) => break response,
            Err(error) => client.pause_after(error, attempt).await?,
        }
        attempt += 1;
    };
    if response.status() == StatusCode::NOT_MODIFIED {
        return Ok(None);
    }
    let (version, total) = (validators(&response), response.content_length());
    let (length, sum) = (0, Sha256::new());
    Ok(Some(Stream { client, request, response, version, length, sum, total, attempt }))
}

async fn ask(client: &Client, request: &Request, headers: HeaderMap) -> Result<Response, Error> {
    let mut headers = headers;
    if let Some(authorization) = &request.authorization {
        // The reason would quote the header.
        let mut value = HeaderValue::from_str(authorization).map_err(|_| Error::Address {
            url: request.url.clone(),
            reason: "the authorization is no text that fits into a header".to_owned(),
        })?;
        value.set_sensitive(true);
        headers.insert(header::AUTHORIZATION, value);
    }
    let response = client.send(&request.url, headers).await?;
    let status = response.status();
    if status.is_success() || status == StatusCode::NOT_MODIFIED {
        return Ok(response);
    }
    Err(Error::Status { url: request.url.clone(), status: status.as_u16() })
}

impl Stream {
    /// What the server says of this version. After [`Piece::Restart`] it may be another one.
    pub fn validators(&self) -> &Validators {
        &self.version
    }

    /// When the server's file was last changed.
    pub fn modified(&self) -> Option<SystemTime> {
        self.version.last_modified.as_deref().and_then(|text| httpdate::parse_http_date(text).ok())
    }

    /// Bytes that the reader has, and how many there will be if that is known.
    pub fn progress(&self) -> (u64, Option<u64>) {
        (self.length, self.total)
    }

    /// Sha256 of the bytes that the reader has.
    pub fn sha256(&self) -> [u8; 32] {
        self.sum.clone().finalize().into()
    }

    /// The next piece.
    pub async fn next(&mut self) -> Result<Piece, Error> {
        loop {
            let error = match self.response.chunk().await {
                Ok(Some(bytes)) => {
                    self.length += bytes.len() as u64;
                    self.sum.update(&bytes);
                    return Ok(Piece::Data(bytes));
                }
                Ok(None) => return Ok(Piece::End),
                Err(error) => refine(&self.request.url, &error),
            };
            self.client.pause_after(error, self.attempt).await?;
            self.attempt += 1;
            if self.again().await? {
                return Ok(Piece::Restart);
            }
        }
    }

    /// Asks for the rest. Says whether the server begins anew.
    async fn again(&mut self) -> Result<bool, Error> {
        let response = loop {
            match ask(&self.client, &self.request, self.rest()).await {
                Ok(response) => break response,
                Err(error) => self.client.pause_after(error, self.attempt).await?,
            }
            self.attempt += 1;
        };
        let resumed = response.status() == StatusCode::PARTIAL_CONTENT;
        if !resumed {
            self.version = validators(&response);
            self.total = response.content_length();
            self.length = 0;
            self.sum = Sha256::new();
        }
        self.response = response;
        Ok(!resumed)
    }

    /// The headers that ask for the rest of this very version; none where that cannot be said.
    fn rest(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        // A weak tag may not be used for ranges.
        let strong = self.version.etag.as_ref().filter(|etag| !etag.starts_with("W/"));
        let version = strong.or(self.version.last_modified.as_ref());
        let version = version.and_then(|text| HeaderValue::from_str(text).ok());
        let range = HeaderValue::from_str(&format!("bytes={}-", self.length)).ok();
        if let (true, Some(version), Some(range)) = (self.length > 0, version, range) {
            headers.insert(header::IF_RANGE, version);
            headers.insert(header::RANGE, range);
        }
        headers
    }
}
