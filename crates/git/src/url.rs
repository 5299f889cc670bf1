//! [`Url`]: where a repository is, as users write it.
//!
//! `https://host/path`, `http://`, `ssh://user@host/path`, `git://`, `user@host:path` as ssh writes it, or just
//! `host/path`, of which only trying tells the protocol. A password in a url is taken out when it is read, so that no
//! text that is shown or kept has it.

use std::fmt;

/// How a remote is spoken with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// Encrypted.
    Https,
    /// Plain.
    Http,
    /// By a secure shell.
    Ssh,
    /// Git's own, without any proof of who anybody is.
    Git,
}

/// Where a repository is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Url {
    scheme: Scheme,
    user: Option<String>,
    host: String,
    port: Option<u16>,
    /// As it stands after the host: with a slash in front, unless it is of the short form of ssh.
    path: String,
    /// Whether it is written `user@host:path`.
    short: bool,
}

/// What a text may mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spelled {
    /// A url, and the password that was in it.
    Url(Url, Option<String>),
    /// A host and a path without a protocol.
    Schemeless(String),
    /// A path of the caller's machine.
    Path(String),
}

/// Why a text is no place of a repository.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// No url at all.
    #[error("`{0}` is not the url of a git repository")]
    Malformed(String),
    /// A protocol that we do not speak.
    #[error("`{url}` is of the protocol `{scheme}`, which is not supported for git repositories")]
    Scheme {
        /// The text.
        url: String,
        /// Its protocol.
        scheme: String,
    },
}

impl Scheme {
    /// As it stands in a url.
    pub fn name(self) -> &'static str {
        match self {
            Self::Https => "https",
            Self::Http => "http",
            Self::Ssh => "ssh",
            Self::Git => "git",
        }
    }
}

impl Spelled {
    /// Reads what a user wrote.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        let malformed = || UrlError::Malformed(shown(text));
        if text.is_empty() || text.starts_with('-') || text.chars().any(is_odd) {
            return Err(malformed());
        }
        if let Some(path) = text.strip_prefix("file://") {
            return Ok(Self::Path(path.to_owned()));
        }
        if let Some((scheme, rest)) = text.split_once("://") {
            let scheme = match scheme.strip_prefix("git+").unwrap_or(scheme) {
                "https" => Scheme::Https,
                "http" => Scheme::Http,
                "ssh" => Scheme::Ssh,
                "git" => Scheme::Git,
                other => {
                    let scheme = other.to_owned();
                    return Err(UrlError::Scheme { url: shown(text), scheme });
                }
            };
            let (url, password) = Url::with_scheme(scheme, rest).ok_or_else(malformed)?;
            return Ok(Self::Url(url, password));
        }
        if text.starts_with(['/', '.', '~']) {
            return Ok(Self::Path(text.to_owned()));
        }
        if let Some(url) = Url::short_form(text) {
            return Ok(Self::Url(url, None));
        }
        match text.split_once('/') {
            Some((host, path)) if !host.is_empty() && !path.is_empty() => {
                Ok(Self::Schemeless(text.to_owned()))
            }
            _ => Err(malformed()),
        }
    }
}

