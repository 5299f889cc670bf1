//! Calling functions, whatever the command is called: `core`, `call`, `api call`.
//!
//! The flags of the functions are known only once the schema is there, so words are read twice:
//! first by the fixed parser, which stops at the first function, then by [`crate::function`]. Flags
//! of the command that stand among the functions are then read by the fixed parser again.

use crate::changes::{self, Outcome, Target};
use crate::context::{Context, Work};
use crate::error::{Error, Kind};
use crate::exit::Exit;
use crate::function::answer;
use crate::function::chain::{self, Chain, ChainError, Outside};
use crate::function::hint;
use crate::function::page;
use crate::function::plan::{End, Misused, Plan, look_up_flag};
use crate::globals::GlobalArgs;
use crate::usage;
use clap::{Args, FromArgMatches};
use protocol::schema::Schema;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Verbosity of these commands without flags.
const BASE_LEVEL: i32 = 1;

/// Flags of every command that calls functions.
#[derive(Args, Clone, Debug)]
pub(crate) struct CallFlags {
    /// Present the result as JSON
    #[arg(short, long)]
    json: bool,
    /// Save the result to a local file or directory
    #[arg(short, long, value_name = "path")]
    output: Option<PathBuf>,
    /// Show help for the functions so far
    #[arg(short, long, hide = true)]
    help: bool,
    #[command(flatten)]
    globals: GlobalArgs,
    /// Functions and their flags
    #[arg(value_name = "function", trailing_var_arg = true)]
    words: Vec<String>,
}

/// A command that calls functions.
pub(crate) trait CallCommand: Args + FromArgMatches {
    /// Its flags.
    fn flags(&self) -> &CallFlags;
    /// Whether the functions are those of the core API.
    fn on_core(&self) -> Result<bool, Error>;
}

impl CallFlags {
    /// The global flags before the functions, and of those after them the ones that must be known before
    /// the session is opened: where everything happens, and what happens after a failure.
    pub(crate) fn early_globals(&self) -> GlobalArgs {
        let mut globals = self.globals.clone();
        let mut words = self.words.iter();
        while let Some(word) = words.next() {
            let mut value = |flag: &str| match word.strip_prefix(flag) {
                Some("") => words.next().map(String::as_str),
                Some(rest) => rest.strip_prefix('='),
                None => None,
            };
            globals.shared.workdir =
                value("--workdir").map(PathBuf::from).or(globals.shared.workdir);
            let command = value("--interactive-command").map(str::to_owned);
            globals.shared.interactive_command = command.or(globals.shared.interactive_command);
            globals.shared.interactive |= asks_for_terminal(word);
        }
        globals
    }

    /// Whether a flag among the functions may say which module is meant. A look, not a reading: only
    /// the schema tells whose flag it is.
    fn may_choose_module(&self) -> bool {
        let flags = ["-M", "-m", "--load-module", "--no-load-module", "--mod", "--no-mod"];
        self.words.iter().any(|word| flags.iter().any(|flag| word.starts_with(flag)))
    }
}

/// Calls the functions that were typed and prints the result.
pub(crate) async fn run<C: CallCommand>(
    command: &C,
    path: &str,
    context: &mut Context,
) -> Result<Exit, Error> {
    if !command.on_core()? && !command.flags().may_choose_module() {
        return without_module(command, path, context);
    }
    let mut work = context.open().await?;
    let called = call(command, path, context, &mut work).await;
    let failed = called.is_err();
    match work.end(called, failed).await? {
        Called::Help(text) => context.output.result(&text)?,
        Called::Stopped => {}
        Called::Changes(outcome) => context.output.note(&outcome.note()),
        Called::Data { plan, data, json, output } => {
            print(context, &plan, &data, json, output.as_deref())?;
        }
    }
    Ok(Exit::SUCCESS)
}

/// Whether a word is `-i`, alone or among other letters.
fn asks_for_terminal(word: &str) -> bool {
    let letters = word.strip_prefix('-').unwrap_or_default();
    let known = |letter| "dEijqsvwy".contains(letter);
    word == "--interactive" || (letters.contains('i') && letters.chars().all(known))
}

/// What came of it.
enum Called {
    Help(String),
    /// It goes on until somebody stops it, and somebody did.
    Stopped,
    /// The chain ended in changes.
    Changes(Outcome),
    Data {
        plan: Plan,
        data: Value,
        json: bool,
        output: Option<PathBuf>,
    },
}

