//! How long does it take to search a large directory?
//!
//! The directory is in the store already. Ours is one request of a session, from the question to the last
//! result; the peer is `rg` on the files that were imported, with its own start and output. Both look at
//! every file, in turns, with all of them in memory. Nothing is found in the cache: each round asks for a
//! pattern that was never asked for.

use crate::document::quoted;
use crate::measure::{Sample, output, ratio, time};
use crate::ours::{Ours, fresh};
use crate::report::Report;
use anyhow::{Context as _, Result, ensure};
use std::fs;
use std::path::Path;
use std::process::Command;

pub(crate) const TITLE: &str = "search in 100,000 files, 300 MB";

const ROUNDS: usize = 15;
const DIRECTORIES: usize = 2_000;
const FILES_EACH: usize = 50;
/// Lines of a file go round, up to this many.
const LINES: usize = 100;
/// Files of which one holds what is looked for.
const FILES_A_NEEDLE: usize = 500;

pub(crate) fn ask(report: &mut Report) -> Result<()> {
    let folder = testkit::root().join("bench-search");
    let source = folder.join("source");
    make_tree(&source).context("cannot make a tree")?;
    let ours = Ours::new();
    let (_session, mut wire) = ours.session()?;
    let directory = quoted(&wire.import(&source)?);
    let (mut searches, mut peers) = (Sample::default(), Sample::default());
    for round in 0..=ROUNDS {
        let pattern = format!("needle \\d+|never-{}", fresh());
        let document = format!(
            "{{ loadDirectoryFromID(id: {directory}) {{ search(pattern: {}) {{ filePath lineNumber matchedLines }} }} }}",
            quoted(&pattern)
        );
        let (ours, found) = time(|| wire.ask(&document, "search"))?;
        let found = found.as_array().map_or(0, Vec::len);
        let mut rg = Command::new("rg");
        rg.args(["--hidden", "--no-ignore", "--line-number", "--", &pattern, "."]);
        let (peer, lines) = time(|| output(rg.current_dir(&source)))?;
        let expected = DIRECTORIES * FILES_EACH / FILES_A_NEEDLE;
        ensure!(found == expected, "{found} lines were found in place of {expected}");
        ensure!(lines.lines().count() == expected, "`rg` finds something else");
        // The first round fills caches.
        if round > 0 {
            searches.push(ours);
            peers.push(peer);
        }
    }
    report.sample("ours, in a session", &searches);
    report.sample("rg", &peers);
    report.ratio_at_most("ours / rg", ratio(&searches, &peers), 1.5);
    fs::remove_dir_all(&folder)?;
    Ok(())
}

fn make_tree(source: &Path) -> Result<()> {
    let line = "let value = compute(&input).unwrap_or_default(); // a line\n";
    let text = line.repeat(LINES);
    for number in 0..DIRECTORIES {
        let directory = source.join(format!("{}/{number}", number % 40));
        fs::create_dir_all(&directory)?;
        for file in 0..FILES_EACH {
            let lines = (file * LINES / FILES_EACH + 1) % LINES;
            let mut text = text[..lines * line.len()].to_owned();
            let file_number = number * FILES_EACH + file;
            if file_number.is_multiple_of(FILES_A_NEEDLE) {
                text.push_str(&format!("needle {file_number}\n"));
            }
            fs::write(directory.join(format!("file-{file}.rs")), text)?;
        }
    }
    Ok(())
}
