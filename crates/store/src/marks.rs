//! [`Marks`]: the names of the attributes by which overlay marks directories.
//!
//! Root's begin with `trusted.overlay.`, which nobody may set in a user namespace; there the kernel
//! takes `user.overlay.` if a mount asks for it. To a mount of the other kind the marks of a layer mean
//! nothing, and owners differ too, so a store is of one kind for ever. `MARKS` in its folder says which.

use crate::Error;
use rustix::fs::fremovexattr;
use rustix::io::Errno;
use std::io::ErrorKind;
use std::os::fd::BorrowedFd;
use std::path::Path;

/// Which names overlay's marks have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Marks {
    /// Those of the machine's root.
    Trusted,
    /// Those of the root of a user namespace.
    User,
}

/// The file that says of which kind a store is.
const FILE: &str = "MARKS";

impl Marks {
    /// The kind that this process can set: nothing is changed to find out.
    pub(crate) fn here(directory: BorrowedFd<'_>) -> Self {
        match fremovexattr(directory, "trusted.overlay.ci-tool-none") {
            Err(Errno::PERM) => Self::User,
            _ => Self::Trusted,
        }
    }

    /// The kind of a store, if this process is of the same. A store that has nothing yet gets the
    /// kind of its first engine; one with layers and no word about it is older than the second kind.
    pub(crate) fn claim(store: &Path, directory: BorrowedFd<'_>) -> Result<Self, Error> {
        let file = store.join(FILE);
        let here = Self::here(directory);
        let kept = match std::fs::read_to_string(&file) {
            Ok(text) if text.trim() == Self::User.prefix() => Self::User,
            Ok(_) => Self::Trusted,
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(Error::io("read", &file)(error));
            }
            Err(_) if has_layers(store) => Self::Trusted,
            Err(_) => here,
        };
        if kept != here {
            return Err(Error::OtherRights { path: store.to_owned(), root: kept == Self::Trusted });
        }
        let text = format!("{}\n", here.prefix());
        if std::fs::read_to_string(&file).is_ok_and(|found| found == text) {
            return Ok(here);
        }
        // Written under another name first: a crash must not leave an empty one.
        let fresh = store.join("MARKS.new");
        std::fs::write(&fresh, text).map_err(Error::io("write", &fresh))?;
        std::fs::rename(&fresh, &file).map_err(Error::io("write", &file))?;
        Ok(here)
    }

    /// What all names begin with.
    fn prefix(self) -> &'static str {
        match self {
            Self::Trusted => "trusted.overlay.",
            Self::User => "user.overlay.",
        }
    }

    /// On a directory that hides what older layers have in it.
    pub(crate) fn opaque(self) -> &'static str {
        match self {
            Self::Trusted => "trusted.overlay.opaque",
            Self::User => "user.overlay.opaque",
        }
    }

    /// On a copied-up directory. Without it the kernel shows whiteouts in a directory that only one
    /// layer has.
    pub(crate) fn origin(self) -> &'static str {
        match self {
            Self::Trusted => "trusted.overlay.origin",
            Self::User => "user.overlay.origin",
        }
    }

    /// On the root of a layer that is never merged with others. Under the prefix that overlay keeps
    /// for itself, so that nobody in a container sees it.
    pub(crate) fn apart(self) -> &'static str {
        match self {
            Self::Trusted => "trusted.overlay.ci-tool-apart",
            Self::User => "user.overlay.ci-tool-apart",
        }
    }
}

/// Whether anything was ever committed to the store.
fn has_layers(store: &Path) -> bool {
    std::fs::read_dir(store.join("layers")).is_ok_and(|mut entries| entries.next().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::fd::AsFd;

    #[test]
    fn a_store_stays_of_the_kind_that_it_began_as() {
        let folder = tempfile::tempdir().unwrap();
        let open = fs::File::open(folder.path()).unwrap();
        let claim = || Marks::claim(folder.path(), open.as_fd());
        let here = Marks::here(open.as_fd());
        assert_eq!(claim().unwrap(), here);
        assert_eq!(claim().unwrap(), here);
        let other = if here == Marks::User { Marks::Trusted } else { Marks::User };
        fs::write(folder.path().join(FILE), other.prefix()).unwrap();
        let error = claim().unwrap_err();
        assert!(matches!(error, Error::OtherRights { .. }), "{error}");
        assert!(error.hint().is_some());
        fs::remove_file(folder.path().join(FILE)).unwrap();
        fs::create_dir_all(folder.path().join("layers/00")).unwrap();
        assert_eq!(claim().is_ok(), here == Marks::Trusted, "older than the second kind");
    }

    #[test]
    fn names_begin_as_they_must() {
        for marks in [Marks::Trusted, Marks::User] {
            for name in [marks.opaque(), marks.origin(), marks.apart()] {
                assert!(name.starts_with(marks.prefix()), "{name}");
            }
        }
    }
}
