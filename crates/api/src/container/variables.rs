//! Variables from elsewhere: those of an env file, and those that only commands see and that no cache
//! knows of.

use super::Container;
use super::config::{check_variable, set};
use crate::env_file::EnvFile;
use graph::{Args, Builder, Context, Op, Ref};
use protocol::Error;

pub(super) fn install(builder: &mut Builder) {
    builder
        .install::<WithEnvFileVariables>()
        .install::<WithVolatileVariable>()
        .install::<WithoutVolatileVariable>();
}

impl Container {
    /// Whether commands see a volatile variable of this name.
    pub(super) fn is_volatile(&self, name: &str) -> bool {
        self.volatile.iter().any(|(known, _)| known == name)
    }
}

/// Sets all variables of an env file for the commands that follow.
#[derive(Args)]
struct WithEnvFileVariables {
    /// The env file.
    source: Ref<EnvFile>,
}

impl Op for WithEnvFileVariables {
    type Parent = Container;
    type Output = Container;
    const NAME: &'static str = "withEnvFileVariables";

    async fn run(&self, container: &Container, cx: &Context) -> Result<Container, Error> {
        let pairs = self.source.pairs(cx).await?;
        for (name, value) in &pairs {
            check_variable(name, value)?;
        }
        Ok(container.with_config(|config| {
            for (name, value) in pairs {
                set(&mut config.env, &name, value);
            }
        }))
    }
}

/// Sets a variable that commands see and that changes nothing else: a command that ran with another
/// value is not run again, and neither images nor services know of it.
#[derive(Args)]
struct WithVolatileVariable {
    /// Name of the variable.
    name: String,
    /// Its value.
    value: String,
}

impl Op for WithVolatileVariable {
    type Parent = Container;
    type Output = Container;
    const NAME: &'static str = "withVolatileVariable";

    async fn run(&self, container: &Container, _: &Context) -> Result<Container, Error> {
        check_variable(&self.name, &self.value)?;
        let mut changed = container.clone();
        set(&mut changed.volatile, &self.name, self.value.clone());
        Ok(changed)
    }
}

/// Removes a volatile variable. One of the same name that is not volatile is seen again.
#[derive(Args)]
struct WithoutVolatileVariable {
    /// Name of the variable.
    name: String,
}

impl Op for WithoutVolatileVariable {
    type Parent = Container;
    type Output = Container;
    const NAME: &'static str = "withoutVolatileVariable";

    async fn run(&self, container: &Container, _: &Context) -> Result<Container, Error> {
        let mut changed = container.clone();
        changed.volatile.retain(|(name, _)| *name != self.name);
        Ok(changed)
    }
}
