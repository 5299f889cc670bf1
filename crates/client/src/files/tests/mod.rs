//! The files a client serves, asked for as an engine asks: over HTTP/2 on a socket pair.

mod attached;
mod fuzz;
mod handover;
mod terminal;
mod write;

use super::*;
use crate::session::empty;
use crate::task::Task;
use hyper::client::conn::http2 as http2_client;
use protocol::attach::{
    Entry, EntryKind, FindUpReply, FrameDecoder, FrameKind, Name, WRITE_HEADER, WriteReply,
    WriteRequest, Writing, frame,
};
use std::fs::{self, Permissions};
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use tempfile::TempDir;
use tokio::io::BufReader;
use tokio::net::UnixStream;

/// A client with a working directory and a home of its own, and the engine's end of its connection.
struct Served {
    dir: TempDir,
    sender: http2_client::SendRequest<Body>,
    _tasks: [Task; 2],
}

impl Served {
    async fn new() -> Self {
        Self::lending(Terminals::default()).await
    }

    /// One with a way to a terminal.
    async fn lending(terminals: Terminals) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (work, home) = (dir.path().join("work"), dir.path().join("home"));
        fs::create_dir(&work).unwrap();
        fs::create_dir(&home).unwrap();
        let settings = ClientSettings {
            workdir: work.to_str().unwrap().into(),
            home: home.to_str().unwrap().into(),
            ..ClientSettings::default()
        };
        let (ours, theirs) = UnixStream::pair().unwrap();
        let engine = Engine {
            route: Route::Socket(dir.path().join("engine.sock")),
            session: "session".into(),
            logins: Logins::default(),
            variables: EnvVariables::default(),
            terminals,
        };
        let server =
            Task::spawn(
                async move { serve(BufReader::new(theirs.into()), &settings, engine).await },
            );
        let (sender, driver) =
            http2_client::handshake(TokioExecutor::new(), TokioIo::new(ours)).await.unwrap();
        let driver = Task::spawn(async move { driver.await.unwrap() });
        Self { dir, sender, _tasks: [server, driver] }
    }

    fn work(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    fn write(&self, path: &str, contents: &str) {
        let path = self.work().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
    }

    async fn post(&mut self, request: Request<Body>) -> (StatusCode, Bytes) {
        let response = self.sender.send_request(request).await.unwrap();
        let status = response.status();
        (status, response.into_body().collect().await.unwrap().to_bytes())
    }

    async fn read(&mut self, request: &ReadRequest) -> Result<Vec<(Entry, String)>, Error> {
        let body = full(serde_json::to_vec(request).unwrap().into());
        let (status, bytes) = self.post(Request::post(READ_PATH).body(body).unwrap()).await;
        if status != StatusCode::OK {
            return Err(serde_json::from_slice(&bytes).unwrap());
        }
        decode(&bytes)
    }

    /// Paths that a read of the working directory gives.
    async fn listed(&mut self, include: &[&str], exclude: &[&str], gitignore: bool) -> Vec<String> {
        let request = ReadRequest {
            include: include.iter().map(|text| (*text).into()).collect(),
            exclude: exclude.iter().map(|text| (*text).into()).collect(),
            gitignore,
            ..directory(".")
        };
        let entries = self.read(&request).await.unwrap();
        entries
            .iter()
            .map(|(entry, _)| entry.path.to_string())
            .filter(|path| !path.is_empty())
            .collect()
    }

    async fn put(&mut self, path: &str, name: &str, frames: Vec<u8>) -> Result<WriteReply, Error> {
        self.send(path, Writing::File { name_in_directory: name.into() }, frames).await
    }

    async fn send(
        &mut self,
        path: &str,
        what: Writing,
        frames: Vec<u8>,
    ) -> Result<WriteReply, Error> {
        let asked = WriteRequest { path: path.into(), what };
        let request = Request::post(WRITE_PATH).header(WRITE_HEADER, asked.to_header());
        let (status, bytes) = self.post(request.body(full(frames.into())).unwrap()).await;
        match status {
            StatusCode::OK => Ok(serde_json::from_slice(&bytes).unwrap()),
            _ => Err(serde_json::from_slice(&bytes).unwrap()),
        }
    }

    async fn find_up(&mut self, name: &str) -> Result<Option<String>, Error> {
        let body = full(serde_json::to_vec(&FindUpRequest { name: name.into() }).unwrap().into());
        let (status, bytes) = self.post(Request::post(FIND_UP_PATH).body(body).unwrap()).await;
        match status {
            StatusCode::OK => Ok(serde_json::from_slice::<FindUpReply>(&bytes).unwrap().path),
            _ => Err(serde_json::from_slice(&bytes).unwrap()),
        }
    }
}

