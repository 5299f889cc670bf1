//! `Directory.export`: everything in the directory on the caller's disk.

use super::Directory;
use crate::export::{self, IntoDirectory};
use crate::services::Services;
use graph::{Args, Builder, Context, Op, Scope};
use protocol::Error;

pub(super) fn install(builder: &mut Builder) {
    builder.install::<Export>();
}

/// Writes the entries of the directory into one on the caller's disk, and gives the absolute path.
/// What is there and has no counterpart stays.
#[derive(Args)]
struct Export {
    /// Where; relative paths start from the caller's working directory. Missing directories are made.
    path: String,
    /// Whether everything goes that is there and is not written.
    #[arg(default = "false")]
    wipe: bool,
}

impl Op for Export {
    type Parent = Directory;
    type Output = String;
    const NAME: &'static str = "export";
    const SCOPE: Scope = Scope::Request;

    async fn run(&self, directory: &Directory, cx: &Context) -> Result<String, Error> {
        let services = cx.get::<Services>()?;
        let snapshot = directory.subtree(services).await?;
        let store = services.store.clone();
        let outlet = services.blocking(move || store.outlet(&snapshot, "")).await?;
        let to = IntoDirectory { path: self.path.clone(), wipe: self.wipe, removed: vec![] };
        export::directory(outlet, to, cx).await
    }
}
