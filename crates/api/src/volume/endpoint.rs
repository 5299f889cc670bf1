//! [`Endpoint`]: a directory of another machine that is reached by ssh, as users write it.

use protocol::Error;

/// The port of ssh.
const USUAL_PORT: u16 = 22;

/// A directory of another machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Endpoint {
    pub(super) user: Option<String>,
    /// A name or an address, without brackets.
    pub(super) host: String,
    pub(super) port: u16,
    /// As the other machine takes it: without a slash in front it is below the user's home.
    pub(super) path: String,
}

impl Endpoint {
    /// Reads `[user@]host:path` or `ssh://[user@]host[:port]/path`.
    pub(super) fn parse(text: &str) -> Result<Self, Error> {
        let plain = text.strip_prefix("ssh://").or_else(|| text.strip_prefix("sshfs://"));
        let read = match plain {
            Some(rest) => Self::of_url(rest),
            None => Self::short_form(text),
        };
        read.filter(Self::is_sane).ok_or_else(|| {
            Error::user(format!("`{text}` is no directory of another machine"))
                .with_hint("write it as `user@host:directory` or `ssh://user@host:port/directory`")
        })
    }

    fn of_url(rest: &str) -> Option<Self> {
        let slash = rest.find('/').unwrap_or(rest.len());
        let (authority, path) = rest.split_at(slash);
        let (user, place) = user_and(authority);
        let (host, port) = match place.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()?),
            _ => (place, USUAL_PORT),
        };
        let path = if path.is_empty() { "/" } else { path };
        Some(Self { user, host: bare(host).to_owned(), port, path: path.to_owned() })
    }

    fn short_form(text: &str) -> Option<Self> {
        let colon = match text.find(']') {
            Some(bracket) => bracket + text[bracket..].find(':')?,
            None => text.find(':')?,
        };
        let (user, host) = user_and(&text[..colon]);
        let path = text[colon + 1..].to_owned();
        Some(Self { user, host: bare(host).to_owned(), port: USUAL_PORT, path })
    }

    /// Whether programs take it for what it is.
    fn is_sane(&self) -> bool {
        let word = |text: &str, more: &str| {
            let known = |c: char| c.is_ascii_alphanumeric() || more.contains(c);
            !text.is_empty() && !text.starts_with('-') && text.chars().all(known)
        };
        self.port > 0
            && word(&self.host, ".-_:")
            && self.user.as_ref().is_none_or(|user| word(user, ".-_\\+"))
            && !self.path.contains(char::is_control)
    }

    /// As `sshfs` takes it, with another place to find it at if there is one.
    pub(super) fn source(&self, host: &str) -> String {
        let user = self.user.as_ref().map(|user| format!("{user}@")).unwrap_or_default();
        match host.contains(':') {
            true => format!("{user}[{host}]:{}", self.path),
            false => format!("{user}{host}:{}", self.path),
        }
    }

    /// What a `known_hosts` file calls the machine.
    pub(super) fn known_as(&self) -> String {
        match self.port {
            USUAL_PORT => self.host.clone(),
            port => format!("[{}]:{port}", self.host),
        }
    }
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.source(&self.host))
    }
}

fn user_and(authority: &str) -> (Option<String>, &str) {
    match authority.rsplit_once('@') {
        Some((user, place)) => (Some(user.to_owned()), place),
        None => (None, authority),
    }
}

fn bare(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::Endpoint;

    fn check(text: &str, (user, host, port, path): (Option<&str>, &str, u16, &str)) {
        let endpoint = Endpoint::parse(text).unwrap();
        let expected = Endpoint {
            user: user.map(str::to_owned),
            host: host.to_owned(),
            port,
            path: path.to_owned(),
        };
        assert_eq!(endpoint, expected, "{text}");
    }

    #[test]
    fn endpoints_as_users_write_them() {
        check("me@host:/srv/data", (Some("me"), "host", 22, "/srv/data"));
        check("host:data", (None, "host", 22, "data"));
        check("host:", (None, "host", 22, ""));
        check("me@[::1]:/d", (Some("me"), "::1", 22, "/d"));
        check("ssh://me@host:2222/srv/a b", (Some("me"), "host", 2222, "/srv/a b"));
        check("ssh://host", (None, "host", 22, "/"));
        check("sshfs://[::1]:7/d", (None, "::1", 7, "/d"));
    }

    #[test]
    fn what_a_program_could_take_for_an_option_is_refused() {
        for text in [
            "",
            "host",
            "-oProxyCommand=x:/d",
            "ssh://-oProxyCommand=x/d",
            "-me@host:/d",
            "ssh://host:0/d",
            "ssh://host:x/d",
            "ssh:///d",
            "host:/a\nb",
            "ho st:/d",
            "host,a:/d",
        ] {
            assert!(Endpoint::parse(text).is_err(), "{text:?}");
        }
    }
}
