//! [`Access`]: the credentials of one caller, as git is given them.
//!
//! All of it goes by the environment of one process. A password is for one host: git asks for it there by a helper, and
//! for no other, also after the server has sent it elsewhere. A header goes with every request, so a server that sends
//! us elsewhere is not followed with one.

use crate::url::{Scheme, Url};
use std::fmt;
use std::path::PathBuf;

/// Says the user and the password that are in the environment, and nothing when it is told something.
const HELPER: &str = r#"!f() { test "$1" = get && printf 'username=%s\npassword=%s\n' "$GIT_ACCESS_USER" "$GIT_ACCESS_PASSWORD"; }; f"#;

/// The credentials of one caller.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// For http, and the host it is for.
    pub http: Option<(Url, HttpAccess)>,
    /// For ssh.
    pub agent: Option<Agent>,
    /// Where hosts are that no name service knows: `host:port:address`.
    pub places: Vec<String>,
}

/// How an http server is convinced.
#[derive(Clone, PartialEq, Eq)]
pub enum HttpAccess {
    /// A user and a password or token.
    Password {
        /// Name of the user.
        username: String,
        /// Password or token.
        password: String,
    },
    /// The value of the header `Authorization`.
    Header(String),
}

/// An agent that holds the keys, and whom to trust.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// The agent's socket.
    pub socket: PathBuf,
    /// A file in the form of `known_hosts`.
    pub known_hosts: PathBuf,
    /// Whether hosts that are not in it are refused; else they are added to it.
    pub strict: bool,
}

impl fmt::Debug for HttpAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HttpAccess")
    }
}

type Pairs = Vec<(String, String)>;

impl Access {
    /// Variables and configuration for one command.
    pub(crate) fn for_git(&self, url: &Url) -> (Pairs, Pairs) {
        let (mut environment, mut config) = (vec![], vec![]);
        let http = self.http.as_ref().filter(|(host, _)| host.same_host(url));
        match http.map(|(_, access)| access) {
            Some(HttpAccess::Password { username, password }) => {
                environment.push(("GIT_ACCESS_USER".into(), username.clone()));
                environment.push(("GIT_ACCESS_PASSWORD".into(), password.clone()));
                config.push((format!("credential.{}.helper", url.origin()), HELPER.into()));
            }
            Some(HttpAccess::Header(value)) => {
                let header = match value.to_ascii_lowercase().starts_with("authorization:") {
                    true => value.clone(),
                    false => format!("Authorization: {value}"),
                };
                config.push((format!("http.{}/.extraHeader", url.origin()), header));
                config.push(("http.followRedirects".into(), "false".into()));
            }
            None => {}
        }
        if url.scheme() == Scheme::Ssh {
            environment.push(("GIT_SSH_COMMAND".into(), self.ssh_command()));
            environment.push(("GIT_SSH_VARIANT".into(), "ssh".into()));
        }
        for place in &self.places {
            config.push(("http.curloptResolve".into(), place.clone()));
        }
        (environment, config)
    }

    fn ssh_command(&self) -> String {
        let mut options: Vec<String> = [
            "BatchMode=yes",
            "ControlMaster=no",
            "ControlPath=none",
            "ForwardAgent=no",
            "ForwardX11=no",
            "PermitLocalCommand=no",
            "UpdateHostKeys=no",
            "IdentityFile=/dev/null",
            "GlobalKnownHostsFile=/dev/null",
            "ConnectTimeout=30",
            "ServerAliveInterval=15",
        ]
        .map(str::to_owned)
        .into();
        if let Some(agent) = &self.agent {
            let checking = if agent.strict { "yes" } else { "accept-new" };
            options.push(format!("IdentityAgent={}", agent.socket.display()));
            options.push(format!("UserKnownHostsFile={}", agent.known_hosts.display()));
            options.push(format!("StrictHostKeyChecking={checking}"));
        }
        let quoted = |option: String| format!(" -o '{}'", option.replace('\'', r"'\''"));
        let options: String = options.into_iter().map(quoted).collect();
        format!("ssh -F none{options}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Spelled;

    fn url(text: &str) -> Url {
        match Spelled::parse(text).unwrap() {
            Spelled::Url(url, _) => url,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_password_is_for_its_host_alone() {
        let password = HttpAccess::Password { username: "u".into(), password: "secret".into() };
        let own = url("https://host/r");
        let access = Access { http: Some((own.clone(), password)), ..Access::default() };
        let (environment, config) = access.for_git(&own);
        assert!(environment.contains(&("GIT_ACCESS_PASSWORD".into(), "secret".into())));
        assert!(
            config[0].0.starts_with("credential.https://host.") && !config[0].1.contains("secret")
        );
        for other in ["https://host.evil/r", "http://host/r", "https://host:81/r"] {
            let (environment, config) = access.for_git(&url(other));
            assert!(environment.is_empty() && config.is_empty(), "{other}");
        }
        assert!(!format!("{access:?}").contains("secret"));
    }

    #[test]
    fn a_header_is_not_carried_elsewhere() {
        for (given, sent) in [
            ("Bearer x", "Authorization: Bearer x"),
            ("authorization: basic x", "authorization: basic x"),
        ] {
            let own = url("http://host:81/r");
            let http = Some((own.clone(), HttpAccess::Header(given.into())));
            let (_, config) = Access { http, ..Access::default() }.for_git(&own);
            assert!(config.contains(&("http.http://host:81/.extraHeader".into(), sent.into())));
            assert!(config.contains(&("http.followRedirects".into(), "false".into())));
        }
    }

    #[test]
    fn ssh_asks_the_agent_and_nobody_else() {
        let agent = Agent { socket: "/a b".into(), known_hosts: "/it's".into(), strict: true };
        let access = Access { agent: Some(agent), ..Access::default() };
        let (environment, _) = access.for_git(&url("git@host:r"));
        let command = &environment[0].1;
        assert!(command.contains("-o 'IdentityAgent=/a b'"), "{command}");
        assert!(command.contains(r"-o 'UserKnownHostsFile=/it'\''s'"), "{command}");
        assert!(command.contains("StrictHostKeyChecking=yes") && command.contains("-F none"));
    }
}
