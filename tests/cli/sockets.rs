//! Sockets of the host in containers: unix, tcp, and an agent that keeps keys for ssh.

use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use testkit::{Random, Session, State, rounds};

/// A server on a unix socket that answers each connection by `answer`. It lives as long as the test
/// program.
fn serve(path: &Path, answer: fn(UnixStream)) -> Arc<AtomicUsize> {
    let listener = UnixListener::bind(path).unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            counted.fetch_add(1, Ordering::Relaxed);
            std::thread::spawn(move || answer(stream.unwrap()));
        }
    });
    count
}

/// Reads to the end, then sends all of it back.
fn echo(mut stream: UnixStream) {
    let mut all = vec![];
    let _ = stream.read_to_end(&mut all);
    let _ = stream.write_all(&all);
}

fn socket(session: &Session, path: &str) -> Value {
    session.leaf(&format!("{{ host {{ unixSocket(path: {}) {{ id }} }} }}", json!(path)))
}

/// A chain on an image with python that has a socket at `/run/s`.
fn on_python(socket: &Value, options: &str, rest: &str) -> String {
    format!(
        r#"{{ container {{ from(address: "deb://bookworm+python3") {{
            withUnixSocket(path: "/run/s", source: {socket}{options}) {{ {rest} }} }} }} }}"#
    )
}

/// A python program that has a connection in `s`.
fn talk(program: &str) -> String {
    let head =
        "import socket, sys, hashlib\ns = socket.socket(socket.AF_UNIX)\ns.connect('/run/s')\n";
    let program = json!(format!("{head}{program}"));
    format!(r#"withExec(args: ["python3", "-c", {program}]) {{ stdout }}"#)
}

const SAY: &str = "s.sendall(b'hello'); s.shutdown(socket.SHUT_WR); print(s.recv(100).decode())";

#[test]
fn a_command_talks_to_a_server_of_the_host() {
    let state = State::debian();
    let count = serve(&state.workdir().join("s.sock"), echo);
    let session = Session::start(&state);
    let socket = socket(&session, "s.sock");
    assert_eq!(session.leaf(&on_python(&socket, "", &talk(SAY))), "hello\n");
    let stat = r#"withExec(args: ["stat", "-c", "%a %u:%g %F", "/run/s"]) { stdout }"#;
    assert_eq!(session.leaf(&on_python(&socket, "", stat)), "600 0:0 socket\n");
    let owned = r#"withExec(args: ["stat", "-c", "%u:%g", "/run/s"]) { stdout }"#;
    assert_eq!(session.leaf(&on_python(&socket, ", owner: \"33:44\"", owned)), "33:44\n");
    // Its owner may connect and nobody else.
    let as_user = |options: &str| {
        let chain =
            format!(r#"withUser(name: "www-data") {{ {} }}"#, talk(&format!("{SAY} # {options}")));
        on_python(&socket, options, &chain)
    };
    assert_eq!(session.leaf(&as_user(", owner: \"www-data\"")), "hello\n");
    assert!(session.exec_error(&as_user("")).stderr.contains("Permission denied"));
    assert_eq!(count.load(Ordering::Relaxed), 2, "one connection each");
    // Nothing stays of it.
    let left = r#"withExec(args: ["true"]) { rootfs { directory(path: "/run") { entries } } }"#;
    assert!(!session.leaf(&on_python(&socket, "", left)).to_string().contains("\"s\""));
}

#[test]
fn a_socket_is_no_part_of_the_name_of_a_command() {
    let state = State::debian();
    let count = serve(&state.workdir().join("s.sock"), echo);
    let random = talk(&format!("{SAY}; print(open('/proc/sys/kernel/random/uuid').read())"));
    let session = Session::start(&state);
    let first = session.leaf(&on_python(&socket(&session, "s.sock"), "", &random));
    drop(session);
    std::fs::remove_file(state.workdir().join("s.sock")).unwrap();
    let session = Session::start(&state);
    let again = session.leaf(&on_python(&socket(&session, "elsewhere.sock"), "", &random));
    assert_eq!(
        first, again,
        "what is behind a socket is never the same, and so no reason to run again"
    );
    assert_eq!(count.load(Ordering::Relaxed), 1);
    // A socket belongs to its session.
    let id = socket(&session, "s.sock");
    let other = Session::start(&state);
    let said = other.error(&on_python(&id, "", &talk("print('mine')")));
    assert!(said.contains("belongs to another session"), "{said}");
}

#[test]
fn the_last_socket_at_a_path_counts_and_can_be_taken_away() {
    let state = State::debian();
    serve(&state.workdir().join("a.sock"), |mut stream| drop(stream.write_all(b"from a")));
    serve(&state.workdir().join("b.sock"), |mut stream| drop(stream.write_all(b"from b")));
    let session = Session::start(&state);
    let (a, b) = (socket(&session, "a.sock"), socket(&session, "unix://b.sock"));
    let hear = talk("print(s.recv(100).decode())");
    let both = format!(r#"withUnixSocket(path: "/run/s", source: {b}) {{ {hear} }}"#);
    assert_eq!(session.leaf(&on_python(&a, "", &both)), "from b\n");
    let gone = r#"withoutUnixSocket(path: "/run/s") { withExec(args: ["sh", "-c", "test -e /run/s || echo gone"]) { stdout } }"#;
    assert_eq!(session.leaf(&on_python(&a, "", gone)), "gone\n");
}

#[test]
fn a_port_of_the_host_is_a_socket_too() {
    let state = State::debian();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut line = [0; 5];
            stream.read_exact(&mut line).unwrap();
            stream.write_all(&line.to_ascii_uppercase()).unwrap();
        }
    });
    let session = Session::start(&state);
    let socket = socket(&session, &format!("tcp://localhost:{port}"));
    let ask = talk("s.sendall(b'hello'); print(s.recv(100).decode())");
    assert_eq!(session.leaf(&on_python(&socket, "", &ask)), "HELLO\n");
    let rootfs = "--address=deb://bookworm+python3";
    let program = "import socket; s = socket.socket(socket.AF_UNIX); s.connect('/s'); s.sendall(b'again'); print(s.recv(9).decode())";
    let output = state
        .cli([
            "core",
            "container",
            "from",
            rootfs,
            "with-unix-socket",
            "--path=/s",
            &format!("--source=tcp://127.0.0.1:{port}"),
            "with-exec",
            &format!("--args=python3,-c,\"{program}\""),
            "stdout",
        ])
        .run();
    assert_eq!(output.ok(), "AGAIN\n");
}

