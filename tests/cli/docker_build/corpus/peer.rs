//! [`Peer`]: `buildah`, which made the listings.

use super::case::Case;
use super::listing::Listing;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use testkit::State;

/// Another builder with a storage of its own.
pub(super) struct Peer {
    folder: PathBuf,
}

impl Peer {
    /// One that finds the base images in a registry.
    pub(super) fn new(state: &State, registry: &str) -> Self {
        let folder = state.workdir().join("peer");
        std::fs::create_dir_all(&folder).unwrap();
        let registries = format!(
            "unqualified-search-registries = [\"docker.io\"]\n[[registry]]\nprefix = \"docker.io\"\nlocation = \"{registry}\"\ninsecure = true\n"
        );
        std::fs::write(folder.join("registries.conf"), registries).unwrap();
        std::fs::write(
            folder.join("policy.json"),
            r#"{"default": [{"type": "insecureAcceptAnything"}]}"#,
        )
        .unwrap();
        Self { folder }
    }

    /// Builds a case, and lists what came of it.
    pub(super) fn build(&self, case: &Case) -> Result<Listing, String> {
        let context = self.folder.join("contexts").join(&case.name);
        case.write_to(&context);
        let mut dockerfile = context.join(case.dockerfile.as_deref().unwrap_or("Dockerfile"));
        if let Some(text) = case.for_peer() {
            dockerfile = self.folder.join(format!("{}.Dockerfile", case.name));
            std::fs::write(&dockerfile, text).unwrap();
            // What it names is said by those words.
            let _ = std::fs::remove_file(context.join(".dockerignore"));
        }
        let mut words =
            vec!["bud".to_owned(), "--isolation=chroot".into(), "--format=docker".into()];
        words.extend([
            "--layers=false".to_owned(),
            "--quiet".into(),
            "--tag".into(),
            case.name.clone(),
        ]);
        words.extend([
            "--signature-policy".to_owned(),
            self.folder.join("policy.json").display().to_string(),
        ]);
        words.extend(["--file".to_owned(), dockerfile.display().to_string()]);
        words.extend(
            case.arguments.iter().map(|(name, value)| format!("--build-arg={name}={value}")),
        );
        for (name, text) in &case.secrets {
            let path = self.folder.join(format!("secret-{name}"));
            std::fs::write(&path, text).unwrap();
            words.push(format!("--secret=id={name},src={}", path.display()));
        }
        words.extend(case.target.iter().map(|target| format!("--target={target}")));
        words.push(context.display().to_string());
        self.run(&words)?;
        let container = self.run(&["from".into(), "--pull-never".into(), case.name.clone()])?;
        let root = self.run(&["mount".to_owned(), container.clone()])?;
        let archive = self.folder.join("rootfs.tar");
        archive_of(Path::new(&root), &archive);
        let inspected =
            self.run(&["inspect".to_owned(), "--type=image".into(), case.name.clone()])?;
        let inspected: Value = serde_json::from_str(&inspected).unwrap();
        self.run(&["rm".to_owned(), container])?;
        self.run(&["rmi".to_owned(), case.name.clone()])?;
        Ok(Listing::new(&archive, &inspected["Docker"]["config"]))
    }

    fn run(&self, words: &[String]) -> Result<String, String> {
        let mut command = Command::new("buildah");
        command.args(["--storage-driver", "vfs"]);
        command
            .arg("--root")
            .arg(self.folder.join("storage"))
            .arg("--runroot")
            .arg(self.folder.join("run"));
        command.args(words).env("CONTAINERS_REGISTRIES_CONF", self.folder.join("registries.conf"));
        let output = command.output().expect("`buildah` is installed: `cargo xtask setup bench`");
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        match output.status.success() {
            true => Ok(text),
            false => Err(format!("{words:?}: {text}{}", String::from_utf8_lossy(&output.stderr))),
        }
    }
}

fn archive_of(root: &Path, archive: &Path) {
    let mut tar = Command::new("tar");
    tar.args(["--numeric-owner", "--sort=name", "-cf"]).arg(archive).arg("-C").arg(root).arg(".");
    assert!(tar.status().unwrap().success(), "{}", root.display());
}
