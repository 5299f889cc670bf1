//! [`Outlet`]: a directory of a tree on its way out of the store.
//!
//! It goes straight into an open directory of the host, many files at a time ([`Outlet::write`]), or
//! to who passes it on, one entry after the other ([`Outlet::parts`]). Both give the same tree:
//! names that share an inode share one again, holes stay holes, and what is neither a file, a link
//! nor a directory is refused by name. Owners do not travel: root in the tree stands for whoever
//! gets the files, so set-user and set-group bits of others are left behind.

mod file;
mod parts;
mod write;

pub use file::{OutletFile, Piece};
pub use landing::Meta as HostMeta;
pub use parts::Part;
pub use write::Written;

use crate::durable::{Inspector, Sum, Sums};
use crate::metadata::{Kind, Metadata};
use crate::snapshot::LayerRef;
use crate::store::Store;
use crate::view::{Node, Tree, failure, join, shorten};
use crate::{Error, Snapshot};
use landing::{Landing, Made, Others};
use rustix::io::Errno;
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};

const SET_USER: u32 = 0o4000;
const SET_GROUP: u32 = 0o2000;

/// A directory of a tree on its way out of the store. Keeps the tree from being collected.
pub struct Outlet {
    tree: Tree,
    top: Node,
    inspector: Arc<Inspector>,
    /// What the bytes of files are to be, for each place of the tree once it was asked for.
    sums: Vec<OnceLock<Option<Arc<Sums>>>>,
}

/// A directory of the host that is written into.
pub struct Destination {
    /// Open for reading.
    pub directory: OwnedFd,
    /// Its path, for errors.
    pub path: String,
    /// User and group that all belongs to.
    pub owner: (u32, u32),
    /// Whether everything goes that is there and is not written.
    pub wipe: bool,
    /// Whether the directory was made for this, and so gets mode and time of the one that goes out.
    pub made: bool,
    /// Paths below it that are removed first, with all that is in them. Those that end with a slash
    /// come after the others, in this order: directories that go if nothing is left in them.
    pub removed: Vec<Vec<u8>>,
}

impl Destination {
    fn landing(self) -> Landing {
        let others = if self.wipe { Others::Remove } else { Others::Keep };
        Landing::new(self.directory, self.path, others).owned_by(self.owner)
    }

    fn top(&self) -> Made {
        if self.made { Made::New } else { Made::Before }
    }
}

/// Hears how far an outlet is.
pub trait Watch: Sync {
    /// So much more has passed. Says whether to go on.
    fn passed(&self, files: u64, bytes: u64) -> bool;
}

impl Store {
    /// The directory at a path of a snapshot, to be written somewhere else.
    pub fn outlet(&self, snapshot: &Snapshot, path: &str) -> Result<Outlet, Error> {
        self.0.require(snapshot.layers())?;
        let tree = self.0.tree(snapshot);
        let top = tree.find_directory(path)?;
        Ok(Outlet::new(tree, top, Arc::clone(&self.0.inspector)))
    }
}

impl Outlet {
    fn new(tree: Tree, top: Node, inspector: Arc<Inspector>) -> Self {
        let sums = tree.places.iter().map(|_| OnceLock::new()).collect();
        Self { tree, top, inspector, sums }
    }

    /// What the bytes of a file are to be, if that is known.
    fn sum(&self, part: usize, layer: &LayerRef, path: &[u8]) -> Option<Sum> {
        let sums = self.sums.get(part)?.get_or_init(|| self.inspector.sums(layer.id));
        sums.as_ref()?.get(&join(layer.root.as_bytes(), path))
    }

    /// What a failed look into the tree means: perhaps that a layer is damaged.
    fn unread(&self, path: &[u8], errno: Errno) -> Error {
        let layers: Vec<LayerRef> =
            self.tree.places.iter().filter_map(|place| place.layer.clone()).collect();
        let lost = self.inspector.require_again(&layers).err();
        lost.unwrap_or_else(|| failure(&String::from_utf8_lossy(path), errno).into())
    }

    /// Path below the directory that goes out.
    fn below<'a>(&self, node: &'a Node) -> &'a [u8] {
        match self.top.path.len() {
            0 => &node.path,
            above => node.path.get(above + 1..).unwrap_or_default(),
        }
    }
}

/// First names of files that have several, by the place and inode that they share. Inodes that two
/// places share are the store's way to save room, and two files of the tree.
#[derive(Default)]
struct FirstNames(HashMap<(usize, u64), Box<[u8]>>);

impl FirstNames {
    /// The name that this file was met under before, if it was.
    fn of(&mut self, node: &Node, path: &[u8]) -> Option<&[u8]> {
        let metadata = &node.metadata;
        if metadata.links < 2 || metadata.kind != Kind::File {
            return None;
        }
        let place = node.parts.first().copied().unwrap_or_default();
        match self.0.entry((place, metadata.inode)) {
            std::collections::hash_map::Entry::Vacant(slot) => {
                slot.insert(path.into());
                None
            }
            std::collections::hash_map::Entry::Occupied(first) => Some(first.into_mut()),
        }
    }
}

/// What an entry gets on the host.
fn meta(metadata: &Metadata) -> landing::Meta {
    let mut mode = metadata.mode;
    if metadata.uid != 0 {
        mode &= !SET_USER;
    }
    if metadata.gid != 0 {
        mode &= !SET_GROUP;
    }
    landing::Meta { mode, modified: (metadata.mtime.seconds, metadata.mtime.nanoseconds) }
}

/// Refuses an entry that could act or block on the host.
fn refused(path: &[u8], kind: Kind) -> Error {
    let what = match kind {
        Kind::Fifo => "a named pipe",
        Kind::Socket => "a socket",
        _ => "a device",
    };
    Error::Special { path: shorten(&String::from_utf8_lossy(path)), what }
}
