//! Published client libraries for the tests that run programs written for them.
//!
//! Every library is installed by its own package manager from the versions that `tests/clients`
//! names, into a folder that all clones share. What a clone gets of its own is one executable for
//! each language and version, which runs the clone's program with that library.

mod guide;

use crate::command::quietly;
use crate::project::Project;
use crate::toolchains;
use anyhow::{Context as _, Result};
use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Versions that every run of the tests uses.
pub(crate) const USUAL: &[&str] = &["newest"];
/// Versions that `--full` uses.
pub(crate) const ALL: &[&str] = &["newest", "oldest"];

/// Pauses in seconds between attempts to download: an archive may be out of reach for a moment.
const PAUSES: [u64; 3] = [5, 20, 60];
/// Written into a folder when everything in it is installed.
const STAMP: &str = "installed";

/// Where the executables of this clone are.
pub(crate) fn programs(project: &Project) -> Result<PathBuf> {
    Ok(project.work()?.join("clients"))
}

/// Installs the libraries of these versions, where they are not there yet.
pub(crate) fn prepare(project: &Project, versions: &[&str]) -> Result<()> {
    let shared = project.target.join("xtask/clients");
    fs::create_dir_all(&shared)?;
    let turn = File::create(shared.join("lock"))?;
    turn.lock().context("cannot wait for another clone that installs the same")?;
    let started = Instant::now();
    let clients = Clients {
        sources: project.root.join("tests/clients"),
        programs: programs(project)?,
        shared,
    };
    fs::create_dir_all(&clients.programs)?;
    for version in versions {
        clients.python(version)?;
        clients.typescript(version)?;
        clients.go(version)?;
        clients.rust(version)?;
    }
    clients.of_guide(&guide::Page::read(&project.root)?)?;
    println!("client libraries for the tests: {:.1} s", started.elapsed().as_secs_f64());
    Ok(())
}

struct Clients {
    /// The programs and the versions of their libraries.
    sources: PathBuf,
    /// Installed libraries, for all clones.
    shared: PathBuf,
    /// Executables of this clone.
    programs: PathBuf,
}