async fn call<C: CallCommand>(
    command: &C,
    path: &str,
    context: &mut Context,
    work: &mut Work,
) -> Result<Called, Error> {
    let schema = work.interrupt.or(work.session.schema()).await?;
    let parser = C::augment_args(clap::Command::new("call").args_override_self(true));
    let words = &command.flags().words;
    let chain = chain::parse(&schema, path, words, &Outside::of(&parser))
        .map_err(|error| usage_error(&error))?;
    let late = parse_outside::<C>(parser.clone(), &chain, path)?;
    if !command.on_core()? && !late.on_core()? {
        return Err(modules_later(path));
    }
    let (early, late) = (command.flags(), late.flags());
    if chain.help || early.help || late.help {
        let page = page::page(&schema, &chain, path, &parser);
        let text = page.render(context.output.columns(), context.output.result_paint());
        return Ok(Called::Help(text));
    }
    context.globals = late.globals.clone().after(context.globals.clone());
    context.globals.check()?;
    let output = late.output.clone().or(early.output.clone());
    let output = output.map(|path| without_dots(context.absolute(&path)));
    let plan = plan(&schema, &chain, path, output.as_deref())?;
    for warning in &plan.warnings {
        context.output.warning(warning);
    }
    work.show(context.display_choice(BASE_LEVEL)?);
    let data = match ask(work, &plan).await {
        Err(Error { kind: Kind::Interrupted, .. }) if plan.goes_on => return Ok(Called::Stopped),
        answered => answered
            .map_err(|error| error.with_hints_as(|hint| hint::spelled(hint, &schema, &chain)))?,
    };
    if let Some(changesets) = answer::changesets(&plan, &data) {
        let here = &context.environment.client.workdir;
        let target = output.as_deref().map_or(Target::Here(here), Target::Named);
        return Ok(Called::Changes(changes::settle(context, work, &changesets, target).await?));
    }
    Ok(Called::Data { plan, data, json: early.json || late.json, output })
}

/// The path without `.` in it, as it is shown; `..` may lead through a link and stays.
fn without_dots(path: PathBuf) -> PathBuf {
    std::path::absolute(&path).unwrap_or(path)
}

fn plan(
    schema: &Schema,
    chain: &Chain<'_>,
    command: &str,
    output: Option<&Path>,
) -> Result<Plan, Error> {
    let output = match output.map(|path| path.to_str().ok_or(path)).transpose() {
        Ok(output) => output,
        Err(path) => {
            return Err(Error::user(format!("`{}` is not valid UTF-8", path.display())));
        }
    };
    Plan::new(schema, chain, output).map_err(|Misused { message, functions }| {
        usage_error(&ChainError { message, path: chain.path_of(command, functions) })
    })
}

async fn ask(work: &mut Work, plan: &Plan) -> Result<Value, Error> {
    if plan.end == End::Root {
        return Ok(Value::Null);
    }
    let answers = match plan.look_up_document() {
        None => vec![],
        Some(document) => {
            let asked = work.interrupt.or(async {
                work.session.query(&document, None, None).await.map_err(|error| {
                    let flag = look_up_flag(plan, &error.path).unwrap_or_default();
                    Error::from(error).within(&format!("failed to get value for argument `{flag}`"))
                })
            });
            plan.look_up_answers(&asked.await?)
        }
    };
    let document = plan.document(&answers);
    work.interrupt.or(work.session.query(&document, None, None)).await
}

fn parse_outside<C: CallCommand>(
    parser: clap::Command,
    chain: &Chain<'_>,
    path: &str,
) -> Result<C, Error> {
    let matches = parser.no_binary_name(true).try_get_matches_from(&chain.outside);
    matches.and_then(|matches| C::from_arg_matches(&matches)).map_err(|error| {
        let path = chain.path(path);
        usage::explain(&error, &path, &format!("{path} [options] <function>"))
    })
}

fn usage_error(error: &ChainError) -> Error {
    let usage = format!("{} [options] <function>", error.path);
    let hint = format!("run `{} --help` for usage", error.path);
    Error::usage(&error.message, usage).with_hint(hint)
}

