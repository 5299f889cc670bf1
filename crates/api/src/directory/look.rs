//! Fields of `Directory` that look at single entries and at the whole.

use super::Directory;
use crate::services::Services;
use crate::stat::{self, ExistsType, Stat};
use crate::{compat, content_digest, looks, paths};
use graph::{Args, Builder, Context, Op};
use protocol::Error;
use store::{View, ViewError};

/// As the kernel's own limit. The way up is as long as the path where it begins.
const LONGEST: usize = 4096;

pub(super) fn install(builder: &mut Builder) {
    builder
        .install::<Exists>()
        .install::<GetStat>()
        .install::<FindUp>()
        .install::<Glob>()
        .install::<Digest>();
}

/// Whether something is at a path, as the command `test` finds out.
#[derive(Args)]
struct Exists {
    /// Where.
    path: String,
    /// What it has to be; anything when left out.
    expected_type: Option<ExistsType>,
    /// Look at a link itself, not at where it leads.
    #[arg(default = "false")]
    do_not_follow_symlinks: bool,
}

impl Op for Exists {
    type Parent = Directory;
    type Output = bool;
    const NAME: &'static str = "exists";

    async fn run(&self, directory: &Directory, cx: &Context) -> Result<bool, Error> {
        let path = match self.path.as_str() {
            "" => return Ok(false),
            path => path.to_owned(),
        };
        let (expected, keep_link) = (self.expected_type, self.do_not_follow_symlinks);
        let look = move |view: &View| stat::exists(view, &path, expected, keep_link);
        directory.looked_at(cx, look).await
    }
}

/// What is known of an entry beside its contents.
#[derive(Args)]
struct GetStat {
    /// Where it is.
    path: String,
    /// Look at a link itself, not at where it leads.
    #[arg(default = "false")]
    do_not_follow_symlinks: bool,
}

impl Op for GetStat {
    type Parent = Directory;
    type Output = Option<Stat>;
    const NAME: &'static str = "stat";

    async fn run(&self, directory: &Directory, cx: &Context) -> Result<Option<Stat>, Error> {
        if self.path.is_empty() {
            return Err(stat::missing("").with_hint("the directory itself is `.`"));
        }
        let (path, keep_link) = (self.path.clone(), self.do_not_follow_symlinks);
        let look = move |view: &View| stat::look(view, &path, &path, keep_link);
        let metadata = directory.looked_at(cx, look).await?;
        let tidy = paths::absolute("/", &self.path);
        Ok(Some(Stat::new(paths::name(&tidy), metadata)))
    }
}

/// The nearest entry of a name, upwards from a directory below this one; null when there is none. The
/// path that it gives is relative to this directory.
#[derive(Args)]
struct FindUp {
    /// The name to look for.
    name: String,
    /// Where to begin.
    start: String,
}

impl Op for FindUp {
    type Parent = Directory;
    type Output = Option<String>;
    const NAME: &'static str = "findUp";

    async fn run(&self, directory: &Directory, cx: &Context) -> Result<Option<String>, Error> {
        if let Some(long) = [&self.name, &self.start].into_iter().find(|path| path.len() > LONGEST)
        {
            return Err(ViewError::PathTooLong(looks::shown(long)).into());
        }
        let name = self.name.trim_end_matches('/');
        if matches!(name, "" | ".") || name.starts_with('/') || paths::climbs_out(name) {
            let shown = looks::shown(&self.name);
            return Err(Error::user(format!("`{shown}` is no name of a file or directory")));
        }
        let (name, mut place) = (name.to_owned(), paths::absolute("/", &self.start));
        let look = move |view: &View| {
            loop {
                let candidate = format!("{}/{name}", place.trim_end_matches('/'));
                if stat::exists(view, &candidate, None, true)? {
                    return Ok(Some(candidate.trim_start_matches('/').to_owned()));
                }
                if place == "/" {
                    return Ok(None);
                }
                place = paths::absolute(&place, "..");
            }
        };
        directory.looked_at(cx, look).await
    }
}

/// Paths of everything that matches a pattern, sorted; those of directories end with a slash.
#[derive(Args)]
struct Glob {
    /// `*`, `?` and `[...]` stay within one name, `**` spans directories, `{a,b}` is either. What begins
    /// with a dot is found like anything else.
    pattern: String,
}

impl Op for Glob {
    type Parent = Directory;
    type Output = Vec<String>;
    const NAME: &'static str = "glob";

    async fn run(&self, directory: &Directory, cx: &Context) -> Result<Vec<String>, Error> {
        let (pattern, marks) = (self.pattern.clone(), compat::marks_directories(cx));
        let look = move |view: &View| {
            let found = view.glob(&pattern)?;
            Ok(found.iter().map(|entry| looks::marked(entry, marks)).collect())
        };
        directory.looked_at(cx, look).await
    }
}

/// Digest of everything in the directory: names, kinds, permissions, owners, link targets, extended
/// attributes and contents. Equal directories have equal digests, wherever they are and however they were
/// made; times are no part of it.
#[derive(Args)]
struct Digest {}

impl Op for Digest {
    type Parent = Directory;
    type Output = String;
    const NAME: &'static str = "digest";

    async fn run(&self, directory: &Directory, cx: &Context) -> Result<String, Error> {
        let services = cx.get::<Services>()?;
        let snapshot = directory.subtree(services).await?;
        let store = services.store.clone();
        let digest = services.blocking(move || store.tree_sum(&snapshot)).await?;
        Ok(content_digest::of_sum(&digest))
    }
}

impl Directory {
    /// Looks at the tree whose root is this directory.
    pub(super) async fn looked_at<T: Send + 'static>(
        &self,
        cx: &Context,
        look: impl FnOnce(&View) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let services = cx.get::<Services>()?;
        services.look(self.subtree(services).await?, look).await
    }
}
