//! Images in the store of this machine's container program: docker, podman or nerdctl, whichever answers
//! first. They travel as archives, on the program's standard streams.

use crate::session::Body;
use bytes::Bytes;
use futures::stream;
use http::Response;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use protocol::Error;
use protocol::attach::ImageRequest;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdout, Command};

/// Programs that keep images, in the order in which they are asked.
const PROGRAMS: [&str; 3] = ["docker", "podman", "nerdctl"];
/// Most bytes that are taken from a program at once.
const PIECE: usize = 256 << 10;
/// How much of what a program says is repeated.
const SAID: usize = 400;

/// Has the program keep an image that comes as an archive.
pub(crate) async fn load(
    search_path: &OsStr,
    request: ImageRequest,
    mut archive: Incoming,
) -> Result<(), Error> {
    let program = find(search_path).await?;
    let mut child = spawn(&program, &["load"], Stdio::piped())?;
    let mut stdin = child.stdin.take().ok_or_else(|| Error::internal("a pipe is missing"))?;
    let feeding = async {
        while let Some(frame) = archive.frame().await {
            let broken = |error| Error::environment(format!("the image did not arrive: {error}"));
            let Ok(bytes) = frame.map_err(broken)?.into_data() else { continue };
            // A program that has stopped reading says why.
            if stdin.write_all(&bytes).await.is_err() {
                break;
            }
        }
        drop(stdin);
        Ok::<_, Error>(())
    };
    let (fed, ended) = tokio::join!(feeding, child.wait_with_output());
    fed?;
    let said = checked(&program, "load", ended)?;
    let loaded = loaded(&said).ok_or_else(|| {
        let program = program.display();
        Error::environment(format!(
            "`{program} load` does not say what it loaded: {}",
            short(&said)
        ))
    })?;
    let tagged = spawn(&program, &["tag", loaded, &request.name], Stdio::null())?;
    checked(&program, "tag", tagged.wait_with_output().await).map(drop)
}

/// An image of the program as an archive.
pub(crate) async fn save(
    search_path: &OsStr,
    request: ImageRequest,
) -> Result<Response<Body>, Error> {
    if request.name.is_empty() || request.name.starts_with('-') {
        return Err(Error::user(format!("`{}` is no name of an image", request.name)));
    }
    let program = find(search_path).await?;
    let mut child = spawn(&program, &["save", &request.name], Stdio::null())?;
    let mut stdout = child.stdout.take().ok_or_else(|| Error::internal("a pipe is missing"))?;
    // Whether there is such an image shows in the first bytes.
    let Some(first) = piece(&mut stdout).await else {
        checked(&program, "save", child.wait_with_output().await)?;
        return Err(Error::environment(format!("`{}` saved nothing", program.display())));
    };
    let rest = Some(Saving { program, child, stdout, first: Some(first) });
    let pieces = stream::unfold(rest, |saving| async move {
        let mut saving = saving?;
        let next = match saving.first.take() {
            Some(first) => Some(first),
            None => piece(&mut saving.stdout).await,
        };
        match next {
            Some(bytes) => Some((Ok(Frame::data(bytes)), Some(saving))),
            None => match checked(&saving.program, "save", saving.child.wait_with_output().await) {
                Ok(_) => None,
                Err(error) => Some((Err(error.message.into()), None)),
            },
        }
    });
    Ok(Response::new(StreamBody::new(pieces).boxed_unsync()))
}

/// A program that writes an archive.
struct Saving {
    program: PathBuf,
    child: Child,
    stdout: ChildStdout,
    first: Option<Bytes>,
}

async fn piece(stdout: &mut ChildStdout) -> Option<Bytes> {
    let mut piece = Vec::with_capacity(PIECE);
    match stdout.read_buf(&mut piece).await {
        // What broke shows in how the program ends.
        Ok(0) | Err(_) => None,
        Ok(_) => Some(piece.into()),
    }
}

/// The first program that answers.
async fn find(search_path: &OsStr) -> Result<PathBuf, Error> {
    let mut silent = vec![];
    for name in PROGRAMS {
        let places = std::env::split_paths(search_path).map(|folder| folder.join(name));
        let Some(program) = places.into_iter().find(|place| place.is_file()) else { continue };
        let asked = spawn(&program, &["version"], Stdio::null())?;
        match checked(&program, "version", asked.wait_with_output().await) {
            Ok(_) => return Ok(program),
            Err(error) => silent.push(error.message),
        }
    }
    let hint = "install docker or podman there, or use `export` and `publish`";
    Err(match &silent[..] {
        [] => {
            Error::user("there is no container program that keeps images where this is called from")
        }
        said => Error::environment(format!("no container program answers: {}", said.join("; "))),
    }
    .with_hint(hint))
}

fn spawn(program: &Path, args: &[&str], stdin: Stdio) -> Result<Child, Error> {
    let mut command = Command::new(program);
    command.args(args).stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
    let spawned = command.kill_on_drop(true).spawn();
    spawned.map_err(|error| Error::environment(format!("`{}`: {error}", program.display())))
}

/// What a program printed, if it ended well.
fn checked(program: &Path, word: &str, ended: std::io::Result<Output>) -> Result<String, Error> {
    let line = format!("`{} {word}`", program.display());
    let ended = ended.map_err(|error| Error::environment(format!("{line}: {error}")))?;
    if !ended.status.success() {
        let said = String::from_utf8_lossy(&ended.stderr);
        let message = format!("{line} failed ({}): {}", ended.status, short(&said));
        return Err(Error::environment(message));
    }
    Ok(String::from_utf8_lossy(&ended.stdout).into_owned())
}

/// What `load` says that it loaded: a name or an id.
fn loaded(said: &str) -> Option<&str> {
    let last = said.lines().rev().find(|line| line.starts_with("Loaded image"))?;
    last.split_once(": ").map(|(_, loaded)| loaded.trim())
}

fn short(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(SAID) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_loaded_is_read() {
        for (said, expected) in [
            ("Loaded image ID: sha256:0a\n", Some("sha256:0a")),
            ("Getting image\nLoaded image: localhost/x:1\n", Some("localhost/x:1")),
            ("nothing", None),
        ] {
            assert_eq!(loaded(said), expected);
        }
    }

    #[tokio::test]
    async fn programs_that_do_not_answer_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let none = find(folder.path().as_os_str()).await.unwrap_err();
        assert!(none.message.contains("no container program that keeps images"), "{none}");
        let program = folder.path().join("docker");
        testkit::write_program(&program, "#!/bin/sh\necho no daemon >&2\nexit 1\n");
        let silent = find(folder.path().as_os_str()).await.unwrap_err();
        assert!(silent.message.contains("no daemon"), "{silent}");
    }
}
