//! Pages of fixed commands, made from what the parser knows of them.

use super::{Page, Row, Section};
use clap::{Arg, Command};
use tui::Paint;

/// Heading of the flags that every command has.
const INHERITED: &str = "INHERITED OPTIONS";

/// A command whose own help texts, and those of all commands below it, are pages of ours.
pub(crate) fn with_pages(command: Command, columns: Option<usize>, paint: Paint) -> Command {
    let text = page(&command).render(columns, paint);
    command.mut_subcommands(|below| with_pages(below, columns, paint)).override_help(text)
}

/// The page of a command that was built.
pub(crate) fn page(command: &Command) -> Page {
    let about = command.get_long_about().or(command.get_about());
    let commands = commands(command);
    let path = command.get_bin_name().unwrap_or(command.get_name());
    let hint = (!commands.is_empty())
        .then(|| format!("Use \"{path} [command] --help\" for more information about a command."));
    let mut sections = vec![Section { title: "AVAILABLE COMMANDS", rows: commands }];
    sections.extend(options(command));
    Page {
        about: about.map(ToString::to_string).unwrap_or_default(),
        usage: usage(&mut command.clone()),
        aliases: command.get_visible_aliases().map(str::to_owned).collect(),
        examples: command
            .get_after_help()
            .map(|text| text.to_string().lines().map(str::to_owned).collect())
            .unwrap_or_default(),
        sections,
        hint,
    }
}

/// Own flags, then inherited ones.
pub(crate) fn options(command: &Command) -> [Section; 2] {
    let flags = |inherited: bool| {
        let flags = command.get_arguments().filter(|flag| {
            let is_inherited = flag.get_help_heading() == Some(INHERITED);
            let shown = !flag.is_hide_set() && !flag.is_positional() && flag.get_id() != "help";
            shown && is_inherited == inherited
        });
        let mut rows: Vec<(String, Row)> =
            flags.map(|flag| (flag.get_long().unwrap_or_default().to_owned(), row(flag))).collect();
        rows.sort_by(|a, b| a.0.cmp(&b.0));
        rows.into_iter().map(|(_, row)| row).collect()
    };
    [
        Section { title: "OPTIONS", rows: flags(false) },
        Section { title: INHERITED, rows: flags(true) },
    ]
}

/// The usage line of a command.
pub(crate) fn usage(command: &mut Command) -> String {
    let text = command.render_usage().to_string();
    let text = text.trim().trim_start_matches("Usage:").trim();
    text.replace("[OPTIONS]", "[options]")
        .replace("[COMMAND]", "[command]")
        .replace("<COMMAND>", "<command>")
}

fn commands(command: &Command) -> Vec<Row> {
    command
        .get_subcommands()
        .filter(|below| !below.is_hide_set())
        .map(|below| Row {
            left: below.get_name().to_owned(),
            right: below.get_about().map(ToString::to_string).unwrap_or_default(),
        })
        .collect()
}

fn row(flag: &Arg) -> Row {
    let short = flag.get_short().map_or("    ".to_owned(), |short| format!("-{short}, "));
    let value = flag.get_action().takes_values().then(|| {
        let names = flag.get_value_names().unwrap_or_default();
        names.first().map_or(" string".to_owned(), |name| format!(" {name}"))
    });
    let long = flag.get_long().unwrap_or_default();
    let mut right = flag.get_help().map(ToString::to_string).unwrap_or_default();
    if let Some(default) = flag.get_default_values().first().filter(|_| value.is_some()) {
        right.push_str(&format!(" (default \"{}\")", default.to_string_lossy()));
    }
    Row { left: format!("{short}--{long}{}", value.unwrap_or_default()), right }
}
