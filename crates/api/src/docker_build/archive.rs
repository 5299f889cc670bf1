//! `ADD` of an archive: its entries as a tree.
//!
//! Archives come from strangers: they are read by the strict reader of images, paths and links stay inside the tree,
//! devices are left out. What came of an archive is remembered by its bytes.

use crate::file::File;
use crate::services::Services;
use crate::tree::Tree;
use graph::{Context, Hold, Remembered};
use image::tar::{Entry, Kind, Reader};
use protocol::{Digest, Error};
use std::io::{self, Read};
use store::{LayerBuilder, Meta, Needs, Snapshot, Store, Timestamp};

/// Raised when equal archives may give other trees.
const VERSION: u64 = 1;
/// The first bytes of what is compressed by xz and by bzip2.
const XZ: &[u8] = b"\xfd7zXZ\0";
const BZIP2: &[u8] = b"BZh";

/// What is in an archive; none if the file is none. The file went through [`File::as_source`].
pub(super) async fn unpacked(file: &File, cx: &Context) -> Result<Option<Tree>, Error> {
    let services = cx.get::<Services>()?.clone();
    let key = Digest::builder("action:unpack archive");
    let mut key = key;
    let key = key.number(VERSION).digest(&file.known_identity()).finish();
    let snapshot = file.snapshot(&services).await?;
    let (path, name) = (file.path().to_owned(), file.name().to_owned());
    let usable = {
        let store = services.store.clone();
        move |bytes: &[u8]| pinned(bytes, &store).map(Hold::new)
    };
    let work = {
        let services = services.clone();
        async move {
            let store = services.store.clone();
            let unpack = move || unpack(&store, &snapshot, &path, &name);
            services.blocking(unpack).await
        }
    };
    let made = cx.action(key, &usable, work).await?;
    let lost = || Error::new(protocol::ErrorKind::Lost, "what was unpacked is lost");
    let tree = pinned(&made, &services.store).ok_or_else(lost)?;
    let identity = Digest::builder("tree:archive").digest(&key).finish();
    Ok(tree.map(|snapshot| Tree::settled(identity, snapshot)))
}

fn pinned(bytes: &[u8], store: &Store) -> Option<Option<Snapshot>> {
    match postcard::from_bytes::<Option<Snapshot>>(bytes).ok()? {
        None => Some(None),
        Some(snapshot) => store.pin(&snapshot).map(Some),
    }
}

fn unpack(store: &Store, snapshot: &Snapshot, path: &str, name: &str) -> Result<Remembered, Error> {
    let tree = entries(store, snapshot, path, name)?;
    let value = postcard::to_stdvec(&tree)
        .map_err(|error| Error::internal(format!("cannot encode a tree: {error}")))?;
    let needs = tree.as_ref().map_or_else(Needs::new, |tree| Needs::new().snapshot(tree)).encode();
    let label = format!("archive {name}");
    Ok(Remembered { value, kind: "copy", label, needs, hold: Hold::new(tree) })
}

/// The tree of an archive, if the file is one: its first header decides.
fn entries(
    store: &Store,
    snapshot: &Snapshot,
    path: &str,
    name: &str,
) -> Result<Option<Snapshot>, Error> {
    let file = store.view(snapshot).read(path).map_err(store::Error::from)?;
    let Ok(plain) = decoded(file, name)? else { return Ok(None) };
    let mut reader = Reader::new(plain);
    let Ok(Some(first)) = reader.next_entry() else { return Ok(None) };
    let wrong = |error: image::Error| Error::user(format!("archive `{name}`: {error}"));
    let mut builder = store.new_layer()?;
    let mut next = Some(first);
    while let Some(entry) = next {
        make(&mut builder, &entry, &mut reader.contents()).map_err(|error| {
            let shown: String = String::from_utf8_lossy(&entry.path).chars().take(200).collect();
            Error::new(error.kind(), format!("archive `{name}`: entry `{shown}`: {error}"))
        })?;
        next = reader.next_entry().map_err(wrong)?;
    }
    Ok(Some(Snapshot::empty().push(builder.commit()?)))
}

/// The plain bytes; an inner error where they are damaged and so no archive.
fn decoded<'a>(
    mut file: impl Read + Send + 'a,
    name: &str,
) -> Result<Result<Box<dyn Read + Send + 'a>, image::Error>, Error> {
    let mut first = vec![];
    let read = file.by_ref().take(XZ.len() as u64).read_to_end(&mut first);
    read.map_err(store::Error::from_read(name))?;
    if first.starts_with(BZIP2) {
        let error =
            Error::user(format!("archive `{name}` is compressed by bzip2, which cannot be read"));
        return Err(error.with_hint("compress it by gzip, xz or zstd"));
    }
    let xz = first.starts_with(XZ);
    let whole = io::Cursor::new(first).chain(file);
    Ok(match xz {
        true => debian::codec::decoder("archive.xz", whole)
            .map_err(|error| image::Error::Io(io::Error::other(error.to_string()))),
        false => image::decoder(whole).map(|(plain, _)| plain),
    })
}

fn make(
    builder: &mut LayerBuilder,
    entry: &Entry,
    contents: &mut dyn Read,
) -> Result<(), store::Error> {
    let path = String::from_utf8_lossy(&entry.path).into_owned();
    let mtime = Timestamp { seconds: entry.mtime, nanoseconds: entry.mtime_nanoseconds };
    let meta = Meta { mode: entry.mode, uid: entry.uid, gid: entry.gid, mtime };
    match &entry.kind {
        Kind::Directory => builder.directory(&path, &meta)?,
        Kind::File => drop(builder.file(&path, &meta, contents)?),
        Kind::Symlink(target) => {
            builder.symlink(&path, &String::from_utf8_lossy(target), &meta)?;
        }
        Kind::HardLink(target) => builder.hard_link(&String::from_utf8_lossy(target), &path)?,
        Kind::Fifo => builder.fifo(&path, &meta)?,
        Kind::Character { .. } | Kind::Block { .. } => return Ok(()),
    }
    if !entry.xattrs.is_empty() && matches!(entry.kind, Kind::Directory | Kind::File) {
        builder.attributes(&path, &entry.xattrs)?;
    }
    Ok(())
}
