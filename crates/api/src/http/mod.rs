//! `Query.http`: a file of a web server.
//!
//! A session asks for an address once; what it got is what the address is for that session. The next
//! session asks the server whether there is something newer, if the server said how to ask. Files go
//! straight into the store, and are known by their content.

mod download;
mod way;

pub use download::{Downloads, Web};

use crate::edit::Edit;
use crate::file::File;
use crate::modes;
use crate::owner::OwnerSpec;
use crate::secret::Secret;
use crate::service::Service;
use crate::services::Services;
use crate::tree::Tree;
use download::{CONTENTS, MODE, Wanted};
use graph::{Args, Builder, Context, Op, Ref, Root};
use protocol::{Error, Value};
use std::sync::Arc;
use way::Way;

pub(crate) fn install(builder: &mut Builder) {
    builder.install::<Http>();
}

/// A file of a web server. It is asked for once a session, and then only if it has changed.
#[derive(Args)]
struct Http {
    /// A service that must run before the file is asked for, and that its host name means.
    experimental_service_host: Option<Ref<Service>>,
    /// Where the file is, e.g. `https://example.com/tool.tar.gz`.
    url: String,
    /// Name of the file; the last part of the address by default.
    name: Option<String>,
    /// Permission bits of the file; 0600 by default.
    permissions: Option<i64>,
    /// What to send as the `Authorization` header, e.g. `Bearer <token>`.
    auth_header: Option<Ref<Secret>>,
    /// What the file must be: `sha256:<64 hex digits>`.
    checksum: Option<String>,
}

impl Op for Http {
    type Parent = Root;
    type Output = File;
    const NAME: &'static str = "http";

    fn check(args: &[(Box<str>, Value)]) -> Result<(), Error> {
        let text = |wanted: &str| {
            let given = args.iter().find(|(name, _)| **name == *wanted);
            given.and_then(|(_, value)| value.as_str())
        };
        if let Some(given) = text("checksum") {
            checksum(given)?;
        }
        text("url").map_or(Ok(()), check_url)
    }

    async fn run(&self, _: &Root, cx: &Context) -> Result<File, Error> {
        let name = match &self.name {
            Some(name) => checked_name(name)?,
            None => name_in(&self.url),
        };
        let mode = self.permissions.map(modes::required).transpose()?.unwrap_or(MODE);
        let wanted = Wanted {
            url: self.url.clone(),
            authorization: match &self.auth_header {
                Some(secret) => Some(secret.text(cx).await?),
                None => None,
            },
            checksum: self.checksum.as_deref().map(checksum).transpose()?,
            way: Way::to(&self.url, self.experimental_service_host.as_deref(), cx)
                .await?
                .map(Arc::new),
        };
        let (identity, snapshot) = download::get(wanted, cx).await?;
        let file = File::below(Tree::settled(identity, snapshot), CONTENTS).typed(&self.url);
        if mode == MODE {
            return Ok(file.renamed(&name));
        }
        let services = cx.get::<Services>()?;
        let source = file.as_source(services).await?;
        let path = CONTENTS.to_owned();
        let edit = Edit::CopyFile { source, path, mode: Some(mode), owner: OwnerSpec::Root };
        let tree = Tree::empty().edited(edit, services).await?;
        Ok(File::below(tree, CONTENTS).typed(&self.url).renamed(&name))
    }
}

/// A file of a web server for others than users of `http`, under the name that its address gives.
pub(crate) async fn fetched(
    url: &str,
    expected: Option<&str>,
    cx: &Context,
) -> Result<File, Error> {
    check_url(url)?;
    let checksum = expected.map(checksum).transpose()?;
    let wanted = Wanted { url: url.to_owned(), authorization: None, checksum, way: None };
    let (identity, snapshot) = download::get(wanted, cx).await?;
    let file = File::below(Tree::settled(identity, snapshot), CONTENTS).typed(url);
    Ok(file.renamed(&name_in(url)))
}

fn check_url(url: &str) -> Result<(), Error> {
    let scheme = url.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    match scheme.as_deref() {
        Some("http" | "https") => Ok(()),
        _ => Err(Error::user(format!("`{url}` is no address of a web server"))
            .with_hint("it begins with `http://` or `https://`")),
    }
}

/// The bytes of a checksum.
fn checksum(text: &str) -> Result<[u8; 32], Error> {
    let refused = || {
        Error::user(format!("invalid checksum \"{text}\""))
            .with_hint("write it as `sha256:` and 64 hex digits")
    };
    let digits = text.strip_prefix("sha256:").ok_or_else(refused)?;
    let id: store::BlobId = digits.parse().map_err(|_| refused())?;
    Ok(*id.as_bytes())
}

fn checked_name(name: &str) -> Result<String, Error> {
    if name.is_empty() || name.contains(['/', '\0']) || matches!(name, "." | "..") {
        let message = format!("file name `{name}` must not contain a directory");
        return Err(Error::user(message));
    }
    Ok(name.to_owned())
}

/// The last part of an address's path.
fn name_in(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let path = rest.split_once('/').map_or("", |(_, path)| path);
    let last = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    match checked_name(last) {
        Ok(name) => name,
        Err(_) => "index".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_from_the_path() {
        for (url, name) in [
            ("https://example.com/a/tool.tar.gz?x=/y#z", "tool.tar.gz"),
            ("https://example.com/a/b/", "b"),
            ("https://example.com", "index"),
            ("https://example.com/..", "index"),
        ] {
            assert_eq!(name_in(url), name, "{url}");
        }
    }

    #[test]
    fn checksums_and_addresses_are_checked() {
        assert_eq!(checksum(&format!("sha256:{}", "0a".repeat(32))).unwrap(), [10; 32]);
        for wrong in ["", "sha256:", "md5:00", "sha256:xyz", &"0".repeat(64)] {
            let error = checksum(wrong).unwrap_err();
            assert_eq!(error.message, format!("invalid checksum \"{wrong}\""));
        }
        assert!(check_url("HTTP://x").is_ok());
        for wrong in ["file:///etc/passwd", "ftp://x/y", "example.com/x", ""] {
            assert!(check_url(wrong).is_err(), "{wrong}");
        }
    }
}
