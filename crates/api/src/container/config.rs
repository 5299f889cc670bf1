//! The configuration of a container: variables, working directory, user, entrypoint, default
//! arguments, labels. All of it is plain data: nothing here runs anything.

use super::Container;
use crate::entries::{EnvVariable, Label};
use crate::scalars::Platform;
use graph::{Args, Builder, Context, Op, Scope};
use protocol::Error;

pub(super) fn install(builder: &mut Builder) {
    builder
        .install::<WithEnvVariable>()
        .install::<WithoutEnvVariable>()
        .install::<GetEnvVariable>()
        .install::<EnvVariables>()
        .install::<WithWorkdir>()
        .install::<WithoutWorkdir>()
        .install::<Workdir>()
        .install::<WithUser>()
        .install::<WithoutUser>()
        .install::<User>()
        .install::<WithEntrypoint>()
        .install::<WithoutEntrypoint>()
        .install::<Entrypoint>()
        .install::<WithDefaultArgs>()
        .install::<WithoutDefaultArgs>()
        .install::<DefaultArgs>()
        .install::<WithLabel>()
        .install::<WithoutLabel>()
        .install::<GetLabel>()
        .install::<Labels>()
        .install::<GetPlatform>();
}

/// Declares an operation whose result is a pure function of the container.
macro_rules! pure {
    ($op:ident, $name:literal, $output:ty, |$self:ident, $container:ident| $body:expr) => {
        impl Op for $op {
            type Parent = Container;
            type Output = $output;
            const NAME: &'static str = $name;
            const SCOPE: Scope = Scope::Recent;

            async fn run(&self, $container: &Container, _: &Context) -> Result<$output, Error> {
                let $self = self;
                $body
            }
        }
    };
}

/// Sets an environment variable for the commands that follow.
#[derive(Args)]
struct WithEnvVariable {
    /// Replace `$VAR` and `${VAR}` in the value by the container's variables.
    #[arg(default = "false")]
    expand: bool,
    /// Name of the variable.
    name: String,
    /// Its value.
    value: String,
}

pure!(WithEnvVariable, "withEnvVariable", Container, |op, container| {
    check_variable(&op.name, &op.value)?;
    let value = container.expanded(&op.value, op.expand)?;
    Ok(container.with_config(|config| set(&mut config.env, &op.name, value)))
});

/// Refuses what no process could have in its environment.
pub(super) fn check_variable(name: &str, value: &str) -> Result<(), Error> {
    if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
        return Err(Error::user(format!("`{name}` cannot be the name of a variable")));
    }
    Ok(())
}

/// Removes an environment variable.
#[derive(Args)]
struct WithoutEnvVariable {
    /// Name of the variable.
    name: String,
}

pure!(WithoutEnvVariable, "withoutEnvVariable", Container, |op, container| {
    Ok(container.with_config(|config| config.env.retain(|(name, _)| *name != op.name)))
});

/// The value of an environment variable; null when it is not set.
#[derive(Args)]
struct GetEnvVariable {
    /// Name of the variable.
    name: String,
}

pure!(GetEnvVariable, "envVariable", Option<String>, |op, container| {
    Ok(container.env(&op.name).map(str::to_owned))
});

/// All environment variables, in the order they were set.
#[derive(Args)]
struct EnvVariables {}

pure!(EnvVariables, "envVariables", Vec<EnvVariable>, |_op, container| {
    let variable = |(name, value): &(String, String)| EnvVariable::new(name, value);
    Ok(container.config.env.iter().map(variable).collect())
});

/// Sets the directory that commands run in and that relative paths start from.
#[derive(Args)]
struct WithWorkdir {
    /// Replace `$VAR` and `${VAR}` in the path by the container's variables.
    #[arg(default = "false")]
    expand: bool,
    /// The directory; relative paths start from the present one.
    path: String,
}

pure!(WithWorkdir, "withWorkdir", Container, |op, container| {
    let path = container.absolute(&op.path, op.expand)?;
    Ok(container.with_config(|config| config.workdir = path))
});

/// Unsets the working directory: commands run in `/`.
#[derive(Args)]
struct WithoutWorkdir {}

pure!(WithoutWorkdir, "withoutWorkdir", Container, |_op, container| {
    Ok(container.with_config(|config| config.workdir.clear()))
});

/// The working directory; empty when it is not set.
#[derive(Args)]
struct Workdir {}

pure!(Workdir, "workdir", String, |_op, container| Ok(container.config.workdir.clone()));