impl Url {
    /// What comes after `scheme://`, and the password in it.
    fn with_scheme(scheme: Scheme, rest: &str) -> Option<(Self, Option<String>)> {
        let (authority, path) = match rest.find('/') {
            Some(slash) => rest.split_at(slash),
            None => (rest, ""),
        };
        let (user_info, host) = match authority.rsplit_once('@') {
            Some((user_info, host)) => (Some(user_info), host),
            None => (None, authority),
        };
        let (user, password) =
            match user_info.map(|text| text.split_once(':').unwrap_or((text, ""))) {
                Some((user, password)) => (Some(decoded(user)?), Some(decoded(password)?)),
                None => (None, None),
            };
        let (host, port) = match host.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => {
                (host, Some(port.parse().ok().filter(|port| *port > 0)?))
            }
            _ => (host, None),
        };
        if host.is_empty() || host.starts_with('-') || matches!(path, "" | "/") {
            return None;
        }
        let user = user.filter(|user| !user.is_empty());
        let password = password.filter(|password| !password.is_empty());
        if user.as_ref().is_some_and(|user| user.starts_with('-')) {
            return None;
        }
        let (host, path) = (host.to_owned(), path.to_owned());
        Some((Self { scheme, user, host, port, path, short: false }, password))
    }

    /// `user@host:path`.
    fn short_form(text: &str) -> Option<Self> {
        let (authority, path) = text.split_once(':')?;
        let (user, host) = match authority.split_once('@') {
            Some((user, host)) => (Some(user.to_owned()), host),
            None => (None, authority),
        };
        let odd = |text: &str| text.is_empty() || text.starts_with('-') || text.contains('/');
        if odd(host) || user.as_deref().is_some_and(odd) || path.is_empty() || path.starts_with('-')
        {
            return None;
        }
        let (host, path) = (host.to_owned(), path.to_owned());
        Some(Self { scheme: Scheme::Ssh, user, host, port: None, path, short: true })
    }

    /// The same place by another protocol, for a text that names none.
    pub fn of_schemeless(scheme: Scheme, text: &str) -> Result<Self, UrlError> {
        let user = if scheme == Scheme::Ssh && !text.contains('@') { "git@" } else { "" };
        let made = Self::with_scheme(scheme, &format!("{user}{text}"));
        made.map(|(url, _)| url).ok_or_else(|| UrlError::Malformed(shown(text)))
    }

    /// How it is spoken with.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The host's name.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port, also where none is written.
    pub fn port(&self) -> u16 {
        self.port.unwrap_or(match self.scheme {
            Scheme::Https => 443,
            Scheme::Http => 80,
            Scheme::Ssh => 22,
            Scheme::Git => 9418,
        })
    }

    /// The same repository where the same server is reached too.
    pub fn at(&self, host: &str, port: u16) -> Self {
        let path = match self.short {
            true => format!("/{}", self.path.trim_start_matches('/')),
            false => self.path.clone(),
        };
        Self { host: host.to_owned(), port: Some(port), path, short: false, ..self.clone() }
    }

    /// The user in it.
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// The path on the host.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Whether credentials for the other are for this too.
    pub fn same_host(&self, other: &Self) -> bool {
        let place = |url: &Self| (url.scheme, url.host.to_ascii_lowercase(), url.port());
        place(self) == place(other)
    }

    /// The host as configuration of git names it, e.g. `https://host:8443`.
    pub(crate) fn origin(&self) -> String {
        let port = self.port.map(|port| format!(":{port}")).unwrap_or_default();
        format!("{}://{}{port}", self.scheme.name(), self.host)
    }

    /// Where a submodule is whose url is written relative to this repository's.
    pub fn resolve(&self, relative: &str) -> Result<Spelled, UrlError> {
        if !relative.starts_with("./") && !relative.starts_with("../") {
            return Spelled::parse(relative);
        }
        let malformed = || UrlError::Malformed(shown(relative));
        let mut base = self.path.trim_end_matches('/').to_owned();
        let mut rest = relative;
        loop {
            if let Some(after) = rest.strip_prefix("./") {
                rest = after;
            } else if let Some(after) = rest.strip_prefix("../") {
                rest = after;
                match base.rfind('/') {
                    Some(slash) => base.truncate(slash),
                    None if !base.is_empty() => base.clear(),
                    None => return Err(malformed()),
                }
            } else {
                break;
            }
        }
        if rest.is_empty() || rest.chars().any(is_odd) {
            return Err(malformed());
        }
        let path = match base.is_empty() && self.short {
            true => rest.to_owned(),
            false => format!("{base}/{rest}"),
        };
        Ok(Spelled::Url(Self { path, ..self.clone() }, None))
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = self.user.as_ref().map(|user| format!("{user}@")).unwrap_or_default();
        if self.short {
            return write!(f, "{user}{}:{}", self.host, self.path);
        }
        let port = self.port.map(|port| format!(":{port}")).unwrap_or_default();
        write!(f, "{}://{user}{}{port}{}", self.scheme.name(), self.host, self.path)
    }
}

/// Characters that no url has, and that would be something else to who reads it.
fn is_odd(character: char) -> bool {
    character.is_control() || character == ' ' || character == '\\'
}

/// Text with its percent signs read; none when they are wrong.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = vec![];
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = [rest.next()?, rest.next()?];
        bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
    }
    String::from_utf8(bytes).ok()
}