fn directory(path: &str) -> ReadRequest {
    ReadRequest {
        path: path.into(),
        directory: true,
        include: vec![],
        exclude: vec![],
        gitignore: false,
    }
}

fn file(path: &str) -> ReadRequest {
    ReadRequest { directory: false, ..directory(path) }
}

fn decode(bytes: &[u8]) -> Result<Vec<(Entry, String)>, Error> {
    let mut decoder = FrameDecoder::default();
    decoder.push(bytes);
    let mut entries: Vec<(Entry, String)> = vec![];
    while let Some((kind, payload)) = decoder.next_frame().unwrap() {
        match kind {
            FrameKind::Entry => {
                entries.push((serde_json::from_slice(payload).unwrap(), String::new()));
            }
            FrameKind::Data => {
                let text = std::str::from_utf8(payload).unwrap();
                entries.last_mut().unwrap().1.push_str(text);
            }
            FrameKind::Again => entries.last_mut().unwrap().1.clear(),
            FrameKind::EndOfFile => {}
            FrameKind::End => return Ok(entries),
            FrameKind::Failed => return Err(serde_json::from_slice(payload).unwrap()),
            FrameKind::Hole | FrameKind::Remove => panic!("a frame of a write"),
        }
    }
    panic!("the answer has no last frame");
}

fn name(name: &Name) -> &str {
    std::str::from_utf8(name.as_bytes()).unwrap()
}

fn frames(contents: &[u8]) -> Vec<u8> {
    let mut bytes = write::sent(&Entry { size: contents.len() as u64, ..write::file_entry("") });
    bytes.extend(contents.chunks(3).flat_map(|part| frame(FrameKind::Data, part)));
    bytes.extend(frame(FrameKind::EndOfFile, &[]));
    bytes.extend(frame(FrameKind::End, &[]));
    bytes
}

#[tokio::test]
async fn a_tree_comes_whole_and_in_order() {
    let mut served = Served::new().await;
    served.write("b/deep/x", "x");
    served.write("a.txt", "hello");
    fs::set_permissions(served.work().join("a.txt"), Permissions::from_mode(0o4751)).unwrap();
    fs::hard_link(served.work().join("a.txt"), served.work().join("b/again")).unwrap();
    symlink("../a.txt", served.work().join("b/link")).unwrap();
    symlink("/nowhere", served.work().join("dangling")).unwrap();
    fs::create_dir(served.work().join("empty")).unwrap();
    let entries = served.read(&directory(".")).await.unwrap();
    let shown: Vec<_> = entries
        .iter()
        .map(|(e, text)| (name(&e.path), e.kind, name(&e.target), text.as_str()))
        .collect();
    let expected = [
        ("", EntryKind::Directory, "", ""),
        ("a.txt", EntryKind::File, "", "hello"),
        ("b", EntryKind::Directory, "", ""),
        ("b/again", EntryKind::HardLink, "a.txt", ""),
        ("b/deep", EntryKind::Directory, "", ""),
        ("b/deep/x", EntryKind::File, "", "x"),
        ("b/link", EntryKind::Symlink, "../a.txt", ""),
        ("dangling", EntryKind::Symlink, "/nowhere", ""),
        ("empty", EntryKind::Directory, "", ""),
    ];
    assert_eq!(shown, expected);
    assert_eq!((entries[1].0.mode, entries[1].0.size), (0o4751, 5));
    let modified = fs::metadata(served.work().join("a.txt")).unwrap().modified().unwrap();
    let since = modified.duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos();
    assert_eq!(entries[1].0.modified as u128, since);
}

#[tokio::test]
async fn patterns_choose_and_bring_parents_only_where_needed() {
    let mut served = Served::new().await;
    for path in ["src/main.rs", "src/gen/out.rs", "docs/a.md", "docs/b.txt", "other/x"] {
        served.write(path, "");
    }
    for (include, exclude, expected) in [
        (&["**/*.rs"][..], &[][..], &["src", "src/gen", "src/gen/out.rs", "src/main.rs"][..]),
        (&["src"], &["src/gen"], &["src", "src/main.rs"]),
        (&["docs/*.md"], &[], &["docs", "docs/a.md"]),
        (&["nothing"], &[], &[]),
        (&[], &["src", "docs"], &["other", "other/x"]),
        (&["docs", "src"], &["*", "!docs/a.md"], &["docs", "docs/a.md"]),
    ] {
        let found = served.listed(include, exclude, false).await;
        assert_eq!(found, expected, "include {include:?} exclude {exclude:?}");
    }
}

