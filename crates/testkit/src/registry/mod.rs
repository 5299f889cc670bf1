//! [`Registry`]: Debian's `docker-registry` on a free port of loopback, with a storage folder of its
//! own, in the variants that clients meet; and [`FaultyProxy`], which makes one misbehave.
//!
//! A registry ends when it is dropped, and with the thread that started it.

mod authority;
mod proxy;
mod tokens;

pub use authority::Authority;
pub use proxy::{Fault, FaultyProxy, Head};
pub use tokens::{REFRESH_TOKEN, TokenServer};

use crate::process::wait_until;
use crate::surroundings::{deadline, root};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// The user of registries that ask for one.
pub const USER: &str = "tester";

/// That user's password.
pub const PASSWORD: &str = "hush";

/// User and password in the one form that the registry takes.
const HTPASSWD: &str = "tester:$2b$05$abcdefghijklmnopqrstuulzd.YqjLDl8lvpSmVj3De/fioSBHnUa\n";

/// What the registry says once it listens.
const LISTENING: &str = "listening on ";

/// A running registry.
pub struct Registry {
    folder: PathBuf,
    child: Child,
    port: u16,
    tokens: Option<TokenServer>,
}

impl Registry {
    /// Plain HTTP, open to everybody.
    pub fn start() -> Self {
        Self::start_in(folder(), "", "", None)
    }

    /// Plain HTTP, with user and password.
    pub fn with_password() -> Self {
        let folder = folder();
        let file = folder.join("htpasswd");
        write(&file, HTPASSWD);
        let auth = format!("auth: {{ htpasswd: {{ realm: r, path: {} }} }}\n", file.display());
        Self::start_in(folder, "", &auth, None)
    }

    /// Plain HTTP, with tokens: everybody may pull from `public/`, the user may do all.
    pub fn with_tokens() -> Self {
        let folder = folder();
        let authority = Authority::new();
        let file = folder.join("tokens.pem");
        write(&file, &authority.certificate());
        let tokens = TokenServer::start(authority);
        let auth = format!(
            "auth: {{ token: {{ realm: '{}', service: {}, issuer: {}, rootcertbundle: {} }} }}\n",
            tokens.realm(),
            tokens::SERVICE,
            tokens::ISSUER,
            file.display(),
        );
        Self::start_in(folder, "", &auth, Some(tokens))
    }

    /// HTTPS with a certificate by an authority that nobody knows: [`Registry::ca`].
    pub fn with_tls() -> Self {
        let folder = folder();
        let authority = Authority::new();
        let (certificate, key) = authority.issue();
        write(&folder.join("ca.pem"), &authority.certificate());
        let (certificate_file, key_file) = (folder.join("server.pem"), folder.join("server.key"));
        write(&certificate_file, &certificate);
        write(&key_file, &key);
        let tls = format!(
            ", tls: {{ certificate: {}, key: {} }}",
            certificate_file.display(),
            key_file.display()
        );
        Self::start_in(folder, &tls, "", None)
    }

    fn start_in(folder: PathBuf, tls: &str, auth: &str, tokens: Option<TokenServer>) -> Self {
        let config = format!(
            "version: 0.1\n\
             log: {{ level: info }}\n\
             storage: {{ filesystem: {{ rootdirectory: {} }}, delete: {{ enabled: true }} }}\n\
             http: {{ addr: '127.0.0.1:0', secret: test{tls} }}\n\
             {auth}",
            folder.join("storage").display()
        );
        write(&folder.join("config.yml"), &config);
        let log = File::create(folder.join("log")).expect("a log can be made");
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "docker-registry", "serve"]);
        command.arg(folder.join("config.yml"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).env_clear();
        command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        let child = command.spawn().expect("`docker-registry` is installed: `cargo xtask setup`");
        let mut registry = Self { folder, child, port: 0, tokens };
        registry.wait_for_port();
        registry
    }

    fn wait_for_port(&mut self) {
        let mut found = None;
        wait_until(deadline(), || {
            found = port_in(&self.log());
            found.is_some() || self.child.try_wait().is_ok_and(|ended| ended.is_some())
        });
        self.port = found.unwrap_or_else(|| panic!("no registry came up: {}", self.log()));
    }

    /// `127.0.0.1:<port>`.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The authority behind the certificate, as a file.
    pub fn ca(&self) -> PathBuf {
        self.folder.join("ca.pem")
    }

    /// The server that gives tokens for this registry.
    pub fn tokens(&self) -> &TokenServer {
        self.tokens.as_ref().expect("the registry was started with tokens")
    }

    /// What the registry wrote so far.
    pub fn log(&self) -> String {
        let bytes = std::fs::read(self.folder.join("log")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The file that holds a blob, by its digest with the name of the function.
    pub fn blob_file(&self, digest: &str) -> PathBuf {
        let digits = digest.strip_prefix("sha256:").expect("blobs are kept by SHA-256");
        let blobs = self.folder.join("storage/docker/registry/v2/blobs/sha256");
        blobs.join(&digits[..2]).join(digits).join("data")
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The last number of the line that says where the registry listens.
fn port_in(log: &str) -> Option<u16> {
    let (_, rest) = log.split_once(LISTENING)?;
    let (_, rest) = rest.split_once("127.0.0.1:")?;
    let (digits, _) = rest.split_once(|c: char| !c.is_ascii_digit())?;
    digits.parse().ok()
}

fn folder() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let folder = root().join(format!("registry{}-{number}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for a registry can be made");
    folder
}

fn write(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

#[cfg(test)]
mod tests {
    use super::port_in;

    #[test]
    fn the_port_is_read_from_the_log() {
        let line = "level=info msg=\"listening on 127.0.0.1:41234\" go.version=1\n";
        assert_eq!(port_in(line), Some(41234));
        assert_eq!(port_in("msg=\"listening on 127.0.0.1:41"), None);
        assert_eq!(port_in(""), None);
    }
}