#[test]
fn a_server_that_is_not_there_ends_the_connection_and_is_named() {
    let state = State::debian();
    state.file("plain", "");
    let session = Session::start(&state);
    let empty = talk("print(len(s.recv(100)))");
    assert_eq!(session.leaf(&on_python(&socket(&session, "none.sock"), "", &empty)), "0\n");
    let program =
        "import socket; s = socket.socket(socket.AF_UNIX); s.connect('/s'); print(len(s.recv(9)))";
    let output = state
        .cli([
            "core",
            "container",
            "from",
            "--address=deb://bookworm+python3",
            "with-unix-socket",
            "--path=/s",
            "--source=none.sock",
            "with-exec",
            &format!("--args=python3,-c,\"{program}\""),
            "stdout",
        ])
        .run();
    assert_eq!(output.ok(), "0\n");
    assert!(output.stderr.contains("socket none.sock: no such file"), "{}", output.stderr);
    let said = session.error(&on_python(&socket(&session, "tcp://no-port"), "", &empty));
    assert!(said.contains("not of the form tcp://host:port"), "{said}");
}

#[test]
fn much_travels_both_ways_at_once() {
    let state = State::debian();
    // Everything comes back while it is still being sent.
    serve(&state.workdir().join("s.sock"), |mut stream| {
        let mut writing = stream.try_clone().unwrap();
        let _ = std::io::copy(&mut stream, &mut writing);
        let _ = writing.shutdown(std::net::Shutdown::Write);
    });
    let session = Session::start(&state);
    let program = "import threading\n\
        data = bytes(range(256)) * 4096 * 8\n\
        def send():\n s.sendall(data); s.shutdown(socket.SHUT_WR)\n\
        threading.Thread(target=send).start()\n\
        got = b''.join(iter(lambda: s.recv(65536), b''))\n\
        print(len(got), got == data)";
    let answer = session.leaf(&on_python(&socket(&session, "s.sock"), "", &talk(program)));
    assert_eq!(answer, "8388608 True\n");
}

#[test]
fn sockets_that_nobody_reads_hold_up_nothing() {
    let state = State::debian();
    serve(
        &state.workdir().join("flood.sock"),
        |mut stream| {
            while stream.write_all(&[7; 64 << 10]).is_ok() {}
        },
    );
    serve(&state.workdir().join("s.sock"), echo);
    state.file("tree/file", "x".repeat(3 << 20));
    let session = Session::start(&state);
    let (flood, small) = (socket(&session, "flood.sock"), socket(&session, "s.sock"));
    // Many connections that are full, and one beside them that works, and files of the host.
    let program = "import socket, time\n\
        full = []\n\
        for _ in range(40):\n f = socket.socket(socket.AF_UNIX); f.connect('/run/flood'); full.append(f)\n\
        for f in full:\n f.recv(1)\n\
        s = socket.socket(socket.AF_UNIX); s.connect('/run/s'); s.sendall(b'x' * 300000)\n\
        s.shutdown(socket.SHUT_WR); print(len(b''.join(iter(lambda: s.recv(65536), b''))))";
    let exec = format!(
        r#"withUnixSocket(path: "/run/flood", source: {flood}) {{
            withExec(args: ["python3", "-c", {}]) {{ stdout }} }}"#,
        json!(program)
    );
    assert_eq!(session.leaf(&on_python(&small, "", &exec)), "300000\n");
    let read = r#"{ host { directory(path: "tree") { file(path: "file") { size } } } }"#;
    assert_eq!(session.leaf(read), 3 << 20);
}

