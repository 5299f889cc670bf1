//! [`Chain`]: the functions that were typed and the flags of each.
//!
//! Words are read from left to right. A flag belongs to the function it follows; one that this
//! function does not have may be a flag of the command itself (`--json`, `--silent`), which is
//! collected and handed back. Values are not looked at here.

use super::flag::{FlagType, ValueKind, flag_type, impossible_arguments, is_required};
use super::name::{kebab, matches};
use crate::suggest::suggestions;
use protocol::schema::{Argument, Field, Schema, Type, TypeKind};

/// Name of the type whose fields are the first functions.
pub(crate) const ROOT: &str = "Query";

/// What was typed after the command.
#[derive(Debug, Default)]
pub(crate) struct Chain<'s> {
    /// The functions in order.
    pub(crate) steps: Vec<Step<'s>>,
    /// Flags of the command itself, as they were typed.
    pub(crate) outside: Vec<String>,
    /// Whether help was asked for.
    pub(crate) help: bool,
}

/// One function.
#[derive(Debug)]
pub(crate) struct Step<'s> {
    /// The function.
    pub(crate) field: &'s Field,
    /// Its arguments that were given.
    pub(crate) given: Vec<Given<'s>>,
}

/// One argument.
#[derive(Debug)]
pub(crate) struct Given<'s> {
    /// The argument.
    pub(crate) argument: &'s Argument,
    /// How it is given.
    pub(crate) flag: FlagType,
    /// What it was given, once for each time.
    pub(crate) values: Vec<String>,
}

/// What was typed makes no chain.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct ChainError {
    /// What is wrong.
    pub(crate) message: String,
    /// The command and the functions before the error.
    pub(crate) path: String,
}

/// Flags of the command itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outside(Vec<OutsideFlag>);

#[derive(Clone, Debug)]
struct OutsideFlag {
    names: Vec<String>,
    short: Option<char>,
    takes_value: bool,
}

impl Outside {
    /// The flags of a command.
    pub(crate) fn of(command: &clap::Command) -> Self {
        let flags = command.get_arguments().filter(|flag| !flag.is_positional());
        Self(
            flags
                .map(|flag| OutsideFlag {
                    names: flag
                        .get_long_and_visible_aliases()
                        .unwrap_or_default()
                        .into_iter()
                        .chain(flag.get_aliases().unwrap_or_default())
                        .map(str::to_owned)
                        .collect(),
                    short: flag.get_short(),
                    takes_value: flag.get_action().takes_values(),
                })
                .collect(),
        )
    }

    fn long(&self, name: &str) -> Option<&OutsideFlag> {
        self.0.iter().find(|flag| flag.names.iter().any(|long| matches(name, long)))
    }

    fn short(&self, short: char) -> Option<&OutsideFlag> {
        self.0.iter().find(|flag| flag.short == Some(short))
    }
}

/// Reads the words after a command, e.g. `ci-tool core`.
pub(crate) fn parse<'s>(
    schema: &'s Schema,
    command: &str,
    words: &[String],
    outside: &Outside,
) -> Result<Chain<'s>, ChainError> {
    let mut parser = Parser { schema, command, outside, chain: Chain::default(), rest: words };
    let read = parser.read();
    let chain = parser.chain;
    let read = read.and_then(|()| if chain.help { Ok(()) } else { check_required(&chain) });
    match read {
        Ok(()) => Ok(chain),
        Err(message) => Err(ChainError { message, path: chain.path(command) }),
    }
}

/// The type whose functions come next, if the last function gives an object.
pub(crate) fn object_type<'s>(schema: &'s Schema, name: &str) -> Option<&'s Type> {
    let found = schema.types.get(name)?;
    matches!(found.kind, TypeKind::Object | TypeKind::Interface).then_some(found)
}

impl Chain<'_> {
    /// Names of the functions as they are shown.
    pub(crate) fn names(&self) -> Vec<String> {
        self.steps.iter().map(|step| kebab(&step.field.name)).collect()
    }

    /// The command and all functions, as they are typed.
    pub(crate) fn path(&self, command: &str) -> String {
        self.path_of(command, self.steps.len())
    }

    /// The command and the first few functions.
    pub(crate) fn path_of(&self, command: &str, functions: usize) -> String {
        let mut path = command.to_owned();
        for name in self.names().into_iter().take(functions) {
            path.push(' ');
            path.push_str(&name);
        }
        path
    }

    /// Name of the type that the last function gives.
    pub(crate) fn end(&self) -> &str {
        self.steps.last().map_or(ROOT, |step| step.field.returns.base())
    }
}

struct Parser<'s, 'w> {
    schema: &'s Schema,
    command: &'w str,
    outside: &'w Outside,
    chain: Chain<'s>,
    rest: &'w [String],
}

impl<'s, 'w> Parser<'s, 'w> {
    fn read(&mut self) -> Result<(), String> {
        while let Some(word) = self.next() {
            match word.as_bytes() {
                b"--" => {
                    while let Some(word) = self.next() {
                        self.function(word)?;
                    }
                }
                b"-h" | b"--help" => self.chain.help = true,
                [b'-', b'-', ..] => self.long(word)?,
                [b'-', _, ..] => self.shorts(word)?,
                _ => self.function(word)?,
            }
        }
        Ok(())
    }

