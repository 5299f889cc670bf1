//! Directories of other machines, by Debian's `sshfs`.
//!
//! The engine makes the mount and `sshfs` answers for its files, one program a command: nobody ever sees what
//! another one was told a moment ago, and what ends a command ends its connection. The key is in memory alone.

use super::Endpoint;
use crate::secret::Secret;
use crate::service::{Forward, Lease, Service};
use crate::services::Services;
use graph::Context;
use protocol::{DigestBuilder, Error};
use sandbox::{Done, Errand, memory_place};
use std::sync::Arc;
use store::Mount;
use tokio::task::{AbortHandle, JoinHandle};

/// Where the program looks for `ssh`.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// What every connection is made with: nobody is asked, nothing of the engine's user is used.
const OPTIONS: [&str; 8] = [
    "BatchMode=yes",
    "ControlPath=none",
    "IdentitiesOnly=yes",
    "IdentityAgent=none",
    "GlobalKnownHostsFile=/dev/null",
    "UpdateHostKeys=no",
    "ConnectTimeout=30",
    "ServerAliveInterval=15",
];

/// A directory of another machine, and how one is let in there.
pub(crate) struct Sshfs {
    pub(super) endpoint: Endpoint,
    pub(super) private_key: Arc<Secret>,
    /// None trusts everybody.
    pub(super) known_hosts: Option<Arc<Secret>>,
    pub(super) cache_key: Option<String>,
    pub(super) service: Option<Arc<Service>>,
}

/// A mount of such a directory, and who answers for its files.
pub(crate) struct Mounted {
    pub(crate) mount: Mount,
    pub(crate) serving: Serving,
}

/// The program, which ends with this. A command that waits for it ends no sooner, whatever it is sent: so who wants
/// the command to end ends this first.
pub(crate) struct Serving(AbortHandle);

/// What must be there while the program runs.
struct Held {
    key: Mount,
    known_hosts: Option<Mount>,
    served: Option<(Lease, Forward)>,
}

/// Nobody said who the other machine is.
pub(super) fn unknown_host() -> Error {
    Error::user("nothing says who the other machine is").with_hint(
        "pass the lines that `ssh-keyscan` prints of it as the secret `knownHosts`, or set `insecureSkipHostKeyCheck`",
    )
}

