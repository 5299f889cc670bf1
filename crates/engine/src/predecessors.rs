//! What engines of other versions have left in the state folder.
//!
//! Our store is begun anew when nobody can read the old one any more, and the user is told. A newer
//! one is left alone: the client that started us then starts us elsewhere. Folders of engines that ran
//! beside ours are removed once they serve nobody.
//!
//! What is removed is renamed into the store's trash, which is emptied in the background.

use crate::Error;
use config::paths::StateFiles;
use protocol::VERSION;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use store::Format;

/// Looks at what is there before the store is opened. Gives words for the user.
pub(crate) fn settle(files: &StateFiles, store: &Path) -> Result<Vec<String>, Error> {
    match Format::of(store).map_err(|error| Error::part("store")(&error))? {
        Format::Fresh | Format::Known => Ok(vec![]),
        Format::Newer(found) => Err(Error::NewerState { dir: store.to_owned(), found }),
        Format::TooOld(found) => {
            let old = files.dir().join("store.old");
            fs::rename(store, &old).map_err(Error::file(store))?;
            discard(&old, store)?;
            tracing::warn!(found, "a store of an old format is begun anew");
            Ok(vec![format!("the cache has an old format ({found}) and is begun anew")])
        }
    }
}

/// Removes folders of engines that ran beside this one: of our own version, which runs here now, and
/// of others that have not been started for `keep`.
pub(crate) fn clear_besides(files: &StateFiles, store: &Path, keep: Duration) {
    let Ok(entries) = fs::read_dir(files.besides()) else { return };
    for entry in entries.flatten() {
        let beside = StateFiles::new(entry.path());
        let ours = entry.file_name() == VERSION;
        if !ours && !started_before(&beside, keep) {
            continue;
        }
        // Held while the folder is renamed: nobody starts an engine in it meanwhile.
        if let (Some(_engine), Some(_start)) =
            (hold(&beside.engine_lock()), hold(&beside.start_lock()))
        {
            tracing::info!(folder = %beside.dir().display(), "a cache beside this one is removed");
            if let Err(error) = discard(beside.dir(), store) {
                tracing::warn!(%error, "it stays");
            }
        }
    }
}

/// Whether an engine was last started there so long ago; its lock is written at each start.
fn started_before(beside: &StateFiles, keep: Duration) -> bool {
    let written = fs::metadata(beside.engine_lock()).and_then(|lock| lock.modified());
    let age = written.ok().and_then(|time| SystemTime::now().duration_since(time).ok());
    age.is_some_and(|age| age > keep)
}

/// Takes a lock, if nobody has it.
fn hold(path: &Path) -> Option<fs::File> {
    let lock = fs::File::options().create(true).append(true).open(path).ok()?;
    lock.try_lock().is_ok().then_some(lock)
}

/// Renames a folder into the store's trash.
fn discard(folder: &Path, store: &Path) -> Result<(), Error> {
    let trash = store.join("trash");
    fs::create_dir_all(&trash).map_err(Error::file(&trash))?;
    let place = free_name(&trash);
    fs::rename(folder, &place).map_err(Error::file(folder))
}

fn free_name(trash: &Path) -> PathBuf {
    let name = |number: u32| trash.join(format!("left-{}-{number}", std::process::id()));
    (0..).map(name).find(|path| !path.exists()).unwrap_or_else(|| name(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn world() -> (tempfile::TempDir, StateFiles, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let (files, store) = (StateFiles::new(dir.path()), dir.path().join("store"));
        fs::create_dir(&store).unwrap();
        (dir, files, store)
    }

    #[test]
    fn a_store_nobody_can_read_is_begun_anew_with_a_word() {
        let (_dir, files, store) = world();
        assert!(settle(&files, &store).unwrap().is_empty());
        fs::write(store.join("FORMAT"), "0\n").unwrap();
        fs::write(store.join("precious"), "").unwrap();
        let words = settle(&files, &store).unwrap();
        assert_eq!(words, ["the cache has an old format (0) and is begun anew"]);
        assert!(!store.join("FORMAT").exists() && !store.join("precious").exists());
        assert_eq!(fs::read_dir(store.join("trash")).unwrap().count(), 1);
    }

    #[test]
    fn a_newer_store_is_left_alone() {
        let (_dir, files, store) = world();
        fs::write(store.join("FORMAT"), "999\n").unwrap();
        let error = settle(&files, &store).unwrap_err();
        assert!(matches!(error, Error::NewerState { .. }), "{error}");
        assert!(error.to_string().contains("999"), "{error}");
        assert_eq!(fs::read_dir(&store).unwrap().count(), 1);
    }

    #[test]
    fn folders_beside_go_when_they_serve_nobody() {
        let (_dir, files, store) = world();
        let beside = |version: &str| {
            let beside = files.beside(version);
            fs::create_dir_all(beside.dir()).unwrap();
            fs::write(beside.engine_lock(), "1\n").unwrap();
            beside
        };
        let (ours, recent, used, old) =
            (beside(VERSION), beside("8.0.0"), beside("7.0.0"), beside("6.0.0"));
        let month = Duration::from_secs(30 * 86_400);
        for lock in [used.engine_lock(), old.engine_lock()] {
            let file = fs::File::options().write(true).open(lock).unwrap();
            file.set_modified(SystemTime::now() - month).unwrap();
        }
        let held = fs::File::open(used.engine_lock()).unwrap();
        held.lock().unwrap();
        clear_besides(&files, &store, month / 2);
        for (beside, stays) in [(&ours, false), (&recent, true), (&used, true), (&old, false)] {
            assert_eq!(beside.dir().exists(), stays, "{beside:?}");
        }
        assert_eq!(fs::read_dir(store.join("trash")).unwrap().count(), 2);
    }
}
