//! The program that makes containers, if the settings name one.

use crate::Error;
use std::path::{Path, PathBuf};

/// What stands for the engine itself.
const OWN: &str = "own";
/// Where programs are looked for. The engine has no search path of its own.
const FOLDERS: [&str; 6] =
    ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
/// Where bundles are mounted, below the state folder.
const PLACE: &str = "runtime";

/// Finds the program; none is the engine itself.
pub(crate) fn find(name: &str, state_dir: &Path) -> Result<Option<sandbox::Runtime>, Error> {
    if name == OWN {
        return Ok(None);
    }
    let program = look(name)?;
    if sandbox::rootless::inside() {
        return Err(unfit(
            format!("`runtime`: `{name}` needs an engine that runs as root"),
            "take `runtime` out of engine.toml: the engine makes containers itself without root",
        ));
    }
    Ok(Some(sandbox::Runtime { program, place: state_dir.join(PLACE) }))
}

fn look(name: &str) -> Result<PathBuf, Error> {
    let given = Path::new(name);
    let mut places = match given.is_absolute() {
        true => vec![given.to_owned()],
        false => FOLDERS.iter().map(|folder| Path::new(folder).join(name)).collect(),
    };
    places.retain(|place| place.is_file());
    let missing = || {
        unfit(
            format!("`runtime`: there is no program `{name}`"),
            "install it (`apt install crun`, or `runc`), or take `runtime` out of engine.toml",
        )
    };
    places.into_iter().next().ok_or_else(missing)
}

fn unfit(reason: String, hint: &str) -> Error {
    Error::Unfit { reason, hint: hint.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(name: &str) -> String {
        find(name, Path::new("/state")).map(drop).unwrap_err().to_string()
    }

    #[test]
    fn the_engine_itself_needs_no_program() {
        assert!(find(OWN, Path::new("/state")).unwrap().is_none());
    }

    #[test]
    fn a_missing_program_is_told_with_the_way_out() {
        assert!(told("no-such-runtime").contains("there is no program `no-such-runtime`"));
        assert!(told("/no/such/runtime").contains("`/no/such/runtime`"));
        let error = find("no-such-runtime", Path::new("/state")).map(drop).unwrap_err();
        assert!(error.hint().unwrap().contains("apt install crun"));
    }
}
