//! Directories that a client hands over.

use super::*;
use protocol::attach::{OPEN_PATH, OpenReply, OpenRequest, Writing};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use std::fs::File;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::AsFd;

fn reply(handed: bool) -> Vec<u8> {
    let path = "/there".into();
    let reply = OpenReply { handed, path, made: true, owner: (1, 2), ignores: None };
    serde_json::to_vec(&reply).unwrap()
}

/// Sends one byte, with a descriptor of `/proc` if asked for, on a connection with the token that the
/// client was asked with.
async fn hand_over(world: &mut World, with_descriptor: bool) {
    let (path, _, body) = world.asked.recv().await.unwrap();
    assert_eq!(path, OPEN_PATH);
    let asked: OpenRequest = serde_json::from_slice(&body).unwrap();
    let (ours, theirs) = UnixStream::pair().unwrap();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let directory = File::open("/proc").unwrap();
    let descriptors = [directory.as_fd()];
    if with_descriptor {
        assert!(control.push(SendAncillaryMessage::ScmRights(&descriptors)));
    }
    sendmsg(theirs.as_fd(), &[IoSlice::new(&[0])], &mut control, SendFlags::NOSIGNAL).unwrap();
    world.host.receive(BufReader::new(ours.into()), &asked.token).await.unwrap();
    let again = UnixStream::pair().unwrap().0;
    assert!(world.host.receive(BufReader::new(again.into()), &asked.token).await.is_err());
}

#[tokio::test]
async fn a_directory_arrives_with_what_the_client_says_of_it() {
    let mut world = World::new(StatusCode::OK, reply(true));
    let host = world.host.clone();
    let open = host.open("p".into(), OpenFor::Write(Writing::Directory { wipe: false }));
    let (handed, ()) = tokio::join!(open, hand_over(&mut world, true));
    let handed = handed.unwrap().unwrap();
    assert_eq!((handed.path.as_str(), handed.owner, handed.made), ("/there", (1, 2), true));
    let status = rustix::fs::openat(
        &handed.directory,
        "self/status",
        rustix::fs::OFlags::RDONLY,
        rustix::fs::Mode::empty(),
    );
    assert!(status.is_ok());
}

#[tokio::test]
async fn a_byte_without_a_descriptor_means_the_stream() {
    let mut world = World::new(StatusCode::OK, reply(true));
    let host = world.host.clone();
    let open = host.open("p".into(), OpenFor::Read { gitignore: false });
    let (handed, ()) = tokio::join!(open, hand_over(&mut world, false));
    assert!(handed.unwrap().is_none());
}

#[tokio::test]
async fn a_client_that_hands_nothing_over_is_not_waited_for() {
    let world = World::new(StatusCode::OK, reply(false));
    let open = world.host.open("p".into(), OpenFor::Read { gitignore: false });
    assert!(open.await.unwrap().is_none());
    assert!(
        world
            .host
            .receive(BufReader::new(UnixStream::pair().unwrap().0.into()), "t")
            .await
            .is_err()
    );
}
