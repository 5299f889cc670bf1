//! The scrub: reads all layers again, a little at a time, while nothing else is to be done.
//!
//! Files whose digest nobody knows get one; the others are compared. The layer that was read
//! longest ago is next, and the database remembers when that was: where the scrub was survives a
//! restart.

use super::inspector::Inspector;
use super::manifest::{self, Directory, Facts, Sum, Writer};
use crate::snapshot::LayerId;
use crate::state;
use crate::{attributes, view::join};
use protocol::Digest;
use rustix::fs::{Mode, OFlags, openat, readlinkat};
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::time::Duration;

/// Everything is read again after this long.
pub(super) const AGAIN_AFTER: Duration = Duration::from_secs(7 * 24 * 3600);
/// Bytes read at once.
pub(super) const PIECE: usize = 256 * 1024;

/// Why a layer or a blob was not read to its end.
pub(crate) enum Trouble {
    /// Whoever sets the pace said so.
    Stopped,
    /// Something is not as it was.
    Damage(String),
    /// It could not be read or written down, which says nothing about what is in it.
    Io(io::Error),
}

impl From<Errno> for Trouble {
    fn from(errno: Errno) -> Self {
        Self::Io(errno.into())
    }
}

/// Reads the layer that was read longest ago. `pace` is told of bytes that were read, may take its
/// time, and says whether to go on. False when there is nothing to do.
pub(crate) fn step(inspector: &Inspector, pace: &mut dyn FnMut(usize) -> bool) -> bool {
    let now = crate::database::now();
    let Some((layer, digest)) =
        inspector.database.next_to_scrub(now - AGAIN_AFTER.as_secs() as i64)
    else {
        return false;
    };
    match read(inspector, layer, &digest, pace) {
        Ok(fresh) => inspector.database.put_manifest(layer, fresh, now),
        Err(Trouble::Damage(reason)) => inspector.lose_layer(layer, &reason),
        Err(Trouble::Stopped) => {}
        Err(Trouble::Io(error)) => {
            tracing::warn!("layer {layer} cannot be read again: {error}");
            inspector.database.put_manifest(layer, digest, now);
        }
    }
    true
}

/// Reads a layer and gives the digest of its manifest, a new one if something was learnt.
fn read(
    inspector: &Inspector,
    layer: LayerId,
    digest: &Digest,
    pace: &mut dyn FnMut(usize) -> bool,
) -> Result<Digest, Trouble> {
    let state = inspector.state.path();
    super::check::check(&inspector.state, layer, digest).map_err(Trouble::Damage)?;
    let mut writer = Writer::begin(state).map_err(Trouble::Io)?;
    let mut reading = Reading { inspector, layer, pace, piece: vec![0; PIECE], learnt: false };
    for directory in manifest::read(state, layer, digest).map_err(Trouble::Io)? {
        let mut directory = directory.map_err(Trouble::Io)?;
        reading.directory(&mut directory)?;
        writer.add(&directory).map_err(Trouble::Io)?;
    }
    if !reading.learnt {
        return Ok(*digest);
    }
    let fresh = writer.finish(state, layer).map_err(Trouble::Io)?;
    let place = manifest::place(state, layer, &fresh);
    for path in [Some(&*place), place.parent()].into_iter().flatten() {
        File::open(path).and_then(|file| file.sync_all()).map_err(Trouble::Io)?;
    }
    Ok(fresh)
}

struct Reading<'a> {
    inspector: &'a Inspector,
    layer: LayerId,
    pace: &'a mut dyn FnMut(usize) -> bool,
    piece: Vec<u8>,
    /// Whether the manifest did not know something.
    learnt: bool,
}

impl Reading<'_> {
    fn directory(&mut self, directory: &mut Directory) -> Result<(), Trouble> {
        let path = join(state::layer_path(self.layer).as_bytes(), &directory.path);
        let open = self.inspector.state.open_directory(&path)?;
        let found = attributes::digest(&open)?;
        let shown = |name: &[u8]| {
            crate::view::shorten(&String::from_utf8_lossy(&join(&directory.path, name)))
        };
        self.learn(&mut directory.facts.attributes, found, || shown(b""))?;
        for entry in &mut directory.entries {
            let Some(facts) = &mut entry.facts else { continue };
            self.entry(&open, &entry.name, facts, || shown(&entry.name))?;
        }
        Ok(())
    }

    fn entry(
        &mut self,
        directory: &OwnedFd,
        name: &[u8],
        facts: &mut Facts,
        shown: impl Fn() -> String,
    ) -> Result<(), Trouble> {
        if facts.is_link() {
            let target = readlinkat(directory, name, vec![])?;
            let sum: Sum = Sha256::digest(target.as_bytes()).into();
            return self.learn(&mut facts.sum, sum, shown);
        }
        if !facts.is_file() {
            return Ok(());
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(directory, name, flags, Mode::empty())?;
        let found = attributes::digest(&file)?;
        self.learn(&mut facts.attributes, found, &shown)?;
        let sum = self.sum(File::from(file))?;
        self.learn(&mut facts.sum, sum, shown)
    }

    fn sum(&mut self, mut file: File) -> Result<Sum, Trouble> {
        let mut hasher = Sha256::new();
        loop {
            let count = file.read(&mut self.piece).map_err(Trouble::Io)?;
            hasher.update(&self.piece[..count]);
            if !(self.pace)(count) {
                return Err(Trouble::Stopped);
            }
            if count == 0 {
                return Ok(hasher.finalize().into());
            }
        }
    }

    /// Compares with what is known, or makes it known.
    fn learn<T: PartialEq>(
        &mut self,
        known: &mut Option<T>,
        found: T,
        shown: impl Fn() -> String,
    ) -> Result<(), Trouble> {
        match known {
            Some(known) if *known == found => {}
            Some(_) => return Err(Trouble::Damage(format!("`/{}` has changed", shown()))),
            None => {
                self.learnt = true;
                *known = Some(found);
            }
        }
        Ok(())
    }
}
