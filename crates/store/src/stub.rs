//! Mount points that a tree lacks.
//!
//! An exec needs places to mount on. Making them in the tree would leave them in the result, so they
//! are made in a *stub*, a layer that lies right below the exec's own changes and is never part of a
//! snapshot. Its directories carry the metadata of the merged tree, which the stub would otherwise
//! hide. For the same reason a file of the engine's ([`Laid`]) is in a stub: an exec finds it in its root as
//! if it belonged there, may replace it, and leaves it behind.
//!
//! Looking up every mount point in every layer would make each step of a long chain a little slower
//! than the one before. So what was found for a snapshot is kept, and handed on to the snapshot
//! that the exec commits if its changes came nowhere near the mount points.

use crate::draft::{Draft, WorkDir, failed, finish_file};
use crate::metadata::{Kind, Meta, Owner};
use crate::snapshot::Snapshot;
use crate::state::StateDir;
use crate::store::Inner;
use crate::top::Top;
use crate::view::{Last, Located, Tree, ViewError, join, shorten};
use crate::{Error, compact};
use protocol::Digest;
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::fs::File;
use std::hash::{Hash, Hasher};
use std::io::{Read, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// A file beyond this size is nothing to lay another one over.
const MOST_CONTENTS: u64 = 16 << 20;
/// Plans are forgotten all at once beyond this many, so that memory and disk stay bounded.
const MOST_PLANS: usize = 1024;

/// A mount point that an exec needs inside the root.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// Absolute path in the root.
    pub path: String,
    /// What must be there.
    pub kind: TargetKind,
}

/// What a mount point is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TargetKind {
    /// A directory.
    Directory,
    /// A file.
    File,
    /// No mount point but a file of the engine's own.
    Laid(Laid),
}

/// A file that an exec finds in its root and that is no part of what it leaves, unless it is changed.
#[derive(Clone)]
pub struct Laid {
    /// Stands for all that `make` does.
    pub digest: Digest,
    /// From the contents that the tree has there, if it has any, to those that the exec is to see;
    /// none leaves the tree as it is.
    pub make: Make,
}

/// Makes the contents of a [`Laid`] file.
pub type Make = Arc<dyn Fn(Option<&[u8]>) -> Option<Vec<u8>> + Send + Sync>;

impl PartialEq for Laid {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl Eq for Laid {}

impl Hash for Laid {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.digest.hash(state);
    }
}

impl fmt::Debug for Laid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Laid").field(&self.digest).finish()
    }
}

/// What is known of snapshots and the mount points that execs on them need.
#[derive(Default)]
pub(crate) struct Plans(Mutex<HashMap<Digest, Plan>>);

/// What one snapshot needs so that certain mount points are there.
#[derive(Clone)]
pub(crate) struct Plan {
    /// None if the tree has them all.
    stub: Option<Arc<Stub>>,
    /// Names in the root that the mount points are under; none if links lead elsewhere.
    near: Option<Arc<BTreeSet<Vec<u8>>>>,
    targets: Digest,
}

struct Stub {
    root: Vec<u8>,
    /// Keeps the directory until no plan and no mount needs it.
    _work: Arc<WorkDir>,
}

impl Plan {
    /// Finds out what a snapshot needs.
    pub(crate) fn new(inner: &Inner, base: &Snapshot, targets: &[Target]) -> Result<Self, Error> {
        let targets_digest = digest_of(targets);
        let key = key(base, &targets_digest);
        if let Some(plan) = inner.plans.0.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Ok(plan.clone());
        }
        let tree = inner.tree(base);
        let mut near = Some(BTreeSet::new());
        let mut missing = vec![];
        for target in targets {
            let located = match tree.locate(&target.path, Last::Follow) {
                // Where the tree has no place for it, there is nothing to lay it over.
                Err(_) if matches!(target.kind, TargetKind::Laid(_)) => {
                    near = None;
                    continue;
                }
                located => located?,
            };
            note_near(&mut near, target, &located);
            match &target.kind {
                TargetKind::Laid(laid) => {
                    let contents = contents(&tree, &located)?;
                    let contents = contents.and_then(|old| (laid.make)(old.as_deref()));
                    missing.extend(contents.map(|contents| (target, Some(contents))));
                }
                _ if needs_stub(target, &located)? => missing.push((target, None)),
                _ => {}
            }
        }
        let stub =
            if missing.is_empty() { None } else { Some(make(&inner.state, tree, &missing)?) };
        let plan = Self { stub, near: near.map(Arc::new), targets: targets_digest };
        inner.plans.insert(key, plan.clone());
        Ok(plan)
    }

    /// Path of the stub below the state folder.
    pub(crate) fn stub(&self) -> Option<&[u8]> {
        self.stub.as_ref().map(|stub| &stub.root[..])
    }

    /// Whether changes came nowhere near the mount points, so that this plan fits their result too.
    pub(crate) fn outlives(&self, state: &StateDir, upper: &[u8]) -> bool {
        let untouched = |name: &Vec<u8>| state.stat(&join(upper, name)) == Err(Errno::NOENT);
        self.near.as_ref().is_some_and(|near| near.iter().all(untouched))
    }

    /// Notes that this plan fits a snapshot.
    pub(crate) fn hand_on(self, inner: &Inner, snapshot: &Snapshot) {
        inner.plans.insert(key(snapshot, &self.targets), self);
    }
}

