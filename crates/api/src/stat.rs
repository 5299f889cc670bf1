//! `Stat`: what is known of an entry beside its contents.

use graph::{Args, Builder, Context, Enum, Object, Op};
use protocol::Error;
use store::{Kind, Metadata, View, ViewError};

/// Size that every directory is said to have: what file systems say of them differs and means nothing.
const DIRECTORY_BYTES: i64 = 4096;
const PERMISSIONS: u32 = 0o777;

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Enum)]
pub(crate) enum FileType {
    /// A device, a pipe or a socket.
    Unknown,
    /// A file.
    #[value(alias = "REGULAR_TYPE")]
    Regular,
    /// A directory.
    #[value(alias = "DIRECTORY_TYPE")]
    Directory,
    /// A symbolic link.
    #[value(alias = "SYMLINK_TYPE")]
    Symlink,
}

/// What an entry has to be to count as there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Enum)]
pub(crate) enum ExistsType {
    /// A file.
    #[value(name = "REGULAR_TYPE")]
    Regular,
    /// A directory.
    #[value(name = "DIRECTORY_TYPE")]
    Directory,
    /// A symbolic link.
    #[value(name = "SYMLINK_TYPE")]
    Symlink,
}

/// What an entry is, as a value.
pub(crate) struct Stat {
    name: String,
    metadata: Metadata,
}

impl Object for Stat {
    const TYPE: &'static str = "Stat";
}

impl Stat {
    /// What is known of an entry, by the name that it was asked for.
    pub(crate) fn new(name: &str, metadata: Metadata) -> Self {
        let name = if name.is_empty() { "/" } else { name };
        Self { name: name.to_owned(), metadata }
    }
}

/// Looks at one path of a tree. `typed` is how the caller named it.
pub(crate) fn look(
    view: &View,
    path: &str,
    typed: &str,
    keep_link: bool,
) -> Result<Metadata, Error> {
    let found = if keep_link { view.stat_link(path) } else { view.stat(path) };
    found.map_err(|error| match error {
        ViewError::NotFound(_) => missing(typed),
        other => crate::looks::typed(other, typed),
    })
}

/// Nothing is at a path.
pub(crate) fn missing(typed: &str) -> Error {
    Error::user(format!("stat {}: no such file or directory", crate::looks::shown(typed)))
}

/// Whether something is at a path of a tree, as `test` finds out.
pub(crate) fn exists(
    view: &View,
    path: &str,
    expected: Option<ExistsType>,
    keep_link: bool,
) -> Result<bool, Error> {
    let keep_link = keep_link || expected == Some(ExistsType::Symlink);
    let found = if keep_link { view.stat_link(path) } else { view.stat(path) };
    match found {
        Ok(metadata) => Ok(expected.is_none_or(|expected| expected.fits(metadata.kind))),
        Err(
            ViewError::NotFound(_)
            | ViewError::NotADirectory(_)
            | ViewError::TooManyLinks(_)
            | ViewError::NameTooLong(_)
            | ViewError::PathTooLong(_),
        ) => Ok(false),
        Err(other) => Err(store::Error::from(other).into()),
    }
}

impl ExistsType {
    fn fits(self, kind: Kind) -> bool {
        match self {
            Self::Regular => kind == Kind::File,
            Self::Directory => kind == Kind::Directory,
            Self::Symlink => kind == Kind::Symlink,
        }
    }
}

/// Declares a field: what it is called and what it says.
macro_rules! field {
    ($op:ident, $name:literal -> $output:ty, $doc:literal, |$this:ident| $value:expr) => {
        #[doc = $doc]
        #[derive(Args)]
        struct $op {}

        impl Op for $op {
            type Parent = Stat;
            type Output = $output;
            const NAME: &'static str = $name;

            async fn run(&self, $this: &Stat, _: &Context) -> Result<$output, Error> {
                Ok($value)
            }
        }
    };
}

field!(Name, "name" -> String, "Its name without folders; `/` for the root of a tree.",
    |stat| stat.name.clone());
field!(Size, "size" -> i64,
"Bytes of a file, or of the path that a link leads to. Every directory is said to have 4096.",
|stat| match stat.metadata.kind {
    Kind::Directory => DIRECTORY_BYTES,
    _ => i64::try_from(stat.metadata.size).unwrap_or(i64::MAX),
});
field!(Permissions, "permissions" -> i64, "Permission bits as a number: 420 is 0644.",
    |stat| i64::from(stat.metadata.mode & PERMISSIONS));
field!(Type, "fileType" -> Option<FileType>, "What it is.", |stat| Some(match stat.metadata.kind {
    Kind::File => FileType::Regular,
    Kind::Directory => FileType::Directory,
    Kind::Symlink => FileType::Symlink,
    _ => FileType::Unknown,
}));

pub(crate) fn install(builder: &mut Builder) {
    builder.install::<Name>().install::<Size>().install::<Permissions>().install::<Type>();
}
