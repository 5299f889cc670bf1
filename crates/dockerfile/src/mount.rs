//! `RUN --mount`: what a command sees besides the files of its stage.

use crate::{Error, Expander};

/// A mount as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawMount {
    fields: Vec<(String, Option<String>)>,
}

/// A mount whose variables are replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mount {
    /// What is mounted.
    pub kind: MountKind,
    /// Where; none for secrets and sockets that have a usual place.
    pub target: Option<String>,
    /// What of the stage, image or context.
    pub source: Option<String>,
    /// The stage or image; none is the build context.
    pub from: Option<String>,
    /// The name of a cache, secret or socket.
    pub id: Option<String>,
    /// Whether it can be written to, where that was said.
    pub writable: Option<bool>,
    /// Who may use a cache at the same time.
    pub sharing: Sharing,
    /// Whether the build fails without it.
    pub required: bool,
    /// Permission bits.
    pub mode: Option<u32>,
    /// User.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// The variable that a secret is put into.
    pub env: Option<String>,
    /// Most bytes of a file system in memory.
    pub size: Option<u64>,
}

/// What is mounted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MountKind {
    /// Files of the context, a stage or an image.
    #[default]
    Bind,
    /// A directory that stays from build to build.
    Cache,
    /// An empty file system in memory.
    Tmpfs,
    /// A secret.
    Secret,
    /// The socket of an ssh agent.
    Ssh,
}

/// Who may use a cache at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// Everybody.
    #[default]
    Shared,
    /// Everybody has one of their own.
    Private,
    /// One after the other.
    Locked,
}

impl RawMount {
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        let mut fields = vec![];
        for field in split(text)? {
            let (name, value) = match field.split_once('=') {
                Some((name, value)) => (name.trim(), Some(value.to_owned())),
                None => (field.trim(), None),
            };
            let flag = matches!(name, "readonly" | "ro" | "readwrite" | "rw" | "required");
            if value.is_none() && !flag {
                return Err(Error::of(format!(
                    "invalid field '{name}' of --mount must be a key=value pair"
                )));
            }
            fields.push((name.to_ascii_lowercase(), value));
        }
        let raw = Self { fields };
        if raw.from().is_some_and(|from| from.contains('$')) {
            return Err(crate::parse::variable_in_from());
        }
        // What needs no variables is looked at now, so that its line is known to be wrong early.
        raw.resolve(&Expander::new('\\', &|_| Some("0".to_owned())))?;
        Ok(raw)
    }

    /// The stage or image that it is of.
    pub fn from(&self) -> Option<&str> {
        let field = self.fields.iter().rfind(|(name, _)| name == "from")?;
        field.1.as_deref()
    }

    /// The mount with its variables replaced.
    pub fn resolve(&self, expander: &Expander<'_>) -> Result<Mount, Error> {
        let mut mount = Mount::default();
        for (name, value) in &self.fields {
            let value = value.as_deref().map(|value| expander.word(value)).transpose()?;
            mount.set(name, value)?;
        }
        mount.check()?;
        Ok(mount)
    }
}

impl Mount {
    fn set(&mut self, name: &str, value: Option<String>) -> Result<(), Error> {
        let text = value.clone().unwrap_or_default();
        let said = match value.as_deref() {
            None => Some(true),
            Some(text) => boolean(text),
        };
        let yes = || said.ok_or_else(|| invalid(name, &text));
        match name {
            "type" => self.kind = kind(&text)?,
            "target" | "dst" | "destination" => self.target = Some(text),
            "source" | "src" => self.source = Some(text),
            "from" => self.from = Some(text),
            "id" => self.id = Some(text),
            "readonly" | "ro" => self.writable = Some(!yes()?),
            "readwrite" | "rw" => self.writable = Some(yes()?),
            "required" => self.required = yes()?,
            "sharing" => self.sharing = sharing(&text)?,
            "mode" => {
                let mode = u32::from_str_radix(&text, 8).ok().filter(|mode| *mode <= 0o7777);
                self.mode = Some(mode.ok_or_else(|| invalid(name, &text))?);
            }
            "uid" => self.uid = Some(text.parse().map_err(|_| invalid(name, &text))?),
            "gid" => self.gid = Some(text.parse().map_err(|_| invalid(name, &text))?),
            "env" => self.env = Some(text),
            "size" => self.size = Some(bytes(&text).ok_or_else(|| invalid(name, &text))?),
            _ => return Err(Error::of(format!("unexpected key '{name}' in --mount"))),
        }
        Ok(())
    }

