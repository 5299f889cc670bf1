//! Files and directories of a container: reading them out, writing them in, the root file system.

use super::{Container, MountSource, Place};
use crate::directory::Directory;
use crate::edit::{Edit, Filter};
use crate::file::File;
use crate::modes;
use crate::owner::{self, OwnerSpec};
use crate::services::Services;
use graph::{Args, Builder, Context, Op, Ref};
use protocol::Error;

pub(super) fn install(builder: &mut Builder) {
    builder
        .install::<Rootfs>()
        .install::<WithRootfs>()
        .install::<GetDirectory>()
        .install::<GetFile>()
        .install::<WithNewFile>()
        .install::<WithFile>()
        .install::<WithFiles>()
        .install::<WithDirectory>()
        .install::<WithoutFile>()
        .install::<WithoutFiles>()
        .install::<WithoutDirectory>();
}

/// The root file system, without mounts.
#[derive(Args)]
struct Rootfs {}

impl Op for Rootfs {
    type Parent = Container;
    type Output = Directory;
    const NAME: &'static str = "rootfs";

    async fn run(&self, container: &Container, cx: &Context) -> Result<Directory, Error> {
        Directory::below(container.rootfs.clone(), "").selected(cx.get::<Services>()?).await
    }
}

/// Replaces the root file system; the configuration stays.
#[derive(Args)]
struct WithRootfs {
    /// The new root.
    directory: Ref<Directory>,
}

impl Op for WithRootfs {
    type Parent = Container;
    type Output = Container;
    const NAME: &'static str = "withRootfs";

    async fn run(&self, container: &Container, cx: &Context) -> Result<Container, Error> {
        let mut changed = container.clone();
        changed.rootfs = self.directory.as_tree(cx.get::<Services>()?).await?;
        Ok(changed)
    }
}

/// A directory of the container, mounted directories included.
#[derive(Args)]
struct GetDirectory {
    /// Replace `$VAR` and `${VAR}` in the path by the container's variables.
    #[arg(default = "false")]
    expand: bool,
    /// Where it is; relative paths start from the working directory.
    path: String,
}

impl Op for GetDirectory {
    type Parent = Container;
    type Output = Directory;
    const NAME: &'static str = "directory";

    async fn run(&self, container: &Container, cx: &Context) -> Result<Directory, Error> {
        let path = container.absolute(&self.path, self.expand)?;
        let found = container.directory_at(&path)?.typed(&self.path);
        found.selected(cx.get::<Services>()?).await
    }
}

/// A file of the container, mounted ones included.
#[derive(Args)]
struct GetFile {
    /// Replace `$VAR` and `${VAR}` in the path by the container's variables.
    #[arg(default = "false")]
    expand: bool,
    /// Where it is; relative paths start from the working directory.
    path: String,
}

impl Op for GetFile {
    type Parent = Container;
    type Output = File;
    const NAME: &'static str = "file";

    async fn run(&self, container: &Container, cx: &Context) -> Result<File, Error> {
        let path = container.absolute(&self.path, self.expand)?;
        let file = container.file_at(&path)?.typed(&self.path);
        file.metadata(cx.get::<Services>()?).await?;
        Ok(file)
    }
}

/// Writes a new file.
#[derive(Args)]
struct WithNewFile {
    /// What is in it.
    contents: String,
    /// Replace `$VAR` and `${VAR}` in the path by the container's variables.
    #[arg(default = "false")]
    expand: bool,
    /// `user[:group]` that owns it; root when empty.
    #[arg(default = "\"\"")]
    owner: String,
    /// Where; parents are created.
    path: String,
    /// Permission bits.
    #[arg(default = "420")]
    permissions: i64,
    /// Give it to the container's user instead.
    #[arg(default = "false")]
    inherit_owner: bool,
}

impl Op for WithNewFile {
    type Parent = Container;
    type Output = Container;
    const NAME: &'static str = "withNewFile";

    async fn run(&self, container: &Container, cx: &Context) -> Result<Container, Error> {
        let path = container.absolute(&self.path, self.expand)?;
        let mode = modes::required(self.permissions)?;
        let owner = container.owner(&self.owner, self.inherit_owner, cx).await?;
        let edit =
            |path| Edit::NewFile { path, contents: self.contents.as_bytes().into(), mode, owner };
        container.edit_at(&path, cx.get::<Services>()?, edit).await
    }
}

