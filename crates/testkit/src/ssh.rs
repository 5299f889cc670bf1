//! [`SshServer`]: the system's `sshd` for one test, with a key and an agent that holds it.

use crate::process::{signal, tree, wait_until};
use rustix::process::Signal;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How long a server may take to listen.
const START: Duration = Duration::from_secs(60);

/// A server that lets in who has the key of its agent.
pub struct SshServer {
    folder: PathBuf,
    port: u16,
    server: Child,
    agent: Child,
}

impl SshServer {
    /// Starts server and agent, with all their files in a folder.
    pub fn start(folder: &Path) -> Self {
        Self::start_with(folder, "Subsystem sftp internal-sftp")
    }

    /// The same, for a server that runs this program whatever a client asks for.
    pub fn start_running(folder: &Path, program: &Path) -> Self {
        Self::start_with(folder, &format!("ForceCommand {}", program.display()))
    }

    fn start_with(folder: &Path, setting: &str) -> Self {
        std::fs::create_dir_all(folder).expect("a folder can be made");
        // The server wants it for a process without rights.
        std::fs::create_dir_all("/run/sshd").expect("the server's folder can be made");
        for name in ["host", "user"] {
            run(Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f"])
                .arg(folder.join(name)));
        }
        let port = TcpListener::bind("127.0.0.1:0").expect("a port is free").local_addr();
        let port = port.expect("it has an address").port();
        let path = |name: &str| folder.join(name).display().to_string();
        let config = format!(
            "ListenAddress 127.0.0.1:{port}\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\nUsePAM no\n\
             StrictModes no\nPasswordAuthentication no\nPermitRootLogin yes\nLogLevel ERROR\n{setting}\n",
            path("host"),
            path("user.pub")
        );
        std::fs::write(folder.join("config"), config).expect("settings can be written");
        let mut server = Command::new("/usr/sbin/sshd");
        server.args(["-D", "-e", "-f"]).arg(folder.join("config"));
        let server = server.stderr(Stdio::null()).spawn().expect("sshd can be started");
        let mut agent = Command::new("ssh-agent");
        agent.args(["-D", "-a"]).arg(folder.join("agent")).stdout(Stdio::null());
        let agent = agent.spawn().expect("an agent can be started");
        let started = Self { folder: folder.to_owned(), port, server, agent };
        let up = || TcpStream::connect(("127.0.0.1", port)).is_ok() && started.agent().exists();
        assert!(wait_until(START, up), "sshd and an agent are up");
        let mut add = Command::new("ssh-add");
        run(add
            .arg("-q")
            .arg(folder.join("user"))
            .env("SSH_AUTH_SOCK", started.agent())
            .stderr(Stdio::null()));
        started
    }

    /// The agent's socket.
    pub fn agent(&self) -> PathBuf {
        self.folder.join("agent")
    }

    /// The file of the key that it lets in.
    pub fn key(&self) -> PathBuf {
        self.folder.join("user")
    }

    /// The port that it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The url of a repository or a directory, by its path on this machine.
    pub fn url(&self, path: &Path) -> String {
        format!("ssh://root@127.0.0.1:{}{}", self.port, path.display())
    }

    /// Lets it say nothing any more, to nobody, while its connections stay.
    pub fn silence(&self) {
        for process in tree(self.server.id() as i32) {
            signal(process.pid, Signal::STOP);
        }
    }

    /// The line that a `known_hosts` file has of the server.
    pub fn known_hosts(&self) -> String {
        let key =
            std::fs::read_to_string(self.folder.join("host.pub")).expect("the host has a key");
        format!("[127.0.0.1]:{} {}", self.port, key.trim())
    }
}

impl Drop for SshServer {
    fn drop(&mut self) {
        for process in tree(self.server.id() as i32) {
            process.kill();
        }
        for child in [&mut self.server, &mut self.agent] {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[track_caller]
fn run(command: &mut Command) {
    let status = command.status().expect("a program can be started");
    assert!(status.success(), "{command:?}: {status}");
}
