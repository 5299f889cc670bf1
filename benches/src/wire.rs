//! [`Wire`]: queries over one connection that stays open, as client libraries keep it.
//!
//! By hand and blocking, so that what is measured is the engine and not a runtime of ours. An answer
//! may be nested as deep as the query, deeper than a JSON library follows: only the value that was
//! asked for is parsed.

use crate::document::quoted;
use anyhow::{Context as _, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use testkit::Endpoint;

/// A connection to the endpoint of a session.
pub(crate) struct Wire {
    stream: BufReader<TcpStream>,
    authorization: String,
}

impl Wire {
    /// Connects to a session.
    pub(crate) fn connect(endpoint: &Endpoint) -> Result<Self> {
        let stream = endpoint.connect().context("cannot reach the session")?;
        let authorization = STANDARD.encode(format!("{}:", endpoint.token));
        Ok(Self { stream: BufReader::new(stream), authorization })
    }

    /// Sends a document and gives the value of the field that stands deepest in it.
    pub(crate) fn ask(&mut self, document: &str, leaf: &str) -> Result<Value> {
        let body = self.post(&json!({ "query": document }).to_string())?;
        leaf_of(&body, leaf)
    }

    /// The same for a value that is text.
    pub(crate) fn ask_text(&mut self, document: &str, leaf: &str) -> Result<String> {
        let value = self.ask(document, leaf)?;
        Ok(value.as_str().with_context(|| format!("`{leaf}` is no text: {value}"))?.to_owned())
    }

    /// Imports a directory and gives its id.
    pub(crate) fn import(&mut self, path: &Path) -> Result<String> {
        let path = quoted(&path.to_string_lossy());
        let document = format!("{{ host {{ directory(path: {path}) {{ sync }} }} }}");
        self.ask_text(&document, "sync").with_context(|| format!("cannot import {path}"))
    }

    fn post(&mut self, body: &str) -> Result<String> {
        let request = format!(
            "POST /query HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Basic {}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.authorization,
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes())?;
        let first = self.line()?;
        let (mut length, mut chunked) = (0, false);
        loop {
            let line = self.line()?.to_ascii_lowercase();
            let Some((name, value)) = line.split_once(':') else { break };
            match name {
                "content-length" => length = value.trim().parse()?,
                "transfer-encoding" => chunked = value.trim() == "chunked",
                _ => {}
            }
        }
        let body = if chunked { self.chunks()? } else { self.bytes(length)? };
        let body = String::from_utf8(body).context("the answer is no text")?;
        match first.split(' ').nth(1) {
            Some("200") => Ok(body),
            _ => bail!("{first}: {body}"),
        }
    }

    fn chunks(&mut self) -> Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let length = usize::from_str_radix(&self.line()?, 16)?;
            body.extend(self.bytes(length)?);
            self.line()?;
            if length == 0 {
                return Ok(body);
            }
        }
    }

    fn bytes(&mut self, length: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.stream.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            bail!("the session has closed the connection");
        }
        Ok(line.trim_end().to_owned())
    }
}

/// The value of the last field of this name in an answer without errors.
fn leaf_of(body: &str, leaf: &str) -> Result<Value> {
    if body.contains("\"errors\":") {
        bail!("the query failed: {body}");
    }
    let key = format!("\"{leaf}\":");
    let start = body.rfind(&key).with_context(|| format!("no `{leaf}` in {body}"))? + key.len();
    let mut values = serde_json::Deserializer::from_str(&body[start..]).into_iter::<Value>();
    values.next().context("an answer ends after a key")?.context("an answer is no JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_found_at_any_depth() {
        let deep = format!(
            "{{\"data\":{}{{\"sync\":\"aWQ=\"}}{}}}",
            "{\"a\":".repeat(900),
            "}".repeat(900)
        );
        assert_eq!(leaf_of(&deep, "sync").unwrap(), "aWQ=");
        assert_eq!(leaf_of(r#"{"data": {"exitCode": 0}}"#, "exitCode").unwrap(), 0);
    }

    #[test]
    fn an_answer_with_errors_is_an_error() {
        let body = r#"{"data":null,"errors":[{"message":"no such field"}]}"#;
        assert!(format!("{:#}", leaf_of(body, "data").unwrap_err()).contains("no such field"));
    }
}
