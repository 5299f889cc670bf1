//! Requests that are wrong, too large, too deep or too many: a clear answer each, at once, and
//! memory stays flat.

use serde_json::json;
use std::io::Write as _;
use std::time::Duration;
use testkit::process::{Process, tree};
use testkit::{Reply, Request, Session, State};

struct Ground {
    _state: State,
    session: Session,
    engine: Process,
    before: u64,
}

impl Ground {
    fn new() -> Self {
        let state = State::new();
        let session = Session::start(&state);
        // What is made at first use counts as there before.
        session.query("{ version }");
        session.query("{ __schema { types { name } } }");
        let engine = state.engine();
        let mut ground = Self { _state: state, session, engine, before: 0 };
        ground.before = ground.memory();
        ground
    }

    /// Memory of the engine's processes and of the session's.
    fn memory(&self) -> u64 {
        let mut processes = tree(self.engine.pid);
        processes.extend(Process::of(self.session.pid()));
        processes.iter().map(Process::proportional_memory).sum()
    }

    #[track_caller]
    fn send(&self, request: &Request) -> Reply {
        let before = self.engine.processor_time();
        let reply = self.session.endpoint.send(request).expect("there is an answer");
        let took = self.engine.processor_time() - before;
        assert!(took < Duration::from_secs(10), "at once: {took:?}");
        reply
    }

    /// An answer that says what is wrong, as JSON.
    #[track_caller]
    fn refuses(&self, request: &Request, status: u16) -> String {
        let reply = self.send(request);
        assert_eq!(reply.status, status, "{}", String::from_utf8_lossy(&reply.body));
        assert!(reply.header("location").is_none());
        let message = reply.json()["errors"][0]["message"].as_str().expect("a message").to_owned();
        assert!(!message.is_empty());
        message
    }

    #[track_caller]
    fn stays_healthy(self) {
        assert!(self.session.query("{ version }")["version"].is_string());
        let after = self.memory();
        let limit = self.before + (48 << 20);
        assert!(after < limit, "memory is flat: {} before, {after} after", self.before);
    }
}

