//! Writing a file of the host so that nobody ever sees half of it.
//!
//! The bytes go to a file with a name of its own beside the target, which is renamed over the target
//! when everything has arrived. Whatever goes wrong before that leaves the target as it was.

use super::{HostPaths, named, text};
use http::Request;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use protocol::Error;
use protocol::attach::{FrameDecoder, FrameKind, WRITE_HEADER, WriteReply, WriteRequest};
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tokio::fs::{File, OpenOptions};
use tokio::io::AsyncWriteExt;

/// Takes the frames of one file and says where it is now.
pub(super) async fn file(
    host: &HostPaths,
    request: Request<Incoming>,
) -> Result<WriteReply, Error> {
    let header = request.headers().get(WRITE_HEADER).map(|value| value.as_bytes());
    let asked: WriteRequest = serde_json::from_slice(header.unwrap_or_default())
        .map_err(|error| Error::internal(format!("a write without a readable head: {error}")))?;
    let typed = asked.path.as_str();
    let target = target(host, &asked).await?;
    let reply = WriteReply { path: text(&target)? };
    let mut unfinished = Unfinished::create(&target).await.map_err(|error| named(typed, &error))?;
    receive(request.into_body(), &mut unfinished.file, typed).await?;
    unfinished.finish(&target, asked.mode).await.map_err(|error| named(typed, &error))?;
    Ok(reply)
}

/// Where the file goes: through links, and into a directory under its own name if one was given.
async fn target(host: &HostPaths, asked: &WriteRequest) -> Result<PathBuf, Error> {
    let typed = asked.path.as_str();
    let path = host.resolve(typed)?;
    let path = tokio::fs::canonicalize(&path).await.unwrap_or(path);
    let kind = tokio::fs::metadata(&path).await.map(|metadata| metadata.file_type());
    match kind {
        Ok(kind) if kind.is_dir() && asked.name_in_directory.is_empty() => {
            let message = format!("path {typed} is a directory, not a file");
            Err(Error::user(message).with_hint("name the file to write inside it"))
        }
        Ok(kind) if kind.is_dir() => Ok(path.join(&asked.name_in_directory)),
        Ok(kind) if !kind.is_file() => {
            Err(Error::user(format!("{typed}: is not a regular file and is not replaced")))
        }
        Err(_) if typed.ends_with('/') && !asked.name_in_directory.is_empty() => {
            Ok(path.join(&asked.name_in_directory))
        }
        _ => Ok(path),
    }
}

async fn receive(mut body: Incoming, file: &mut File, typed: &str) -> Result<(), Error> {
    let broken = |what: String| Error::internal(format!("{typed}: cannot be received: {what}"));
    let mut decoder = FrameDecoder::default();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|error| broken(error.to_string()))?.into_data() else {
            continue;
        };
        decoder.push(&data);
        while let Some((kind, payload)) =
            decoder.next_frame().map_err(|error| broken(error.to_string()))?
        {
            match kind {
                FrameKind::Data => {
                    file.write_all(payload).await.map_err(|error| named(typed, &error))?;
                }
                FrameKind::EndOfFile | FrameKind::End => return Ok(()),
                other => return Err(broken(format!("a frame of kind {other:?} came"))),
            }
        }
    }
    Err(broken("it ended too early".into()))
}

/// A file that is not complete; removed when dropped.
struct Unfinished {
    file: File,
    path: PathBuf,
    done: bool,
}

impl Unfinished {
    async fn create(target: &Path) -> io::Result<Self> {
        let directory = target.parent().unwrap_or(Path::new("/"));
        tokio::fs::create_dir_all(directory).await?;
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        // Long names leave no room for an addition.
        let start: String = name.chars().take(32).collect();
        let path = directory.join(format!(".{start}.{:016x}", u64::from_le_bytes(random)));
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).await?;
        Ok(Self { file, path, done: false })
    }

    async fn finish(mut self, target: &Path, mode: u32) -> io::Result<()> {
        self.file.flush().await?;
        self.file.set_permissions(Permissions::from_mode(mode & 0o7777)).await?;
        tokio::fs::rename(&self.path, target).await?;
        self.done = true;
        Ok(())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.done
            && let Err(error) = std::fs::remove_file(&self.path)
        {
            tracing::warn!(%error, path = %self.path.display(), "an unfinished file is left");
        }
    }
}