/// Sets the user that commands run as.
#[derive(Args)]
struct WithUser {
    /// `user[:group]`, each a name or a number.
    name: String,
}

pure!(WithUser, "withUser", Container, |op, container| {
    Ok(container.with_config(|config| config.user.clone_from(&op.name)))
});

/// Unsets the user: commands run as root.
#[derive(Args)]
struct WithoutUser {}

pure!(WithoutUser, "withoutUser", Container, |_op, container| {
    Ok(container.with_config(|config| config.user.clear()))
});

/// The user that commands run as; empty when it is not set.
#[derive(Args)]
struct User {}

pure!(User, "user", String, |_op, container| Ok(container.config.user.clone()));

/// Sets what goes before the arguments of a command that asks for it.
#[derive(Args)]
struct WithEntrypoint {
    /// Program and first arguments.
    args: Vec<String>,
    /// Keep the default arguments, which are cleared otherwise.
    #[arg(default = "false")]
    keep_default_args: bool,
}

pure!(WithEntrypoint, "withEntrypoint", Container, |op, container| {
    Ok(container.with_config(|config| {
        config.entrypoint.clone_from(&op.args);
        if !op.keep_default_args {
            config.default_args.clear();
        }
    }))
});

/// Unsets the entrypoint.
#[derive(Args)]
struct WithoutEntrypoint {
    /// Keep the default arguments, which are cleared otherwise.
    #[arg(default = "false")]
    keep_default_args: bool,
}

pure!(WithoutEntrypoint, "withoutEntrypoint", Container, |op, container| {
    Ok(container.with_config(|config| {
        config.entrypoint.clear();
        if !op.keep_default_args {
            config.default_args.clear();
        }
    }))
});

/// The entrypoint; empty when it is not set.
#[derive(Args)]
struct Entrypoint {}

pure!(Entrypoint, "entrypoint", Vec<String>, |_op, container| {
    Ok(container.config.entrypoint.clone())
});

/// Sets what runs when a command is given no arguments.
#[derive(Args)]
struct WithDefaultArgs {
    /// The arguments; empty clears them.
    args: Vec<String>,
}

pure!(WithDefaultArgs, "withDefaultArgs", Container, |op, container| {
    Ok(container.with_config(|config| config.default_args.clone_from(&op.args)))
});

/// Unsets the default arguments.
#[derive(Args)]
struct WithoutDefaultArgs {}

pure!(WithoutDefaultArgs, "withoutDefaultArgs", Container, |_op, container| {
    Ok(container.with_config(|config| config.default_args.clear()))
});

/// The default arguments; empty when they are not set.
#[derive(Args)]
struct DefaultArgs {}

pure!(DefaultArgs, "defaultArgs", Vec<String>, |_op, container| {
    Ok(container.config.default_args.clone())
});

/// Sets a label of the image.
#[derive(Args)]
struct WithLabel {
    /// Name of the label.
    name: String,
    /// Its value.
    value: String,
}

pure!(WithLabel, "withLabel", Container, |op, container| {
    Ok(container.with_config(|config| set(&mut config.labels, &op.name, op.value.clone())))
});

/// Removes a label of the image.
#[derive(Args)]
struct WithoutLabel {
    /// Name of the label.
    name: String,
}

pure!(WithoutLabel, "withoutLabel", Container, |op, container| {
    Ok(container.with_config(|config| config.labels.retain(|(name, _)| *name != op.name)))
});

/// The value of a label; null when it is not set.
#[derive(Args)]
struct GetLabel {
    /// Name of the label.
    name: String,
}

pure!(GetLabel, "label", Option<String>, |op, container| {
    let label = container.config.labels.iter().find(|(name, _)| *name == op.name);
    Ok(label.map(|(_, value)| value.clone()))
});

/// All labels, in the order they were set.
#[derive(Args)]
struct Labels {}

pure!(Labels, "labels", Vec<Label>, |_op, container| {
    Ok(container.config.labels.iter().map(|(name, value)| Label::new(name, value)).collect())
});

/// The platform the container is for, as it was given.
#[derive(Args)]
struct GetPlatform {}

pure!(GetPlatform, "platform", Platform, |_op, container| {
    Ok(Platform(container.platform.to_string()))
});

/// Sets a named value; one that is there keeps its place.
pub(super) fn set(list: &mut Vec<(String, String)>, name: &str, value: String) {
    match list.iter_mut().find(|(key, _)| key == name) {
        Some((_, old)) => *old = value,
        None => list.push((name.to_owned(), value)),
    }
}
