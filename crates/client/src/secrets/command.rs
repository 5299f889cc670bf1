//! Secrets that a command prints, such as a password manager.

use protocol::Error;
use protocol::attach::MAX_SECRET_BYTES;
use std::path::Path;
use std::process::Stdio;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;

/// How much of what a failed command says is shown.
const MAX_SAID: u64 = 400;

/// Standard output of a line of shell. The command is killed when nobody waits any more.
pub(super) async fn output(line: &str, workdir: &Path) -> Result<Vec<u8>, Error> {
    let failed = |reason: String| {
        Error::user(format!("failed to run secret command: {}", reason.trim_end()))
    };
    let mut command = Command::new("sh");
    command.args(["-c", line]).current_dir(workdir).kill_on_drop(true);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (secret, said, status) = tokio::join!(
        beginning(stdout, MAX_SECRET_BYTES as u64 + 1),
        beginning(stderr, MAX_SAID),
        child.wait()
    );
    let status = status.map_err(|error| failed(error.to_string()))?;
    if !status.success() {
        let said = String::from_utf8_lossy(&said).into_owned();
        let separator = if said.trim().is_empty() { "" } else { ": " };
        return Err(failed(format!("{status}{separator}{}", said.trim())));
    }
    Ok(secret)
}

/// The beginning of a stream, which is read to its end so that nobody is stuck writing to it.
async fn beginning(stream: Option<impl AsyncRead + Unpin>, limit: u64) -> Vec<u8> {
    let Some(mut stream) = stream else { return vec![] };
    let mut bytes = vec![];
    // A stream that breaks off shows in how the command ends.
    let _ = (&mut stream).take(limit).read_to_end(&mut bytes).await;
    let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
    bytes
}
