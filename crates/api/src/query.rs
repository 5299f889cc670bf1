//! Fields of `Query` that start a chain.

use crate::container::Container;
use crate::directory::Directory;
use crate::edit::Edit;
use crate::file::File;
use crate::modes;
use crate::owner::OwnerSpec;
use crate::platform;
use crate::scalars::Platform;
use crate::services::Services;
use crate::tree::Tree;
use graph::{Args, Builder, Context, Object, Op, Root};
use protocol::{Error, Value};

pub(crate) fn install(builder: &mut Builder) {
    builder
        .install::<MakeContainer>()
        .install::<MakeDirectory>()
        .install::<MakeFile>()
        .install::<BuiltinContainer>()
        .install::<CurrentNode>()
        .install::<Version>()
        .install::<DefaultPlatform>();
}

/// An empty container: no root file system, no configuration.
#[derive(Args)]
struct MakeContainer {
    /// Platform to run on; the engine's own by default.
    platform: Option<Platform>,
}

impl Op for MakeContainer {
    type Parent = Root;
    type Output = Container;
    const NAME: &'static str = "container";

    fn check(args: &[(Box<str>, Value)]) -> Result<(), Error> {
        let given = args.iter().find(|(name, _)| &**name == "platform");
        match given.and_then(|(_, value)| value.as_str()) {
            Some(text) => platform::normalise(text).map(drop),
            None => Ok(()),
        }
    }

    async fn run(&self, _: &Root, _: &Context) -> Result<Container, Error> {
        let platform = self.platform.as_ref().map_or(platform::current(), |given| &given.0);
        Ok(Container::scratch(platform))
    }
}

/// A container that is part of the engine. This one has none: for old programs, which get an error that
/// says so.
#[derive(Args)]
struct BuiltinContainer {
    /// Digest of its image.
    digest: String,
}

impl Op for BuiltinContainer {
    type Parent = Root;
    type Output = Container;
    const NAME: &'static str = "builtinContainer";

    async fn run(&self, _: &Root, _: &Context) -> Result<Container, Error> {
        let message = format!("this engine has no built-in container `{}`", self.digest);
        Err(Error::user(message).with_hint("start from an image: `container { from(...) }`"))
    }
}

/// The object that a function of a module was called on. Nobody else has one, and gets an error that says so.
#[derive(Args)]
struct CurrentNode {}

/// An object of any type, which no session has that is not a function's.
enum Receiver {}

impl Object for Receiver {
    const TYPE: &'static str = "Node";
}

impl Op for CurrentNode {
    type Parent = Root;
    type Output = Receiver;
    const NAME: &'static str = "currentNode";

    fn check(_: &[(Box<str>, Value)]) -> Result<(), Error> {
        Err(no_receiver())
    }

    async fn run(&self, _: &Root, _: &Context) -> Result<Receiver, Error> {
        Err(no_receiver())
    }
}

fn no_receiver() -> Error {
    Error::user(
        "there is no current object: this is no function of a module that was called on one",
    )
    .with_hint("load the object that you mean by its id: `node(id: ...)`")
}

/// An empty directory.
#[derive(Args)]
struct MakeDirectory {}

impl Op for MakeDirectory {
    type Parent = Root;
    type Output = Directory;
    const NAME: &'static str = "directory";

    async fn run(&self, _: &Root, _: &Context) -> Result<Directory, Error> {
        Ok(Directory::empty())
    }
}

/// A new file.
#[derive(Args)]
struct MakeFile {
    /// Its name, without folders.
    name: String,
    /// What is in it.
    contents: String,
    /// Permission bits.
    #[arg(default = "420")]
    permissions: i64,
}

impl Op for MakeFile {
    type Parent = Root;
    type Output = File;
    const NAME: &'static str = "file";

    async fn run(&self, _: &Root, cx: &Context) -> Result<File, Error> {
        if self.name.contains('/') {
            let message = format!("file name `{}` must not contain a directory", self.name);
            return Err(Error::user(message));
        }
        let edit = Edit::NewFile {
            path: self.name.clone(),
            contents: self.contents.as_bytes().into(),
            mode: modes::required(self.permissions)?,
            owner: OwnerSpec::Root,
        };
        let tree = Tree::empty().edited(edit, cx.get::<Services>()?).await?;
        Ok(File::below(tree, &self.name))
    }
}

/// Version of the engine.
#[derive(Args)]
struct Version {}

impl Op for Version {
    type Parent = Root;
    type Output = String;
    const NAME: &'static str = "version";

    async fn run(&self, _: &Root, _: &Context) -> Result<String, Error> {
        Ok(protocol::VERSION.to_owned())
    }
}

/// The platform commands run on unless they say otherwise.
#[derive(Args)]
struct DefaultPlatform {}

impl Op for DefaultPlatform {
    type Parent = Root;
    type Output = Platform;
    const NAME: &'static str = "defaultPlatform";

    async fn run(&self, _: &Root, _: &Context) -> Result<Platform, Error> {
        Ok(Platform(platform::current().to_owned()))
    }
}
