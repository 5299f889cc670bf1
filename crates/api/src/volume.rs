//! `Volume`: a directory outside of every container, mounted as it is. What is in one changes while
//! nobody looks, so commands that have one are never taken from the cache.

use graph::{Args, Builder, Context, Object, Op, Root};
use protocol::Error;

/// What the address of a volume of the engine begins with.
const SCHEME: &str = "engine://";

pub(crate) fn install(builder: &mut Builder) {
    builder.install::<EngineVolume>();
}

/// A volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Volume {
    /// What the engine knows it by.
    pub(crate) key: String,
    /// The part of it that is meant; empty is all of it.
    pub(crate) subdir: String,
}

impl Object for Volume {
    const TYPE: &'static str = "Volume";
}

impl Volume {
    /// A volume that the engine keeps.
    fn of_engine(name: &str, subdir: &str) -> Result<Self, Error> {
        if name.is_empty() || name.contains(['/', '\0']) {
            return Err(Error::user(format!("`{name}` cannot be the name of a volume")));
        }
        if subdir.split('/').any(|part| part == "..") || subdir.contains('\0') {
            let message = format!("`{subdir}` is no directory in the volume `{name}`");
            return Err(Error::user(message));
        }
        // Apart from the keys of cache volumes, which users choose.
        Ok(Self { key: format!("\0engine\0{name}"), subdir: subdir.to_owned() })
    }

    /// The volume at an address.
    pub(crate) fn at(address: &str) -> Result<Self, Error> {
        let Some(rest) = address.strip_prefix(SCHEME) else {
            return Err(Error::user(format!("`{address}` names no volume"))
                .with_hint("write it as `engine://name` or `engine://name/directory`"));
        };
        let (name, subdir) = rest.split_once('/').unwrap_or((rest, ""));
        Self::of_engine(name, subdir)
    }
}

/// A volume that the engine keeps under a name, made when it is first mounted. Commands that have it
/// mounted share it as it is, and run every time.
#[derive(Args)]
struct EngineVolume {
    /// What it is called.
    name: String,
    /// A directory in it to mount instead of all of it; made when it is missing.
    subdir: Option<String>,
}

impl Op for EngineVolume {
    type Parent = Root;
    type Output = Volume;
    const NAME: &'static str = "engineVolume";

    async fn run(&self, _: &Root, _: &Context) -> Result<Volume, Error> {
        Volume::of_engine(&self.name, self.subdir.as_deref().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_volumes() {
        let volume = Volume::at("engine://data/a/b").unwrap();
        assert_eq!((volume.key.as_str(), volume.subdir.as_str()), ("\0engine\0data", "a/b"));
        assert_eq!(Volume::at("engine://data").unwrap().subdir, "");
        for wrong in ["data", "ssh://host/x", "engine://", "engine:///x", "engine://a/../b"] {
            assert!(Volume::at(wrong).is_err(), "{wrong}");
        }
    }
}
