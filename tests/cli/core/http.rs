//! Files of web servers.

use rustix::process::Signal;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use testkit::process::wait_until;
use testkit::{Session, State, Web};

const MODIFIED: &str = "last-modified: Sun, 06 Nov 1994 08:49:37 GMT";

/// A server with one page: `etag` and the number of its version are sent with it.
fn page(version: Arc<AtomicUsize>) -> Web {
    Web::start(move |head| {
        let version = version.load(Ordering::SeqCst);
        let etag = format!("\"{version}\"");
        match head {
            head if head.contains("GET /gone") => Web::answer("404 Not Found", &[], ""),
            head if head.contains("GET /private")
                && !head.contains("authorization: Bearer t0p-s3cret") =>
            {
                Web::answer("401 Unauthorized", &[], "")
            }
            head if head.contains(&format!("if-none-match: {etag}")) => {
                b"HTTP/1.1 304 Not Modified\r\nconnection: close\r\n\r\n".to_vec()
            }
            _ => Web::answer(
                "200 OK",
                &[&format!("etag: {etag}"), MODIFIED],
                format!("page {version}"),
            ),
        }
    })
}

/// `{ http(url: ..., <more>) { <rest> } }`.
fn http(url: &str, more: &str, rest: &str) -> String {
    format!("{{ http(url: {}, {more}) {{ {rest} }} }}", json!(url))
}

#[test]
fn a_page_is_asked_for_once_a_session_and_then_only_if_it_changed() {
    let state = State::new();
    let version = Arc::new(AtomicUsize::new(1));
    let web = page(version.clone());
    let url = web.url("/a/tool.txt?x=1");
    let session = Session::start(&state);
    let data = session.query(&http(&url, "", "name size contents"));
    assert_eq!(data["http"], json!({ "name": "tool.txt", "size": 6, "contents": "page 1" }));
    // Another name is the same page: the server is not asked, though it has a newer one.
    version.store(2, Ordering::SeqCst);
    let named = http(&url, r#"name: "other", permissions: 365"#, "name contents");
    let data = session.query(&named);
    assert_eq!(data["http"], json!({ "name": "other", "contents": "page 1" }));
    assert_eq!(web.requests().len(), 1);
    drop(session);

    // The next session asks, with what it has.
    let session = Session::start(&state);
    assert_eq!(session.leaf(&http(&url, "", "contents")), "page 2");
    assert!(web.requests()[1].contains("if-none-match: \"1\""), "{:?}", web.requests());
    drop(session);
    let session = Session::start(&state);
    assert_eq!(session.leaf(&http(&url, "", "contents")), "page 2");
    assert!(web.requests()[2].contains("if-none-match: \"2\""), "{:?}", web.requests());
    assert_eq!(web.requests().len(), 3);
    // Nor does a new engine begin anew.
    drop(session);
    state.stop();
    let session = Session::start(&state);
    assert_eq!(session.leaf(&http(&url, "", "contents")), "page 2");
    assert!(web.requests()[3].contains("if-none-match: \"2\""), "{:?}", web.requests());
}

#[test]
fn modes_times_and_equal_files() {
    let state = State::new();
    let web = page(Arc::new(AtomicUsize::new(1)));
    let session = Session::start(&state);
    let id = |path: &str, more: &str| session.leaf(&http(&web.url(path), more, "id"));
    let run = |file: &serde_json::Value, script: &str| {
        let script = json!(script);
        session.container(&format!(
            r#"withFile(path: "/page", source: {file}) {{
                withExec(args: ["sh", "-c", {script}]) {{ stdout }} }}"#
        ))
    };
    let look = "stat -c '%a %Y %U' /page; cat /page";
    assert_eq!(run(&id("/one", ""), look), "600 784111777 root\npage 1");
    assert_eq!(run(&id("/one", "permissions: 493"), look), "755 784111777 root\npage 1");
    // Equal files of two addresses are one file to a command.
    let random = "cat /page; head -c 12 /dev/urandom | base64";
    let named = r#"name: "page""#;
    assert_eq!(run(&id("/one", named), random), run(&id("/two", named), random));
    assert_eq!(web.requests().len(), 2);
}

