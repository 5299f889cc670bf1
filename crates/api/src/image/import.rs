//! Images from files: the OCI layout as a tar and what `docker save` writes, compressed or not.

use super::FORMAT;
use super::error::of_image;
use super::layers::{self, Planned, chains};
use super::pull::{Pulled, Record};
use super::sources::{Source, blocking};
use super::unpack::Expected;
use crate::file::File as FileValue;
use crate::services::Services;
use graph::{Context, Hold, Remembered, Span};
use image::archive::{Archive, Found};
use image::{Compression, ImageConfig, Platform};
use protocol::{Digest, Error};
use std::fs::File;
use std::io::Read;
use std::sync::Arc;
use store::{Store, TemporaryDir};

/// The image of this name in a file, for a platform.
pub(crate) async fn import(
    source: &FileValue,
    tag: &str,
    platform: &str,
    cx: &Context,
) -> Result<Pulled, Error> {
    let services = cx.get::<Services>()?.clone();
    let source = source.as_source(&services).await?;
    let mut action = Digest::builder("action:image import");
    action.number(FORMAT).digest(&source.known_identity());
    let action = action.text(tag).text(platform).finish();
    let usable = {
        let store = services.store.clone();
        move |bytes: &[u8]| Record::pinned(bytes, &store).map(Hold::new)
    };
    let name = source.name().to_owned();
    let work = run(
        source,
        (tag.to_owned(), Platform::parse(platform)),
        services.clone(),
        cx.span().clone(),
    );
    let made = cx.action(action, &usable, work).await?;
    let record = Record::pinned(&made, &services.store);
    record
        .ok_or_else(|| Error::internal("the record of an image cannot be read"))?
        .opened(&name, None)
}

async fn run(
    source: FileValue,
    (tag, platform): (String, Platform),
    services: Arc<Services>,
    span: Span,
) -> Result<Remembered, Error> {
    let name = source.name().to_owned();
    let snapshot = source.snapshot(&services).await?;
    let (store, path, shown) = (services.store.clone(), source.path().to_owned(), name.clone());
    let opened = blocking(move || {
        let file = store.view(&snapshot).open(&path).map_err(store::Error::from)?;
        let (file, folder) = plain(file, &store, &shown)?;
        let mut archive = Archive::open(file).map_err(of_image(&shown))?;
        let found = archive.image(&tag, &platform).map_err(of_image(&shown))?;
        Ok((archive.into_inner(), folder, found))
    });
    let (file, _folder, found) = opened.await?;
    let planned = plan(&found, file, &name)?;
    let title = format!("import {name}");
    let snapshot = layers::unpacked(planned, &services, &span, &title).await?;
    Record { config: found.config, snapshot }.remembered(name)
}

/// The file uncompressed, in a folder of its own if it was not.
fn plain(file: File, store: &Store, name: &str) -> Result<(File, Option<TemporaryDir>), Error> {
    let wrong = of_image(name);
    let again = file.try_clone().map_err(|error| wrong(error.into()))?;
    let (mut reader, compression) = image::decoder(again).map_err(&wrong)?;
    if compression == Compression::None {
        return Ok((file, None));
    }
    let folder = store.temporary()?;
    let path = folder.path().join("plain.tar");
    let mut copy = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path)
        .map_err(|error| Error::environment(format!("cannot unpack `{name}`: {error}")))?;
    copy_admitted(&mut reader, &mut copy, store).map_err(|error| match error {
        Stopped::Store(error) => error.into(),
        Stopped::Io(error) => wrong(error.into()),
    })?;
    Ok((copy, Some(folder)))
}

/// What stops a copy.
enum Stopped {
    Store(store::Error),
    Io(std::io::Error),
}

fn copy_admitted(from: &mut dyn Read, to: &mut File, store: &Store) -> Result<(), Stopped> {
    use std::io::Write as _;
    let mut piece = vec![0; 1 << 18];
    loop {
        let length = from.read(&mut piece).map_err(Stopped::Io)?;
        if length == 0 {
            return Ok(());
        }
        store.admit(length as u64).map_err(Stopped::Store)?;
        to.write_all(&piece[..length]).map_err(Stopped::Io)?;
    }
}

fn plan(found: &Found, file: File, name: &str) -> Result<Vec<Planned>, Error> {
    let parsed = ImageConfig::parse(&found.config, found.layers.len()).map_err(of_image(name))?;
    let (diff_ids, file) = (&parsed.rootfs.diff_ids, Arc::new(file));
    let layers = found.layers.iter().zip(diff_ids.iter().zip(chains(diff_ids)));
    let plan = layers.map(|(layer, (diff_id, chain))| Planned {
        expected: Expected { image: name.to_owned(), diff_id: *diff_id, blob: layer.digest },
        chain,
        size: layer.size,
        source: Source::File { file: file.clone(), offset: layer.offset, size: layer.size },
        repository: None,
    });
    Ok(plan.collect())
}
