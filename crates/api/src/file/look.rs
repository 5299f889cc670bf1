//! `File.stat` and `File.digest`.

use super::File;
use crate::content_digest;
use crate::services::Services;
use crate::stat::Stat;
use crate::stop::Stop;
use graph::{Args, Builder, Context, Op};
use protocol::Error;

pub(super) fn install(builder: &mut Builder) {
    builder.install::<GetStat>().install::<Digest>();
}

/// What is known of the file beside its contents.
#[derive(Args)]
struct GetStat {}

impl Op for GetStat {
    type Parent = File;
    type Output = Option<Stat>;
    const NAME: &'static str = "stat";

    async fn run(&self, file: &File, cx: &Context) -> Result<Option<Stat>, Error> {
        let metadata = file.metadata(cx.get::<Services>()?).await?;
        Ok(Some(Stat::new(file.name(), metadata)))
    }
}

/// Digest of the file: contents, permissions, owner and extended attributes. Name and times are no part
/// of it.
#[derive(Args)]
struct Digest {
    /// Take the contents alone: the digest is that of their sha256.
    #[arg(default = "false")]
    exclude_metadata: bool,
}

impl Op for Digest {
    type Parent = File;
    type Output = String;
    const NAME: &'static str = "digest";

    async fn run(&self, file: &File, cx: &Context) -> Result<String, Error> {
        let services = cx.get::<Services>()?;
        file.metadata(services).await?;
        let snapshot = file.snapshot(services).await?;
        let (store, path) = (services.store.clone(), file.path.clone());
        if !self.exclude_metadata {
            let digest = services.blocking(move || store.file_sum(&snapshot, &path)).await?;
            return Ok(content_digest::of_sum(&digest));
        }
        let (stop, _guard) = Stop::new();
        services
            .blocking(move || {
                let bytes = store.view(&snapshot).read(&path).map_err(store::Error::from)?;
                let digest = content_digest::of_bytes(stop.reading(bytes));
                digest.map_err(content_digest::unread(&path))
            })
            .await
    }
}