/// Without a module there is nothing to call, only something to read.
fn without_module<C: CallCommand>(
    command: &C,
    path: &str,
    context: &Context,
) -> Result<Exit, Error> {
    let asked = command.flags().words.iter().any(|word| word == "--help" || word == "-h");
    if !command.flags().help && !asked {
        return Err(modules_later(path));
    }
    let parser = C::augment_args(clap::Command::new("call"));
    let mut page = page::page(&Schema::default(), &Chain::default(), path, &parser);
    page.usage.push_str(" [function]...");
    page.hint = Some(format!("Use \"{path} -m core --help\" for the functions of the core API."));
    context.output.result(&page.render(context.output.columns(), context.output.result_paint()))?;
    Ok(Exit::SUCCESS)
}

fn modules_later(path: &str) -> Error {
    Error::not_available("calling functions of modules")
        .with_hint(format!("`{path} -m core` calls functions of the core API"))
}

fn print(
    context: &Context,
    plan: &Plan,
    data: &Value,
    json: bool,
    output: Option<&Path>,
) -> Result<(), Error> {
    if plan.applies && answer::is_empty(plan, data) {
        context.output.note("no changes to apply");
        if plan.end == End::Export {
            return Ok(());
        }
    }
    if plan.end == End::Export {
        let saved = answer::text(plan, data);
        context.output.note(&format!("Saved to \"{saved}\"."));
        return Ok(());
    }
    let text = if json { answer::json(plan, data) } else { answer::text(plan, data) };
    if let Some(path) = output {
        save(path, &text)?;
        context.output.note(&format!("Saved output to \"{}\".", path.display()));
    }
    context.output.result(&text)
}

fn save(path: &Path, text: &str) -> Result<(), Error> {
    let cannot = |error: std::io::Error| {
        Error::environment(format!("cannot write `{}`: {error}", path.display()))
    };
    if path.is_dir() {
        return Err(Error::user(format!("`{}` is a directory", path.display())));
    }
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(cannot)?;
    }
    std::fs::write(path, text).map_err(cannot)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    #[command(disable_help_flag = true)]
    struct Command {
        #[command(flatten)]
        flags: CallFlags,
    }

    fn flags(line: &str) -> CallFlags {
        Command::parse_from(std::iter::once("core").chain(line.split(' '))).flags
    }

    #[test]
    fn the_first_function_ends_the_flags_of_the_command() {
        let flags = flags("-j container --json from -o x");
        assert!(flags.json && flags.output.is_none());
        assert_eq!(flags.words, ["container", "--json", "from", "-o", "x"]);
    }

    #[test]
    fn the_working_directory_is_found_anywhere() {
        let workdir = |line: &str| flags(line).early_globals().shared.workdir;
        assert_eq!(workdir("--workdir=/a container"), Some("/a".into()));
        assert_eq!(workdir("container --workdir=/b stdout"), Some("/b".into()));
        assert_eq!(workdir("container --workdir /c stdout"), Some("/c".into()));
        assert_eq!(workdir("container with-workdir --path=/d"), None);
    }

    #[test]
    fn a_terminal_after_a_failure_is_asked_for_anywhere() {
        let asked = |line: &str| flags(line).early_globals().interactive().unwrap();
        assert_eq!(asked("container stdout -vi"), ["/bin/sh"]);
        assert_eq!(asked("container --interactive --interactive-command bash"), ["bash"]);
        assert_eq!(asked("-i --interactive-command=bash container"), ["bash"]);
        assert!(asked("container with-exec --args=-i -- --interactive=x").is_empty());
    }

    #[test]
    fn a_module_may_be_chosen_after_the_functions() {
        assert!(flags("container -M stdout").may_choose_module());
        assert!(flags("container stdout --load-module=core").may_choose_module());
        assert!(!flags("container stdout --message=x").may_choose_module());
    }

    #[test]
    fn paths_are_shown_without_dots() {
        for (path, expected) in [("/a/./b", "/a/b"), ("/a/../b", "/a/../b"), ("/a/b/", "/a/b/")] {
            assert_eq!(without_dots(path.into()).to_str(), Some(expected));
        }
    }

    #[test]
    fn results_are_saved_beside_being_printed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new/dir/out");
        save(&path, "first, longer").unwrap();
        save(&path, "second").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "second");
        assert!(save(dir.path(), "x").unwrap_err().to_string().contains("is a directory"));
    }
}
