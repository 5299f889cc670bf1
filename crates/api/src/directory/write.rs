//! Fields of `Directory` that give a changed one.

use super::Directory;
use crate::edit::{Edit, Filter};
use crate::file::File;
use crate::modes;
use crate::owner::OwnerSpec;
use crate::paths;
use crate::services::Services;
use graph::{Args, Builder, Context, Op, Ref};
use protocol::Error;

pub(super) fn install(builder: &mut Builder) {
    builder
        .install::<WithNewFile>()
        .install::<WithNewDirectory>()
        .install::<WithFile>()
        .install::<WithFiles>()
        .install::<WithDirectory>()
        .install::<WithoutFile>()
        .install::<WithoutFiles>()
        .install::<WithoutDirectory>();
}

/// Writes a new file.
#[derive(Args)]
struct WithNewFile {
    /// What is in it.
    contents: String,
    /// Where; parents are created.
    path: String,
    /// Permission bits.
    #[arg(default = "420")]
    permissions: i64,
}

impl Op for WithNewFile {
    type Parent = Directory;
    type Output = Directory;
    const NAME: &'static str = "withNewFile";

    async fn run(&self, directory: &Directory, cx: &Context) -> Result<Directory, Error> {
        let mode = modes::required(self.permissions)?;
        let contents = self.contents.as_bytes().into();
        let path = directory.new_child(&self.path)?;
        let edit = Edit::NewFile { path, contents, mode, owner: OwnerSpec::Root };
        directory.edited(edit, cx).await
    }
}

/// Makes a new directory.
#[derive(Args)]
struct WithNewDirectory {
    /// Where; parents are created.
    path: String,
    /// Permission bits of it and of the parents that are created; 0 means 0755.
    #[arg(default = "420")]
    permissions: i64,
}

impl Op for WithNewDirectory {
    type Parent = Directory;
    type Output = Directory;
    const NAME: &'static str = "withNewDirectory";

    async fn run(&self, directory: &Directory, cx: &Context) -> Result<Directory, Error> {
        let mode = match modes::required(self.permissions)? {
            0 => 0o755,
            mode => mode,
        };
        let path = directory.new_child(&self.path)?;
        directory.edited(Edit::NewDirectory { path, mode, owner: OwnerSpec::Root }, cx).await
    }
}

/// Copies a file in.
#[derive(Args)]
struct WithFile {
    /// Where; in an existing directory it keeps its name.
    path: String,
    /// Permission bits instead of the file's own.
    permissions: Option<i64>,
    /// The file.
    source: Ref<File>,
    /// `user[:group]` that owns it; root when empty.
    #[arg(default = "\"\"")]
    owner: String,
}

impl Op for WithFile {
    type Parent = Directory;
    type Output = Directory;
    const NAME: &'static str = "withFile";

    async fn run(&self, directory: &Directory, cx: &Context) -> Result<Directory, Error> {
        let edit = Edit::CopyFile {
            source: self.source.as_source(cx.get::<Services>()?).await?,
            path: directory.file_target(&self.path),
            mode: modes::optional(self.permissions)?,
            owner: OwnerSpec::parse(&self.owner),
        };
        directory.edited(edit, cx).await
    }
}

/// Copies several files into one directory, each under its own name.
#[derive(Args)]
struct WithFiles {
    /// The directory.
    path: String,
    /// Permission bits instead of the files' own.
    permissions: Option<i64>,
    /// The files.
    sources: Vec<Ref<File>>,
}

impl Op for WithFiles {
    type Parent = Directory;
    type Output = Directory;
    const NAME: &'static str = "withFiles";

