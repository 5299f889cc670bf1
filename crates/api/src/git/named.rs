//! Fields of `Address` that read a repository or a path of the caller's machine.

use super::{GitAddress, GitRef, GitRepository, is_remote};
use crate::address::Address;
use crate::directory::Directory;
use crate::edit::{Edit, Filter};
use crate::file::File;
use crate::host::{Host, import};
use crate::owner::OwnerSpec;
use crate::paths;
use crate::services::Services;
use crate::tree::Tree;
use graph::{Args, Builder, Context, Op, Scope};
use protocol::attach::ReadRequest;
use protocol::{Error, Value};

pub(super) fn install(builder: &mut Builder) {
    builder
        .install::<RepositoryAt>()
        .install::<RefAt>()
        .install::<DirectoryAt>()
        .install::<FileAt>();
}

/// The git repository at this address: a url, or a path of your machine.
#[derive(Args)]
struct RepositoryAt {}

impl Op for RepositoryAt {
    type Parent = Address;
    type Output = GitRepository;
    const NAME: &'static str = "gitRepository";
    const SCOPE: Scope = Scope::Session;

    async fn run(&self, address: &Address, cx: &Context) -> Result<GitRepository, Error> {
        GitAddress::parse(address.text()).repository(cx).await
    }
}

/// The git reference at this address: `url#ref` or `path#ref`; without a reference HEAD.
#[derive(Args)]
struct RefAt {}

impl Op for RefAt {
    type Parent = Address;
    type Output = GitRef;
    const NAME: &'static str = "gitRef";
    const SCOPE: Scope = Scope::Session;

    async fn run(&self, address: &Address, cx: &Context) -> Result<GitRef, Error> {
        GitAddress::parse(address.text()).reference(cx).await
    }
}

/// The directory at this address: a path of your machine, or `url#ref:path` in a git repository.
#[derive(Args)]
struct DirectoryAt {
    /// Patterns of what to leave out.
    #[arg(default = "[]")]
    exclude: Vec<String>,
    /// Patterns of what to take; empty takes all.
    #[arg(default = "[]")]
    include: Vec<String>,
    /// Read it again on every use.
    #[arg(default = "false")]
    #[expect(dead_code, reason = "looked at when the call is made, before there is an op")]
    no_cache: bool,
    /// Leave out what `.gitignore` files name.
    #[arg(default = "false")]
    gitignore: bool,
}

impl Op for DirectoryAt {
    type Parent = Address;
    type Output = Directory;
    const NAME: &'static str = "directory";
    const SCOPE: Scope = Scope::Session;

    fn is_unique(args: &[(Box<str>, Value)]) -> bool {
        is_no_cache(args)
    }

    async fn run(&self, address: &Address, cx: &Context) -> Result<Directory, Error> {
        let (include, exclude) = (self.include.clone(), self.exclude.clone());
        if !is_remote(address.text()) {
            let request = ReadRequest {
                path: host_path(address.text()).to_owned(),
                directory: true,
                include,
                exclude,
                gitignore: self.gitignore,
            };
            return Ok(Directory::below(import(cx.get::<Host>()?, request, cx).await?, ""));
        }
        let services = cx.get::<Services>()?;
        let address = GitAddress::parse(address.text());
        let mut directory = address.tree(cx).await?;
        if let Some(path) = &address.path {
            let below = Directory::below(directory.tree().clone(), path).typed(path);
            directory = below.selected(services).await?;
        }
        let filter = Filter { include, exclude, gitignore: self.gitignore };
        if filter == Filter::default() {
            return Ok(directory);
        }
        let edit = Edit::CopyDirectory {
            source: directory.as_source(services).await?,
            path: "/".to_owned(),
            filter,
            mode: None,
            owner: OwnerSpec::Root,
        };
        Ok(Directory::below(Tree::empty().edited(edit, services).await?, ""))
    }
}

/// The file at this address: a path of your machine, or `url#ref:path` in a git repository.
#[derive(Args)]
struct FileAt {
    /// Nothing: a file is taken whole.
    #[arg(default = "[]")]
    #[expect(dead_code, reason = "clients send it, and it has no meaning for a file")]
    exclude: Vec<String>,
    /// Nothing: a file is taken whole.
    #[arg(default = "[]")]
    #[expect(dead_code, reason = "clients send it, and it has no meaning for a file")]
    include: Vec<String>,
    /// Read it again on every use.
    #[arg(default = "false")]
    #[expect(dead_code, reason = "looked at when the call is made, before there is an op")]
    no_cache: bool,
    /// Nothing: a file is taken whether it is ignored or not.
    #[arg(default = "false")]
    #[expect(dead_code, reason = "clients send it, and it has no meaning for a file")]
    gitignore: bool,
}

impl Op for FileAt {
    type Parent = Address;
    type Output = File;
    const NAME: &'static str = "file";
    const SCOPE: Scope = Scope::Session;

    fn is_unique(args: &[(Box<str>, Value)]) -> bool {
        is_no_cache(args)
    }

    async fn run(&self, address: &Address, cx: &Context) -> Result<File, Error> {
        if !is_remote(address.text()) {
            let path = host_path(address.text());
            let request = ReadRequest {
                path: path.to_owned(),
                directory: false,
                include: vec![],
                exclude: vec![],
                gitignore: false,
            };
            let tree = import(cx.get::<Host>()?, request, cx).await?;
            return Ok(File::below(tree, paths::name(path)).typed(path));
        }
        let text = address.text();
        let address = GitAddress::parse(text);
        let Some(path) = &address.path else {
            return Err(Error::user(format!("expected path of a file in `{text}`"))
                .with_hint("write it after the reference: `url#ref:path`"));
        };
        let directory = address.tree(cx).await?;
        let file = File::below(directory.tree().clone(), path).typed(path);
        file.metadata(cx.get::<Services>()?).await?;
        Ok(file)
    }
}

/// The path of an address of the caller's machine.
fn host_path(text: &str) -> &str {
    text.strip_prefix("file://").unwrap_or(text)
}

/// Whether what is asked for must be read again though it was read before.
fn is_no_cache(args: &[(Box<str>, Value)]) -> bool {
    args.iter().any(|(name, value)| **name == *"noCache" && matches!(value, Value::Bool(true)))
}
