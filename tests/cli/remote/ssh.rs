//! An engine behind ssh: a real server, a real login with a key, nothing of the user's own touched.

use crate::core::export_tree::{listing, sample};
use rustix::process::Signal;
use std::fs;
use std::os::unix::fs::symlink;
use testkit::process::wait_until;
use testkit::{Cli, Random, SshServer, State, write_program};

/// Where the client's `ssh` writes a line for each login.
const LOGINS: &str = "logins";

/// An ssh server on loopback whose one user's commands find the program under test.
pub(crate) struct Server {
    /// Where the engine behind it lives.
    pub(crate) engine: State,
    /// Where the client lives.
    pub(crate) client: State,
    ssh: SshServer,
}

impl Server {
    /// The server, and a client that it lets in.
    pub(crate) fn start() -> Self {
        let engine = State::new();
        let client = engine.another();
        let bin = engine.home().join("bin");
        fs::create_dir(&bin).unwrap();
        symlink(testkit::binary(), bin.join("ci-tool")).unwrap();
        // Not by another home of the user: who adds a user to the machine takes such a mount away.
        let script = format!(
            "#!/bin/sh\nexport HOME='{}' PATH='{}':$PATH\nexport CITOOL_STATE_DIR='{}' CITOOL_ENGINE_CONFIG='{}'\n\
             exec $SSH_ORIGINAL_COMMAND\n",
            engine.home().display(),
            bin.display(),
            engine.dir().display(),
            engine.engine_config().display(),
        );
        let program = engine.home().join("login");
        write_program(&program, &script);
        let ssh = SshServer::start_running(&engine.home().join("ssh"), &program);
        login(&client, &ssh);
        Self { engine, client, ssh }
    }

    /// A run of the client against the engine.
    pub(crate) fn cli(&self, words: &[&str]) -> Cli<'_> {
        let variables = self.environment().into_iter();
        variables.fold(self.client.cli(words), |run, (name, value)| run.env(name, value))
    }

    /// How often the client has logged in, or tried to.
    fn logins(&self) -> usize {
        fs::read_to_string(self.client.home().join(LOGINS)).unwrap().lines().count()
    }

    /// What the client finds the engine by.
    pub(crate) fn environment(&self) -> [(&'static str, String); 2] {
        let path = format!("{}:/usr/bin:/bin", self.client.home().join("bin").display());
        [("PATH", path), ("CITOOL_ENGINE", format!("ssh://root@127.0.0.1:{}", self.ssh.port()))]
    }
}

/// Gives the client an `ssh` that uses the server's key and nothing of the user's own.
fn login(client: &State, ssh: &SshServer) {
    let (known, config) = (client.home().join("known_hosts"), client.home().join("ssh_config"));
    fs::write(&known, ssh.known_hosts() + "\n").unwrap();
    let text = format!(
        "Host *\n  IdentityFile {}\n  IdentitiesOnly yes\n  UserKnownHostsFile {}\n  \
         StrictHostKeyChecking yes\n  BatchMode yes\n  Port {}\n",
        ssh.key().display(),
        known.display(),
        ssh.port(),
    );
    fs::write(&config, text).unwrap();
    let bin = client.home().join("bin");
    fs::create_dir(&bin).unwrap();
    let script = format!(
        "#!/bin/sh\necho >>'{}'\nexec /usr/bin/ssh -F '{}' \"$@\"\n",
        client.home().join(LOGINS).display(),
        config.display()
    );
    write_program(&bin.join("ssh"), &script);
}

#[test]
fn the_engine_is_started_on_its_machine_and_uses_the_clients_files() {
    let server = Server::start();
    let source = server.client.workdir().join("src");
    sample(&source);
    server.cli(&["core", "host", "directory", "--path=src", "-o", "copy"]).run().ok();
    assert_eq!(listing(&server.client.workdir().join("copy")), listing(&source));
    assert_eq!(server.logins(), 1, "a user who types a password types it once");
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
    fs::remove_file(server.ssh.key().with_extension("pub")).unwrap();
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
    // What a machine that has lost its power says: nothing, while its connections stay. The client is frozen as well, or
    // it would hang up.
    running.signal_group(Signal::STOP);
    let ended = || server.engine.log().contains("session ended");
    assert!(wait_until(server.engine.remaining(), ended), "{}", server.engine.log());
    running.signal_group(Signal::KILL);
    running.wait();
}