/// A text in a message, without what may be a password in it.
fn shown(text: &str) -> String {
    let short: String = text.chars().take(200).collect();
    let Some((scheme, rest)) = short.split_once("://") else { return short };
    match rest.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}://***@{host}"),
        None => short,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        match Spelled::parse(text).unwrap() {
            Spelled::Url(url, _) => url,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn urls_are_read_and_shown() {
        for (text, shown, host, port) in [
            ("https://host/o/r.git", "https://host/o/r.git", "host", 443),
            ("http://host:8080/r", "http://host:8080/r", "host", 8080),
            ("ssh://git@host:22/o/r", "ssh://git@host:22/o/r", "host", 22),
            ("git@host:o/r.git", "git@host:o/r.git", "host", 22),
            ("host:r", "host:r", "host", 22),
            ("git://host/r", "git://host/r", "host", 9418),
            ("git+ssh://host/r", "ssh://host/r", "host", 22),
            ("https://[::1]:8443/r", "https://[::1]:8443/r", "[::1]", 8443),
            ("https://me:p%40ss@host/r", "https://me@host/r", "host", 443),
        ] {
            let url = url(text);
            assert_eq!((url.to_string().as_str(), url.host(), url.port()), (shown, host, port));
        }
        let Spelled::Url(_, password) = Spelled::parse("https://me:p%40ss@host/r").unwrap() else {
            panic!("a url")
        };
        assert_eq!(password.as_deref(), Some("p@ss"));
    }

    #[test]
    fn other_texts_are_paths_or_have_no_protocol() {
        for text in ["/srv/r", "./r", "../r", "~/r"] {
            assert_eq!(Spelled::parse(text), Ok(Spelled::Path(text.into())));
        }
        assert_eq!(Spelled::parse("file:///srv/r"), Ok(Spelled::Path("/srv/r".into())));
        assert_eq!(Spelled::parse("host/o/r"), Ok(Spelled::Schemeless("host/o/r".into())));
        let made = |scheme| Url::of_schemeless(scheme, "host/o/r").unwrap().to_string();
        assert_eq!(made(Scheme::Https), "https://host/o/r");
        assert_eq!(made(Scheme::Ssh), "ssh://git@host/o/r");
    }

    #[test]
    fn hostile_texts_are_refused() {
        for text in [
            "",
            "-o",
            "--upload-pack=x",
            "https://",
            "https://host",
            "https://-oProxyCommand=x/r",
            "ssh://-oProxyCommand=x/r",
            "ssh://-o@host/r",
            "-oProxyCommand=x:r",
            "host:-x",
            "a b",
            "https://host/r\nnext",
            "ext::sh -c x",
            "https://host:0/r",
            "https://host:99999/r",
            "word",
        ] {
            assert!(Spelled::parse(text).is_err(), "{text:?}: {:?}", Spelled::parse(text));
        }
        let error = Spelled::parse("ftp://me:secret@host/r").unwrap_err().to_string();
        assert!(error.contains("`ftp`") && !error.contains("secret"), "{error}");
    }

    #[test]
    fn urls_of_submodules_are_relative_to_their_repository() {
        for (base, relative, expect) in [
            ("https://host/o/r.git", "../s.git", "https://host/o/s.git"),
            ("https://host/o/r", "../../p/s", "https://host/p/s"),
            ("https://host/o/r/", "./s", "https://host/o/r/s"),
            ("git@host:o/r", "../s", "git@host:o/s"),
            ("git@host:r", "../s", "git@host:s"),
            ("https://host/r", "ssh://other/s", "ssh://other/s"),
        ] {
            let Spelled::Url(found, _) = url(base).resolve(relative).unwrap() else { panic!() };
            assert_eq!(found.to_string(), expect);
        }
        for relative in ["../../../../s", "../", "./-\n"] {
            assert!(url("https://host/o/r").resolve(relative).is_err(), "{relative}");
        }
    }

    #[test]
    fn credentials_are_for_one_host() {
        let same = |one: &str, other: &str| url(one).same_host(&url(other));
        assert!(same("https://Host/a", "https://host:443/b"));
        assert!(!same("https://host/a", "http://host/a"));
        assert!(!same("https://host/a", "https://host:8443/a"));
        assert!(!same("https://host/a", "https://host.evil/a"));
    }
}
