//! What this machine's own git would log in with at a server: its credential helpers, then the user's `.netrc`.
//!
//! Nobody is asked anything: whoever wants to be asked logs in with git before.

mod netrc;

use protocol::Error;
use protocol::attach::{GitCredential, GitCredentialReply, GitCredentialRequest};
use std::path::Path;
use std::process::Stdio;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// Longest `.netrc` that is read.
const MAX_NETRC: u64 = 1 << 20;

/// Finds the credentials for a server.
pub(crate) async fn credential(
    request: GitCredentialRequest,
    workdir: &Path,
    home: &Path,
) -> Result<GitCredentialReply, Error> {
    let fields = [&request.protocol, &request.host, &request.path];
    let user = request.username.iter();
    if fields.into_iter().chain(user).any(|text| text.chars().any(char::is_control)) {
        return Err(Error::user("the address of a git server has odd characters in it"));
    }
    if let Some(credential) = of_helpers(&request, workdir).await {
        return Ok(GitCredentialReply { credential: Some(credential) });
    }
    let host = request.host.split(':').next().unwrap_or_default().to_owned();
    let path = home.join(".netrc");
    let read = tokio::task::spawn_blocking(move || {
        let small = std::fs::metadata(&path).is_ok_and(|found| found.len() <= MAX_NETRC);
        small.then(|| std::fs::read_to_string(&path).ok()).flatten()
    });
    let text = read.await.ok().flatten().unwrap_or_default();
    Ok(GitCredentialReply { credential: netrc::find(&text, &host, request.username.as_deref()) })
}

/// What `git credential fill` says; none when git is not here or knows nothing.
async fn of_helpers(request: &GitCredentialRequest, workdir: &Path) -> Option<GitCredential> {
    let GitCredentialRequest { protocol, host, path, username } = request;
    let mut input = format!("protocol={protocol}\nhost={host}\npath={path}\n");
    if let Some(username) = username {
        input += &format!("username={username}\n");
    }
    input += "\n";
    let mut command = Command::new("git");
    command.args(["-c", "core.askPass=", "credential", "fill"]).current_dir(workdir);
    command.env("GIT_TERMINAL_PROMPT", "0").env("GIT_ASKPASS", "").env("SSH_ASKPASS", "");
    command.env("GCM_INTERACTIVE", "never").kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let mut stdin = child.stdin.take()?;
    stdin.write_all(input.as_bytes()).await.ok()?;
    drop(stdin);
    let output = child.wait_with_output().await.ok()?;
    if !output.status.success() {
        return None;
    }
    parse(&String::from_utf8(output.stdout).ok()?)
}

/// User and password in what git says.
fn parse(said: &str) -> Option<GitCredential> {
    let value = |name: &str| {
        let lines = said.lines().filter_map(|line| line.split_once('='));
        lines.filter(|(key, _)| *key == name).map(|(_, value)| value.to_owned()).next_back()
    };
    Some(GitCredential { username: value("username")?, password: value("password")? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn request(host: &str) -> GitCredentialRequest {
        GitCredentialRequest {
            protocol: "https".into(),
            host: host.into(),
            path: "o/r".into(),
            username: None,
        }
    }

    #[tokio::test]
    async fn helpers_of_the_repository_one_is_in_are_asked() {
        let folder = tempfile::tempdir().unwrap();
        let mut init = std::process::Command::new("git");
        assert!(init.args(["init", "-q"]).current_dir(folder.path()).status().unwrap().success());
        let config = "[credential \"https://one.example\"]\n\thelper = \"!f() { \
                      echo username=u; echo password=p=w; }; f\"\n";
        fs::write(folder.path().join(".git/config"), config).unwrap();
        let found = credential(request("one.example"), folder.path(), folder.path()).await.unwrap();
        let expect = GitCredential { username: "u".into(), password: "p=w".into() };
        assert_eq!(found.credential, Some(expect));
        let none = credential(request("two.example"), folder.path(), folder.path()).await.unwrap();
        assert_eq!(none.credential, None);
        fs::write(folder.path().join(".netrc"), "machine two.example login l password s").unwrap();
        let found = credential(request("two.example:8443"), folder.path(), folder.path()).await;
        assert_eq!(found.unwrap().credential.unwrap().username, "l");
        assert!(credential(request("a\nb"), folder.path(), folder.path()).await.is_err());
    }
}