impl Sshfs {
    /// What comes after `sshfs://`: `user@host:port/path?privateKey=<secret>&knownHosts=<secret>`.
    pub(super) fn at(rest: &str) -> Result<Self, Error> {
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let endpoint = Endpoint::parse(&format!("ssh://{place}"))?;
        let (mut private_key, mut known_hosts, mut insecure) = (None, None, false);
        for part in query.split('&').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            match (name, value) {
                ("privateKey", uri) => private_key = Some(Arc::new(Secret::kept(uri, None)?)),
                ("knownHosts", uri) => known_hosts = Some(Arc::new(Secret::kept(uri, None)?)),
                ("insecureSkipHostKeyCheck", "true" | "false") => insecure = value == "true",
                _ => {
                    let message = format!("`{part}` says nothing about a volume of `sshfs`");
                    return Err(Error::user(message).with_hint(
                        "it takes `privateKey`, `knownHosts` and `insecureSkipHostKeyCheck=true`",
                    ));
                }
            }
        }
        let private_key = private_key.ok_or_else(|| {
            Error::user(format!("`sshfs://{place}` has no key"))
                .with_hint("add `?privateKey=file://<path>`, or another secret")
        })?;
        match (insecure, &known_hosts) {
            (false, None) => return Err(unknown_host()),
            (true, _) => known_hosts = None,
            (false, Some(_)) => {}
        }
        Ok(Self { endpoint, private_key, known_hosts, cache_key: None, service: None })
    }

    pub(super) async fn digest_into<'a>(
        &self,
        digest: &'a mut DigestBuilder,
        cx: &Context,
    ) -> Result<&'a mut DigestBuilder, Error> {
        let Endpoint { port, .. } = self.endpoint;
        digest.text("sshfs").text(&self.endpoint.to_string()).number(u64::from(port));
        match &self.cache_key {
            Some(key) => digest.text("key").text(key),
            None => digest.text("secret").digest(&self.private_key.digest(cx).await?),
        };
        if let Some(service) = &self.service {
            digest.digest(service.identity());
        }
        Ok(digest)
    }

    /// Connects, and mounts what is there.
    pub(crate) async fn mount(&self, cx: &Context) -> Result<Mounted, Error> {
        let services = cx.get::<Services>()?;
        let failed = |error: sandbox::Error| Error::environment(error.to_string());
        let key = with_line_end(&self.private_key.plaintext(cx).await?);
        let key = sandbox::memory_file(&key, 0o600, (0, 0)).map_err(failed)?;
        let known_hosts = match &self.known_hosts {
            Some(lines) => {
                let lines = with_line_end(&lines.plaintext(cx).await?);
                Some(sandbox::memory_file(&lines, 0o600, (0, 0)).map_err(failed)?)
            }
            None => None,
        };
        let served = match &self.service {
            Some(service) => {
                let lease = service.start(cx).await?;
                let forward = lease.forwarded(self.endpoint.port, cx).await?;
                Some((lease, forward))
            }
            None => None,
        };
        let held = Held { key, known_hosts, served };
        let (mount, device) = sandbox::answered_mount(&self.endpoint.to_string())
            .map_err(|error| no_fuse(&self.endpoint, &error))?;
        let errand = Errand {
            program: "sshfs".to_owned(),
            arguments: self.arguments(&held),
            environment: vec![("PATH".to_owned(), PATH.to_owned())],
            folder: "/".to_owned(),
            stdin: Some(device),
            limit: usize::MAX,
            ..Errand::default()
        };
        let errands = services.errands.clone();
        let task = tokio::spawn(async move {
            let done = errands.run(errand).await;
            drop(held);
            done
        });
        let serving = Serving(task.abort_handle());
        self.answers(&mount, task).await?;
        Ok(Mounted { mount, serving })
    }

    /// Waits until somebody answers for the files.
    async fn answers(
        &self,
        mount: &Mount,
        mut task: JoinHandle<Result<Done, sandbox::Error>>,
    ) -> Result<(), Error> {
        let ended = tokio::select! {
            ended = &mut task => ended,
            answered = sandbox::is_answered(mount) => match answered {
                Ok(true) => return Ok(()),
                Ok(false) => task.await,
                Err(error) => return Err(self.refused(&error.to_string())),
            },
        };
        match ended {
            Ok(Ok(done)) => Err(self.refused(&String::from_utf8_lossy(&done.stderr))),
            Ok(Err(sandbox::Error::Program { code: 127, .. })) => {
                Err(not_installed(&self.endpoint))
            }
            Ok(Err(error)) => Err(Error::environment(error.to_string())),
            Err(failed) => Err(Error::internal(format!("a task failed: {failed}"))),
        }
    }

    fn arguments(&self, held: &Held) -> Vec<String> {
        let mut options = OPTIONS.map(str::to_owned).to_vec();
        options.push(format!("IdentityFile={}", memory_place(&held.key).display()));
        let (known, strict) = match &held.known_hosts {
            Some(file) => (memory_place(file).display().to_string(), "yes"),
            None => ("/dev/null".to_owned(), "no"),
        };
        options.push(format!("UserKnownHostsFile={known}"));
        options.push(format!("StrictHostKeyChecking={strict}"));
        let Endpoint { host, port, .. } = &self.endpoint;
        let (host, port) = match &held.served {
            Some((_, forward)) => {
                options.push(format!("HostKeyAlias={}", self.endpoint.known_as()));
                (forward.address().ip().to_string(), forward.address().port())
            }
            None => (host.clone(), *port),
        };
        let options: String = options.iter().map(|option| format!(" -o{option}")).collect();
        let words = [
            "-f",
            "-o",
            &format!("ssh_command=ssh -F none -oLogLevel=ERROR{options}"),
            // Files of the user who is let in are those of root here.
            "-o",
            "idmap=user",
            "-p",
            &port.to_string(),
            &self.endpoint.source(&host),
            // The other end of the mount.
            "/dev/fd/0",
        ];
        words.map(str::to_owned).to_vec()
    }

    /// The other machine, or `ssh`, refused.
    fn refused(&self, said: &str) -> Error {
        let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| telling(line)).collect();
        let said = if lines.is_empty() { "it gave no reason".to_owned() } else { lines.join("; ") };
        let error = Error::environment(format!("cannot mount `{}`: {said}", self.endpoint));
        match said.as_str() {
            said if said.contains("Host key verification failed") => error
                .with_hint("`knownHosts` has no line of this machine; `ssh-keyscan` prints it"),
            said if said.contains("Permission denied") => error
                .with_hint("the other machine does not let in who has `privateKey`; a key with a passphrase cannot be used"),
            _ => error,
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Whether a line of the program tells more than that there is one.
fn telling(line: &str) -> bool {
    !line.is_empty() && !line.starts_with("read: ") && !line.starts_with("remote host has")
}

fn with_line_end(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if bytes.last() != Some(&b'\n') {
        bytes.push(b'\n');
    }
    bytes
}

fn no_fuse(endpoint: &Endpoint, error: &sandbox::Error) -> Error {
    let message = format!("cannot mount `{endpoint}`: {error}");
    Error::environment(message).with_hint(
        "the engine's machine needs fuse: `modprobe fuse`, and in a container the device `/dev/fuse`",
    )
}

fn not_installed(endpoint: &Endpoint) -> Error {
    let message = format!("cannot mount `{endpoint}`: `sshfs` is not installed");
    Error::environment(message).with_hint("on the engine's machine: `apt-get install sshfs`")
}
