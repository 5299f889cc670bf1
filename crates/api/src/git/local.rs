//! [`Local`]: a repository in a directory of the store.
//!
//! Its files are a stranger's: its configuration could name programs to run, its links could lead anywhere. So git never
//! sees them. It gets a bare repository of ours that has the objects and the references of the directory, as second
//! names of the very files, and nothing else of it.

use super::told;
use crate::directory::Directory;
use crate::paths;
use crate::services::Services;
use git::Refs;
use graph::Context;
use protocol::Error;
use std::io::Read as _;
use std::path::PathBuf;
use std::sync::Arc;
use store::{Folder, View};
use tokio::sync::OnceCell;

/// Longest file that is read for where a repository is.
const MAX_TEXT: u64 = 1 << 20;

/// A repository in a directory.
pub(crate) struct Local {
    directory: Directory,
    /// The url that it stands for, where the caller named it by one.
    origin: Option<String>,
    /// Where it is on the caller's machine, where only the repository was read there.
    host: Option<String>,
    open: OnceCell<Arc<LocalOpen>>,
}

/// What git works with.
pub(super) struct LocalOpen {
    folder: Folder,
    pub(super) refs: Refs,
    /// Where the repository is in the tree that the directory is in.
    pub(super) place: Place,
}

/// Where the parts of a repository are, as paths of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// What is this work tree's own: `HEAD`.
    own: String,
    /// What all work trees share: objects and references.
    pub(super) common: String,
}

impl Local {
    pub(super) fn new(directory: Directory, origin: Option<String>) -> Self {
        Self { directory, origin, host: None, open: OnceCell::new() }
    }

    /// A repository of the caller's machine, of which the work tree was not read.
    pub(super) fn on_host(directory: Directory, origin: Option<String>, path: &str) -> Self {
        Self { host: Some(path.to_owned()), ..Self::new(directory, origin) }
    }

    /// Where it is on the caller's machine, if its work tree was left there.
    pub(super) fn host(&self) -> Option<&str> {
        self.host.as_deref()
    }

    pub(super) fn directory(&self) -> &Directory {
        &self.directory
    }

    pub(super) fn origin(&self) -> Option<&str> {
        self.origin.as_deref()
    }

    /// Looks at it, once a session.
    pub(super) async fn open(&self, cx: &Context) -> Result<Arc<LocalOpen>, Error> {
        let open = || async {
            let services = cx.get::<Services>()?;
            let snapshot = self.directory.snapshot(services).await?;
            let (store, path) = (services.store.clone(), self.directory.path().to_owned());
            let shown = match &self.host {
                Some(path) => path.clone(),
                None if path.is_empty() => "/".to_owned(),
                None => path.clone(),
            };
            let (folder, place) = services
                .blocking(move || {
                    let view = store.view(&snapshot);
                    let place = find(&view, &path, &shown)?;
                    let folder = lend(&view, &place, store.new_folder()?)?;
                    Ok::<_, Error>((folder, place))
                })
                .await?;
            let refs =
                Refs::of_repository(services.git.git(), folder.path()).await.map_err(told)?;
            Ok(Arc::new(LocalOpen { folder, refs, place }))
        };
        self.open.get_or_try_init(open).await.cloned()
    }

    /// The repository that this one has of a submodule, if it has one.
    pub(super) async fn submodule(&self, name: &str, cx: &Context) -> Result<Option<Self>, Error> {
        let services = cx.get::<Services>()?;
        let open = self.open(cx).await?;
        let path = format!("{}/modules/{name}", open.place.common);
        let snapshot = self.directory.snapshot(services).await?;
        let view = services.store.view(&snapshot);
        if !view.stat(&format!("{path}/objects")).is_ok_and(|found| found.is_directory()) {
            return Ok(None);
        }
        let directory = Directory::below(self.directory.tree().clone(), &path);
        Ok(Some(Self::new(directory, self.origin.clone())))
    }
}

impl Place {
    /// Whether the directory at a path is the repository itself, without a work tree.
    pub(super) fn is_bare(&self, path: &str) -> bool {
        self.own == path
    }
}

impl LocalOpen {
    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    /// Refuses a commit that the repository does not have.
    pub(super) async fn require(&self, commit: &str, cx: &Context) -> Result<(), Error> {
        let git = cx.get::<Services>()?.git.git();
        let read = git::Commit::read(git, self.folder.path(), commit).await;
        read.map(drop).map_err(|_| told(git::Error::NotThere(format!("commit `{commit}`"))))
    }
}

