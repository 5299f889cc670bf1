//! Engines on other machines: the same commands, the files of this machine, over certificates or ssh.

mod link;
mod rootless;
mod settings;
mod slow;
mod ssh;
mod tls;
mod vanishing;

pub(crate) use ssh::Server as SshServer;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use testkit::registry::Authority;
use testkit::{Cli, State};

/// An engine with a door for other machines, and a client that has nothing but the address.
pub(crate) struct Remote {
    /// Where the engine lives.
    pub(crate) engine: State,
    /// Where the client lives.
    pub(crate) client: State,
    /// Where the engine listens.
    pub(crate) port: u16,
}

impl Remote {
    /// An engine that wants certificates and a client that has one.
    pub(crate) fn new() -> Self {
        Self::on(State::new())
    }

    /// The same, with an engine on this state folder.
    pub(crate) fn on(engine: State) -> Self {
        let authority = Authority::new();
        let remote = Self::with(engine, |folder, port| {
            write(&folder.join("ca.pem"), &authority.certificate());
            identify(folder, "engine", authority.issue());
            let named = |name: &str| format!("{:?}", folder.join(name).display().to_string());
            format!(
                "listen = \"tcp://127.0.0.1:{port}\"\ntls-cert = {}\ntls-key = {}\ntls-client-ca = {}\n",
                named("engine.pem"),
                named("engine.key"),
                named("ca.pem"),
            )
        });
        write(&remote.file("ca.pem"), &authority.certificate());
        identify(&remote.client.home(), "client", authority.issue_for(&["client"]));
        remote
    }

    /// An engine on loopback that lets everybody in.
    pub(crate) fn plain() -> Self {
        Self::with(State::new(), |_, port| {
            format!("listen = \"tcp://127.0.0.1:{port}\"\nlisten-plain = true\n")
        })
    }

    fn with(engine: State, settings: impl FnOnce(&Path, u16) -> String) -> Self {
        let port = free_port();
        engine.configure(&settings(&engine.home(), port));
        // Whoever uses an engine's own socket starts it.
        engine.cli(["core", "version"]).run().ok();
        let client = engine.another();
        Self { engine, client, port }
    }

    /// A file of the client's.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.client.home().join(name)
    }

    /// A run of the client against the engine's own port.
    pub(crate) fn cli(&self, words: &[&str]) -> Cli<'_> {
        self.cli_at(self.port, words)
    }

    /// A run of the client against another port.
    pub(crate) fn cli_at(&self, port: u16, words: &[&str]) -> Cli<'_> {
        let mut run =
            self.client.cli(words).env("CITOOL_ENGINE", format!("tcp://127.0.0.1:{port}"));
        for (name, file) in [("CA", "ca.pem"), ("CERT", "client.pem"), ("KEY", "client.key")] {
            if self.file(file).exists() {
                run = run.env(&format!("CITOOL_ENGINE_{name}"), self.file(file));
            }
        }
        run
    }
}

/// A port that nobody listens on now.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn identify(folder: &Path, name: &str, (certificate, key): (String, String)) {
    write(&folder.join(format!("{name}.pem")), &certificate);
    write(&folder.join(format!("{name}.key")), &key);
}

fn write(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
}