impl Plans {
    /// Lets go of all that is known; what an exec runs over stays until its end.
    pub(crate) fn forget(&self) {
        // Removing stubs takes time, and nobody else is to wait for the lock meanwhile.
        let known = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        drop(known);
    }

    fn insert(&self, key: Digest, plan: Plan) {
        let mut plans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if plans.len() >= MOST_PLANS {
            plans.clear();
        }
        plans.insert(key, plan);
    }
}

fn digest_of(targets: &[Target]) -> Digest {
    let mut digest = Digest::builder("targets");
    for target in targets {
        digest.text(&target.path);
        match &target.kind {
            TargetKind::Directory => digest.number(0),
            TargetKind::File => digest.number(1),
            TargetKind::Laid(laid) => digest.number(2).digest(&laid.digest),
        };
    }
    digest.finish()
}

fn key(snapshot: &Snapshot, targets: &Digest) -> Digest {
    let mut digest = Digest::builder("plan");
    digest.digest(&compact::digest_of(snapshot.layers())).digest(targets).finish()
}

/// Adds the first name of a target's path, or gives up if the path is not taken literally.
fn note_near(near: &mut Option<BTreeSet<Vec<u8>>>, target: &Target, located: &Located) {
    let found = match located {
        Located::Found(node) => node.path.clone(),
        Located::Missing { parent, names } => {
            names.iter().fold(parent.path.clone(), |path, name| join(&path, name))
        }
    };
    let literal = target.path.trim_matches('/').as_bytes() == found;
    match near.as_mut().filter(|_| literal) {
        Some(names) => {
            let first = found.split(|byte| *byte == b'/').next().unwrap_or_default();
            names.insert(first.to_vec());
        }
        None => *near = None,
    }
}

fn needs_stub(target: &Target, located: &Located) -> Result<bool, Error> {
    let Located::Found(node) = located else { return Ok(true) };
    match (&target.kind, node.metadata.is_directory()) {
        (TargetKind::Directory, false) => {
            Err(ViewError::NotADirectory(shorten(&target.path)).into())
        }
        (TargetKind::File, true) => Err(ViewError::NotAFile(shorten(&target.path)).into()),
        _ => Ok(false),
    }
}

/// A target that the tree lacks, with its contents if it is no mount point.
type Missing<'a> = (&'a Target, Option<Vec<u8>>);

/// What the tree has at a place: nothing, or a file's contents. None if it is something that no file can
/// be laid over.
fn contents(tree: &Tree, located: &Located) -> Result<Option<Option<Vec<u8>>>, Error> {
    let Located::Found(node) = located else { return Ok(Some(None)) };
    if node.metadata.kind != Kind::File || node.metadata.size > MOST_CONTENTS {
        return Ok(None);
    }
    let unread = |errno| failed("read", &node.path, errno);
    let file = tree.open(node, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY);
    let mut bytes = Vec::new();
    File::from(file.map_err(unread)?)
        .take(MOST_CONTENTS)
        .read_to_end(&mut bytes)
        .map_err(|error| unread(Errno::from_io_error(&error).unwrap_or(Errno::IO)))?;
    Ok(Some(Some(bytes)))
}

/// Puts a file over what the tree has at its place.
fn lay(top: &mut Top, target: &Target, contents: &[u8]) -> Result<(), Error> {
    let (place, meta) = match top.tree.locate(&target.path, Last::Follow)? {
        Located::Found(node) => {
            top.make_room(&node.path)?;
            (node.path.clone(), node.metadata.meta())
        }
        Located::Missing { parent, names } => {
            let Some((name, above)) = names.split_last() else { return Ok(()) };
            let directory = top.make_directories(&parent, above, 0o755, Owner::default())?;
            (join(&directory, name), Meta { mode: 0o644, ..Meta::default() })
        }
    };
    let mut file = top.draft.make_file(&place)?;
    file.write_all(contents)
        .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
        .and_then(|()| finish_file(&file, &meta))
        .map_err(|errno| failed("write", &place, errno))
}

/// Makes a layer with these mount points.
fn make(state: &Arc<StateDir>, tree: Tree, missing: &[Missing<'_>]) -> Result<Arc<Stub>, Error> {
    let work = Arc::new(WorkDir::new(state)?);
    let mut top = Top::new(tree, Draft::at(Arc::clone(&work), "stub")?)?;
    for (target, contents) in missing {
        match contents {
            Some(contents) => lay(&mut top, target, contents)?,
            None => add(&mut top, target)?,
        }
    }
    top.draft.set_times()?;
    Ok(Arc::new(Stub { root: top.draft.root().to_vec(), _work: work }))
}

fn add(top: &mut Top, target: &Target) -> Result<(), Error> {
    let located = top.tree.locate(&target.path, Last::Follow)?;
    let Located::Missing { parent, names } = located else {
        // An earlier mount point lies below this one and has made it.
        return needs_stub(target, &located).map(|_| ());
    };
    let directories = match &target.kind {
        TargetKind::Directory => &names[..],
        TargetKind::File | TargetKind::Laid(_) => {
            names.split_last().map_or(&[][..], |(_, above)| above)
        }
    };
    let place = top.make_directories(&parent, directories, 0o755, Owner::default())?;
    if let (TargetKind::File, Some(name)) = (&target.kind, names.last()) {
        let place = join(&place, name);
        let file = top.draft.make_file(&place)?;
        let meta = Meta { mode: 0o644, ..Meta::default() };
        finish_file(&file, &meta).map_err(|errno| failed("write", &place, errno))?;
    }
    Ok(())
}