#[test]
fn checksums_and_refusals() {
    let state = State::new();
    let web = page(Arc::new(AtomicUsize::new(1)));
    let session = Session::start(&state);
    let right = "sha256:7b0ff7f5e1b1e8d4ec2b2ba7a2a35ea34cc3ed2de2c1d12b7bb8a2eb16d7b5d8";
    let said =
        session.error(&http(&web.url("/x"), &format!("checksum: {}", json!(right)), "contents"));
    assert!(said.contains("http checksum mismatch") && said.contains(right), "{said}");
    let found = said.split("is sha256:").nth(1).unwrap().split(',').next().unwrap();
    let right = json!(format!("sha256:{found}"));
    let contents = session.leaf(&http(&web.url("/x"), &format!("checksum: {right}"), "contents"));
    assert_eq!(contents, "page 1");
    // What is known to be right is not asked for again, in another session neither.
    drop(session);
    let session = Session::start(&state);
    let contents = session.leaf(&http(&web.url("/x"), &format!("checksum: {right}"), "contents"));
    assert_eq!((contents, web.requests().len()), (json!("page 1"), 1));

    // Already naming it is refused.
    let said = session.error(&http(&web.url("/x"), r#"checksum: "md5:1""#, "id"));
    assert_eq!(said, "invalid checksum \"md5:1\"");
    let said = session.error(r#"{ http(url: "file:///etc/passwd") { id } }"#);
    assert!(said.contains("no address of a web server"), "{said}");
    let said = session.error(&http(&web.url("/x"), r#"name: "a/b""#, "contents"));
    assert!(said.contains("not contain a directory"), "{said}");
    let said = session.error(&http(&web.url("/gone"), "", "contents"));
    assert!(said.contains("status 404 Not Found"), "{said}");
    let asked = web.requests().len();
    let said = session.error(&http(&web.url("/private"), "", "contents"));
    assert!(said.contains("401 Unauthorized"), "{said}");
    assert_eq!(web.requests().len(), asked + 1, "a refusal is final");

    let secret = session.leaf(r#"{ setSecret(name: "s", plaintext: "Bearer t0p-s3cret") { id } }"#);
    let private = http(&web.url("/private"), &format!("authHeader: {secret}"), "contents");
    assert_eq!(session.leaf(&private), "page 1");
    drop(session);
    // Who does not show it does not get it, though the engine has it.
    let session = Session::start(&state);
    let said = session.error(&http(&web.url("/private"), "", "contents"));
    assert!(said.contains("401 Unauthorized"), "{said}");
}

#[test]
fn a_large_file_goes_straight_to_disk_and_can_be_given_up() {
    let state = State::new();
    let web = Web::start(|head| match head.contains("GET /large") {
        true => Web::answer("200 OK", &[], vec![b'x'; 64 << 20]),
        // It promises more than it sends, so it is asked again and again.
        false => b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nx".to_vec(),
    });
    let session = Session::start(&state);
    assert_eq!(session.leaf(&http(&web.url("/large"), "", "size")), 64 << 20);
    let running =
        state.cli(["core", "http", &format!("--url={}", web.url("/cut")), "contents"]).spawn();
    assert!(wait_until(state.remaining(), || web.requests().len() > 2), "it is asked again");
    running.signal(Signal::INT);
    let output = running.wait();
    assert!(!output.status.success(), "{output:#?}");
    drop(session);
}

#[test]
fn a_service_serves_files() {
    let state = State::new();
    let session = Session::start(&state);
    let serve = r#"mkdir -p /www; echo "volatile: $V" > /www/page; exec httpd -f -p 8080 -h /www"#;
    let service = session.leaf(&session.on_container(&format!(
        r#"withVolatileVariable(name: "V", value: "seen") {{ withExposedPort(port: 8080) {{
            asService(args: ["sh", "-c", {}]) {{ id }} }} }}"#,
        json!(serve)
    )));
    // It is started for the download, under whatever name the address has for it.
    let given =
        http("http://web:8080/page", &format!("experimentalServiceHost: {service}"), "contents");
    assert_eq!(session.leaf(&given), "volatile: \n", "a service knows no volatile variable");
    // One that runs is found by its own name.
    let started =
        session.query(&format!("{{ loadServiceFromID(id: {service}) {{ start hostname }} }}"));
    let host = started["loadServiceFromID"]["hostname"].as_str().unwrap();
    let url = format!("http://{host}:8080/page");
    assert_eq!(session.leaf(&http(&url, "", "name")), "page");
    let said = session.error(&http(&format!("http://{host}:8080/none"), "", "contents"));
    assert!(said.contains("status 404"), "{said}");
}
