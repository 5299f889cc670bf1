//! [`Blob`]: bytes by digest, which go on where they stopped and are verified on the way.
//!
//! Who reads never sees the last bytes of a blob that is not what it should be: they are held back
//! until the digest of all is known, so nothing wrong can pass for whole.

use crate::wire::{Endpoint, Exchange, Reply, Request, Tries};
use crate::{Descriptor, Error, Progress, Reference, Registries, Verifier, quiet};
use bytes::Bytes;
use futures::Stream;
use reqwest::header::{CONTENT_RANGE, HeaderValue, RANGE};
use reqwest::{Method, StatusCode};
use std::collections::VecDeque;
use std::fmt;

/// After as many bytes a failure counts as the first again.
const FORGIVEN: u64 = 1 << 20;

/// A blob on its way.
pub struct Blob {
    registries: Registries,
    reference: Reference,
    descriptor: Descriptor,
    verifier: Verifier,
    progress: Progress,
    /// Whom to ask, the first one now; the registry itself is the last.
    endpoints: VecDeque<Endpoint>,
    tries: Tries,
    /// Bytes that were there when a try last failed.
    failed_at: u64,
    reply: Option<Reply>,
    /// Bytes to leave out, of a host that sends from the start whatever it is asked.
    skip: u64,
    finished: bool,
}

impl Blob {
    pub(crate) async fn open(
        registries: Registries,
        (reference, descriptor): (&Reference, &Descriptor),
        beginning: Verifier,
        progress: Progress,
    ) -> Result<Self, Error> {
        let inner = registries.inner.clone();
        let mut endpoints = VecDeque::from(inner.mirrors(reference)?);
        endpoints.push_back(inner.origin(reference));
        let tries = inner.tries(&endpoints[0]);
        let failed_at = beginning.length();
        let mut blob = Self {
            registries,
            reference: reference.clone(),
            descriptor: descriptor.clone(),
            verifier: beginning,
            progress,
            endpoints,
            tries,
            failed_at,
            reply: None,
            skip: 0,
            finished: false,
        };
        // What is not there or not allowed is known before anything is read.
        while blob.reply.is_none() && !blob.is_whole() {
            if let Err(error) = blob.connect().await {
                blob.recover(error).await?;
            }
        }
        Ok(blob)
    }

