//! Each provider, with what it gives and what it says when there is nothing to give.

use super::*;
use tempfile::TempDir;

async fn ask(folder: &TempDir, uri: &str) -> Result<Vec<u8>, Error> {
    let variables = [("TOKEN", &b"hunter2\n"[..]), ("EMPTY", b""), ("BYTES", b"\xff\xfe")];
    let text = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
    let variables: EnvVariables =
        variables.into_iter().map(|(name, value)| (name.into(), text(value))).collect();
    let path = folder.path().to_owned();
    let resolve = move |typed: &str| Ok(path.join(typed));
    let keeper = Keeper { variables: &variables, workdir: folder.path(), resolve: &resolve };
    read(keeper, SecretRequest { uri: uri.into() }).await
}

#[tokio::test]
async fn bytes_are_kept_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("key"), b" \x00\xff\n").unwrap();
    let most = vec![b'x'; MAX_SECRET_BYTES];
    std::fs::write(folder.path().join("most"), &most).unwrap();
    for (uri, expect) in [
        ("env://TOKEN", &b"hunter2\n"[..]),
        ("env://EMPTY", b""),
        ("env://BYTES", b"\xff\xfe"),
        ("file://key", b" \x00\xff\n"),
        ("file://most", &most),
        ("cmd://printf 'a b\\n'", b"a b\n"),
        ("cmd://cat key; echo talk >&2", b" \x00\xff\n"),
        ("cmd://head -c 512000 /dev/zero | tr '\\0' x", &most),
    ] {
        assert_eq!(ask(&folder, uri).await.unwrap(), expect, "{uri}");
    }
}

#[tokio::test]
async fn what_cannot_be_read_is_named_without_its_value() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("long"), vec![b'x'; MAX_SECRET_BYTES + 1]).unwrap();
    for (uri, expect, never) in [
        ("env://hunter2", "secret env var not found: \"hun...\"", "hunter2"),
        ("hunter2", "malformed id of a secret: \"hun...\"", "hunter2"),
        ("vault://a.b", "unsupported secret provider: \"vault\"", "a.b"),
        ("file://none", "secret file none: no such file or directory", "\n"),
        ("file://long", "longer than 512000 bytes", "xxx"),
        ("file://.", "secret file .: ", "\n"),
        ("cmd://echo hunter2; echo no >&2; exit 3", "failed to run secret command", "hunter2"),
        ("cmd://echo hunter2; echo no >&2; exit 3", "exit status: 3: no", "hunter2"),
        ("cmd://yes | head -c 1000000", "longer than 512000 bytes", "y\n"),
    ] {
        let error = ask(&folder, uri).await.unwrap_err();
        assert!(error.message.contains(expect), "{uri}: {error}");
        let all = format!("{} {:?}", error.message, error.hints);
        assert!(!all.contains(never), "{uri}: {all}");
    }
    let error = ask(&folder, "op://vault/item").await.unwrap_err();
    assert!(error.hints[0].contains("env://NAME"), "{:?}", error.hints);
}
