//! `EnvFile`: variables in the language of `.env` files, as a value.
//!
//! The text stays as it was read. What a variable means is worked out when it is asked for: that needs
//! the other variables, and may need those of the caller's machine, which only the caller can read.

mod text;
mod values;

use crate::edit::Edit;
use crate::entries::EnvVariable;
use crate::file::File;
use crate::host::Host;
use crate::owner::OwnerSpec;
use crate::services::Services;
use crate::tree::Tree;
use futures::stream::{StreamExt as _, TryStreamExt as _};
use graph::{Args, Builder, Context, Object, Op, Root};
use protocol::{Error, ErrorKind};
use std::collections::{BTreeSet, HashMap};
use text::{Line, Variable};
use values::Values;

/// Variables of the caller's machine that are asked for at a time.
const AT_ONCE: usize = 16;

pub(crate) fn install(builder: &mut Builder) {
    builder
        .install::<MakeEnvFile>()
        .install::<WithVariable>()
        .install::<WithoutVariable>()
        .install::<Exists>()
        .install::<Get>()
        .install::<Variables>()
        .install::<Namespace>()
        .install::<AsFile>();
}

/// An env file.
#[derive(Clone)]
pub(crate) struct EnvFile {
    lines: Vec<Line>,
    /// Whether references are replaced.
    expand: bool,
}

impl Object for EnvFile {
    const TYPE: &'static str = "EnvFile";
}

impl EnvFile {
    /// Reads a text. References are replaced unless that is refused.
    pub(crate) fn parse(text: &str, expand: Option<bool>) -> Result<Self, Error> {
        let lines = text::parse(text).into_iter().collect::<Result<_, _>>()?;
        Ok(Self { lines, expand: expand.unwrap_or(true) })
    }

    fn variables(&self) -> impl DoubleEndedIterator<Item = &Variable> {
        self.lines.iter().filter_map(|line| match line {
            Line::Variable(variable) => Some(variable),
            Line::Other(_) => None,
        })
    }

    fn find(&self, name: &str) -> Option<&Variable> {
        self.variables().rev().find(|variable| *variable.name == *name)
    }

    /// Names in the order in which they are first set.
    fn names(&self) -> Vec<&str> {
        let mut seen = BTreeSet::new();
        let names = self.variables().map(|variable| &*variable.name);
        names.filter(|name| seen.insert(*name)).collect()
    }

    /// What these variables mean.
    async fn values(&self, names: &[&str], cx: &Context) -> Result<Vec<String>, Error> {
        let all = self.variables().map(|variable| (&variable.name, &variable.raw));
        let values = Values::read(all, self.expand)?;
        let ask = |name: String| async move {
            let value = of_caller(&name, cx).await?;
            Ok::<_, Error>(value.map(|value| (name, value)))
        };
        let outside = futures::stream::iter(values.outside(names)).map(ask);
        let outside = outside.buffer_unordered(AT_ONCE).try_filter_map(async |found| Ok(found));
        let outside: HashMap<String, String> = outside.try_collect().await?;
        values.of(names, &outside)
    }

    /// All variables with what they mean.
    pub(crate) async fn pairs(&self, cx: &Context) -> Result<Vec<(String, String)>, Error> {
        let names = self.names();
        let values = self.values(&names, cx).await?;
        Ok(names.into_iter().map(str::to_owned).zip(values).collect())
    }
}

/// A variable of the caller's environment.
async fn of_caller(name: &str, cx: &Context) -> Result<Option<String>, Error> {
    let Ok(host) = cx.get::<Host>() else { return Ok(None) };
    match host.files().secret(format!("env://{name}")).await {
        Ok(bytes) => Ok(String::from_utf8(bytes).ok()),
        // It is not set.
        Err(error) if error.kind == ErrorKind::User => Ok(None),
        Err(error) => Err(error),
    }
}

/// Variables in the language of `.env` files: none, to begin with.
#[derive(Args)]
struct MakeEnvFile {
    /// Replace `$NAME` and `${NAME}` in values by other variables; only `false` turns that off.
    expand: Option<bool>,
}

impl Op for MakeEnvFile {
    type Parent = Root;
    type Output = EnvFile;
    const NAME: &'static str = "envFile";

    async fn run(&self, _: &Root, _: &Context) -> Result<EnvFile, Error> {
        EnvFile::parse("", self.expand)
    }
}

/// Sets a variable. It takes the place of one with the same name.
#[derive(Args)]
struct WithVariable {
    /// Name of the variable.
    name: String,
    /// Its value as it would be written in the file: with quotes and references.
    value: String,
}

impl Op for WithVariable {
    type Parent = EnvFile;
    type Output = EnvFile;
    const NAME: &'static str = "withVariable";

    async fn run(&self, file: &EnvFile, _: &Context) -> Result<EnvFile, Error> {
        let variable = Variable::new(&self.name, &self.value)?;
        let mut changed = file.clone();
        let known = changed
            .lines
            .iter_mut()
            .rev()
            .find(|line| matches!(line, Line::Variable(known) if known.name == variable.name));
        match known {
            Some(known) => *known = Line::Variable(variable),
            None => changed.lines.push(Line::Variable(variable)),
        }
        Ok(changed)
    }
}

/// Removes a variable.
#[derive(Args)]
struct WithoutVariable {
    /// Name of the variable.
    name: String,
}

impl Op for WithoutVariable {
    type Parent = EnvFile;
    type Output = EnvFile;
    const NAME: &'static str = "withoutVariable";