/// Copies a file in.
#[derive(Args)]
struct WithFile {
    /// Replace `$VAR` and `${VAR}` in the path by the container's variables.
    #[arg(default = "false")]
    expand: bool,
    /// `user[:group]` that owns it; root when empty.
    #[arg(default = "\"\"")]
    owner: String,
    /// Where; in an existing directory it keeps its name.
    path: String,
    /// Permission bits instead of the file's own.
    permissions: Option<i64>,
    /// The file.
    source: Ref<File>,
    /// Give it to the container's user instead.
    #[arg(default = "false")]
    inherit_owner: bool,
}

impl Op for WithFile {
    type Parent = Container;
    type Output = Container;
    const NAME: &'static str = "withFile";

    async fn run(&self, container: &Container, cx: &Context) -> Result<Container, Error> {
        let services = cx.get::<Services>()?;
        let path = container.file_target(&self.path, self.expand)?;
        let mode = modes::optional(self.permissions)?;
        let owner = container.owner(&self.owner, self.inherit_owner, cx).await?;
        let source = self.source.as_source(services).await?;
        container
            .edit_at(&path, services, |path| Edit::CopyFile { source, path, mode, owner })
            .await
    }
}

/// Copies several files into one directory, each under its own name.
#[derive(Args)]
struct WithFiles {
    /// Replace `$VAR` and `${VAR}` in the path by the container's variables.
    #[arg(default = "false")]
    expand: bool,
    /// `user[:group]` that owns them; root when empty.
    #[arg(default = "\"\"")]
    owner: String,
    /// The directory.
    path: String,
    /// Permission bits instead of the files' own.
    permissions: Option<i64>,
    /// The files.
    sources: Vec<Ref<File>>,
    /// Give them to the container's user instead.
    #[arg(default = "false")]
    inherit_owner: bool,
}

impl Op for WithFiles {
    type Parent = Container;
    type Output = Container;
    const NAME: &'static str = "withFiles";

    async fn run(&self, container: &Container, cx: &Context) -> Result<Container, Error> {
        let services = cx.get::<Services>()?;
        let folder = container.absolute(&self.path, self.expand)?;
        let mode = modes::optional(self.permissions)?;
        let mut changed = container.clone();
        for file in &self.sources {
            let source = file.as_source(services).await?;
            let path = format!("{}/{}", folder.trim_end_matches('/'), source.name());
            let owner = container.owner(&self.owner, self.inherit_owner, cx).await?;
            changed = changed
                .edit_at(&path, services, |path| Edit::CopyFile { source, path, mode, owner })
                .await?;
        }
        Ok(changed)
    }
}

/// Copies a directory in, merging it with what is there.
#[derive(Args)]
struct WithDirectory {
    /// The directory, under its old name.
    directory: Option<Ref<Directory>>,
    /// Patterns of what to leave out.
    #[arg(default = "[]")]
    exclude: Vec<String>,
    /// Replace `$VAR` and `${VAR}` in the path by the container's variables.
    #[arg(default = "false")]
    expand: bool,
    /// Patterns of what to take; empty takes all.
    #[arg(default = "[]")]
    include: Vec<String>,
    /// `user[:group]` that owns everything; root when empty.
    #[arg(default = "\"\"")]
    owner: String,
    /// Where.
    path: String,
    /// The directory.
    source: Option<Ref<Directory>>,
    /// Leave out what `.gitignore` files in it name.
    #[arg(default = "false")]
    gitignore: bool,
    /// Permission bits for every entry.
    permissions: Option<i64>,
    /// Give everything to the container's user instead.
    #[arg(default = "false")]
    inherit_owner: bool,
}

impl Op for WithDirectory {
    type Parent = Container;
    type Output = Container;
    const NAME: &'static str = "withDirectory";

    async fn run(&self, container: &Container, cx: &Context) -> Result<Container, Error> {
        let services = cx.get::<Services>()?;
        let given = self.source.as_ref().or(self.directory.as_ref());
        let given = given.ok_or_else(|| Error::user("withDirectory needs `source`"))?;
        let source = given.as_source(services).await?;
        let path = container.absolute(&self.path, self.expand)?;
        let mode = modes::optional(self.permissions)?;
        let owner = container.owner(&self.owner, self.inherit_owner, cx).await?;
        let filter = Filter {
            include: self.include.clone(),
            exclude: self.exclude.clone(),
            gitignore: self.gitignore,
        };
        let edit = |path| Edit::CopyDirectory { source, path, filter, mode, owner };
        container.edit_at(&path, services, edit).await
    }
}