    /// The next bytes; none once all were given and are what they should be.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        while !self.finished {
            if self.is_whole() {
                self.check()?;
                break;
            }
            match self.receive().await {
                Ok(bytes) if bytes.is_empty() => {}
                Ok(bytes) => {
                    self.take(&bytes)?;
                    return Ok(Some(bytes));
                }
                Err(error) => self.recover(error).await?,
            }
        }
        Ok(None)
    }

    /// Bytes that were given so far, with the beginning that was there.
    pub fn length(&self) -> u64 {
        self.verifier.length()
    }

    /// As a stream. After an error there is nothing more.
    pub fn into_stream(self) -> impl Stream<Item = Result<Bytes, Error>> + Send {
        futures::stream::unfold(Some(self), |blob| async move {
            let mut blob = blob?;
            match blob.chunk().await {
                Ok(Some(bytes)) => Some((Ok(bytes), Some(blob))),
                Ok(None) => None,
                Err(error) => Some((Err(error), None)),
            }
        })
    }

    fn is_whole(&self) -> bool {
        self.verifier.length() == self.descriptor.size
    }

    /// Bytes of the host that is asked now, without those that are there already.
    async fn receive(&mut self) -> Result<Bytes, Error> {
        if self.reply.is_none() {
            self.connect().await?;
        }
        let Some(reply) = &mut self.reply else { return Ok(Bytes::new()) };
        let Some(mut bytes) = reply.chunk().await? else {
            let (length, size) = (self.verifier.length(), self.descriptor.size);
            let reason = format!("it ended after {length} of {size} bytes");
            let host = self.endpoints[0].host.clone();
            return Err(Error::Broken { what: self.what(), host, reason });
        };
        let skipped = self.skip.min(bytes.len() as u64);
        self.skip -= skipped;
        Ok(bytes.split_off(skipped as usize))
    }

    /// Counts bytes; the last ones are let through only if all are right.
    fn take(&mut self, bytes: &Bytes) -> Result<(), Error> {
        let found = self.verifier.length() + bytes.len() as u64;
        let expected = self.descriptor.size;
        if found > expected {
            self.fail_for_good();
            return Err(Error::Size { what: self.what(), expected, found });
        }
        self.verifier.update(bytes);
        if self.is_whole() {
            self.check()?;
        }
        (self.progress)(self.verifier.length(), Some(expected));
        Ok(())
    }

    fn check(&mut self) -> Result<(), Error> {
        self.finished = true;
        self.reply = None;
        let (expected, found) = (self.descriptor.digest.clone(), self.verifier.digest());
        if expected == found {
            return Ok(());
        }
        self.fail_for_good();
        Err(Error::Digest { what: self.what(), expected, found })
    }

    /// Bytes that are wrong were given already, so there is no going on; who begins anew does not
    /// ask the same mirror.
    fn fail_for_good(&mut self) {
        self.finished = true;
        self.reply = None;
        if self.endpoints[0].is_mirror {
            self.registries.inner.endpoints.rest(&self.endpoints[0]);
        }
    }

    async fn connect(&mut self) -> Result<(), Error> {
        let registries = self.registries.clone();
        let endpoint = self.endpoints[0].clone();
        let repository = self.reference.repository();
        let scope = format!("repository:{}:pull", endpoint.repository(repository));
        let exchange = Exchange::begin(&registries.inner, &endpoint, scope, self.what()).await?;
        let path = format!("blobs/{}", self.descriptor.digest);
        let mut request = Request::new(Method::GET, exchange.url(repository, &path)?);
        let from = self.verifier.length();
        if from > 0 {
            let range = HeaderValue::from_str(&format!("bytes={from}-"));
            let range = range.map_err(|error| exchange.answer(&error.to_string()))?;
            request.headers.insert(RANGE, range);
        }
        let reply = exchange.send(&request).await?;
        let skip = match reply.status() {
            StatusCode::PARTIAL_CONTENT if from > 0 => {
                let begins = reply.text_of(CONTENT_RANGE).and_then(range_start);
                if begins != Some(from) {
                    return Err(exchange.answer("another part than the one asked for"));
                }
                0
            }
            status if status.is_success() => from,
            _ => return Err(exchange.refusal(reply).await),
        };
        self.expect_length(&reply, from - skip)?;
        (self.reply, self.skip) = (Some(reply), skip);
        Ok(())
    }

    /// A blob of another size is found out before its bytes are given to anybody.
    fn expect_length(&self, reply: &Reply, before: u64) -> Result<(), Error> {
        let expected = self.descriptor.size;
        match reply.length().map(|length| before + length) {
            Some(found) if found != expected => {
                Err(Error::Size { what: self.what(), expected, found })
            }
            _ => Ok(()),
        }
    }

    /// Waits before the same host is asked for the rest, or turns to the next one.
    async fn recover(&mut self, error: Error) -> Result<(), Error> {
        self.reply = None;
        let length = self.verifier.length();
        if length >= self.failed_at + FORGIVEN {
            self.tries.reset();
        }
        self.failed_at = length;
        let Err(error) = self.tries.pause_after(error).await else { return Ok(()) };
        if !self.endpoints[0].is_mirror {
            self.finished = true;
            return Err(error);
        }
        let inner = self.registries.inner.clone();
        inner.pass_over(&self.endpoints[0], &error);
        self.endpoints.pop_front();
        self.tries = inner.tries(&self.endpoints[0]);
        Ok(())
    }

    fn what(&self) -> String {
        format!("{}@{}", self.reference.name(), self.descriptor.digest)
    }
}

impl fmt::Debug for Blob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Blob")
            .field("what", &self.what())
            .field("length", &self.length())
            .finish_non_exhaustive()
    }
}

/// A small blob. Wrong bytes are asked for once more: nobody has seen them.
pub(crate) async fn fetch_small(
    registries: &Registries,
    reference: &Reference,
    descriptor: &Descriptor,
    limit: u64,
) -> Result<Vec<u8>, Error> {
    if descriptor.size > limit {
        let what = format!("{}@{}", reference.name(), descriptor.digest);
        return Err(Error::TooLarge { what, limit });
    }
    match read_whole(registries, reference, descriptor).await {
        Err(Error::Digest { .. }) => read_whole(registries, reference, descriptor).await,
        done => done,
    }
}

async fn read_whole(
    registries: &Registries,
    reference: &Reference,
    descriptor: &Descriptor,
) -> Result<Vec<u8>, Error> {
    let mut blob = registries.blob(reference, descriptor, quiet()).await?;
    let mut bytes = vec![];
    while let Some(chunk) = blob.chunk().await? {
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// The first number of `bytes 5-9/10`.
fn range_start(text: &str) -> Option<u64> {
    text.trim().strip_prefix("bytes")?.trim().split('-').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::range_start;

    #[test]
    fn ranges_are_read() {
        for (text, expect) in [
            ("bytes 5-9/10", Some(5)),
            ("bytes 0-0/*", Some(0)),
            ("bytes */10", None),
            ("items 5-9/10", None),
            ("", None),
        ] {
            assert_eq!(range_start(text), expect, "{text}");
        }
    }
}
