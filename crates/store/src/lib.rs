//! The store: layers, snapshots and the memo, everything that outlives a session.
//!
//! A [`Snapshot`] is an ordered list of immutable layers. An exec runs over a [`Scratch`], an overlay
//! mount whose upper directory becomes one more layer by a rename; an [`Editor`] writes a layer
//! without mounting anything; a [`View`] reads the merged tree. Long lists are kept short by merging
//! layers in tiers. Start at [`Store`].
//!
//! ```text
//! <state folder>/
//!   FORMAT                     version of this layout
//!   MARKS                      whose rights it needs (see the marks module)
//!   db.sqlite                  memo, call records, facts about layers (see the database module)
//!   layers/<xx>/<id>/          committed layers, immutable; xx are the first digits of the id
//!   layers/<xx>/<id>.<hex>     manifests of layers (see the durable module)
//!   work/<id>/upper            a layer that is being written
//!             work             the kernel's side of an exec's overlay
//!             stub             mount points that a tree lacks
//!   blobs/sha256/<xx>/<hex>    streams and downloads by their content
//!   volumes/<hex>/data         mutable cache volumes, by the digest of their key
//!   ballast                    given up on a full disk (see the space module)
//!   empty/                     stays empty
//!   trash/                     what threads are removing
//!   tmp/                       blobs and manifests that are being written
//! ```
//!
//! At a start `work/` and `tmp/` go to the trash: what was not committed never was. What was
//! committed survives the end of the process and of the machine's power, however it comes. Everything here blocks; callers with an async runtime call from
//! threads made for that. Linux only.

mod attached;
mod attributes;
mod blob;
mod builder;
mod changes;
mod compact;
mod compare;
mod database;
mod digest;
mod draft;
mod duplicate;
mod durable;
mod editor;
mod error;
mod fit;
mod folder;
mod format;
mod idle_thread;
mod intake;
mod marks;
mod merge;
mod metadata;
mod mount;
mod needs;
mod outlet;
mod pins;
mod scratch;
mod snapshot;
mod space;
mod spare;
mod state;
mod store;
mod stub;
mod sys;
mod top;
mod trash;
mod view;
mod visit;
mod volume;

pub use blob::{BlobId, BlobWriter, ParseBlobIdError};
pub use builder::LayerBuilder;
pub use changes::{Change, Changes, What};
pub use compare::Difference;
pub use durable::Verified;
pub use editor::{CopyOptions, Editor, Remove};
pub use error::Error;
pub use folder::Folder;
pub use format::Format;
pub use intake::{
    HostDirectory, Inflow, InflowFile, IntakeError, IntakeProblem, IntakeWatch, TakenIn,
};
pub use metadata::{Kind, Meta, Metadata, Owner, Timestamp};
pub use mount::Mount;
pub use needs::Needs;
pub use outlet::{Destination, HostMeta, Outlet, OutletFile, Part, Piece, Watch, Written};
pub use pins::BlobPin;
pub use scratch::Scratch;
pub use snapshot::{LayerId, LayerRef, ParseLayerIdError, Snapshot};
pub use space::{CacheEntry, Collected, Full, Limits, RunWatch};
pub use store::{Remembered, Store, TemporaryDir};
pub use stub::{Laid, Make, Target, TargetKind};
pub use view::{Entry, Found, View, ViewError, Walk};
pub use visit::{FileVisitor, Visit, VisitedFile};
pub use volume::Volume;