/// Removes a file; patterns are allowed, a missing one is fine.
#[derive(Args)]
struct WithoutFile {
    /// Replace `$VAR` and `${VAR}` in the path by the container's variables.
    #[arg(default = "false")]
    expand: bool,
    /// Which.
    path: String,
}

impl Op for WithoutFile {
    type Parent = Container;
    type Output = Container;
    const NAME: &'static str = "withoutFile";

    async fn run(&self, container: &Container, cx: &Context) -> Result<Container, Error> {
        container.without(&self.path, self.expand, false, cx.get::<Services>()?).await
    }
}

/// Removes several files; patterns are allowed, missing ones are fine.
#[derive(Args)]
struct WithoutFiles {
    /// Replace `$VAR` and `${VAR}` in the paths by the container's variables.
    #[arg(default = "false")]
    expand: bool,
    /// Which.
    paths: Vec<String>,
}

impl Op for WithoutFiles {
    type Parent = Container;
    type Output = Container;
    const NAME: &'static str = "withoutFiles";

    async fn run(&self, container: &Container, cx: &Context) -> Result<Container, Error> {
        let services = cx.get::<Services>()?;
        let mut changed = container.clone();
        for path in &self.paths {
            changed = changed.without(path, self.expand, false, services).await?;
        }
        Ok(changed)
    }
}

/// Removes a directory with all below it; patterns are allowed, a missing one is fine.
#[derive(Args)]
struct WithoutDirectory {
    /// Replace `$VAR` and `${VAR}` in the path by the container's variables.
    #[arg(default = "false")]
    expand: bool,
    /// Which.
    path: String,
}

impl Op for WithoutDirectory {
    type Parent = Container;
    type Output = Container;
    const NAME: &'static str = "withoutDirectory";

    async fn run(&self, container: &Container, cx: &Context) -> Result<Container, Error> {
        container.without(&self.path, self.expand, true, cx.get::<Services>()?).await
    }
}

impl Container {
    /// The owner of what is written: named, the container's user, or root. Names are looked up in the
    /// root file system, wherever the path is kept.
    pub(super) async fn owner(
        &self,
        named: &str,
        inherit: bool,
        cx: &Context,
    ) -> Result<OwnerSpec, Error> {
        let text = if inherit && named.is_empty() { &self.config.user } else { named };
        let spec = OwnerSpec::parse(text);
        if !spec.is_by_name() {
            return Ok(spec);
        }
        let services = cx.get::<Services>()?.clone();
        let snapshot = self.rootfs.snapshot(&services).await?;
        let (store, text) = (services.store.clone(), text.to_owned());
        services
            .blocking(move || {
                let view = store.view(&snapshot);
                let found = owner::identify(&text, &|path| owner::read_small_file(&view, path))?;
                Ok::<_, Error>(OwnerSpec::Named(format!("{}:{}", found.uid, found.gid)))
            })
            .await
    }

    /// Where a copied file goes; a trailing slash means "into", and tidying would lose it.
    fn file_target(&self, path: &str, expand: bool) -> Result<String, Error> {
        let tidy = self.absolute(path, expand)?;
        let into = matches!(path, "" | ".") || path.ends_with('/');
        Ok(if into && tidy != "/" { format!("{tidy}/") } else { tidy })
    }

    async fn without(
        &self,
        path: &str,
        expand: bool,
        directory: bool,
        services: &Services,
    ) -> Result<Self, Error> {
        let path = self.absolute(path, expand)?;
        // A mounted file is taken away by its name, as if it were a file of the root.
        if let (Place::Mount(mount, index), "") = self.locate(&path)
            && matches!(mount.source, MountSource::File { .. })
            && !directory
        {
            let mut changed = self.clone();
            changed.mounts.remove(index);
            return Ok(changed);
        }
        self.edit_at(&path, services, |path| Edit::Remove { paths: vec![path], directory }).await
    }
}
