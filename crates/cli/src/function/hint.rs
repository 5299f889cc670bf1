//! Hints of the engine in the words of the command line.
//!
//! The engine names functions and arguments as the API does, in backticks. Who typed a chain of functions has flags
//! instead. A word is put into another form only where it can mean one thing: an argument of a function in the chain that
//! is no function itself, or a function that is no such argument.

use super::chain::Chain;
use super::name::kebab;
use protocol::schema::{Schema, TypeKind};

/// The hint as who typed the chain would write it.
pub(crate) fn spelled(hint: &str, schema: &Schema, chain: &Chain<'_>) -> String {
    let parts = hint.split('`').enumerate();
    let parts = parts.map(|(index, part)| match index % 2 {
        1 => quoted(part, schema, chain).unwrap_or_else(|| part.to_owned()),
        _ => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join("`")
}

/// What stands between backticks in the command line's form, if that is another one: `--flag`, `--flag=value` or `function`.
fn quoted(text: &str, schema: &Schema, chain: &Chain<'_>) -> Option<String> {
    let (name, value) = match text.split_once(": ") {
        Some((name, value)) => (name, Some(value)),
        None => (text, None),
    };
    let mut arguments = chain.steps.iter().flat_map(|step| &step.field.args);
    let is_argument = arguments.any(|argument| argument.name == name);
    match (is_argument, is_function(name, schema), value) {
        (true, false, Some(value)) => Some(format!("--{}={value}", kebab(name))),
        (true, false, None) => Some(format!("--{}", kebab(name))),
        (false, true, None) => Some(kebab(name)),
        _ => None,
    }
}

fn is_function(name: &str, schema: &Schema) -> bool {
    let objects = schema.types.values().filter(|found| found.kind == TypeKind::Object);
    objects.flat_map(|object| &object.fields).any(|field| field.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::function::chain::{Outside, parse};
    use crate::function::fixture::schema;

    #[test]
    fn words_of_the_api_become_those_of_the_command_line() {
        let schema = schema();
        let words = ["container", "with-exec", "--args=x", "env-variable", "--name=y"];
        let words = words.map(str::to_owned);
        let chain = parse(&schema, "core", &words, &Outside::default()).unwrap();
        for (hint, expected) in [
            ("pass `noInit`, or `args`", "pass `--no-init`, or `--args`"),
            ("`expect: ANY` lets it go on", "`--expect=ANY` lets it go on"),
            ("run one with `withExec` first", "run one with `with-exec` first"),
            // An argument of another function.
            ("give `allowParentDirPath`", "give `allowParentDirPath`"),
            // An argument here and a function there.
            ("the `name` of it", "the `name` of it"),
            ("install it with `apt install git`", "install it with `apt install git`"),
            ("noInit, and a ` that is alone: noInit", "noInit, and a ` that is alone: noInit"),
        ] {
            assert_eq!(spelled(hint, &schema, &chain), expected);
        }
    }
}