#[tokio::test]
async fn gitignore_holds_inside_a_repository_only() {
    let mut served = Served::new().await;
    for (path, text) in [
        (".gitignore", "*.log\n/build\n!keep.log\n"),
        ("a.log", ""),
        ("keep.log", ""),
        ("build/x", ""),
        ("sub/.gitignore", "!b.log\nsecret\n"),
        ("sub/b.log", ""),
        ("sub/secret/x", ""),
        ("sub/build/x", ""),
    ] {
        served.write(path, text);
    }
    let all = served.listed(&[], &[], true).await;
    assert!(all.contains(&"a.log".to_owned()), "no repository, no rules: {all:?}");
    fs::create_dir(served.work().join(".git")).unwrap();
    let expected = [".git", "keep.log", "sub", "sub/b.log", "sub/build", "sub/build/x"];
    assert_eq!(served.listed(&[], &["**/.gitignore"], true).await, expected);
    // The rules of the directories above hold in a part of the repository as well.
    let entries = served.read(&ReadRequest { gitignore: true, ..directory("sub") }).await.unwrap();
    let paths: Vec<_> = entries.iter().map(|(entry, _)| name(&entry.path)).collect();
    assert_eq!(paths, ["", ".gitignore", "b.log", "build", "build/x"]);
    for ignored in ["build", "sub/secret"] {
        let request = ReadRequest { gitignore: true, ..directory(ignored) };
        let error = served.read(&request).await.unwrap_err();
        assert_eq!(error.message, format!("{ignored}: no such file or directory"));
    }
}

#[tokio::test]
async fn paths_start_at_the_working_directory_or_at_home() {
    let mut served = Served::new().await;
    served.write("x", "work");
    fs::write(served.dir.path().join("home/x"), "home").unwrap();
    fs::write(served.dir.path().join("x"), "above").unwrap();
    symlink("x", served.work().join("link")).unwrap();
    let absolute = served.work().join("x").to_str().unwrap().to_owned();
    for (path, expected) in [
        ("x", "work"),
        ("./x", "work"),
        ("~/x", "home"),
        ("../x", "above"),
        ("link", "work"),
        (absolute.as_str(), "work"),
    ] {
        let entries = served.read(&file(path)).await.unwrap();
        assert_eq!(entries.len(), 1, "{path}");
        assert_eq!((name(&entries[0].0.path), entries[0].1.as_str()), ("", expected), "{path}");
    }
}

#[tokio::test]
async fn what_cannot_be_read_is_named() {
    let mut served = Served::new().await;
    served.write("file", "");
    fs::create_dir(served.work().join("with-pipe")).unwrap();
    let pipe = served.work().join("with-pipe/pipe");
    let fifo = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, fifo, 0o600.into(), 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(served.work().join("socket")).unwrap();
    for (request, message) in [
        (directory("missing"), "missing: no such file or directory"),
        (file("missing"), "missing: no such file or directory"),
        (directory("file"), "path file is a file, not a directory"),
        (file("with-pipe"), "path with-pipe is a directory, not a file"),
        (directory("with-pipe"), "with-pipe/pipe: is a named pipe, which cannot be imported"),
        (file("socket"), "socket: is a socket, which cannot be imported"),
    ] {
        let error = served.read(&request).await.unwrap_err();
        assert_eq!(error.message, message);
    }
    let request = ReadRequest { exclude: vec!["pipe".into()], ..directory("with-pipe") };
    assert_eq!(served.read(&request).await.unwrap().len(), 1);
    let request = ReadRequest { include: vec!["a[".into()], ..directory(".") };
    assert!(served.read(&request).await.unwrap_err().message.contains("`a[` is no pattern"));
}

