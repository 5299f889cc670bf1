//! `reference write|check|missing <binary> <folder>`: writes the generated pages, compares them with
//! what is there, or lists the fields of the API that do not work yet.

#![expect(clippy::print_stdout, reason = "a tool that is run by hand and by tests")]

use std::path::Path;
use std::process::ExitCode;

fn main() -> std::io::Result<ExitCode> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [mode, binary, folder] = words.as_slice() else {
        return Err(std::io::Error::other(
            "usage: reference write|check|missing <binary> <folder>",
        ));
    };
    if mode == "missing" {
        e2e::pages::missing()?.iter().for_each(|name| println!("{name}"));
        return Ok(ExitCode::SUCCESS);
    }
    let folder = Path::new(folder);
    let pages = e2e::pages::all(Path::new(binary))?;
    let outdated = e2e::pages::outdated(folder, &pages);
    if mode == "check" {
        outdated.iter().for_each(|name| println!("{name} is not current: run `cargo xtask docs`"));
        return Ok(if outdated.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    e2e::pages::write(folder, &pages)?;
    outdated.iter().for_each(|name| println!("{}", folder.join(name).display()));
    match e2e::pages::missing()?.len() {
        0 => {}
        count => println!("{count} fields answer \"not implemented yet\": see `--missing`"),
    }
    Ok(ExitCode::SUCCESS)
}
