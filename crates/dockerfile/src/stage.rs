//! [`Dockerfile`]: all stages of a file, and which of them a target needs.

use crate::{Action, Error, Instruction, lines, parse, words};
use std::collections::BTreeSet;

/// A whole file.
#[derive(Clone, Debug)]
pub struct Dockerfile {
    /// What takes the meaning of a character away.
    pub escape: char,
    /// Arguments before the first stage.
    pub arguments: Vec<Argument>,
    /// The stages, in order. There is at least one.
    pub stages: Vec<Stage>,
}

/// An argument before the first stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Where it stands.
    pub line: usize,
    /// Its name.
    pub name: String,
    /// Its value where none is given.
    pub default: Option<String>,
}

/// A stage: an image that is made from another one.
#[derive(Clone, Debug)]
pub struct Stage {
    /// Where its `FROM` stands.
    pub line: usize,
    /// Its `FROM`, for people.
    pub text: String,
    /// What it begins from; variables are not replaced yet.
    pub base: String,
    /// The platform it asks for; variables are not replaced yet.
    pub platform: Option<String>,
    /// What later stages call it, in lower case.
    pub name: Option<String>,
    /// What is done.
    pub instructions: Vec<Instruction>,
}

/// What `--from` leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StageRef {
    /// An earlier stage.
    Stage(usize),
    /// An image.
    Image(String),
}

impl Dockerfile {
    /// Reads a file.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let read = lines::read(text)?;
        let (mut arguments, mut stages) = (vec![], Vec::<Stage>::new());
        for line in &read.lines {
            let (word, rest) = words::first(&line.text);
            if word.eq_ignore_ascii_case("FROM") {
                let stage =
                    stage(line, rest, read.escape).map_err(|error| error.at(line.number))?;
                stages.push(stage);
                continue;
            }
            let instruction = parse::instruction(line, read.escape)?;
            match (stages.last_mut(), instruction.action) {
                (Some(stage), action) => {
                    stage.instructions.push(Instruction { action, ..instruction });
                }
                (None, Action::Arg(given)) => {
                    let number = line.number;
                    arguments.extend(given.into_iter().map(|(name, default)| Argument {
                        line: number,
                        name,
                        default,
                    }));
                }
                (None, _) => {
                    let message =
                        "no build stage in current context: the first instruction is FROM";
                    return Err(Error::new(line.number, message));
                }
            }
        }
        if stages.is_empty() {
            return Err(Error::of("file with no instructions: there is no FROM in it"));
        }
        Ok(Self { escape: read.escape, arguments, stages })
    }

    /// The stage of this name or number; the last one where the name is empty.
    pub fn target(&self, name: &str) -> Result<usize, Error> {
        if name.is_empty() {
            return Ok(self.stages.len() - 1);
        }
        if let Some(found) = self.named(name, self.stages.len()) {
            return Ok(found);
        }
        match name.parse::<usize>() {
            Ok(number) if number < self.stages.len() => Ok(number),
            _ => {
                let names: Vec<&str> =
                    self.stages.iter().filter_map(|stage| stage.name.as_deref()).collect();
                let error = Error::of(format!("target stage \"{name}\" could not be found"));
                Err(match names.is_empty() {
                    true => error,
                    false => error.with_hint(format!("the stages are: {}", names.join(", "))),
                })
            }
        }
    }

    /// What a name leads to in a stage: an earlier stage by name or number, or an image.
    pub fn find(&self, from: &str, stage: usize) -> StageRef {
        if let Some(found) = self.named(from, stage) {
            return StageRef::Stage(found);
        }
        match from.parse::<usize>() {
            Ok(number) if number < stage => StageRef::Stage(number),
            _ => StageRef::Image(from.to_owned()),
        }
    }

    /// What a stage begins from, given its base without variables: numbers name no stage there.
    pub fn base(&self, base: &str, stage: usize) -> StageRef {
        match self.named(base, stage) {
            Some(found) => StageRef::Stage(found),
            None => StageRef::Image(base.to_owned()),
        }
    }

    /// The last stage of this name before another one.
    fn named(&self, name: &str, before: usize) -> Option<usize> {
        let name = name.to_ascii_lowercase();
        self.stages[..before].iter().rposition(|stage| stage.name.as_deref() == Some(&name))
    }

    /// The stages that a stage needs, itself included, given what each begins from.
    pub fn needed(&self, target: usize, bases: &[StageRef]) -> BTreeSet<usize> {
        let (mut needed, mut ahead) = (BTreeSet::new(), vec![target]);
        while let Some(stage) = ahead.pop() {
            if !needed.insert(stage) {
                continue;
            }
            if let StageRef::Stage(base) = &bases[stage] {
                ahead.push(*base);
            }
            for instruction in &self.stages[stage].instructions {
                for from in instruction.sources() {
                    if let StageRef::Stage(source) = self.find(from, stage) {
                        ahead.push(source);
                    }
                }
            }
        }
        needed
    }
}

