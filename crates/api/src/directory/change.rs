//! Fields of `Directory` that compare it with another, and that apply changes and patches.

use super::Directory;
use crate::changeset::{Changeset, PatchConflict};
use crate::edit::{Edit, PatchText};
use crate::file::File;
use crate::services::Services;
use graph::{Args, Builder, Context, Op, Ref};
use protocol::Error;

pub(super) fn install(builder: &mut Builder) {
    builder
        .install::<Changes>()
        .install::<Diff>()
        .install::<WithChanges>()
        .install::<WithPatch>()
        .install::<WithPatchFile>();
}

/// What was done from an older directory to this one.
#[derive(Args)]
struct Changes {
    /// The older directory.
    from: Ref<Directory>,
}

impl Op for Changes {
    type Parent = Directory;
    type Output = Changeset;
    const NAME: &'static str = "changes";

    async fn run(&self, directory: &Directory, _: &Context) -> Result<Changeset, Error> {
        Ok(Changeset::new(Directory::clone(&self.from), directory.clone()))
    }
}

/// A directory with only those entries of another that this one does not have, or has with other
/// contents, mode or owner.
#[derive(Args)]
struct Diff {
    /// The other directory.
    other: Ref<Directory>,
}

impl Op for Diff {
    type Parent = Directory;
    type Output = Directory;
    const NAME: &'static str = "diff";

    async fn run(&self, directory: &Directory, cx: &Context) -> Result<Directory, Error> {
        let changeset = Changeset::new(directory.clone(), Directory::clone(&self.other));
        changeset.difference(cx.get::<Services>()?).await
    }
}

/// Does to the directory what a changeset says: adds, overwrites and removes by path. What the
/// changeset does not name stays.
#[derive(Args)]
struct WithChanges {
    /// What is done.
    changes: Ref<Changeset>,
}

impl Op for WithChanges {
    type Parent = Directory;
    type Output = Directory;
    const NAME: &'static str = "withChanges";

    async fn run(&self, directory: &Directory, cx: &Context) -> Result<Directory, Error> {
        let edit = self.changes.edit(directory.path(), cx.get::<Services>()?).await?;
        directory.edited(edit, cx).await
    }
}

/// Applies a patch, of git or of the program `diff`, to the files of the directory. Names in it lose
/// their first part, such as `a/`. Lines that moved are found.
#[derive(Args)]
struct WithPatch {
    /// The patch.
    patch: String,
    /// What happens to what does not fit.
    #[arg(default = "FAIL")]
    on_conflict: PatchConflict,
}

impl Op for WithPatch {
    type Parent = Directory;
    type Output = Directory;
    const NAME: &'static str = "withPatch";

    async fn run(&self, directory: &Directory, cx: &Context) -> Result<Directory, Error> {
        let patch = PatchText::Text(self.patch.as_bytes().into());
        directory.patched(patch, self.on_conflict, cx).await
    }
}

/// Applies a patch in a file, which may be of any length: see `withPatch`.
#[derive(Args)]
struct WithPatchFile {
    /// The file with the patch.
    patch: Ref<File>,
    /// What happens to what does not fit.
    #[arg(default = "FAIL")]
    on_conflict: PatchConflict,
}

impl Op for WithPatchFile {
    type Parent = Directory;
    type Output = Directory;
    const NAME: &'static str = "withPatchFile";

    async fn run(&self, directory: &Directory, cx: &Context) -> Result<Directory, Error> {
        let patch = PatchText::File(self.patch.as_source(cx.get::<Services>()?).await?);
        directory.patched(patch, self.on_conflict, cx).await
    }
}

impl Directory {
    /// The patch is applied at once, so that what does not fit is said about the right field.
    async fn patched(
        &self,
        patch: PatchText,
        on_conflict: PatchConflict,
        cx: &Context,
    ) -> Result<Self, Error> {
        let edit = Edit::Patch { path: self.path().to_owned(), patch, on_conflict };
        let patched = self.edited(edit, cx).await?;
        patched.snapshot(cx.get::<Services>()?).await?;
        Ok(patched)
    }
}