#[test]
fn connections_that_break_anywhere_leave_the_rest_alone() {
    let state = State::debian();
    serve(&state.workdir().join("s.sock"), |mut stream| {
        let mut piece = [0; 1000];
        // Breaks off when it is told to, in the middle of whatever is going on.
        while let Ok(count @ 1..) = stream.read(&mut piece) {
            if piece[..count].contains(&0) || stream.write_all(&piece[..count]).is_err() {
                return;
            }
        }
    });
    let session = Session::start(&state);
    let socket = socket(&session, "s.sock");
    let mut random = Random::new("breaking connections");
    let mut program = String::new();
    for _ in 0..rounds() {
        let (length, how) = (1 + random.below(200_000), random.below(4));
        program += &match how {
            0 => format!("t = new(); t.sendall(b'x' * {}); t.close()\n", length % 60_000),
            1 => "t = new(); t.close()\n".to_owned(),
            2 => "t = new(); t.sendall(b'\\0'); t.recv(9)\n".to_owned(),
            _ => {
                format!("t = new(); t.sendall(b'x' * {}); t.recv(1); t.close()\n", length % 60_000)
            }
        };
    }
    let head = "def new():\n t = socket.socket(socket.AF_UNIX); t.connect('/run/s'); return t\n";
    let tail = "s.sendall(b'alive'); print(s.recv(100).decode())";
    let answer = session.leaf(&on_python(&socket, "", &talk(&format!("{head}{program}{tail}"))));
    assert_eq!(answer, "alive\n");
}

/// A real agent with one key in it.
struct Agent {
    socket: PathBuf,
    fingerprint: String,
    process: std::process::Child,
}

impl Agent {
    fn start(state: &State) -> Self {
        let socket = state.workdir().join("agent");
        let process = std::process::Command::new("ssh-agent")
            .args(["-D", "-a"])
            .arg(&socket)
            .stdout(std::process::Stdio::null())
            .spawn()
            .expect("ssh-agent is installed");
        assert!(testkit::process::wait_until(state.remaining(), || socket.exists()));
        let run = |line: &str| {
            let output = std::process::Command::new("sh")
                .args(["-c", line])
                .env("SSH_AUTH_SOCK", &socket)
                .current_dir(state.workdir())
                .output()
                .unwrap();
            assert!(output.status.success(), "{line}: {output:?}");
            String::from_utf8(output.stdout).unwrap()
        };
        run("ssh-keygen -q -t ed25519 -N '' -C a-key -f key && ssh-add -q key");
        let fingerprint = run("ssh-add -l").split(' ').nth(1).unwrap().to_owned();
        Self { socket, fingerprint, process }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn an_agent_serves_keys_to_a_container() {
    let state = State::debian();
    let agent = Agent::start(&state);
    let session = Session::start(&state);
    let socket = socket(&session, agent.socket.to_str().unwrap());
    let ask = |chain: &str| {
        session.leaf(&format!(
            r#"{{ container {{ from(address: "deb://bookworm+openssh-client") {{
                withUnixSocket(path: "/run/agent", source: {socket}, owner: "games") {{
                withEnvVariable(name: "SSH_AUTH_SOCK", value: "/run/agent") {{ {chain} }} }} }} }} }}"#
        ))
    };
    let listed = ask(r#"withUser(name: "games") { withExec(args: ["ssh-add", "-l"]) { stdout } }"#);
    assert!(listed.as_str().unwrap().contains(&agent.fingerprint), "{listed}");
    // The key itself stays with the agent, and signs.
    let script = "ssh-add -L > /tmp/key.pub && echo text > /tmp/text && ssh-keygen -q -Y sign -f /tmp/key.pub -n file /tmp/text && head -1 /tmp/text.sig";
    let signed = ask(&format!(r#"withExec(args: ["sh", "-c", {}]) {{ stdout }}"#, json!(script)));
    assert_eq!(signed, "-----BEGIN SSH SIGNATURE-----\n");
}
