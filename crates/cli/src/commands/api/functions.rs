//! `ci-tool api functions`: lists functions and nothing else.

use crate::commands::{Typed, block_on};
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::function::chain::{ROOT, object_type};
use crate::function::name::{kebab, matches};
use crate::function::table::table;
use crate::globals::{GlobalArgs, ModuleArgs};
use clap::Args;
use protocol::schema::Schema;

/// List the available functions
#[derive(Args, Debug)]
pub(crate) struct FunctionsArgs {
    #[command(flatten)]
    modules: ModuleArgs,
    #[command(flatten)]
    globals: GlobalArgs,
    /// Functions to descend into
    #[arg(value_name = "function")]
    functions: Vec<String>,
}

pub(crate) fn run(args: FunctionsArgs, typed: Typed, path: &str) -> Result<Exit, Error> {
    let core = args.modules.clone().after(typed.modules.clone()).names_core()?;
    if !core && !typed.no_module.no_load_module {
        let hint = format!("`{path} -m core` lists functions of the core API");
        return Err(Error::not_available("listing functions of modules").with_hint(hint));
    }
    let context = typed.context(args.globals)?;
    block_on(list(&context, &args.functions))
}

async fn list(context: &Context, functions: &[String]) -> Result<Exit, Error> {
    let mut work = context.open().await?;
    let schema = work.interrupt.or(work.session.schema()).await;
    let failed = schema.is_err();
    let schema = work.end(schema, failed).await?;
    match table(&schema, &descend(&schema, functions)?, context.output.result_paint()) {
        Some(text) => context.output.result(&text)?,
        None => context.output.note("No functions found."),
    }
    Ok(Exit::SUCCESS)
}

/// The type that these functions lead to.
fn descend(schema: &Schema, functions: &[String]) -> Result<String, Error> {
    let mut type_name = ROOT.to_owned();
    for (index, function) in functions.iter().enumerate() {
        let owner = object_type(schema, &type_name);
        let field = owner
            .and_then(|owner| owner.fields.iter().find(|field| matches(function, &field.name)))
            .ok_or_else(|| {
                Error::user(format!("no function `{function}` in type `{type_name}`"))
            })?;
        type_name = field.returns.base().to_owned();
        if index + 1 < functions.len() && object_type(schema, &type_name).is_none() {
            let name = kebab(&field.name);
            let message =
                format!("function `{name}` gives `{type_name}`, which has no further functions");
            return Err(Error::user(message));
        }
    }
    Ok(type_name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::function::fixture::schema;

    fn end(functions: &[&str]) -> String {
        let functions: Vec<String> = functions.iter().map(|name| (*name).to_owned()).collect();
        descend(&schema(), &functions).unwrap_or_else(|error| error.to_string())
    }

    #[test]
    fn descends_by_name() {
        assert_eq!(end(&[]), "Query");
        assert_eq!(end(&["container", "with-exec"]), "Container");
        assert_eq!(end(&["container", "stdout"]), "String");
        assert_eq!(
            end(&["container", "stdout", "x"]),
            "function `stdout` gives `String`, which has no further functions"
        );
        assert_eq!(end(&["contaner"]), "no function `contaner` in type `Query`");
    }
}
