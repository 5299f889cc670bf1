//! Fields of `Directory` that give one whose entries are others: chosen, owned or dated differently.

use super::Directory;
use crate::alteration::Alteration;
use crate::edit::{Edit, Filter};
use crate::owner::OwnerSpec;
use crate::services::Services;
use crate::tree::Tree;
use crate::{paths, times};
use graph::{Args, Builder, Context, Op};
use protocol::Error;

pub(super) fn install(builder: &mut Builder) {
    builder
        .install::<Choose>()
        .install::<Chown>()
        .install::<WithSymlink>()
        .install::<WithTimestamps>();
}

/// The directory with only some of its entries.
#[derive(Args)]
struct Choose {
    /// Patterns of what to leave out.
    #[arg(default = "[]")]
    exclude: Vec<String>,
    /// Patterns of what to take; empty takes all.
    #[arg(default = "[]")]
    include: Vec<String>,
    /// Leave out what `.gitignore` files in it name.
    #[arg(default = "false")]
    gitignore: bool,
}

impl Op for Choose {
    type Parent = Directory;
    type Output = Directory;
    const NAME: &'static str = "filter";

    async fn run(&self, directory: &Directory, cx: &Context) -> Result<Directory, Error> {
        let filter = Filter {
            include: self.include.clone(),
            exclude: self.exclude.clone(),
            gitignore: self.gitignore,
        };
        if filter == Filter::default() {
            return Ok(directory.clone());
        }
        let services = cx.get::<Services>()?;
        let source = directory.as_source(services).await?;
        let tree = Tree::empty().edited(Edit::Take { source, filter }, services).await?;
        Ok(Directory::below(tree, ""))
    }
}

/// Gives a file, or a directory with everything below it, to another owner.
#[derive(Args)]
struct Chown {
    /// Which.
    path: String,
    /// `user[:group]`, by name or number; names are looked up in the directory's own `/etc/passwd` and
    /// `/etc/group`.
    owner: String,
}

impl Op for Chown {
    type Parent = Directory;
    type Output = Directory;
    const NAME: &'static str = "chown";

    async fn run(&self, directory: &Directory, cx: &Context) -> Result<Directory, Error> {
        let path = directory.child(&self.path);
        let owner = OwnerSpec::parse(&self.owner);
        directory.edited(Edit::Alter(Alteration::Chown { path, owner }), cx).await
    }
}

/// Makes a symbolic link.
#[derive(Args)]
struct WithSymlink {
    /// Where it leads. It need not be there.
    target: String,
    /// Where the link is made; parents are created, and nothing may be there.
    link_name: String,
}

impl Op for WithSymlink {
    type Parent = Directory;
    type Output = Directory;
    const NAME: &'static str = "withSymlink";

    async fn run(&self, directory: &Directory, cx: &Context) -> Result<Directory, Error> {
        if paths::climbs_out(&self.link_name) {
            return Err(Error::user("cannot create directory outside parent"));
        }
        let path = directory.child(&self.link_name);
        let link = Alteration::Symlink { target: self.target.clone(), path };
        directory.edited(Edit::Alter(link), cx).await
    }
}

/// Sets the times of everything below the directory, but not its own.
#[derive(Args)]
struct WithTimestamps {
    /// Seconds since 1970.
    timestamp: i64,
}

impl Op for WithTimestamps {
    type Parent = Directory;
    type Output = Directory;
    const NAME: &'static str = "withTimestamps";

    async fn run(&self, directory: &Directory, cx: &Context) -> Result<Directory, Error> {
        let (path, seconds) = (directory.path.clone(), times::seconds(self.timestamp)?);
        directory.edited(Edit::Alter(Alteration::TimesBelow { path, seconds }), cx).await
    }
}