    fn check(&self) -> Result<(), Error> {
        let needs_target =
            matches!(self.kind, MountKind::Bind | MountKind::Cache | MountKind::Tmpfs);
        if needs_target && self.target.as_deref().unwrap_or_default().is_empty() {
            return Err(Error::of("--mount: target is required"));
        }
        if self.kind == MountKind::Secret
            && self.id.is_none()
            && self.target.is_none()
            && self.source.is_none()
        {
            return Err(Error::of("--mount: a secret needs an id or a target"));
        }
        if self.env.is_some() && self.kind != MountKind::Secret {
            return Err(Error::of("--mount: only secrets can be put into a variable"));
        }
        Ok(())
    }
}

fn invalid(name: &str, value: &str) -> Error {
    Error::of(format!("invalid value for {name}: {value}"))
}

fn boolean(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

fn kind(text: &str) -> Result<MountKind, Error> {
    Ok(match text {
        "bind" => MountKind::Bind,
        "cache" => MountKind::Cache,
        "tmpfs" => MountKind::Tmpfs,
        "secret" => MountKind::Secret,
        "ssh" => MountKind::Ssh,
        _ => return Err(Error::of(format!("unsupported mount type \"{text}\""))),
    })
}

fn sharing(text: &str) -> Result<Sharing, Error> {
    Ok(match text {
        "shared" => Sharing::Shared,
        "private" => Sharing::Private,
        "locked" => Sharing::Locked,
        _ => return Err(Error::of(format!("unsupported sharing value \"{text}\""))),
    })
}

/// A number of bytes, with a letter for its unit.
fn bytes(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    let text = text.strip_suffix("ib").or(text.strip_suffix('b')).unwrap_or(&text);
    let (digits, shift) = match text.as_bytes().last()? {
        b'k' => (&text[..text.len() - 1], 10),
        b'm' => (&text[..text.len() - 1], 20),
        b'g' => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    digits.trim().parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// Fields between commas; a field may be quoted.
fn split(text: &str) -> Result<Vec<String>, Error> {
    let (mut fields, mut field, mut quoted) = (vec![], String::new(), false);
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '"' if quoted && characters.peek() == Some(&'"') => {
                characters.next();
                field.push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(std::mem::take(&mut field)),
            c => field.push(c),
        }
    }
    if quoted {
        return Err(Error::of("--mount: a quote is not closed"));
    }
    fields.push(field);
    Ok(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(text: &str) -> Result<Mount, Error> {
        let expander = Expander::new('\\', &|name| (name == "D").then(|| "/data".to_owned()));
        RawMount::parse(text)?.resolve(&expander)
    }

    #[test]
    fn every_kind_is_read() {
        let cache =
            mount("type=cache,id=x,target=$D/c,sharing=locked,mode=0700,uid=5,gid=6").unwrap();
        assert_eq!(cache.target.as_deref(), Some("/data/c"));
        assert_eq!(
            (cache.sharing, cache.mode, cache.uid, cache.gid),
            (Sharing::Locked, Some(0o700), Some(5), Some(6))
        );
        let bind = mount("target=/x,from=build,source=a,rw").unwrap();
        assert_eq!((bind.kind, bind.writable), (MountKind::Bind, Some(true)));
        assert_eq!(mount("target=/x,readonly=false").unwrap().writable, Some(true));
        assert_eq!(mount("type=tmpfs,target=/x,size=2m").unwrap().size, Some(2 << 20));
        let secret = mount("type=secret,id=s,required,env=TOKEN").unwrap();
        assert!(secret.required && secret.env.as_deref() == Some("TOKEN"));
        assert_eq!(mount("type=ssh").unwrap().kind, MountKind::Ssh);
        assert_eq!(mount("\"target=/a,b\"").unwrap().target.as_deref(), Some("/a,b"));
    }

    #[test]
    fn wrong_mounts() {
        for (text, reason) in [
            ("type=cache", "target is required"),
            ("type=disk,target=/x", "unsupported mount type"),
            ("target", "must be a key=value pair"),
            ("target=/x,color=red", "unexpected key 'color'"),
            ("type=cache,target=/x,sharing=some", "unsupported sharing value"),
            ("type=cache,target=/x,mode=9", "invalid value for mode"),
            ("target=/x,from=$A", "variable expansion is not supported for --from"),
            ("type=secret", "needs an id or a target"),
        ] {
            let said = mount(text).unwrap_err().message;
            assert!(said.contains(reason), "{text}: {said}");
        }
    }
}
