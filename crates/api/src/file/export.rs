//! `File.export`: writes a file to the caller's disk.

use super::File;
use crate::host::Host;
use crate::services::Services;
use graph::{Args, Builder, Context, Op, Scope};
use protocol::Error;
use protocol::attach::WriteRequest;

pub(super) fn install(builder: &mut Builder) {
    builder.install::<Export>();
}

/// Writes the file to the caller's disk, and gives the absolute path.
#[derive(Args)]
struct Export {
    /// Whether `path` may be a directory to put it into under its own name.
    #[arg(default = "false")]
    allow_parent_dir_path: bool,
    /// Where; relative paths start from the caller's working directory.
    path: String,
}

impl Op for Export {
    type Parent = File;
    type Output = String;
    const NAME: &'static str = "export";
    const SCOPE: Scope = Scope::Request;

    async fn run(&self, file: &File, cx: &Context) -> Result<String, Error> {
        let services = cx.get::<Services>()?;
        let metadata = file.metadata(services).await?;
        let snapshot = file.snapshot(services).await?;
        let (store, path) = (services.store.clone(), file.path.clone());
        let open = move || store.view(&snapshot).open(&path).map_err(store::Error::from);
        let source = services.blocking(open).await?;
        let name = if self.allow_parent_dir_path { file.name() } else { "" };
        let request = WriteRequest {
            path: self.path.clone(),
            name_in_directory: name.to_owned(),
            mode: metadata.mode & 0o7777,
        };
        cx.get::<Host>()?.files().write(request, source).await
    }
}
