//! The health check of an image: a command that says whether its container works.

use super::duration;
use super::{Config, Container};
use graph::{Args, Builder, Context, Object, Op};
use protocol::Error;
use serde_json::{Value, json};
use std::time::Duration;

/// Where an image has it.
const KEY: &str = "Healthcheck";

pub(super) fn install(builder: &mut Builder) {
    builder
        .install::<WithDockerHealthcheck>()
        .install::<WithoutDockerHealthcheck>()
        .install::<DockerHealthcheck>()
        .install::<CheckArgs>()
        .install::<CheckShell>()
        .install::<CheckInterval>()
        .install::<CheckTimeout>()
        .install::<CheckStartPeriod>()
        .install::<CheckStartInterval>()
        .install::<CheckRetries>();
}

/// A health check. What is zero was not said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Healthcheck {
    pub(crate) args: Vec<String>,
    /// Whether the arguments are one line for a shell.
    pub(crate) shell: bool,
    pub(crate) interval: Duration,
    pub(crate) timeout: Duration,
    pub(crate) start_period: Duration,
    pub(crate) start_interval: Duration,
    pub(crate) retries: u32,
}

impl Object for Healthcheck {
    const TYPE: &'static str = "HealthcheckConfig";
}

impl Healthcheck {
    /// What an image says, if it says anything.
    pub(super) fn of(config: &Config) -> Option<Self> {
        let check = config.other.get(KEY)?;
        let test = check.get("Test")?.as_array()?;
        let words = test.iter().map(|word| word.as_str().map(str::to_owned));
        let mut words = words.collect::<Option<Vec<String>>>()?.into_iter();
        let shell = match words.next()?.as_str() {
            "CMD" => false,
            "CMD-SHELL" => true,
            _ => return None,
        };
        let span = |name: &str| {
            Duration::from_nanos(check.get(name).and_then(Value::as_u64).unwrap_or_default())
        };
        Some(Self {
            args: words.collect(),
            shell,
            interval: span("Interval"),
            timeout: span("Timeout"),
            start_period: span("StartPeriod"),
            start_interval: span("StartInterval"),
            retries: check.get("Retries").and_then(Value::as_u64).unwrap_or_default() as u32,
        })
    }

    /// As an image says it.
    fn to_json(&self) -> Value {
        let mut test = vec![if self.shell { "CMD-SHELL" } else { "CMD" }.to_owned()];
        match self.shell {
            true => test.push(self.args.join(" ")),
            false => test.extend(self.args.iter().cloned()),
        }
        let mut check = json!({ "Test": test });
        for (name, span) in [
            ("Interval", self.interval),
            ("Timeout", self.timeout),
            ("StartPeriod", self.start_period),
            ("StartInterval", self.start_interval),
        ] {
            if !span.is_zero() {
                check[name] = json!(span.as_nanos() as u64);
            }
        }
        if self.retries > 0 {
            check["Retries"] = json!(self.retries);
        }
        check
    }

    /// What is run.
    pub(crate) fn command(&self) -> Vec<String> {
        match self.shell {
            true => vec!["/bin/sh".to_owned(), "-c".to_owned(), self.args.join(" ")],
            false => self.args.clone(),
        }
    }
}

/// Sets a command that says whether the container works. A service of it is ready when that succeeds.
#[derive(Args)]
struct WithDockerHealthcheck {
    /// The program and its arguments, or one line for a shell.
    args: Vec<String>,
    /// Run it by a shell.
    shell: Option<bool>,
    /// Time between two checks, e.g. `30s`.
    interval: Option<String>,
    /// How long one check may take.
    timeout: Option<String>,
    /// Time at the start in which failures do not count.
    start_period: Option<String>,
    /// Time between two checks at the start.
    start_interval: Option<String>,
    /// How many failures, one after the other, mean that it does not work.
    retries: Option<i64>,
}

impl Op for WithDockerHealthcheck {
    type Parent = Container;
    type Output = Container;
    const NAME: &'static str = "withDockerHealthcheck";

    async fn run(&self, container: &Container, _: &Context) -> Result<Container, Error> {
        if self.args.is_empty() {
            return Err(Error::user("a health check needs a command"));
        }
        let span = |text: &Option<String>, what| match text {
            Some(text) => duration::parse(text, what),
            None => Ok(Duration::ZERO),
        };
        let retries = u32::try_from(self.retries.unwrap_or_default());
        let check = Healthcheck {
            args: self.args.clone(),
            shell: self.shell.unwrap_or_default(),
            interval: span(&self.interval, "interval")?,
            timeout: span(&self.timeout, "timeout")?,
            start_period: span(&self.start_period, "start period")?,
            start_interval: span(&self.start_interval, "start interval")?,
            retries: retries.map_err(|_| Error::user("a number of retries is not negative"))?,
        };
        Ok(container.with_config(|config| {
            config.other.insert(KEY.to_owned(), check.to_json());
        }))
    }
}

