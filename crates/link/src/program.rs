//! [`Program`]: a program whose input and output are a connection, such as ssh.
//!
//! What it says on its standard error is kept, the end of it: when the connection fails, that is the
//! reason. The program ends with the connection.

use std::io;
use std::pin::Pin;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;

/// How much of what the program says is kept.
const KEPT_TALK: usize = 4 << 10;
/// How long a program that has ended the connection may take to say why.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// A program whose input and output are a connection.
#[derive(Debug)]
pub struct Program {
    input: ChildStdin,
    output: ChildStdout,
    talk: Arc<Mutex<Vec<u8>>>,
    listening: JoinHandle<()>,
    /// Killed when dropped.
    _child: Child,
}

impl Program {
    /// Starts the program.
    pub fn start(mut command: Command) -> io::Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.kill_on_drop(true).spawn()?;
        let missing = || io::Error::other("the program has no streams");
        let input = child.stdin.take().ok_or_else(missing)?;
        let output = child.stdout.take().ok_or_else(missing)?;
        let errors = child.stderr.take().ok_or_else(missing)?;
        let talk = Arc::new(Mutex::default());
        // Ends with the program.
        let listening = tokio::spawn(listen(errors, talk.clone()));
        Ok(Self { input, output, talk, listening, _child: child })
    }

    /// What the program said last, once it has ended or has had its time to.
    pub async fn last_words(&mut self) -> String {
        // One that goes on running has nothing more to say.
        let _ = tokio::time::timeout(LAST_WORDS, &mut self.listening).await;
        let talk = self.talk.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&talk).trim().to_owned()
    }
}

async fn listen(mut errors: ChildStderr, talk: Arc<Mutex<Vec<u8>>>) {
    let mut bytes = [0; 1024];
    while let Ok(count @ 1..) = errors.read(&mut bytes).await {
        let mut talk = talk.lock().unwrap_or_else(PoisonError::into_inner);
        talk.extend_from_slice(&bytes[..count]);
        let surplus = talk.len().saturating_sub(KEPT_TALK);
        talk.drain(..surplus);
    }
}

impl AsyncRead for Program {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.output).poll_read(context, buffer)
    }
}

impl AsyncWrite for Program {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.input).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.input).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.input).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt;

    #[tokio::test]
    async fn a_program_is_a_connection_and_its_talk_is_kept() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo reason >&2; head -c 5; exit 1"]);
        let mut program = Program::start(command).unwrap();
        program.write_all(b"hello").await.unwrap();
        let mut answer = String::new();
        program.read_to_string(&mut answer).await.unwrap();
        assert_eq!(answer, "hello");
        assert_eq!(program.last_words().await, "reason");
    }
}
