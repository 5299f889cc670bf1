//! Directories that are handed over, to an engine of a few lines.

use super::*;
use protocol::attach::{IgnoreFile, OpenFor, OpenReply, OpenRequest};
use protocol::session::{Greeting, Hello, Purpose, Welcome};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt};
use tokio::net::UnixListener;

async fn open(served: &mut Served, path: &str, purpose: OpenFor) -> Result<OpenReply, Error> {
    let request = OpenRequest { path: path.into(), purpose, token: "token".into() };
    let body = full(serde_json::to_vec(&request).unwrap().into());
    let (status, bytes) = served.post(Request::post(OPEN_PATH).body(body).unwrap()).await;
    match status {
        StatusCode::OK => Ok(serde_json::from_slice(&bytes).unwrap()),
        _ => Err(serde_json::from_slice(&bytes).unwrap()),
    }
}

/// Takes one connection of the client, and the purpose and the descriptor it brings.
async fn take(listener: UnixListener) -> (Purpose, OwnedFd) {
    let mut connection = BufReader::new(listener.accept().await.unwrap().0);
    let mut line = String::new();
    connection.read_line(&mut line).await.unwrap();
    let hello: Hello = serde_json::from_str(&line).unwrap();
    let welcome = Welcome { version: "1".into(), session: String::new(), notices: vec![] };
    let welcome = serde_json::to_string(&Greeting::Welcome(welcome)).unwrap() + "\n";
    connection.write_all(welcome.as_bytes()).await.unwrap();
    let stream = connection.into_inner();
    stream.readable().await.unwrap();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let flags = RecvFlags::CMSG_CLOEXEC;
    recvmsg(stream.as_fd(), &mut [IoSliceMut::new(&mut byte)], &mut control, flags).unwrap();
    let message = control.drain().next().expect("a descriptor came");
    let RecvAncillaryMessage::ScmRights(mut descriptors) = message else {
        panic!("something else came");
    };
    (hello.purpose, descriptors.next().unwrap())
}

#[tokio::test]
async fn a_directory_is_handed_over_open() {
    let mut served = Served::new().await;
    served.write("dir/file", "");
    let listener = UnixListener::bind(served.dir.path().join("engine.sock")).unwrap();
    let taking = tokio::spawn(take(listener));
    let reply = open(&mut served, "dir", OpenFor::Read { gitignore: true }).await.unwrap();
    let path = served.work().join("dir").canonicalize().unwrap();
    assert!(reply.handed);
    assert_eq!(reply.path, path.to_str().unwrap());
    assert_eq!(reply.owner.0, rustix::process::geteuid().as_raw());
    assert_eq!(reply.ignores, None);
    let (purpose, directory) = taking.await.unwrap();
    let expected = Purpose::HandOver { session: "session".into(), token: "token".into() };
    assert_eq!(purpose, expected);
    let metadata = fs::File::from(directory).metadata().unwrap();
    assert_eq!(
        std::os::unix::fs::MetadataExt::ino(&metadata),
        std::os::unix::fs::MetadataExt::ino(&path.metadata().unwrap())
    );
}

#[tokio::test]
async fn without_an_engine_at_the_socket_the_stream_is_left() {
    let mut served = Served::new().await;
    let reply = open(&mut served, "new/dir", OpenFor::Write(Writing::Directory { wipe: false }))
        .await
        .unwrap();
    assert!(!reply.handed);
    assert!(!served.work().join("new/dir").exists(), "the stream makes it");
}

#[tokio::test]
async fn what_cannot_be_opened_is_named() {
    let mut served = Served::new().await;
    served.write("file", "");
    for (path, message) in [
        ("missing", "missing: no such file or directory"),
        ("file", "path file is a file, not a directory"),
    ] {
        let error = open(&mut served, path, OpenFor::Read { gitignore: false }).await.unwrap_err();
        assert_eq!(error.message, message);
    }
}

#[tokio::test]
async fn ignore_files_above_come_along() {
    let mut served = Served::new().await;
    served.write(".git/HEAD", "");
    served.write(".gitignore", "*.o\nout\n");
    served.write("a/.gitignore", "!x.o\n");
    served.write("a/b/.gitignore", "own");
    served.write("out/x", "");
    let read = OpenFor::Read { gitignore: true };
    let reply = open(&mut served, "a/b", read.clone()).await.unwrap();
    let expected = [
        IgnoreFile { below: "a/b".into(), text: "*.o\nout\n".into() },
        IgnoreFile { below: "b".into(), text: "!x.o\n".into() },
    ];
    assert_eq!(reply.ignores.unwrap(), expected);
    let error = open(&mut served, "out", read).await.unwrap_err();
    assert_eq!(error.message, "out: no such file or directory");
}
