//! An engine behind ssh: a real server, a real login with a key, nothing of the user's own touched.

use super::free_port;
use crate::core::export_tree::{listing, sample};
use rustix::process::Signal;
use std::fs::{self, Permissions};
use std::net::TcpStream;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use testkit::process::{signal, wait_until};
use testkit::{Cli, Random, State};

/// Where the client's `ssh` writes the id of its process, a line for each login.
const LOGINS: &str = "logins";

/// An ssh server on loopback whose one user's commands find the program under test.
pub(crate) struct Server {
    /// Where the engine behind it lives.
    pub(crate) engine: State,
    /// Where the client lives.
    pub(crate) client: State,
    port: u16,
    child: Child,
}

impl Server {
    /// The server, and a client that it lets in.
    pub(crate) fn start() -> Self {
        let engine = State::new();
        let client = engine.another();
        let port = free_port();
        let (home, bin) = (engine.home(), engine.home().join("bin"));
        fs::set_permissions(&home, Permissions::from_mode(0o700)).unwrap();
        private_folder(&home.join(".ssh"));
        private_folder(&bin);
        symlink(testkit::binary(), bin.join("ci-tool")).unwrap();
        let passwd = home.join("passwd");
        fs::write(&passwd, format!("root:x:0:0::{}:/bin/sh\n", home.display())).unwrap();
        login(&client, &home, port);
        let child = serve(&engine, &passwd, port);
        let up = || TcpStream::connect(("127.0.0.1", port)).is_ok();
        assert!(wait_until(engine.remaining(), up), "the ssh server listens");
        Self { engine, client, port, child }
    }

    /// A run of the client against the engine.
    pub(crate) fn cli(&self, words: &[&str]) -> Cli<'_> {
        let variables = self.environment().into_iter();
        variables.fold(self.client.cli(words), |run, (name, value)| run.env(name, value))
    }

    /// The processes that have logged in, or tried to.
    fn logins(&self) -> Vec<i32> {
        let text = fs::read_to_string(self.client.home().join(LOGINS)).unwrap_or_default();
        text.lines().map(|line| line.parse().unwrap()).collect()
    }

    /// What the client finds the engine by.
    pub(crate) fn environment(&self) -> [(&'static str, String); 2] {
        let path = format!("{}:/usr/bin:/bin", self.client.home().join("bin").display());
        [("PATH", path), ("CITOOL_ENGINE", format!("ssh://root@127.0.0.1:{}", self.port))]
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts the server in a mount namespace of its own, where the user's home is the test's.
fn serve(engine: &State, passwd: &Path, port: u16) -> Child {
    let home = engine.home();
    let key = home.join("host_key");
    run(Command::new("dropbearkey").args(["-t", "ed25519", "-f"]).arg(&key));
    let command = format!("PATH={}:$PATH exec $SSH_ORIGINAL_COMMAND", home.join("bin").display());
    let mut server = Command::new("unshare");
    server.args(["--mount", "--propagation", "private", "--", "sh", "-c"]);
    server.arg("mount --bind \"$1\" /etc/passwd && shift && exec \"$@\"").arg("sh").arg(passwd);
    server.args(["/usr/sbin/dropbear", "-F", "-s", "-e", "-m", "-c", &command, "-r"]).arg(&key);
    server.arg("-p").arg(format!("127.0.0.1:{port}")).arg("-P").arg(home.join("pid"));
    server.env("CITOOL_STATE_DIR", engine.dir());
    server.env("CITOOL_ENGINE_CONFIG", engine.engine_config());
    server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    server.spawn().unwrap()
}

/// Gives the client a key that the server knows, and an `ssh` that uses it.
fn login(client: &State, server_home: &Path, port: u16) {
    let key: PathBuf = client.home().join("key");
    run(Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&key));
    let authorized = server_home.join(".ssh/authorized_keys");
    fs::copy(key.with_extension("pub"), &authorized).unwrap();
    fs::set_permissions(&authorized, Permissions::from_mode(0o600)).unwrap();
    let config = client.home().join("ssh_config");
    let text = format!(
        "Host *\n  IdentityFile {}\n  IdentitiesOnly yes\n  UserKnownHostsFile {}\n  \
         StrictHostKeyChecking accept-new\n  BatchMode yes\n  Port {port}\n",
        key.display(),
        client.home().join("known_hosts").display(),
    );
    fs::write(&config, text).unwrap();
    let bin = client.home().join("bin");
    private_folder(&bin);
    let script = format!(
        "#!/bin/sh\necho $$ >>'{}'\nexec /usr/bin/ssh -F '{}' \"$@\"\n",
        client.home().join(LOGINS).display(),
        config.display()
    );
    fs::write(bin.join("ssh"), script).unwrap();
    fs::set_permissions(bin.join("ssh"), Permissions::from_mode(0o700)).unwrap();
}

fn private_folder(path: &Path) {
    fs::create_dir(path).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o700)).unwrap();
}