/// Finds the repository of a directory.
fn find(view: &View, path: &str, shown: &str) -> Result<Place, Error> {
    let none = |reason: &str| Error::user(format!("not a git repository: `{shown}`{reason}"));
    let git = paths::join(path, ".git");
    let own = match view.stat(&git) {
        Ok(found) if found.is_directory() => git,
        Ok(found) if found.is_file() => {
            let text = read(view, &git).unwrap_or_default();
            let named = text.trim().strip_prefix("gitdir:").map(str::trim).unwrap_or_default();
            let place = paths::absolute(&format!("/{path}"), named);
            if named.is_empty() || view.stat(&place).is_err() {
                let reason = format!(": its `.git` names `{named}`, which is not in the directory");
                return Err(none(&reason).with_hint(
                    "take the directory that has the repository and the work tree in it",
                ));
            }
            place
        }
        _ => path.to_owned(),
    };
    let common = match read(view, &paths::join(&own, "commondir")) {
        Some(text) => paths::absolute(&format!("/{own}"), text.trim()),
        None => own.clone(),
    };
    let objects = paths::join(&common, "objects");
    let whole = view.stat(&objects).is_ok_and(|found| found.is_directory())
        && view.stat_link(&paths::join(&own, "HEAD")).is_ok();
    if !whole {
        return Err(none(""));
    }
    if read(view, &format!("{objects}/info/alternates")).is_some_and(|text| !text.trim().is_empty())
    {
        return Err(Error::user(format!("repository `{shown}` borrows objects from another one"))
            .with_hint(
                "give it its own with `git repack -a -d && rm .git/objects/info/alternates`",
            ));
    }
    Ok(Place { own, common })
}

/// Makes a bare repository of ours with what a repository has.
fn lend(view: &View, place: &Place, mut folder: Folder) -> Result<Folder, Error> {
    let common = |name: &str| paths::join(&place.common, name);
    folder.lend_tree((view, &common("objects")), "objects")?;
    for name in ["refs", "reftable"] {
        if view.stat(&common(name)).is_ok_and(|found| found.is_directory()) {
            folder.lend_tree((view, &common(name)), name)?;
        }
    }
    for name in ["packed-refs", "shallow"] {
        folder.lend_file((view, &common(name)), name)?;
    }
    // What is staged, and what is ignored: for who looks at the work tree.
    folder.lend_file((view, &common("info/exclude")), git::work_tree::EXCLUDES)?;
    let own = view.read_dir(&place.own).unwrap_or_default().into_iter().map(|entry| entry.name);
    for name in own.filter(|name| name == "index" || name.starts_with("sharedindex.")) {
        folder.lend_file((view, &paths::join(&place.own, &name)), &name)?;
    }
    std::fs::create_dir_all(folder.path().join("refs"))
        .map_err(|error| Error::environment(format!("cannot make a repository: {error}")))?;
    let config = read(view, &common("config")).unwrap_or_default().to_lowercase();
    folder.write("config", &own_config(&config))?;
    // It may be a link to a branch, as git once wrote it.
    let head = match view.read_link(&paths::join(&place.own, "HEAD")) {
        Ok(target) => format!("ref: {target}\n"),
        Err(_) => read(view, &paths::join(&place.own, "HEAD")).unwrap_or_default(),
    };
    folder.write("HEAD", &head)?;
    Ok(folder)
}

/// Of a repository's configuration only how its files are to be read.
fn own_config(theirs: &str) -> String {
    let value = |key: &str| {
        let lines = theirs.lines().filter_map(|line| line.split_once('='));
        lines
            .filter(|(name, _)| name.trim() == key)
            .map(|(_, value)| value.trim().to_owned())
            .next_back()
    };
    let sha256 = value("objectformat").is_some_and(|format| format == "sha256");
    let reftable = value("refstorage").is_some_and(|storage| storage == "reftable");
    let version = i32::from(sha256 || reftable);
    let mut config = format!("[core]\n\trepositoryformatversion = {version}\n\tbare = true\n");
    if version == 1 {
        config += "[extensions]\n";
    }
    if sha256 {
        config += "\tobjectFormat = sha256\n";
    }
    if reftable {
        config += "\trefStorage = reftable\n";
    }
    config
}

/// The text of a small file.
fn read(view: &View, path: &str) -> Option<String> {
    let mut bytes = vec![];
    view.open(path).ok()?.take(MAX_TEXT).read_to_end(&mut bytes).ok()?;
    String::from_utf8(bytes).ok()
}