/// The reader waits for its chunks to be taken, so the file can be changed in the middle of it.
/// `times` says how often.
fn read_while_it_changes(times: usize) -> Result<Vec<(Entry, String)>, Error> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("big");
    fs::write(&path, vec![b'a'; 8 << 20]).unwrap();
    let writer = fs::OpenOptions::new().write(true).open(&path).unwrap();
    let (sender, mut chunks) = mpsc::channel(1);
    let root = path.clone();
    let reader = std::thread::spawn(move || read::send(&file("big"), &root, sender));
    let (mut bytes, mut changes) = (vec![], 0);
    let mut decoder = FrameDecoder::default();
    while let Some(chunk) = chunks.blocking_recv() {
        decoder.push(&chunk);
        while let Some((kind, _)) = decoder.next_frame().unwrap() {
            if matches!(kind, FrameKind::Entry | FrameKind::Again) && changes < times {
                changes += 1;
                writer.write_all_at(&vec![b'a' + changes as u8; 8 << 20], 0).unwrap();
            }
        }
        bytes.extend_from_slice(&chunk);
    }
    reader.join().unwrap();
    decode(&bytes)
}

#[test]
fn a_file_that_changes_while_it_is_read_is_read_again() {
    let entries = read_while_it_changes(2).unwrap();
    assert_eq!(entries.len(), 1);
    assert!(entries[0].1 == "c".repeat(8 << 20), "one version, whole");
    let error = read_while_it_changes(usize::MAX).unwrap_err();
    assert_eq!(error.message, "big: the file changed while it was read");
}

#[tokio::test]
async fn names_need_not_be_text() {
    use std::os::unix::ffi::OsStrExt as _;
    let mut served = Served::new().await;
    let odd = served.work().join(std::ffi::OsStr::from_bytes(b"\xff\xfe"));
    fs::write(&odd, "odd").unwrap();
    symlink(std::ffi::OsStr::from_bytes(b"\xff\xfe"), served.work().join("link")).unwrap();
    let entries = served.read(&directory(".")).await.unwrap();
    assert_eq!(entries[1].0.target.as_bytes(), b"\xff\xfe");
    assert_eq!((entries[2].0.path.as_bytes(), entries[2].1.as_str()), (&b"\xff\xfe"[..], "odd"));
}

#[test]
fn a_read_that_nobody_takes_ends() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("big"), vec![0; 8 << 20]).unwrap();
    let (sender, chunks) = mpsc::channel(1);
    let root = dir.path().to_owned();
    let reader = std::thread::spawn(move || read::send(&directory("."), &root, sender));
    drop(chunks);
    reader.join().unwrap();
}

#[tokio::test]
async fn find_up_gives_the_nearest() {
    let mut served = Served::new().await;
    fs::write(served.dir.path().join("only-above"), "").unwrap();
    fs::write(served.dir.path().join("both"), "").unwrap();
    served.write("both", "");
    assert_eq!(served.find_up("both").await.unwrap().as_deref(), Some("both"));
    assert_eq!(served.find_up("only-above").await.unwrap().as_deref(), Some("../only-above"));
    assert_eq!(served.find_up("no-such-name-anywhere").await.unwrap(), None);
    let long = "x".repeat(1 << 20);
    for name in ["", "..", "a/b", "a\0", &long] {
        let message = served.find_up(name).await.unwrap_err().message;
        assert!(message.contains("is no name") && message.len() < 200, "{message}");
    }
}

#[tokio::test]
async fn hostile_lengths_are_refused_in_few_words() {
    let mut served = Served::new().await;
    let long = "x".repeat(4_000_000);
    let pattern = ReadRequest { include: vec![format!("{long}[")], ..directory(".") };
    for request in [directory(&long), file(&format!("/{long}")), pattern] {
        let message = served.read(&request).await.unwrap_err().message;
        assert!(message.len() < 400, "{} bytes", message.len());
    }
    // The longest path there is, every character escaped, still fits into the head of a write.
    let longest = "\u{e4}/".repeat(MAX_PATH_BYTES / 3);
    let error = served.put(&longest, "", frames(b"x")).await;
    assert!(error.is_ok() || !error.unwrap_err().message.is_empty());
    let error = served.put(&format!("a\0{}", "b"), "", frames(b"x")).await.unwrap_err();
    assert!(error.message.contains("NUL byte"), "{error}");
}

#[tokio::test]
async fn an_unknown_path_is_refused() {
    let mut served = Served::new().await;
    let (status, body) = served.post(Request::post("/secrets").body(empty()).unwrap()).await;
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(String::from_utf8_lossy(&body).contains("does not serve `/secrets`"));
}
