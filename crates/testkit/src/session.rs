//! [`Session`]: `ci-tool session` as a client library starts it, and queries over its endpoint.

use crate::http::{Endpoint, Reply};
use crate::state::State;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

/// A session of the program under test.
pub struct Session {
    /// Where it listens.
    pub endpoint: Endpoint,
    child: Child,
    stdin: Option<ChildStdin>,
}

/// An exec error as it stands in a reply.
#[derive(Clone, Debug)]
pub struct ExecError {
    /// The message.
    pub message: String,
    /// Exit code.
    pub code: i64,
    /// End of the standard output.
    pub stdout: String,
    /// End of the standard error.
    pub stderr: String,
}

impl Session {
    /// Starts a session.
    pub fn start(state: &State) -> Self {
        Self::start_with(state, &[])
    }

    /// Starts a session with further arguments.
    pub fn start_with(state: &State, args: &[&str]) -> Self {
        let mut command = state.command();
        command.arg("session").args(args);
        Self::spawn(state, command)
    }

    /// Starts a session with further variables in its environment.
    pub fn start_in(state: &State, environment: &[(&str, &str)]) -> Self {
        let mut command = state.command();
        command.arg("session").envs(environment.iter().copied());
        Self::spawn(state, command)
    }

    fn spawn(state: &State, mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
        let mut child = command.spawn().expect("the program under test can be started");
        let stdin = child.stdin.take();
        let mut line = String::new();
        let stdout = child.stdout.take().expect("standard output is a pipe");
        BufReader::new(stdout).read_line(&mut line).expect("a line can be read");
        let hello: Value = serde_json::from_str(&line)
            .unwrap_or_else(|error| panic!("`session` said `{line}`: {error}\n{}", state.log()));
        let port = hello["port"].as_u64().expect("a port is a number") as u16;
        let token = hello["session_token"].as_str().expect("a token is text").to_owned();
        Self { endpoint: Endpoint { port, token }, child, stdin }
    }

    /// Sends a document and gives the whole reply.
    #[track_caller]
    pub fn send(&self, document: &str) -> Reply {
        let body = json!({ "query": document }).to_string();
        self.endpoint.send(&self.endpoint.request(body)).expect("the endpoint answers")
    }

    /// The `data` of a document that must succeed.
    #[track_caller]
    pub fn query(&self, document: &str) -> Value {
        let reply = self.send(document);
        let json = reply.json();
        assert_eq!(reply.status, 200, "{json}");
        assert!(json.get("errors").is_none(), "{document}\n{json:#}");
        json["data"].clone()
    }

    /// The messages of a document that must fail.
    #[track_caller]
    pub fn error(&self, document: &str) -> String {
        let reply = self.send(document);
        let json = reply.json();
        assert_eq!(reply.status, 200, "{json}");
        assert!(json["data"].is_null(), "{document}\n{json:#}");
        let errors = json["errors"].as_array().unwrap_or_else(|| panic!("no errors in {json:#}"));
        let messages = errors.iter().map(|error| error["message"].as_str().expect("a message"));
        messages.collect::<Vec<_>>().join("\n")
    }

    /// The exec error of a document that must fail with one.
    #[track_caller]
    pub fn exec_error(&self, document: &str) -> ExecError {
        let json = self.send(document).json();
        let error = &json["errors"][0];
        let extensions = &error["extensions"];
        assert_eq!(extensions["_type"], "EXEC_ERROR", "{document}\n{json:#}");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        ExecError {
            message: text(&error["message"]),
            code: extensions["exitCode"].as_i64().expect("an exit code is a number"),
            stdout: text(&extensions["stdout"]),
            stderr: text(&extensions["stderr"]),
        }
    }

    /// The one value of a document that selects one field a level and must succeed.
    #[track_caller]
    pub fn leaf(&self, document: &str) -> Value {
        let mut value = self.query(document);
        while let Some(fields) = value.as_object_mut() {
            assert_eq!(fields.len(), 1, "one field a level in {document}");
            let name = fields.keys().next().expect("there is one").clone();
            value = fields.remove(&name).expect("there is one");
        }
        value
    }

    /// The one text of a chain of fields on a container with the static root file system.
    #[track_caller]
    pub fn container(&self, chain: &str) -> String {
        let value = self.leaf(&self.on_container(chain));
        value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
    }

    /// Standard output of a shell script in the static root file system.
    #[track_caller]
    pub fn shell(&self, script: &str) -> String {
        let script = Value::from(script);
        self.container(&format!(r#"withExec(args: ["sh", "-c", {script}]) {{ stdout }}"#))
    }

    /// The document of a chain of fields on a container with the static root file system.
    #[track_caller]
    pub fn on_container(&self, chain: &str) -> String {
        let directory = Value::from(self.busybox());
        format!("{{ container {{ withRootfs(directory: {directory}) {{ {chain} }} }} }}")
    }

    /// The id of a directory with the static root file system.
    pub fn busybox(&self) -> String {
        self.host_directory(&crate::busybox())
    }

    /// The id of a directory of the host.
    #[track_caller]
    pub fn host_directory(&self, path: &Path) -> String {
        let path = Value::from(path.to_string_lossy().into_owned());
        let id = self.leaf(&format!("{{ host {{ directory(path: {path}) {{ id }} }} }}"));
        id.as_str().expect("an id is text").to_owned()
    }

    /// Process number of the session's own process.
    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Ends the session as a client library does, and gives the exit code.
    pub fn end(mut self) -> i32 {
        self.stdin = None;
        let status = self.child.wait().expect("a child can be waited for");
        status.code().expect("the session ends by itself")
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.stdin = None;
        let child = &mut self.child;
        let ended = crate::process::wait_until(std::time::Duration::from_secs(20), || {
            child.try_wait().is_ok_and(|status| status.is_some())
        });
        if !ended {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
