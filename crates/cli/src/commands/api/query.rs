//! `ci-tool api query`: sends a GraphQL document.

use crate::commands::{Typed, block_on};
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::function::answer::pretty;
use crate::function::value::split;
use crate::globals::{GlobalArgs, ModuleArgs, NoModuleArgs};
use crate::interrupt::Interrupt;
use clap::Args;
use serde_json::{Map, Value};
use std::path::PathBuf;
use tokio::io::AsyncReadExt;

/// Verbosity of this command without flags.
const BASE_LEVEL: i32 = 0;
/// How the command is used, for errors found after the parser.
const USAGE: &str = "ci-tool api query [options] [operation]";

/// Send a GraphQL document to the engine
#[derive(Args, Debug)]
pub(crate) struct QueryArgs {
    /// Read the document from a file (default standard input)
    #[arg(long, value_name = "path")]
    doc: Option<PathBuf>,
    /// Variables in key=value form
    #[arg(long, value_name = "strings")]
    var: Vec<String>,
    /// Variables as a JSON object; wins over --var
    #[arg(long, value_name = "string")]
    var_json: Option<String>,
    #[command(flatten)]
    modules: ModuleArgs,
    #[command(flatten)]
    no_module: NoModuleArgs,
    #[command(flatten)]
    globals: GlobalArgs,
    /// Name of the operation, for documents with several
    #[arg(value_name = "operation")]
    operation: Option<String>,
}

pub(crate) fn run(args: QueryArgs, typed: Typed) -> Result<Exit, Error> {
    args.modules.clone().after(typed.modules.clone()).names_core()?;
    let variables = variables(&args)?;
    let context = typed.context(args.globals.clone())?;
    if args.doc.is_none() && context.output.stdin_is_terminal() {
        let error = Error::usage("no document: standard input is a terminal", USAGE);
        return Err(error.with_hint("name a file with `--doc`, or pipe a document in"));
    }
    block_on(send(&args, variables, &context))
}

async fn send(
    args: &QueryArgs,
    variables: Option<Map<String, Value>>,
    context: &Context,
) -> Result<Exit, Error> {
    let choice = context.display_choice(BASE_LEVEL)?;
    let mut interrupt = Interrupt::new()?;
    let document = match document(args, context, &mut interrupt).await {
        Ok(document) => document,
        Err(error) => return Err(context.told(error)),
    };
    if document.trim().is_empty() {
        let from = args
            .doc
            .as_ref()
            .map_or("standard input".to_owned(), |path| format!("`{}`", path.display()));
        return Err(Error::usage(format!("no document: {from} is empty"), USAGE)
            .with_hint("name a file with `--doc`, or pipe a document in"));
    }
    let mut work = context.open_with(interrupt).await?;
    work.show(choice);
    let operation = args.operation.as_deref();
    let result = work.interrupt.or(work.session.query(&document, variables, operation)).await;
    let failed = result.is_err();
    let data = work.end(result, failed).await.map_err(Error::with_plain_exit)?;
    context.output.result(&pretty(&data))?;
    Ok(Exit::SUCCESS)
}

async fn document(
    args: &QueryArgs,
    context: &Context,
    interrupt: &mut Interrupt,
) -> Result<String, Error> {
    let Some(path) = &args.doc else {
        let mut document = String::new();
        let read = interrupt.or(async { tokio::io::stdin().read_to_string(&mut document).await });
        read.await.map_err(|error| error.within("cannot read standard input"))?;
        return Ok(document);
    };
    let read = interrupt.or(tokio::fs::read_to_string(context.absolute(path)));
    read.await.map_err(|error| error.within(&format!("cannot read document `{}`", path.display())))
}

fn variables(args: &QueryArgs) -> Result<Option<Map<String, Value>>, Error> {
    if let Some(json) = &args.var_json {
        return match serde_json::from_str(json) {
            Ok(Value::Object(variables)) => Ok(Some(variables)),
            Ok(_) => Err(invalid(json, "var-json", "it is not a JSON object")),
            Err(error) => Err(invalid(json, "var-json", &error.to_string())),
        };
    }
    let mut variables = Map::new();
    for text in &args.var {
        let pairs = split(text).map_err(|reason| invalid(text, "var", &reason))?;
        for pair in pairs {
            let Some((key, value)) = pair.split_once('=') else {
                return Err(invalid(text, "var", "it is not of the form key=value"));
            };
            variables.insert(key.to_owned(), Value::from(value));
        }
    }
    Ok(Some(variables).filter(|variables| !variables.is_empty()))
}

fn invalid(value: &str, flag: &str, reason: &str) -> Error {
    let message = format!("invalid argument \"{value}\" for \"--{flag}\" flag: {reason}");
    Error::usage(message, USAGE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        args: QueryArgs,
    }

    fn read(words: &[&str]) -> String {
        let args = Command::parse_from(std::iter::once(&"query").chain(words)).args;
        match variables(&args) {
            Ok(variables) => Value::from(variables.unwrap_or_default()).to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn variables_are_strings_unless_they_come_as_json() {
        assert_eq!(read(&[]), "{}");
        assert_eq!(read(&["--var", "a=1,b=x=y", "--var=c="]), r#"{"a":"1","b":"x=y","c":""}"#);
        assert_eq!(read(&["--var=a=1", "--var-json", r#"{"b": 2}"#]), r#"{"b":2}"#);
        assert_eq!(read(&["--var", "\"a=1,2\""]), r#"{"a":"1,2"}"#);
    }

    #[test]
    fn wrong_variables_are_usage_errors() {
        assert!(
            read(&["--var=novalue"]).contains("\"--var\" flag: it is not of the form key=value")
        );
        assert!(read(&["--var-json=[1]"]).contains("it is not a JSON object"));
        assert!(read(&["--var-json={"]).contains("\"--var-json\" flag: EOF"));
    }
}
