//! Programs that know credentials: `docker-credential-<name> get`, with the registry on its input
//! and the credential on its output.

use super::Credential;
use crate::Error;
use serde::Deserialize;
use std::ffi::OsString;
use std::process::{Output, Stdio};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// What programs of the field call the default registry.
const DEFAULT_SERVER: &str = "https://index.docker.io/v1/";

/// How a program says that it has no credential.
const NOT_FOUND: &str = "credentials not found";

/// The name of a user in whose place there is a token.
const TOKEN_USER: &str = "<token>";

/// One program.
#[derive(Clone, Debug)]
pub(super) struct Helper {
    pub(super) name: String,
    pub(super) search_path: Option<OsString>,
    pub(super) time: Duration,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    username: String,
    secret: String,
}

impl Helper {
    /// Asks for the credential of a registry.
    pub(super) async fn get(&self, registry: &str) -> Result<Option<Credential>, Error> {
        let program = self.program(registry)?;
        let fail = |reason: String| Error::Credentials {
            registry: registry.to_owned(),
            reason: format!("`{program}`: {reason}"),
        };
        let server = if registry == "docker.io" { DEFAULT_SERVER } else { registry };
        let run = tokio::time::timeout(self.time, self.run(&program, server));
        let output = match run.await {
            Ok(output) => output.map_err(|error| fail(error.to_string()))?,
            Err(_) => {
                return Err(fail(format!("no answer within {} s", self.time.as_secs_f64())));
            }
        };
        if !output.status.success() {
            let said = [output.stdout, output.stderr].concat();
            let said = String::from_utf8_lossy(&said);
            return match said.contains(NOT_FOUND) {
                true => Ok(None),
                false => Err(fail(line(&said))),
            };
        }
        let answer: Answer = serde_json::from_slice(&output.stdout)
            .map_err(|_| fail("its answer is not in the form of credential helpers".to_owned()))?;
        Ok(credential(answer))
    }

    /// The dropped future of a run kills the program.
    async fn run(&self, program: &str, server: &str) -> std::io::Result<Output> {
        let mut command = Command::new(program);
        command.arg("get").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.kill_on_drop(true);
        if let Some(path) = &self.search_path {
            command.env("PATH", path);
        }
        let mut child = command.spawn()?;
        if let Some(mut input) = child.stdin.take() {
            // Who does not read its input may still have an answer.
            let _ = input.write_all(server.as_bytes()).await;
        }
        child.wait_with_output().await
    }

    /// A name, never a path: a configuration cannot point at any program.
    fn program(&self, registry: &str) -> Result<String, Error> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        match self.name.chars().all(is_plain) && !self.name.is_empty() {
            true => Ok(format!("docker-credential-{}", self.name)),
            false => Err(Error::Credentials {
                registry: registry.to_owned(),
                reason: format!("`{}` is no name of a credential helper", self.name),
            }),
        }
    }
}

fn credential(answer: Answer) -> Option<Credential> {
    match answer {
        Answer { username, secret } if username.is_empty() && secret.is_empty() => None,
        Answer { username, secret } if username == TOKEN_USER => {
            Some(Credential::IdentityToken(secret))
        }
        Answer { username, secret } => Some(Credential::Password { username, password: secret }),
    }
}

/// The first line of what a program says.
fn line(text: &str) -> String {
    let first = text.lines().map(str::trim).find(|line| !line.is_empty());
    first.unwrap_or("it failed without a word").chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// A helper that is a shell script, in a folder of its own.
    fn helper(folder: &Path, script: &str, time: Duration) -> Helper {
        let path = folder.join("docker-credential-test");
        let text = folder.join("text");
        std::fs::write(&text, format!("#!/bin/sh\n{script}\n")).unwrap();
        // Another process writes it: a program that is open for writing here, and so in whatever another test
        // starts at this moment, cannot be run.
        let mut install = std::process::Command::new("install");
        assert!(install.args(["-m", "755"]).arg(&text).arg(&path).status().unwrap().success());
        let search = format!("{}:/usr/bin:/bin", folder.display());
        Helper { name: "test".to_owned(), search_path: Some(search.into()), time }
    }

    async fn ask(script: &str, registry: &str) -> Result<Option<Credential>, Error> {
        let folder = tempfile::tempdir().unwrap();
        helper(folder.path(), script, Duration::from_secs(30)).get(registry).await
    }

    #[tokio::test]
    async fn a_helper_gets_the_registry_and_gives_a_credential() {
        let script = r#"read server; echo "{\"Username\":\"$1 $server\",\"Secret\":\"s\"}""#;
        for (registry, username) in [
            ("localhost:5000", "get localhost:5000"),
            ("docker.io", "get https://index.docker.io/v1/"),
        ] {
            let found = ask(script, registry).await.unwrap().unwrap();
            let (username, password) = (username.to_owned(), "s".to_owned());
            assert_eq!(found, Credential::Password { username, password });
        }
        let token = r#"echo '{"Username":"<token>","Secret":"t"}'"#;
        let found = ask(token, "a.example").await.unwrap().unwrap();
        assert_eq!(found, Credential::IdentityToken("t".to_owned()));
    }

    #[tokio::test]
    async fn a_helper_without_a_credential_is_no_error() {
        let script = "echo credentials not found in native keychain; exit 1";
        assert!(ask(script, "a.example").await.unwrap().is_none());
    }

    #[tokio::test]
    async fn a_helper_that_fails_is_named() {
        for (script, said) in [
            ("echo the key ring is locked >&2; exit 1", "the key ring is locked"),
            ("exit 3", "without a word"),
            ("echo nonsense", "not in the form"),
        ] {
            let message = ask(script, "a.example").await.unwrap_err().to_string();
            assert!(message.contains(said), "{message}");
            assert!(message.contains("docker-credential-test"), "{message}");
            assert!(message.contains("a.example"), "{message}");
        }
    }

    #[tokio::test]
    async fn a_helper_that_hangs_is_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let helper = helper(folder.path(), "exec sleep 3600", Duration::from_millis(50));
        let message = helper.get("a.example").await.unwrap_err().to_string();
        assert!(message.contains("no answer within"), "{message}");
    }

    #[tokio::test]
    async fn a_path_is_no_name_of_a_helper() {
        for name in ["", "../x", "a/b", "a b"] {
            let time = Duration::from_secs(1);
            let helper = Helper { name: name.to_owned(), search_path: None, time };
            assert!(helper.get("a.example").await.is_err(), "{name}");
        }
    }

    #[tokio::test]
    async fn a_helper_that_is_missing_is_named() {
        let time = Duration::from_secs(1);
        let helper = Helper { name: "no-such-thing".to_owned(), search_path: None, time };
        let message = helper.get("a.example").await.unwrap_err().to_string();
        assert!(message.contains("docker-credential-no-such-thing"), "{message}");
    }
}
