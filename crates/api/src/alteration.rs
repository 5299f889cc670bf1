//! [`Alteration`]: an edit that needs nothing but the tree it changes.

use crate::owner::OwnerSpec;
use crate::replacement::Replacement;
use protocol::{DigestBuilder, Error};
use std::io::Read;
use store::{Editor, Owner, Timestamp};

/// Longest file that text is replaced in: all of it is held in memory.
const MAX_REPLACED_BYTES: u64 = 128 << 20;

/// One change of a tree by itself.
#[derive(Clone, Debug)]
pub(crate) enum Alteration {
    /// Makes a symbolic link; parents are created.
    Symlink {
        /// Where it leads.
        target: String,
        /// Where it is.
        path: String,
    },
    /// Gives something, with all below it, to an owner.
    Chown {
        /// What.
        path: String,
        /// Whose.
        owner: OwnerSpec,
    },
    /// Sets the times of everything below a directory.
    TimesBelow {
        /// The directory.
        path: String,
        /// Since 1970.
        seconds: i64,
    },
    /// Sets the times of a file.
    Times {
        /// The file.
        path: String,
        /// Since 1970.
        seconds: i64,
    },
    /// Replaces text in a file.
    Replace {
        /// The file.
        path: String,
        /// What by what.
        replacement: Replacement,
    },
}

impl Alteration {
    /// Feeds the identity of the changed tree.
    pub(crate) fn digest_into(&self, digest: &mut DigestBuilder) {
        match self {
            Self::Symlink { target, path } => {
                digest.text("symlink").text(target).text(path);
            }
            Self::Chown { path, owner } => {
                digest.text("chown").text(path);
                owner.digest_into(digest);
            }
            Self::TimesBelow { path, seconds } => {
                digest.text("timesBelow").text(path).number(seconds.cast_unsigned());
            }
            Self::Times { path, seconds } => {
                digest.text("times").text(path).number(seconds.cast_unsigned());
            }
            Self::Replace { path, replacement } => {
                digest.text("replace").text(path);
                replacement.digest_into(digest);
            }
        }
    }

    /// What was done, if it may write many files, so that the result is worth keeping.
    pub(crate) fn kept_as(&self) -> Option<String> {
        match self {
            Self::Chown { path, .. } => Some(format!("owner of {path} set")),
            Self::TimesBelow { path, .. } => Some(format!("times below {path} set")),
            _ => None,
        }
    }

    /// The owner that must be looked up before this is done.
    pub(crate) fn owner(&self) -> OwnerSpec {
        match self {
            Self::Chown { owner, .. } => owner.clone(),
            _ => OwnerSpec::Root,
        }
    }

    /// Does it. `owner` is what was looked up.
    pub(crate) fn apply(&self, editor: &mut Editor, owner: Owner) -> Result<(), Error> {
        let at = |seconds: &i64| Timestamp { seconds: *seconds, nanoseconds: 0 };
        match self {
            Self::Symlink { target, path } => editor.symlink(target, path)?,
            Self::Chown { path, .. } => editor.chown(path, owner)?,
            Self::TimesBelow { path, seconds } => editor.set_times_below(path, at(seconds))?,
            Self::Times { path, seconds } => editor.set_times(path, at(seconds))?,
            Self::Replace { path, replacement } => replace(editor, path, replacement)?,
        }
        Ok(())
    }
}

fn replace(editor: &mut Editor, path: &str, replacement: &Replacement) -> Result<(), Error> {
    let mut bytes = vec![];
    let file = editor.open(path)?.take(MAX_REPLACED_BYTES + 1);
    { file }.read_to_end(&mut bytes).map_err(store::Error::from_read(path))?;
    let name = crate::paths::name(path);
    if bytes.len() as u64 > MAX_REPLACED_BYTES {
        let message = format!(
            "file `{name}` has more than the {MAX_REPLACED_BYTES} bytes that text is replaced in"
        );
        return Err(Error::user(message));
    }
    match replacement.apply(&bytes, name)? {
        Some(changed) => Ok(editor.rewrite(path, &changed)?),
        None => Ok(()),
    }
}