    fn next(&mut self) -> Option<&'w str> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    fn function(&mut self, word: &str) -> Result<(), String> {
        let Some(owner) = object_type(self.schema, self.chain.end()) else {
            let (path, end) = (self.chain.path(self.command), self.chain.end());
            return Err(format!(
                "unknown command \"{word}\" for \"{path}\": it gives {end}, which has no functions"
            ));
        };
        let Some(field) = owner.fields.iter().find(|field| matches(word, &field.name)) else {
            let path = self.chain.path(self.command);
            return Err(unknown_function(word, owner, &path));
        };
        let impossible = impossible_arguments(self.schema, field);
        if !impossible.is_empty() {
            let names: Vec<String> = impossible.iter().map(|name| kebab(name)).collect();
            return Err(format!(
                "function \"{}\" needs arguments that cannot be given on the command line: {}",
                kebab(&field.name),
                names.join(", ")
            ));
        }
        self.chain.steps.push(Step { field, given: vec![] });
        Ok(())
    }

    fn long(&mut self, word: &str) -> Result<(), String> {
        let typed = word.trim_start_matches('-');
        let (name, value) = match typed.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (typed, None),
        };
        if let Some((argument, flag)) = self.argument(name) {
            let value = self.value(word, value, matches!(flag.kind, ValueKind::Bool))?;
            return self.give(argument, flag, value);
        }
        let Some(flag) = self.outside.long(name) else { return Err(self.unknown_flag(name)) };
        self.chain.outside.push(word.to_owned());
        if flag.takes_value && value.is_none() {
            let value = self.value(word, None, false)?;
            self.chain.outside.push(value);
        }
        Ok(())
    }

    fn argument(&self, name: &str) -> Option<(&'s Argument, FlagType)> {
        let step = self.chain.steps.last()?;
        let argument = step.field.args.iter().find(|argument| matches(name, &argument.name))?;
        Some((argument, flag_type(self.schema, argument)?))
    }

    fn value(
        &mut self,
        word: &str,
        value: Option<&str>,
        stands_alone: bool,
    ) -> Result<String, String> {
        match value {
            Some(value) => Ok(value.to_owned()),
            None if stands_alone => Ok("true".into()),
            None => match self.next() {
                Some(next) => Ok(next.to_owned()),
                None => Err(format!("flag needs an argument: {word}")),
            },
        }
    }

    fn give(
        &mut self,
        argument: &'s Argument,
        flag: FlagType,
        value: String,
    ) -> Result<(), String> {
        let Some(step) = self.chain.steps.last_mut() else {
            return Err(format!("no function takes --{}", argument.name));
        };
        match step.given.iter_mut().find(|given| given.argument.name == argument.name) {
            Some(given) => given.values.push(value),
            None => step.given.push(Given { argument, flag, values: vec![value] }),
        }
        Ok(())
    }

    fn shorts(&mut self, word: &'w str) -> Result<(), String> {
        for (index, short) in word.char_indices().skip(1) {
            if short == 'h' {
                self.chain.help = true;
                continue;
            }
            let Some(flag) = self.outside.short(short) else {
                return Err(format!("unknown shorthand flag: '{short}' in {word}"));
            };
            if !flag.takes_value {
                self.chain.outside.push(format!("-{short}"));
                continue;
            }
            let attached = &word[index + short.len_utf8()..];
            let attached = attached.strip_prefix('=').unwrap_or(attached);
            let given = Some(attached).filter(|value| !value.is_empty());
            let value = self.value(word, given, false)?;
            self.chain.outside.push(format!("-{short}"));
            self.chain.outside.push(value);
            break;
        }
        Ok(())
    }

    fn unknown_flag(&self, name: &str) -> String {
        let mut known: Vec<String> = self
            .chain
            .steps
            .last()
            .map(|step| step.field.args.iter())
            .into_iter()
            .flatten()
            .filter(|argument| flag_type(self.schema, argument).is_some())
            .map(|argument| kebab(&argument.name))
            .collect();
        known.extend(self.outside.0.iter().flat_map(|flag| flag.names.clone()));
        let known: Vec<String> =
            suggestions(name, &known).iter().map(|name| format!("--{name}")).collect();
        format!("unknown flag: --{name}{}", crate::suggest::list(&known))
    }
}

fn unknown_function(word: &str, owner: &Type, path: &str) -> String {
    let known: Vec<String> = owner
        .fields
        .iter()
        .filter(|field| field.implemented && !field.deprecated)
        .map(|field| kebab(&field.name))
        .collect();
    let known = suggestions(word, &known);
    format!("unknown command \"{word}\" for \"{path}\"{}", crate::suggest::list(&known))
}

fn check_required(chain: &Chain<'_>) -> Result<(), String> {
    for step in &chain.steps {
        let missing: Vec<String> = step
            .field
            .args
            .iter()
            .filter(|argument| {
                is_required(argument)
                    && !step.given.iter().any(|given| given.argument.name == argument.name)
            })
            .map(|argument| format!("\"{}\"", kebab(&argument.name)))
            .collect();
        if !missing.is_empty() {
            let function = kebab(&step.field.name);
            let missing = missing.join(", ");
            return Err(format!("required flag(s) {missing} not set for \"{function}\""));
        }
    }
    Ok(())
}