    async fn run(&self, directory: &Directory, cx: &Context) -> Result<Directory, Error> {
        let mode = modes::optional(self.permissions)?;
        let folder = directory.child(&self.path);
        let mut changed = directory.clone();
        for file in &self.sources {
            let source = file.as_source(cx.get::<Services>()?).await?;
            let path = format!("{}/{}", folder.trim_end_matches('/'), source.name());
            let edit = Edit::CopyFile { source, path, mode, owner: OwnerSpec::Root };
            changed = changed.edited(edit, cx).await?;
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
    /// Patterns of what to take; empty takes all.
    #[arg(default = "[]")]
    include: Vec<String>,
    /// Where.
    path: String,
    /// `user[:group]` that owns everything; root when empty.
    #[arg(default = "\"\"")]
    owner: String,
    /// The directory.
    source: Option<Ref<Directory>>,
    /// Leave out what `.gitignore` files in it name.
    #[arg(default = "false")]
    gitignore: bool,
    /// Permission bits for every entry.
    permissions: Option<i64>,
}

impl Op for WithDirectory {
    type Parent = Directory;
    type Output = Directory;
    const NAME: &'static str = "withDirectory";

    async fn run(&self, directory: &Directory, cx: &Context) -> Result<Directory, Error> {
        let given = self.source.as_ref().or(self.directory.as_ref());
        let given = given.ok_or_else(|| Error::user("withDirectory needs `source`"))?;
        let edit = Edit::CopyDirectory {
            source: given.as_source(cx.get::<Services>()?).await?,
            path: directory.child(&self.path),
            filter: Filter {
                include: self.include.clone(),
                exclude: self.exclude.clone(),
                gitignore: self.gitignore,
            },
            mode: modes::optional(self.permissions)?,
            owner: OwnerSpec::parse(&self.owner),
        };
        directory.edited(edit, cx).await
    }
}

/// Removes a file; patterns are allowed, a missing one is fine.
#[derive(Args)]
struct WithoutFile {
    /// Which.
    path: String,
}

impl Op for WithoutFile {
    type Parent = Directory;
    type Output = Directory;
    const NAME: &'static str = "withoutFile";

    async fn run(&self, directory: &Directory, cx: &Context) -> Result<Directory, Error> {
        let paths = vec![directory.child(&self.path)];
        directory.edited(Edit::Remove { paths, directory: false }, cx).await
    }
}

/// Removes several files; patterns are allowed, missing ones are fine.
#[derive(Args)]
struct WithoutFiles {
    /// Which.
    paths: Vec<String>,
}

impl Op for WithoutFiles {
    type Parent = Directory;
    type Output = Directory;
    const NAME: &'static str = "withoutFiles";

    async fn run(&self, directory: &Directory, cx: &Context) -> Result<Directory, Error> {
        let paths = self.paths.iter().map(|path| directory.child(path)).collect();
        directory.edited(Edit::Remove { paths, directory: false }, cx).await
    }
}

/// Removes a directory with all below it; patterns are allowed, a missing one is fine.
#[derive(Args)]
struct WithoutDirectory {
    /// Which.
    path: String,
}

impl Op for WithoutDirectory {
    type Parent = Directory;
    type Output = Directory;
    const NAME: &'static str = "withoutDirectory";

    async fn run(&self, directory: &Directory, cx: &Context) -> Result<Directory, Error> {
        let paths = vec![directory.child(&self.path)];
        directory.edited(Edit::Remove { paths, directory: true }, cx).await
    }
}

impl Directory {
    pub(super) async fn edited(&self, edit: Edit, cx: &Context) -> Result<Self, Error> {
        let tree = self.tree.edited(edit, cx.get::<Services>()?).await?;
        Ok(Self { tree, ..self.clone() })
    }

    /// Where something new is made: never above this directory.
    fn new_child(&self, path: &str) -> Result<String, Error> {
        if paths::climbs_out(path) {
            return Err(Error::user("cannot create directory outside parent"));
        }
        Ok(self.child(path))
    }

    /// Where a copied file goes; "into this directory" is said by a trailing slash.
    fn file_target(&self, path: &str) -> String {
        match path {
            "" | "." | "/" => format!("{}/", self.path),
            _ => self.child(path),
        }
    }
}