impl Instruction {
    /// The names of stages and images that it takes files from.
    pub fn sources(&self) -> Vec<&str> {
        match &self.action {
            Action::Copy(copy) => copy.from.as_deref().into_iter().collect(),
            Action::Run(run) => run.mounts.iter().filter_map(|mount| mount.from()).collect(),
            _ => vec![],
        }
    }
}

fn stage(line: &lines::Line, rest: &str, escape: char) -> Result<Stage, Error> {
    let (flags, body) = words::flags(rest, escape);
    let mut platform = None;
    for (name, value) in flags {
        match name.as_str() {
            "platform" => platform = value,
            _ => return Err(Error::of(format!("unknown flag of FROM: --{name}"))),
        }
    }
    let words: Vec<&str> = body.split_whitespace().collect();
    let (base, name) = match words.as_slice() {
        [base] => (base, None),
        [base, word, name] if word.eq_ignore_ascii_case("AS") => (base, Some(stage_name(name)?)),
        _ => return Err(Error::of("FROM requires either one or three arguments")),
    };
    Ok(Stage {
        line: line.number,
        text: line.text.clone(),
        base: (*base).to_owned(),
        platform,
        name,
        instructions: vec![],
    })
}

fn stage_name(name: &str) -> Result<String, Error> {
    let lower = name.to_ascii_lowercase();
    let fine = lower.starts_with(|c: char| c.is_ascii_lowercase())
        && lower.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c));
    match fine {
        true => Ok(lower),
        false => Err(Error::of(format!(
            "invalid name for build stage: \"{name}\", name can't start with a number or contain symbols"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "ARG BASE=a\nARG V\nFROM $BASE AS Build\nRUN make\nFROM b AS unused\nRUN x\n\
        FROM --platform=$BUILDPLATFORM build as test\nRUN --mount=from=tools,target=/t t\n\
        FROM scratch\nCOPY --from=0 /a /\nCOPY --from=busybox /b /\n";

    fn bases(file: &Dockerfile) -> Vec<StageRef> {
        let stages = file.stages.iter().enumerate();
        stages.map(|(index, stage)| file.base(&stage.base.replace("$BASE", "a"), index)).collect()
    }

    #[test]
    fn stages_and_their_names() {
        let file = Dockerfile::parse(TEXT).unwrap();
        assert_eq!(file.stages.len(), 4);
        assert_eq!(file.arguments[0].default.as_deref(), Some("a"));
        assert_eq!(file.stages[0].name.as_deref(), Some("build"));
        assert_eq!(file.stages[2].platform.as_deref(), Some("$BUILDPLATFORM"));
        assert_eq!(
            (file.target("").unwrap(), file.target("TEST").unwrap(), file.target("1").unwrap()),
            (3, 2, 1)
        );
        let error = file.target("nope").unwrap_err();
        assert!(error.hint.unwrap().contains("build, unused, test"));
    }

    #[test]
    fn only_what_is_needed() {
        let file = Dockerfile::parse(TEXT).unwrap();
        let bases = bases(&file);
        assert_eq!(file.needed(3, &bases), BTreeSet::from([0, 3]));
        assert_eq!(file.needed(2, &bases), BTreeSet::from([0, 2]));
        assert_eq!(file.find("0", 3), StageRef::Stage(0));
        // A stage cannot see itself or later ones.
        assert_eq!(file.find("test", 2), StageRef::Image("test".into()));
        assert_eq!(file.find("3", 3), StageRef::Image("3".into()));
    }

    #[test]
    fn wrong_files() {
        for (text, line, reason) in [
            ("", 0, "no instructions"),
            ("# only\n", 0, "no instructions"),
            ("RUN x\nFROM a", 1, "no build stage in current context"),
            ("FROM a b", 1, "either one or three"),
            ("\nFROM a AS 1x", 2, "invalid name for build stage"),
            ("FROM a\nFOO", 2, "unknown instruction: FOO"),
            ("FROM --nope=1 a", 1, "unknown flag of FROM"),
        ] {
            let error = Dockerfile::parse(text).unwrap_err();
            assert!(error.message.contains(reason), "{text}: {error}");
            assert_eq!(error.line, line, "{text}");
        }
    }
}
