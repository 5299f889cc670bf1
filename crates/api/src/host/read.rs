//! Fields of `Host` that read its files. Each is read once a session for equal arguments; with
//! `noCache` on every use, while the id of what was read once stands for that.

use super::import::import;
use super::{Host, HostObject};
use crate::directory::Directory;
use crate::file::File;
use crate::paths;
use graph::{Args, Builder, Context, Op, Scope};
use protocol::attach::ReadRequest;
use protocol::{Error, Value};

pub(super) fn install(builder: &mut Builder) {
    builder.install::<GetDirectory>().install::<GetFile>().install::<FindUp>();
}

/// A directory of the caller's disk, as it is now.
#[derive(Args)]
struct GetDirectory {
    /// Patterns of what to leave out.
    #[arg(default = "[]")]
    exclude: Vec<String>,
    /// Patterns of what to take; empty takes all.
    #[arg(default = "[]")]
    include: Vec<String>,
    /// Where; relative paths start from the caller's working directory, `~` is its home.
    path: String,
    /// Read it again on every use.
    #[arg(default = "false")]
    #[expect(dead_code, reason = "looked at when the call is made, before there is an op")]
    no_cache: bool,
    /// Do not leave out what `.gitignore` files name.
    #[arg(default = "false")]
    no_git_auto_ignore: bool,
    /// Leave out what `.gitignore` files name.
    #[arg(default = "false")]
    gitignore: bool,
}

impl Op for GetDirectory {
    type Parent = HostObject;
    type Output = Directory;
    const NAME: &'static str = "directory";
    const SCOPE: Scope = Scope::Session;

    fn is_unique(args: &[(Box<str>, Value)]) -> bool {
        is_no_cache(args)
    }

    async fn run(&self, _: &HostObject, cx: &Context) -> Result<Directory, Error> {
        let request = ReadRequest {
            path: self.path.clone(),
            directory: true,
            include: self.include.clone(),
            exclude: self.exclude.clone(),
            gitignore: self.gitignore && !self.no_git_auto_ignore,
        };
        let tree = import(cx.get::<Host>()?, request, cx).await?;
        Ok(Directory::below(tree, ""))
    }
}

/// A file of the caller's disk, as it is now.
#[derive(Args)]
struct GetFile {
    /// Where; relative paths start from the caller's working directory, `~` is its home.
    path: String,
    /// Read it again on every use.
    #[arg(default = "false")]
    #[expect(dead_code, reason = "looked at when the call is made, before there is an op")]
    no_cache: bool,
}

impl Op for GetFile {
    type Parent = HostObject;
    type Output = File;
    const NAME: &'static str = "file";
    const SCOPE: Scope = Scope::Session;

    fn is_unique(args: &[(Box<str>, Value)]) -> bool {
        is_no_cache(args)
    }

    async fn run(&self, _: &HostObject, cx: &Context) -> Result<File, Error> {
        let request = ReadRequest {
            path: self.path.clone(),
            directory: false,
            include: vec![],
            exclude: vec![],
            gitignore: false,
        };
        let tree = import(cx.get::<Host>()?, request, cx).await?;
        Ok(File::below(tree, paths::name(&self.path)).typed(&self.path))
    }
}

/// The nearest file or directory of a name, upwards from the caller's working directory; null when
/// there is none.
#[derive(Args)]
struct FindUp {
    /// The name to look for.
    name: String,
    /// Look again on every use.
    #[arg(default = "false")]
    #[expect(dead_code, reason = "looked at when the call is made, before there is an op")]
    no_cache: bool,
}

impl Op for FindUp {
    type Parent = HostObject;
    type Output = Option<String>;
    const NAME: &'static str = "findUp";

    fn is_unique(args: &[(Box<str>, Value)]) -> bool {
        is_no_cache(args)
    }

    async fn run(&self, _: &HostObject, cx: &Context) -> Result<Option<String>, Error> {
        if self.name.is_empty() || self.name.contains('/') {
            return Err(Error::user(format!("`{}` is not one file name", self.name)));
        }
        cx.get::<Host>()?.files().find_up(self.name.clone()).await
    }
}

/// Whether what is asked for must be read again though it was read before.
fn is_no_cache(args: &[(Box<str>, Value)]) -> bool {
    args.iter().any(|(name, value)| **name == *"noCache" && matches!(value, Value::Bool(true)))
}
