//! Has the host pass packets on between its links, and undoes that.
//!
//! Whether packets that come in over a link are passed on is a setting of that link, and there is no
//! way to have it go with a process. So what was changed is written down, every engine that
//! needs it holds a lock, and the last one to let go puts it back. An engine that could not is made
//! up for by the next one that does.

use super::routes;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Where the engines of one network meet. It must be on a file system that is empty after a start of the
/// machine, as the settings are then.
const FOLDER: &str = "/run/ci-tool";
const OWN_NETWORK: &str = "/proc/thread-self/ns/net";
const SETTINGS: &str = "/proc/sys/net/ipv4/conf";

/// The need for forwarding. It must be let go by [`Need::end`].
#[derive(Debug)]
pub(crate) struct Need {
    folder: PathBuf,
    settings: PathBuf,
    users: File,
}

/// Only one at a time may look at the host's network and change it.
#[derive(Debug)]
pub(crate) struct Turn(#[expect(dead_code, reason = "held for its lock")] File);

impl Turn {
    /// Waits for the turn.
    pub(crate) fn take() -> io::Result<Turn> {
        Turn::take_in(&folder()?)
    }

    fn take_in(folder: &Path) -> io::Result<Turn> {
        fs::create_dir_all(folder)?;
        let file = open(&folder.join("turn"))?;
        file.lock()?;
        Ok(Turn(file))
    }
}

impl Need {
    /// Has every link that the host has a route over pass packets on.
    pub(crate) fn begin() -> io::Result<Need> {
        let routes = routes::parse(&fs::read_to_string(routes::LIST)?);
        let devices = routes.into_iter().map(|route| route.device).collect();
        Need::begin_in(&folder()?, Path::new(SETTINGS), devices)
    }

    fn begin_in(folder: &Path, settings: &Path, mut devices: Vec<String>) -> io::Result<Need> {
        let _turn = Turn::take_in(folder)?;
        let users = open(&folder.join("users"))?;
        users.lock_shared()?;
        let need = Need { folder: folder.to_owned(), settings: settings.to_owned(), users };
        devices.sort_unstable();
        devices.dedup();
        let mut changed = need.changed()?;
        for device in devices {
            if changed.contains(&device) || need.read(&device)?.is_none_or(|value| value != "0") {
                continue;
            }
            // First the note, then the change: who dies in between has changed nothing.
            changed.push(device.clone());
            need.note(&changed)?;
            unless_gone(fs::write(need.setting(&device), "1"))?;
        }
        Ok(need)
    }

    /// Lets go, and puts back what was changed if nobody else needs it.
    pub(crate) fn end(self) -> io::Result<()> {
        let _turn = Turn::take_in(&self.folder)?;
        self.users.unlock()?;
        if self.users.try_lock().is_err() {
            return Ok(());
        }
        for device in self.changed()? {
            unless_gone(fs::write(self.setting(&device), "0"))?;
        }
        self.note(&[])
    }

    fn setting(&self, device: &str) -> PathBuf {
        self.settings.join(device).join("forwarding")
    }

    /// The value; none if the link is gone.
    fn read(&self, device: &str) -> io::Result<Option<String>> {
        let text = unless_gone(fs::read_to_string(self.setting(device)))?;
        Ok(text.map(|text| text.trim().to_owned()))
    }

    fn changed(&self) -> io::Result<Vec<String>> {
        match fs::read_to_string(self.folder.join("changed")) {
            Ok(text) => Ok(text.lines().map(str::to_owned).collect()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    fn note(&self, devices: &[String]) -> io::Result<()> {
        let file = self.folder.join("changed");
        if devices.is_empty() {
            return match fs::remove_file(file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            };
        }
        fs::write(file, devices.join("\n"))
    }
}

/// A link may go at any moment, like that of an engine that ends, and its setting with it.
fn unless_gone<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}

/// The folder of the network that this thread is in.
fn folder() -> io::Result<PathBuf> {
    let network = fs::metadata(OWN_NETWORK)?.ino();
    Ok(Path::new(FOLDER).join(format!("network-{network}")))
}

fn open(path: &Path) -> io::Result<File> {
    File::options().create(true).truncate(false).write(true).open(path)
}

/// Has a link of ours pass packets on; the setting goes with the link.
pub(crate) fn allow(device: &str) -> io::Result<()> {
    fs::write(Path::new(SETTINGS).join(device).join("forwarding"), "1")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(devices: &[(&str, &str)]) -> (tempfile::TempDir, PathBuf, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let (folder, settings) = (directory.path().join("run"), directory.path().join("conf"));
        for (device, value) in devices {
            fs::create_dir_all(settings.join(device)).unwrap();
            fs::write(settings.join(device).join("forwarding"), format!("{value}\n")).unwrap();
        }
        (directory, folder, settings)
    }

    fn value(settings: &Path, device: &str) -> String {
        let text = fs::read_to_string(settings.join(device).join("forwarding")).unwrap();
        text.trim().to_owned()
    }

    #[test]
    fn the_last_one_puts_back_what_the_first_one_changed() {
        let (_directory, folder, settings) = host(&[("eth0", "0"), ("vpn", "1")]);
        let begin = |devices: &[&str]| {
            let devices = devices.iter().map(|device| (*device).to_owned()).collect();
            Need::begin_in(&folder, &settings, devices).unwrap()
        };
        let first = begin(&["eth0", "vpn", "eth0", "gone"]);
        let second = begin(&["eth0"]);
        first.end().unwrap();
        assert_eq!(value(&settings, "eth0"), "1", "the second one still needs it");
        second.end().unwrap();
        assert_eq!((value(&settings, "eth0"), value(&settings, "vpn")), ("0".into(), "1".into()));
        assert!(!folder.join("changed").exists());
    }

    #[test]
    fn who_could_not_put_it_back_is_made_up_for() {
        let (_directory, folder, settings) = host(&[("eth0", "0"), ("gone", "0")]);
        let devices = vec!["eth0".to_owned(), "gone".to_owned()];
        drop(Need::begin_in(&folder, &settings, devices).unwrap());
        fs::remove_dir_all(settings.join("gone")).unwrap();
        assert_eq!(value(&settings, "eth0"), "1");
        let next = Need::begin_in(&folder, &settings, vec!["eth0".to_owned()]).unwrap();
        next.end().unwrap();
        assert_eq!(value(&settings, "eth0"), "0");
    }
}