fn run(command: &mut Command) {
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    assert!(status.success(), "{command:?}");
}

#[test]
fn the_engine_is_started_on_its_machine_and_uses_the_clients_files() {
    let server = Server::start();
    let source = server.client.workdir().join("src");
    sample(&source);
    server.cli(&["core", "host", "directory", "--path=src", "-o", "copy"]).run().ok();
    assert_eq!(listing(&server.client.workdir().join("copy")), listing(&source));
    assert_eq!(server.logins().len(), 1, "a user who types a password types it once");
    let before = server.engine.engine().pid;
    let rootfs = format!("--directory={}", testkit::busybox().display());
    let words = ["core", "container", "with-rootfs", &rootfs, "with-exec", "--args=id", "stdout"];
    assert!(server.cli(&words).run().ok().contains("uid=0"));
    assert_eq!(server.engine.engine().pid, before, "the same engine");
    assert!(testkit::leftovers::engines(&server.client.dir()).is_empty());
}

#[test]
fn a_login_that_fails_says_why() {
    let server = Server::start();
    fs::remove_file(server.engine.home().join(".ssh/authorized_keys")).unwrap();
    let output = server.cli(&["core", "version"]).run();
    let said = output.fails(1);
    assert!(said.contains("cannot reach the engine at `ssh://root@127.0.0.1:"), "{said}");
    assert!(said.contains("Permission denied"), "{said}");
}

#[test]
fn a_machine_without_the_program_says_so() {
    let server = Server::start();
    fs::remove_file(server.engine.home().join("bin/ci-tool")).unwrap();
    let output = server.cli(&["core", "version"]).run();
    assert!(output.fails(1).contains("not found"), "{output:#?}");
}

#[test]
fn a_client_without_ssh_says_so() {
    let state = State::new();
    let run = state.cli(["core", "version"]).env("CITOOL_ENGINE", "ssh://host.example");
    let output = run.env("PATH", "/nowhere").run();
    assert!(output.fails(1).contains("cannot run `ssh`"), "{output:#?}");
}

#[test]
fn a_client_that_vanishes_behind_ssh_takes_its_work_with_it() {
    let server = Server::start();
    let rootfs = format!("--directory={}", testkit::busybox().display());
    let script =
        format!("--args=sh,-c,echo running {}; sleep 1000000", Random::new("vanishing").word());
    let words = ["core", "container", "with-rootfs", &rootfs, "with-exec", &script, "stdout"];
    let mut running = server.cli(&words).spawn();
    running.wait_for("| running");
    // What a machine that has lost its power says: nothing, while its connections stay.
    let frozen = server.logins();
    frozen.iter().for_each(|pid| signal(*pid, Signal::STOP));
    let ended = || server.engine.log().contains("session ended");
    assert!(wait_until(server.engine.remaining(), ended), "{}", server.engine.log());
    frozen.iter().for_each(|pid| signal(*pid, Signal::KILL));
    running.wait().fails(1);
}
