//! Looking at single paths of a container, wherever they are kept, and links in it.

use super::{Container, MountSource, Place};
use crate::alteration::Alteration;
use crate::edit::Edit;
use crate::paths;
use crate::services::Services;
use crate::stat::{self, ExistsType, Stat};
use crate::tree::Tree;
use graph::{Args, Builder, Context, Op};
use protocol::Error;
use store::View;

pub(super) fn install(builder: &mut Builder) {
    builder.install::<Exists>().install::<GetStat>().install::<WithSymlink>();
}

/// Whether something is at a path, as the command `test` finds out.
#[derive(Args)]
struct Exists {
    /// Where; relative paths start from the working directory.
    path: String,
    /// What it has to be; anything when left out.
    expected_type: Option<ExistsType>,
    /// Look at a link itself, not at where it leads.
    #[arg(default = "false")]
    do_not_follow_symlinks: bool,
    /// Replace `$VAR` and `${VAR}` in the path by the container's variables.
    #[arg(default = "false")]
    expand: bool,
}

impl Op for Exists {
    type Parent = Container;
    type Output = bool;
    const NAME: &'static str = "exists";

    async fn run(&self, container: &Container, cx: &Context) -> Result<bool, Error> {
        if self.path.is_empty() {
            return Ok(false);
        }
        let path = container.absolute(&self.path, self.expand)?;
        let Some((tree, path)) = container.kept_at(&path)? else { return Ok(false) };
        let (expected, keep_link) = (self.expected_type, self.do_not_follow_symlinks);
        let services = cx.get::<Services>()?;
        let look = move |view: &View| stat::exists(view, &path, expected, keep_link);
        services.look(tree.snapshot(services).await?, look).await
    }
}

/// What is known of an entry beside its contents.
#[derive(Args)]
struct GetStat {
    /// Where it is; relative paths start from the working directory.
    path: String,
    /// Look at a link itself, not at where it leads.
    #[arg(default = "false")]
    do_not_follow_symlinks: bool,
}

impl Op for GetStat {
    type Parent = Container;
    type Output = Option<Stat>;
    const NAME: &'static str = "stat";

    async fn run(&self, container: &Container, cx: &Context) -> Result<Option<Stat>, Error> {
        if self.path.is_empty() {
            return Err(stat::missing("").with_hint("the working directory is `.`"));
        }
        let asked = container.absolute(&self.path, false)?;
        let Some((tree, path)) = container.kept_at(&asked)? else {
            return Err(stat::missing(&self.path));
        };
        let (typed, keep_link) = (self.path.clone(), self.do_not_follow_symlinks);
        let look = move |view: &View| stat::look(view, &path, &typed, keep_link);
        let services = cx.get::<Services>()?;
        let metadata = services.look(tree.snapshot(services).await?, look).await?;
        Ok(Some(Stat::new(paths::name(&asked), metadata)))
    }
}

/// Makes a symbolic link.
#[derive(Args)]
struct WithSymlink {
    /// Where it leads. It need not be there.
    target: String,
    /// Where the link is made; parents are created, and nothing may be there. Relative paths start from
    /// the working directory.
    link_name: String,
    /// Replace `$VAR` and `${VAR}` in both by the container's variables.
    #[arg(default = "false")]
    expand: bool,
}

impl Op for WithSymlink {
    type Parent = Container;
    type Output = Container;
    const NAME: &'static str = "withSymlink";

    async fn run(&self, container: &Container, cx: &Context) -> Result<Container, Error> {
        let path = container.absolute(&self.link_name, self.expand)?;
        let target = container.expanded(&self.target, self.expand)?;
        let edit = |path| Edit::Alter(Alteration::Symlink { target, path });
        container.edit_at(&path, cx.get::<Services>()?, edit).await
    }
}

impl Container {
    /// The tree that a path is kept in, and where there; none for what is below a mounted file.
    fn kept_at(&self, path: &str) -> Result<Option<(Tree, String)>, Error> {
        match self.locate(path) {
            (Place::Root, rest) => Ok(Some((self.rootfs.clone(), rest.to_owned()))),
            (Place::Mount(mount, _), rest) => match &mount.source {
                MountSource::Directory(tree) => Ok(Some((tree.clone(), rest.to_owned()))),
                MountSource::File { tree, name } if rest.is_empty() => {
                    Ok(Some((tree.clone(), name.clone())))
                }
                MountSource::File { .. } => Ok(None),
                other => Err(other.unreadable(path)),
            },
        }
    }
}
