//! The files of a folder as if it were the root of a container.

use super::*;
use crate::session::host::AttachedHost;
use std::os::unix::fs::symlink;

/// A root with a few files, as if it were a container's.
struct Fixture {
    folder: tempfile::TempDir,
    files: Files,
}

fn fixture() -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::create_dir_all(path("project/sub")).unwrap();
    std::fs::create_dir_all(path("project/.git")).unwrap();
    std::fs::create_dir_all(path("root")).unwrap();
    std::fs::write(path("project/.gitignore"), "*.log\n").unwrap();
    std::fs::write(path("project/sub/file"), "text").unwrap();
    std::fs::write(path("root/own"), "home").unwrap();
    std::fs::create_dir_all(path("etc")).unwrap();
    symlink("/etc", path("project/link")).unwrap();
    symlink("../../../../../../etc/passwd", path("project/out")).unwrap();
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::open(folder.path(), flags, Mode::empty()).unwrap();
    let outer = Arc::new(Host::new(Arc::new(AttachedHost::default())));
    let hidden = vec!["/project/sub/a*b".to_owned()];
    let files = Files::new((root, outer), ("/project".into(), "/root".into()), hidden).unwrap();
    Fixture { folder, files }
}

async fn contents(files: &Files, path: &str) -> Result<String, Error> {
    let (sender, mut parts) = mpsc::channel(16);
    let (path, directory) = (path.to_owned(), false);
    let (include, exclude, gitignore) = (vec![], vec![], false);
    let request = ReadRequest { path, directory, include, exclude, gitignore };
    files.read(request, sender).await?;
    let mut text = vec![];
    while let Some(part) = parts.recv().await {
        if let TreePart::Data(bytes) = part {
            text.extend(bytes);
        }
    }
    Ok(String::from_utf8(text).unwrap())
}

#[tokio::test]
async fn paths_are_the_containers() {
    let Fixture { folder, files } = fixture();
    for (path, text) in [("sub/file", "text"), ("/project/sub/file", "text"), ("~/own", "home")] {
        assert_eq!(contents(&files, path).await.unwrap(), text, "{path}");
    }
    for (path, reason) in [
        ("missing", "missing: no such file or directory"),
        ("sub", "is a directory, not a file"),
        ("out", "out: no such file or directory"),
        ("../../../../etc/passwd", "no such file or directory"),
    ] {
        let error = contents(&files, path).await.unwrap_err();
        assert!(error.message.contains(reason), "{path}: {}", error.message);
    }
    assert_eq!(files.find_up("own".into()).await.unwrap(), None);
    assert_eq!(files.find_up("sub".into()).await.unwrap().as_deref(), Some("sub"));
    assert_eq!(files.find_up("root".into()).await.unwrap().as_deref(), Some("../root"));
    drop(folder);
}

#[tokio::test]
async fn a_directory_comes_with_its_ignores_and_without_what_is_hidden() {
    let Fixture { folder, files } = fixture();
    let read = OpenFor::Read { gitignore: true };
    let handed = files.open("sub".into(), read.clone()).await.unwrap().unwrap();
    let ignores = handed.ignores.unwrap();
    assert_eq!(ignores, [IgnoreFile { below: "sub".into(), text: "*.log\n".into() }]);
    assert!(handed.path.ends_with(":/project/sub"), "{}", handed.path);
    assert_eq!(handed.hidden, ["/a\\*b"]);
    let other = fixture();
    let again = other.files.open("sub".into(), read.clone()).await.unwrap().unwrap();
    assert_ne!(handed.path.split(':').next(), again.path.split(':').next());
    let error = files.open("sub/file".into(), read).await.err().unwrap();
    assert!(error.message.contains("is a file, not a directory"), "{}", error.message);
    drop(folder);
}

#[tokio::test]
async fn what_is_the_callers_is_refused() {
    let Fixture { folder, files } = fixture();
    let secret = files.secret("env://TOKEN".into()).await.unwrap_err();
    assert!(secret.message.contains("from a nested session"), "{}", secret.message);
    let socket = files.connect(SocketAddress::Unix("/run/a.sock".into())).await.err().unwrap();
    assert!(socket.message.contains("`/run/a.sock`"), "{}", socket.message);
    assert!(files.terminal().await.is_err());
    assert!(files.login("host".into()).await.unwrap().is_none());
    drop(folder);
}

#[test]
fn a_path_is_a_pattern_for_itself_alone() {
    assert_eq!(literal("a/b.c"), "a/b.c");
    assert_eq!(literal("a*[b]?\\"), "a\\*\\[b\\]\\?\\\\");
}