/// Takes the health check away.
#[derive(Args)]
struct WithoutDockerHealthcheck {}

impl Op for WithoutDockerHealthcheck {
    type Parent = Container;
    type Output = Container;
    const NAME: &'static str = "withoutDockerHealthcheck";

    async fn run(&self, container: &Container, _: &Context) -> Result<Container, Error> {
        Ok(container.with_config(|config| {
            config.other.remove(KEY);
        }))
    }
}

/// The health check; null where there is none.
#[derive(Args)]
struct DockerHealthcheck {}

impl Op for DockerHealthcheck {
    type Parent = Container;
    type Output = Option<Healthcheck>;
    const NAME: &'static str = "dockerHealthcheck";

    async fn run(&self, container: &Container, _: &Context) -> Result<Option<Healthcheck>, Error> {
        Ok(Healthcheck::of(&container.config))
    }
}

/// The program and its arguments, or one line for a shell.
#[derive(Args)]
struct CheckArgs {}

impl Op for CheckArgs {
    type Parent = Healthcheck;
    type Output = Vec<String>;
    const NAME: &'static str = "args";

    async fn run(&self, check: &Healthcheck, _: &Context) -> Result<Vec<String>, Error> {
        Ok(check.args.clone())
    }
}

/// Whether it is run by a shell.
#[derive(Args)]
struct CheckShell {}

impl Op for CheckShell {
    type Parent = Healthcheck;
    type Output = bool;
    const NAME: &'static str = "shell";

    async fn run(&self, check: &Healthcheck, _: &Context) -> Result<bool, Error> {
        Ok(check.shell)
    }
}

/// Time between two checks.
#[derive(Args)]
struct CheckInterval {}

impl Op for CheckInterval {
    type Parent = Healthcheck;
    type Output = String;
    const NAME: &'static str = "interval";

    async fn run(&self, check: &Healthcheck, _: &Context) -> Result<String, Error> {
        Ok(duration::write(check.interval))
    }
}

/// How long one check may take.
#[derive(Args)]
struct CheckTimeout {}

impl Op for CheckTimeout {
    type Parent = Healthcheck;
    type Output = String;
    const NAME: &'static str = "timeout";

    async fn run(&self, check: &Healthcheck, _: &Context) -> Result<String, Error> {
        Ok(duration::write(check.timeout))
    }
}

/// Time at the start in which failures do not count.
#[derive(Args)]
struct CheckStartPeriod {}

impl Op for CheckStartPeriod {
    type Parent = Healthcheck;
    type Output = String;
    const NAME: &'static str = "startPeriod";

    async fn run(&self, check: &Healthcheck, _: &Context) -> Result<String, Error> {
        Ok(duration::write(check.start_period))
    }
}

/// Time between two checks at the start.
#[derive(Args)]
struct CheckStartInterval {}

impl Op for CheckStartInterval {
    type Parent = Healthcheck;
    type Output = String;
    const NAME: &'static str = "startInterval";

    async fn run(&self, check: &Healthcheck, _: &Context) -> Result<String, Error> {
        Ok(duration::write(check.start_interval))
    }
}

/// How many failures, one after the other, mean that it does not work.
#[derive(Args)]
struct CheckRetries {}

impl Op for CheckRetries {
    type Parent = Healthcheck;
    type Output = i64;
    const NAME: &'static str = "retries";

    async fn run(&self, check: &Healthcheck, _: &Context) -> Result<i64, Error> {
        Ok(check.retries.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_image_says_is_read_back() {
        let check = Healthcheck {
            args: vec!["curl".to_owned(), "-f".to_owned()],
            interval: Duration::from_secs(60),
            retries: 3,
            ..Healthcheck::default()
        };
        let mut config = Config::default();
        config.other.insert(KEY.to_owned(), check.to_json());
        assert_eq!(config.other[KEY]["Test"], json!(["CMD", "curl", "-f"]));
        assert_eq!(Healthcheck::of(&config), Some(check));
        config.other.insert(KEY.to_owned(), json!({ "Test": ["CMD-SHELL", "a | b"] }));
        let shell = Healthcheck::of(&config).unwrap();
        assert_eq!(shell.command(), ["/bin/sh", "-c", "a | b"]);
        for none in [json!({ "Test": ["NONE"] }), json!({}), json!({ "Test": [] }), json!(7)] {
            config.other.insert(KEY.to_owned(), none);
            assert_eq!(Healthcheck::of(&config), None);
        }
    }
}