#[test]
fn a_wrong_token_opens_nothing() {
    let ground = Ground::new();
    let right = ground.session.endpoint.token.clone();
    let mut almost = right.clone();
    let last = almost.pop().unwrap();
    almost.push(if last == '0' { '1' } else { '0' });
    for token in [
        None,
        Some(String::new()),
        Some(almost),
        Some(right[..63].to_owned()),
        Some(format!("{right}0")),
        Some("x".repeat(10_000)),
    ] {
        let mut request = ground.session.endpoint.request(r#"{"query":"{ version }"}"#);
        request.token = token.clone();
        let reply = ground.send(&request);
        assert_eq!(reply.status, 401, "{token:?}");
        assert!(
            reply.header("www-authenticate").is_some_and(|value| value.starts_with("Basic")),
            "{reply:?}"
        );
        assert!(!String::from_utf8_lossy(&reply.body).contains("data"));
    }
    for header in ["Bearer x", "Basic", "Basic !!!", "Basic \u{7f}"] {
        let mut request = ground.session.endpoint.request("{}");
        request.token = None;
        request.headers.push(("authorization".into(), header.into()));
        let reply = ground.send(&request);
        assert!(reply.status == 401 || reply.status == 400, "{header}: {reply:?}");
    }
    ground.stays_healthy();
}

#[test]
fn a_wrong_method_or_path_is_refused() {
    let ground = Ground::new();
    for method in ["GET", "PUT", "DELETE", "PATCH", "OPTIONS"] {
        let mut request = ground.session.endpoint.request("");
        request.method = method.into();
        ground.refuses(&request, 405);
    }
    for path in ["/", "/nothing", "/query/x", "//query", "/../query"] {
        let mut request = ground.session.endpoint.request(r#"{"query":"{ version }"}"#);
        request.path = path.into();
        let reply = ground.send(&request);
        assert!((400..500).contains(&reply.status), "{path}: {}", reply.status);
    }
    ground.stays_healthy();
}

#[test]
fn bad_json_is_refused() {
    let ground = Ground::new();
    for body in [
        "",
        "{",
        "nonsense",
        "[]",
        "5",
        "null",
        "{}",
        r#"{"query":5}"#,
        r#"{"query":"{ version }","variables":[1]}"#,
        "\u{0}",
        r#"{"query":"{ version }"} trailing"#,
    ] {
        let request = ground.session.endpoint.request(body);
        let reply = ground.send(&request);
        assert!(matches!(reply.status, 200 | 400), "{body}: {}", reply.status);
        assert!(
            reply.json()["errors"][0]["message"].is_string(),
            "{body}: {}",
            String::from_utf8_lossy(&reply.body)
        );
        assert!(reply.json()["data"].is_null(), "{body}");
    }
    let request = ground.session.endpoint.request(vec![0xff, 0xfe, 0x00]);
    assert!(matches!(ground.send(&request).status, 200 | 400));
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    let body = format!(r#"{{"query":"{{ version }}","variables":{{"a":{deep}}}}}"#);
    let reply = ground.send(&ground.session.endpoint.request(body));
    assert!(reply.json()["errors"].is_array());
    ground.stays_healthy();
}

#[test]
fn a_body_of_a_hundred_megabytes_is_refused() {
    let ground = Ground::new();
    let mut body = br#"{"query":""#.to_vec();
    body.resize(100 << 20, b' ');
    for _ in 0..3 {
        let request = ground.session.endpoint.request(body.clone());
        let message = ground.refuses(&request, 413);
        assert!(message.contains("32"), "names the limit: {message}");
    }
    // Without a length in front it is found out on the way.
    let mut connection = ground.session.endpoint.connect().unwrap();
    let head = testkit::chunked_head(&ground.session.endpoint.request(""));
    connection.write_all(&head).unwrap();
    let chunk = vec![b' '; 1 << 20];
    let mut refused = false;
    for _ in 0..100 {
        let sent = write!(connection, "{:x}\r\n", chunk.len())
            .and_then(|()| connection.write_all(&chunk))
            .and_then(|()| connection.write_all(b"\r\n"));
        if sent.is_err() {
            refused = true;
            break;
        }
    }
    if !refused {
        let _ = connection.write_all(b"0\r\n\r\n");
    }
    let reply = testkit::read_answer(connection);
    assert!(refused || reply.is_ok_and(|reply| reply.status == 413), "it was not taken");
    let below = json!({ "query": format!("{{ version }}{}", " ".repeat(31 << 20)) }).to_string();
    assert_eq!(
        ground.send(&ground.session.endpoint.request(below)).status,
        200,
        "what stays below is answered"
    );
    ground.stays_healthy();
}

#[test]
fn documents_of_absurd_depth_are_refused() {
    let ground = Ground::new();
    let deep = format!("{}x{}", "{ a ".repeat(20_000), "}".repeat(20_000));
    let chain = format!(
        "{{ directory {}entries{} }}",
        "{ directory(path: \".\") ".repeat(20_000),
        "}".repeat(20_000)
    );
    let list = format!(
        "{{ file(name: \"a\", contents: {}{}) {{ contents }} }}",
        "[".repeat(20_000),
        "]".repeat(20_000)
    );
    let object =
        format!("{{ file(name: {}1{}) {{ contents }} }}", "{a:".repeat(20_000), "}".repeat(20_000));
    let inline = format!("{{ {} version {} }}", "... { ".repeat(20_000), "}".repeat(20_000));
    let wrapped =
        format!("query($a: {}Int{}) {{ version }}", "[".repeat(20_000), "]".repeat(20_000));
    for document in [
        deep,
        chain,
        list,
        object,
        inline,
        wrapped,
        "{".repeat(20_000),
        "(".repeat(20_000),
        "{ version ".repeat(20_000),
    ] {
        let reply =
            ground.send(&ground.session.endpoint.request(json!({ "query": document }).to_string()));
        assert_eq!(reply.status, 200, "{}", &document[..40]);
        let message = reply.json()["errors"][0]["message"].as_str().unwrap_or_default().to_owned();
        assert!(!message.is_empty() && message.len() < 4096, "{}: {message:.200}", &document[..40]);
    }
    ground.stays_healthy();
}

#[test]
fn fragment_cycles_and_bombs_are_refused() {
    let ground = Ground::new();
    let cycle = "{ ...a } fragment a on Query { ...b } fragment b on Query { ...a }".to_owned();
    let own = "{ ...a } fragment a on Query { version ...a }".to_owned();
    let through =
        "{ directory { ...d } } fragment d on Directory { directory(path: \".\") { ...d } }"
            .to_owned();
    let mut doubling = "{ ...f0 }".to_owned();
    for index in 0..40 {
        let next = index + 1;
        doubling += &format!(
            " fragment f{index} on Query {{ a: directory {{ entries }} ...f{next} ...f{next} }}"
        );
    }
    doubling += " fragment f40 on Query { version }";
    let mut nested = "{ directory { ...g0 } }".to_owned();
    for index in 0..30 {
        let next = index + 1;
        nested += &format!(
            " fragment g{index} on Directory {{ a: directory(path: \"a\") {{ ...g{next} }} b: directory(path: \"b\") {{ ...g{next} }} }}"
        );
    }
    nested += " fragment g30 on Directory { entries }";
    let aliases: String = (0..200_000).map(|index| format!("a{index}: version ")).collect();
    let fields = format!("{{ {} }}", "version ".repeat(500_000));
    for (document, must_fail) in [
        (cycle, true),
        (own, true),
        (through, true),
        (doubling, false),
        (nested, true),
        (format!("{{ {aliases} }}"), false),
        (fields, false),
    ] {
        let reply =
            ground.send(&ground.session.endpoint.request(json!({ "query": document }).to_string()));
        assert_eq!(reply.status, 200, "{}", &document[..40]);
        let json = reply.json();
        assert!(!must_fail || json["errors"].is_array(), "{}", &document[..40]);
    }
    ground.stays_healthy();
}

#[test]
fn a_thousand_requests_at_once_are_all_answered() {
    let ground = Ground::new();
    let before = ground.engine.processor_time();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..1000)
            .map(|index| {
                let session = &ground.session;
                std::thread::Builder::new()
                    .stack_size(256 << 10)
                    .spawn_scoped(scope, move || {
                        let text = format!("text {}", index % 50);
                        let document =
                            format!(r#"{{ file(name: "f", contents: "{text}") {{ contents }} }}"#);
                        assert_eq!(session.leaf(&document), text);
                    })
                    .unwrap()
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
    });
    let took = ground.engine.processor_time() - before;
    assert!(took < Duration::from_secs(30), "{took:?}");
    ground.stays_healthy();
}

#[test]
fn half_requests_and_slow_ones_hold_up_nobody() {
    let ground = Ground::new();
    let halves: Vec<_> = (0..100)
        .map(|index| {
            let mut connection = ground.session.endpoint.connect().unwrap();
            let request = ground.session.endpoint.request(vec![b' '; 1000]);
            let bytes = testkit::whole(&request);
            connection.write_all(&bytes[..index * bytes.len() / 200]).unwrap();
            connection
        })
        .collect();
    assert!(ground.session.query("{ version }")["version"].is_string());
    drop(halves);
    ground.stays_healthy();
}
