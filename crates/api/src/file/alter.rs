//! Fields of `File` that give a changed one.

use super::File;
use crate::alteration::Alteration;
use crate::edit::Edit;
use crate::owner::OwnerSpec;
use crate::replacement::Replacement;
use crate::services::Services;
use crate::{looks, times};
use graph::{Args, Builder, Context, Op};
use protocol::Error;

pub(super) fn install(builder: &mut Builder) {
    builder
        .install::<Chown>()
        .install::<WithName>()
        .install::<WithReplaced>()
        .install::<WithTimestamps>();
}

/// Gives the file to another owner.
#[derive(Args)]
struct Chown {
    /// `user[:group]` by number: there is no list of users beside a file to look names up in.
    owner: String,
}

impl Op for Chown {
    type Parent = File;
    type Output = File;
    const NAME: &'static str = "chown";

    async fn run(&self, file: &File, cx: &Context) -> Result<File, Error> {
        let owner = OwnerSpec::parse(&self.owner);
        if owner.is_by_name() {
            let shown = looks::shown(&self.owner);
            let message = format!("owner `{shown}`: a file has no users to look a name up in");
            return Err(Error::user(message)
                .with_hint("give numbers, or use `withFile` or `chown` of a root file system"));
        }
        file.altered(cx, |path| Alteration::Chown { path, owner }).await
    }
}

/// The same file under another name.
#[derive(Args)]
struct WithName {
    /// The name, without folders.
    name: String,
}

impl Op for WithName {
    type Parent = File;
    type Output = File;
    const NAME: &'static str = "withName";

    async fn run(&self, file: &File, _: &Context) -> Result<File, Error> {
        let shown = looks::shown(&self.name);
        if self.name.contains('/') {
            return Err(Error::user(format!("file name `{shown}` must not contain a directory")));
        }
        if matches!(self.name.as_str(), "" | "." | "..") {
            return Err(Error::user(format!("`{shown}` is no name of a file")));
        }
        Ok(file.clone().renamed(&self.name))
    }
}

/// Replaces text in the file. The text is taken as it is and may span lines; it has to be there, and only
/// once, unless `all` or `firstFrom` says otherwise.
#[derive(Args)]
struct WithReplaced {
    /// The text to look for.
    search: String,
    /// What takes its place.
    replacement: String,
    /// Replace every occurrence; none at all is fine then.
    #[arg(default = "false")]
    all: bool,
    /// Replace the first occurrence from this line on, the first line being 1.
    first_from: Option<i64>,
}

impl Op for WithReplaced {
    type Parent = File;
    type Output = File;
    const NAME: &'static str = "withReplaced";

    async fn run(&self, file: &File, cx: &Context) -> Result<File, Error> {
        if self.search.is_empty() {
            return Err(Error::user("`search` is empty: give the text to replace"));
        }
        let line = |line: i64| {
            let odd = || Error::user(format!("`firstFrom` is {line}: lines are counted from 1"));
            usize::try_from(line).ok().filter(|line| *line > 0).ok_or_else(odd)
        };
        let replacement = Replacement {
            search: self.search.clone(),
            replacement: self.replacement.clone(),
            all: self.all,
            first_from: self.first_from.map(line).transpose()?,
        };
        file.altered(cx, |path| Alteration::Replace { path, replacement }).await
    }
}

/// Sets the times of the file.
#[derive(Args)]
struct WithTimestamps {
    /// Seconds since 1970.
    timestamp: i64,
}

impl Op for WithTimestamps {
    type Parent = File;
    type Output = File;
    const NAME: &'static str = "withTimestamps";

    async fn run(&self, file: &File, cx: &Context) -> Result<File, Error> {
        let seconds = times::seconds(self.timestamp)?;
        file.altered(cx, |path| Alteration::Times { path, seconds }).await
    }
}

impl File {
    /// The file in a tree where it was changed.
    async fn altered(
        &self,
        cx: &Context,
        change: impl FnOnce(String) -> Alteration,
    ) -> Result<Self, Error> {
        let services = cx.get::<Services>()?;
        self.metadata(services).await?;
        let edit = Edit::Alter(change(self.path.clone()));
        let tree = self.tree.edited(edit, services).await?;
        Ok(Self { tree, identity: None, ..self.clone() })
    }
}
