//! `ADD` of an address: a file of a web server, or the files of a repository.

use super::archive;
use super::build::Build;
use super::copy::{Target, directory_for};
use super::repository::Repository;
use crate::edit::Edit;
use crate::http;
use crate::services::Services;
use dockerfile::Copy;
use graph::Context;
use protocol::Error;

/// A source that is somewhere else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Remote {
    /// A file of a web server.
    Web(String),
    /// A repository.
    Git(String),
}

impl Remote {
    /// What a source is, if it is somewhere else.
    pub(super) fn of(path: &str) -> Option<Self> {
        let repository = ["git://", "ssh://", "git@"].iter().any(|start| path.starts_with(start));
        let web = ["http://", "https://"].iter().any(|start| path.starts_with(start));
        let plain = path.split(['#', '?']).next().unwrap_or_default();
        match (repository || web && plain.ends_with(".git"), web) {
            (true, _) => Some(Self::Git(path.to_owned())),
            (false, true) => Some(Self::Web(path.to_owned())),
            (false, false) => None,
        }
    }

    /// The edits that copy it.
    pub(super) async fn copied(
        &self,
        (copy, target): (&Copy, &Target),
        build: &Build,
        cx: &Context,
    ) -> Result<Vec<Edit>, Error> {
        let services = cx.get::<Services>()?;
        let url = match self {
            Self::Web(url) => url,
            Self::Git(text) => {
                let files = Repository::parse(text)?.files(copy, build, cx).await?;
                return directory_for(&files, (target, services)).await;
            }
        };
        let file = http::fetched(url, copy.checksum.as_deref(), cx).await?;
        let file = file.as_source(services).await?;
        if copy.unpack == Some(true)
            && let Some(archive) = archive::unpacked(&file, cx).await?
        {
            return Ok(target.unpacked(archive));
        }
        Ok(vec![target.file(file)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_both_kinds_and_paths() {
        for path in [
            "git@x:y.git",
            "ssh://git@x/y",
            "git://x/y",
            "https://x/y.git#v1",
            "https://x/y.git?ref=v1",
        ] {
            assert_eq!(Remote::of(path), Some(Remote::Git(path.into())), "{path}");
        }
        for path in ["http://x/y", "https://x/y.tar.gz?z=.git"] {
            assert_eq!(Remote::of(path), Some(Remote::Web(path.into())), "{path}");
        }
        for path in ["a", "/http", "./git@x", "x.git", "github.com/x"] {
            assert_eq!(Remote::of(path), None, "{path}");
        }
    }
}