    async fn run(&self, file: &EnvFile, _: &Context) -> Result<EnvFile, Error> {
        let mut changed = file.clone();
        let named =
            |line: &Line| matches!(line, Line::Variable(variable) if *variable.name == *self.name);
        changed.lines.retain(|line| !named(line));
        Ok(changed)
    }
}

/// Whether a variable is set.
#[derive(Args)]
struct Exists {
    /// Name of the variable.
    name: String,
}

impl Op for Exists {
    type Parent = EnvFile;
    type Output = bool;
    const NAME: &'static str = "exists";

    async fn run(&self, file: &EnvFile, _: &Context) -> Result<bool, Error> {
        Ok(file.find(&self.name).is_some())
    }
}

/// The value of a variable; empty when it is not set.
#[derive(Args)]
struct Get {
    /// Name of the variable.
    name: String,
    /// The value as it is written: with quotes and references.
    raw: Option<bool>,
}

impl Op for Get {
    type Parent = EnvFile;
    type Output = String;
    const NAME: &'static str = "get";

    async fn run(&self, file: &EnvFile, cx: &Context) -> Result<String, Error> {
        let Some(variable) = file.find(&self.name) else { return Ok(String::new()) };
        if self.raw == Some(true) {
            return Ok(variable.raw.to_string());
        }
        let mut values = file.values(&[&self.name], cx).await?;
        Ok(values.pop().unwrap_or_default())
    }
}

/// All variables, in the order in which they are first set.
#[derive(Args)]
struct Variables {
    /// The values as they are written: with quotes and references.
    raw: Option<bool>,
}

impl Op for Variables {
    type Parent = EnvFile;
    type Output = Vec<EnvVariable>;
    const NAME: &'static str = "variables";

    async fn run(&self, file: &EnvFile, cx: &Context) -> Result<Vec<EnvVariable>, Error> {
        if self.raw == Some(true) {
            let found = file.names().into_iter().filter_map(|name| file.find(name));
            return Ok(found.map(|found| EnvVariable::new(&found.name, &found.raw)).collect());
        }
        let pairs = file.pairs(cx).await?;
        Ok(pairs.iter().map(|(name, value)| EnvVariable::new(name, value)).collect())
    }
}

/// Only the variables whose names begin with a prefix, without it, and with references replaced.
/// `my-app` finds `MY_APP_NAME` and `myApp_name`: neither capitals nor dashes and underscores matter.
#[derive(Args)]
struct Namespace {
    /// The prefix, with or without an underscore at its end.
    prefix: String,
}

impl Op for Namespace {
    type Parent = EnvFile;
    type Output = EnvFile;
    const NAME: &'static str = "namespace";

    async fn run(&self, file: &EnvFile, cx: &Context) -> Result<EnvFile, Error> {
        let names = file.names().into_iter();
        let names = names.filter_map(|name| Some((name, without_prefix(name, &self.prefix)?)));
        let (names, cut): (Vec<&str>, Vec<&str>) = names.unzip();
        let values = file.values(&names, cx).await?;
        let lines = cut.iter().zip(values);
        // What they refer to is left out, so they must stand for themselves.
        let lines = lines.map(|(name, value)| Variable::literal(name, &value).map(Line::Variable));
        Ok(EnvFile { lines: lines.collect::<Result<_, _>>()?, expand: file.expand })
    }
}

/// What follows a prefix and a separator in a name.
fn without_prefix<'a>(name: &'a str, prefix: &str) -> Option<&'a str> {
    let separates = |c: char| matches!(c, '_' | '-');
    let mut letters = name.char_indices();
    for wanted in prefix.chars().filter(|c| !separates(*c)) {
        let (_, found) = letters.find(|(_, c)| !separates(*c))?;
        if !found.eq_ignore_ascii_case(&wanted) {
            return None;
        }
    }
    let rest = letters.as_str();
    let cut = rest.strip_prefix(separates)?;
    (!cut.is_empty()).then_some(cut)
}

/// The variables as a file with the name `.env`, as they were read.
#[derive(Args)]
struct AsFile {}

impl Op for AsFile {
    type Parent = EnvFile;
    type Output = File;
    const NAME: &'static str = "asFile";

    async fn run(&self, file: &EnvFile, cx: &Context) -> Result<File, Error> {
        let mut text = String::new();
        for line in &file.lines {
            text.push_str(line.text());
            text.push('\n');
        }
        let edit = Edit::NewFile {
            path: ".env".to_owned(),
            contents: text.as_bytes().into(),
            mode: 0o644,
            owner: OwnerSpec::Root,
        };
        let tree = Tree::empty().edited(edit, cx.get::<Services>()?).await?;
        Ok(File::below(tree, ".env"))
    }
}

#[cfg(test)]
mod tests {
    use super::without_prefix;

    #[test]
    fn prefixes_are_cut() {
        for (name, prefix, expected) in [
            ("animal_name", "animal", Some("name")),
            ("ANIMAL_name", "animal_", Some("name")),
            ("my_app_token", "my-app", Some("token")),
            ("myApp_name", "my-app", Some("name")),
            ("MY_aPp_URL", "my_app", Some("URL")),
            ("my_apple", "my_app", None),
            ("my_app", "my_app", None),
            ("my_app_", "my_app", None),
            ("my", "my_app", None),
        ] {
            assert_eq!(without_prefix(name, prefix), expected, "{name} {prefix}");
        }
    }
}
