//! How long does it take to write a large directory to the host?
//!
//! The directory is in the store already. Ours is the whole round trip of a client that asks for
//! `export`; the peer copies the tree that was imported. Both write to the same file system, in turns,
//! with nothing left to be written back from before. Both end when the files are there for everybody,
//! which is before they are on disk.

use crate::document::quoted;
use crate::measure::{Sample, output, ratio, time, time_command};
use crate::ours::Ours;
use crate::report::Report;
use crate::wire::Wire;
use anyhow::{Context as _, Result};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

pub(crate) const TITLE: &str = "export of a directory with 100,000 files, 400 MB";

const ROUNDS: usize = 7;
const DIRECTORIES: usize = 2_000;
const FILES_EACH: usize = 50;
/// Sizes go round, from none to about twice the middle.
const SIZES: usize = 8_000;

pub(crate) fn ask(report: &mut Report) -> Result<()> {
    let folder = testkit::root().join("bench-export");
    let source = folder.join("source");
    make_tree(&source).context("cannot make a tree")?;
    let ours = Ours::new();
    let (_session, mut wire) = ours.session()?;
    let directory = wire.import(&source)?;
    let (mut exports, mut copies) = (Sample::default(), Sample::default());
    for round in 0..ROUNDS {
        let (exported, copied) = (folder.join("exported"), folder.join("copied"));
        settle()?;
        let time = export(&mut wire, &directory, &exported)?;
        settle()?;
        let peer = time_command(Command::new("cp").arg("-a").arg(&source).arg(&copied))?;
        if round == 0 {
            // Not counted, because caches fill; looked at instead.
            output(Command::new("diff").arg("-rq").args([&copied, &exported]))
                .context("what was written is not what was imported")?;
        } else {
            exports.push(time);
            copies.push(peer);
        }
        fs::remove_dir_all(&exported)?;
        fs::remove_dir_all(&copied)?;
    }
    report.sample("ours, export into a new directory", &exports);
    report.sample("cp -a", &copies);
    report.ratio_at_most("ours / cp -a", ratio(&exports, &copies), 1.0);
    fs::remove_dir_all(&folder)?;
    Ok(())
}

fn make_tree(source: &Path) -> Result<()> {
    let bytes: Vec<u8> = (0..SIZES).map(|number| number as u8).collect();
    for directory in 0..DIRECTORIES {
        let directory = source.join(format!("{}/{}", directory % 40, directory));
        fs::create_dir_all(&directory)?;
        for file in 0..FILES_EACH {
            let size = (file * SIZES / FILES_EACH + SIZES / 100) % SIZES;
            fs::write(directory.join(format!("file-{file}")), &bytes[..size])?;
        }
    }
    Ok(())
}

/// Writes back all that is to be written, so that nobody pays for somebody else's files.
fn settle() -> Result<()> {
    output(&mut Command::new("sync")).map(|_| ())
}

fn export(wire: &mut Wire, directory: &str, to: &Path) -> Result<Duration> {
    let (id, path) = (quoted(directory), quoted(&to.to_string_lossy()));
    let document = format!("{{ loadDirectoryFromID(id: {id}) {{ export(path: {path}) }} }}");
    let (time, written) = time(|| wire.ask_text(&document, "export"))?;
    anyhow::ensure!(Path::new(&written) == to, "it was written to {written}");
    Ok(time)
}