impl Clients {
    fn python(&self, version: &str) -> Result<()> {
        let list = self.sources.join(format!("python/{version}.txt"));
        let folder = self.shared.join(format!("python-{version}"));
        install(&folder, &self.read(&format!("python/{version}.txt"))?, || {
            quietly(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder))?;
            let mut pip = Command::new(folder.join("bin/pip"));
            pip.args(["install", "--quiet", "--disable-pip-version-check", "-r"]).arg(&list);
            quietly(&mut pip)
        })?;
        let (python, sources) = (folder.join("bin/python"), self.sources.join("python"));
        if version == USUAL[0] {
            // What a benchmark compares.
            self.script("python", "smallest", &[&python, &sources.join("smallest.py")])?;
            self.script(
                "python",
                "import",
                &[&python, Path::new("-c"), Path::new("import dagger")],
            )?;
            self.script("python", "schema", &[&python, &sources.join("schema.py")])?;
        }
        // Nothing that Python compiles is left between the sources.
        self.script("python", version, &[&python, Path::new("-B"), &sources.join("cases.py")])
    }

    fn typescript(&self, version: &str) -> Result<()> {
        let from = self.sources.join("typescript").join(version);
        let (names, lock) = (from.join("package.json"), from.join("package-lock.json"));
        let folder = self.shared.join(format!("typescript-{version}"));
        let wanted = fs::read_to_string(&names)? + &fs::read_to_string(&lock)?;
        install(&folder, &wanted, || {
            fs::create_dir_all(&folder)?;
            fs::copy(&names, folder.join("package.json"))?;
            fs::copy(&lock, folder.join("package-lock.json"))?;
            let mut npm = Command::new("npm");
            npm.args(["ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]);
            quietly(npm.current_dir(&folder))
        })?;
        // Modules are looked for beside the program.
        let own = self.programs.join(format!("typescript-{version}.d"));
        fs::create_dir_all(&own)?;
        let modules = own.join("node_modules");
        let _ = fs::remove_file(&modules);
        symlink(folder.join("node_modules"), &modules)?;
        fs::copy(&names, own.join("package.json"))?;
        for part in ["frame.ts", "outside.ts", "newer.ts"] {
            fs::write(own.join(part), self.read(&format!("typescript/{part}"))?)?;
        }
        self.typescript_program(version, version, &self.read("typescript/cases.ts")?)?;
        if version == USUAL[0] {
            self.typescript_program(version, "schema", &self.read("typescript/schema.ts")?)?;
        }
        Ok(())
    }

    /// Puts a program beside the modules of a version.
    fn typescript_program(&self, version: &str, name: &str, text: &str) -> Result<()> {
        let own = self.programs.join(format!("typescript-{version}.d"));
        let program = own.join(format!("{name}.ts"));
        fs::write(&program, text)?;
        let node = toolchains::node(&self.shared)?;
        let runner = own.join("node_modules/tsx/dist/cli.mjs");
        self.script("typescript", name, &[&node, &runner, &program])
    }

    fn go(&self, version: &str) -> Result<()> {
        let mut programs = vec![
            ("main.go", self.read("go/main.go")?),
            ("outside.go", self.read("go/outside.go")?),
        ];
        if version == USUAL[0] {
            programs.push(("newest.go", self.read("go/newest/cases.go")?));
        }
        self.go_program(version, version, &programs)
    }

    /// Builds a program with the library of a version.
    fn go_program(&self, version: &str, name: &str, programs: &[(&str, String)]) -> Result<()> {
        let lists = ["go.mod", "go.sum"];
        let lists = lists.map(|list| Ok((list, self.read(&format!("go/{version}/{list}"))?)));
        let mut files = lists.into_iter().collect::<Result<Vec<_>>>()?;
        files.extend_from_slice(programs);
        let own = self.programs.join(format!("go-{name}.d"));
        let wanted: String = files.iter().map(|(_, text)| text.as_str()).collect();
        install(&own, &wanted, || {
            fs::create_dir_all(&own)?;
            files.iter().try_for_each(|(file, text)| fs::write(own.join(file), text))?;
            // Where it is not the system's own, it is the very one that is wanted.
            let list = self.sources.join("go").join(version).join("go.mod");
            let mut go = Command::new(toolchains::go(&self.shared, &list)?);
            go.args(["build", "-mod=readonly", "-o"]).arg(own.join("program")).arg(".");
            quietly(go.current_dir(&own))
        })?;
        self.script("go", name, &[&own.join("program")])
    }

    fn rust(&self, version: &str) -> Result<()> {
        let manifest = self.sources.join("rust").join(version).join("Cargo.toml");
        self.rust_program(&manifest, version, &format!("cases-{version}"))
    }

    /// Builds a program of a package.
    fn rust_program(&self, manifest: &Path, name: &str, program: &str) -> Result<()> {
        let target = self.shared.join("rust");
        let cargo = crate::project::variable("CARGO").unwrap_or_else(|| "cargo".to_owned());
        retried(|| {
            let mut build = Command::new(&cargo);
            build.args(["build", "--quiet", "--locked", "--manifest-path"]).arg(manifest);
            quietly(build.env("CARGO_TARGET_DIR", &target))
        })?;
        // Another clone builds to the same name.
        let own = self.programs.join(program);
        let _ = fs::remove_file(&own);
        fs::hard_link(target.join("debug").join(program), &own)?;
        self.script("rust", name, &[&own])
    }

    /// The programs of the guide, each with the newest version of its library.
    fn of_guide(&self, page: &guide::Page) -> Result<()> {
        let program = self.programs.join("guide.py");
        fs::write(&program, page.program("python")?)?;
        let python = self.shared.join(format!("python-{}/bin/python", USUAL[0]));
        self.script("python", guide::NAME, &[&python, &program])?;
        self.typescript_program(USUAL[0], guide::NAME, page.program("typescript")?)?;
        let program = page.program("go")?.to_owned();
        self.go_program(USUAL[0], guide::NAME, &[("main.go", program)])?;
        let package = self.programs.join("rust-guide.d");
        let from = self.sources.join("rust").join(USUAL[0]);
        guide::rust_package(&package, &from, page.program("rust")?)?;
        self.rust_program(&package.join("Cargo.toml"), guide::NAME, guide::RUST_PROGRAM)
    }

    /// A file of the sources.
    fn read(&self, name: &str) -> Result<String> {
        let path = self.sources.join(name);
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    }

    /// Writes the executable of a language and version.
    fn script(&self, language: &str, version: &str, words: &[&Path]) -> Result<()> {
        let path = self.programs.join(format!("{language}-{version}"));
        let words: Vec<String> = words.iter().map(|word| format!("'{}'", word.display())).collect();
        fs::write(&path, format!("#!/bin/sh\nexec {} \"$@\"\n", words.join(" ")))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        Ok(())
    }
}

/// Fills a folder unless that was done before for the same text.
fn install(folder: &Path, wanted: &str, fill: impl Fn() -> Result<()>) -> Result<()> {
    let stamp = folder.join(STAMP);
    if fs::read_to_string(&stamp).is_ok_and(|done| done == wanted) {
        return Ok(());
    }
    let _ = fs::remove_file(&stamp);
    println!("installing into {}", folder.display());
    retried(fill)?;
    fs::write(&stamp, wanted)?;
    Ok(())
}

fn retried(attempt: impl Fn() -> Result<()>) -> Result<()> {
    for pause in PAUSES {
        match attempt() {
            Ok(()) => return Ok(()),
            Err(error) => println!("{error:#}; trying again in {pause} s"),
        }
        std::thread::sleep(Duration::from_secs(pause));
    }
    attempt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn a_folder_is_filled_once_for_the_same_text() {
        let folder = std::env::temp_dir().join(format!("clients-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let filled = Cell::new(0);
        let mut expected = 0;
        for (text, fills) in [("one", 1), ("one", 0), ("two", 1), ("two", 0)] {
            install(&folder, text, || {
                filled.set(filled.get() + 1);
                Ok(())
            })
            .unwrap();
            expected += fills;
            assert_eq!(filled.get(), expected, "{text}");
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
