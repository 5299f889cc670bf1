//! `File.export`: writes a file to the caller's disk.

use super::File;
use crate::export;
use crate::services::Services;
use graph::{Args, Builder, Context, Op, Scope};
use protocol::Error;

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
        let name = if self.allow_parent_dir_path { file.name() } else { "" };
        file.export(self.path.clone(), name, cx).await
    }
}

impl File {
    /// Writes the file to the caller's disk, and gives the absolute path. An existing directory takes
    /// it under `name`, unless that is empty.
    pub(crate) async fn export(
        &self,
        path: String,
        name: &str,
        cx: &Context,
    ) -> Result<String, Error> {
        let services = cx.get::<Services>()?;
        self.metadata(services).await?;
        let snapshot = self.snapshot(services).await?;
        let (store, own_path) = (services.store.clone(), self.path.clone());
        let source = services.blocking(move || store.outlet_file(&snapshot, &own_path)).await?;
        export::file(source, path, name, cx).await
    }
}
