//! Flag values: typed text becomes literals, and look-ups for what only the engine knows.
//!
//! Lists are comma-separated values: `a,"b,c"` are two, a doubled quote inside quotes is one, and a
//! quote inside an unquoted item stands for itself. A flag that is repeated adds to its list.

use super::flag::{FlagType, ObjectKind, ValueKind};
use super::literal::{Literal, write_text};

/// Something the engine is asked before the chain itself is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LookUp {
    /// The flag it is for.
    pub(crate) flag: String,
    /// The selection that answers it.
    pub(crate) selection: String,
}

/// What reading values leaves behind besides literals.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    /// What has to be asked first.
    pub(crate) look_ups: Vec<LookUp>,
    /// What the user should know.
    pub(crate) warnings: Vec<String>,
}

/// Reads all values that a flag was given.
pub(crate) fn read(
    flag: &str,
    flag_type: &FlagType,
    values: &[String],
    gathered: &mut Gathered,
) -> Result<Literal, String> {
    let mut reader = Reader { flag, gathered };
    if !flag_type.list {
        let last = values.last().map_or("", String::as_str);
        return reader.one(&flag_type.kind, last).map_err(|reason| invalid(flag, last, &reason));
    }
    let mut items = vec![];
    for text in values {
        let parts = split(text).map_err(|reason| invalid(flag, text, &reason))?;
        for part in parts {
            let item = reader.one(&flag_type.kind, &part);
            items.push(item.map_err(|reason| invalid(flag, text, &reason))?);
        }
    }
    Ok(Literal::List(items))
}

fn invalid(flag: &str, value: &str, reason: &str) -> String {
    format!("invalid argument \"{value}\" for \"--{flag}\" flag: {reason}")
}

struct Reader<'a> {
    flag: &'a str,
    gathered: &'a mut Gathered,
}

impl Reader<'_> {
    fn one(&mut self, kind: &ValueKind, text: &str) -> Result<Literal, String> {
        Ok(match kind {
            ValueKind::Text => Literal::Text(text.to_owned()),
            ValueKind::Int => Literal::Int(text.parse().map_err(|_| "not a whole number")?),
            ValueKind::Float => Literal::Float(float(text)?),
            ValueKind::Bool => Literal::Bool(boolean(text)?),
            ValueKind::Enum(members) => Literal::Name(member(members, text)?),
            ValueKind::Platform if text == "current" => self.look_up("defaultPlatform".into()),
            ValueKind::Platform => Literal::Text(text.to_owned()),
            ValueKind::BuildArg => build_arg(text)?,
            ValueKind::PortForward => port_forward(text)?,
            ValueKind::Object(kind) => self.object(*kind, text)?,
            ValueKind::Later(name) => {
                return Err(format!("values of type {name} are not available yet"));
            }
        })
    }

    fn object(&mut self, kind: ObjectKind, text: &str) -> Result<Literal, String> {
        if text.is_empty() {
            return Err("it is empty".into());
        }
        let selection = match kind {
            ObjectKind::Container => call("container{from(address: ", text, "){sync}}"),
            ObjectKind::Directory if is_git_address(text) => {
                call("address(value: ", text, "){directory{sync}}")
            }
            ObjectKind::Directory => call("host{directory(path: ", host_path(text), "){sync}}"),
            ObjectKind::File if is_git_address(text) => {
                call("address(value: ", text, "){file{sync}}")
            }
            ObjectKind::File => call("host{file(path: ", host_path(text), "){sync}}"),
            ObjectKind::EnvFile => call("host{file(path: ", host_path(text), "){asEnvFile{id}}}"),
            ObjectKind::GitRepository => call("address(value: ", text, "){gitRepository{id}}"),
            ObjectKind::GitRef => call("address(value: ", text, "){gitRef{id}}"),
            ObjectKind::Volume => call("address(value: ", text, "){volume{id}}"),
            ObjectKind::Secret => call("secret(uri: ", &self.secret_uri(text), "){id}"),
            ObjectKind::CacheVolume => call("cacheVolume(key: ", text, "){id}"),
            ObjectKind::Socket => {
                let path = text.strip_prefix("unix://").unwrap_or(text);
                call("host{unixSocket(path: ", path, "){id}}")
            }
            ObjectKind::Service => service(text)?,
        };
        Ok(self.look_up(selection))
    }

    fn secret_uri(&mut self, text: &str) -> String {
        if text.contains("://") {
            return text.to_owned();
        }
        if let Some((scheme @ ("env" | "file" | "cmd"), rest)) = text.split_once(':') {
            return format!("{scheme}://{rest}");
        }
        let flag = self.flag;
        let warning = format!("`--{flag}={text}` is an old form: write `--{flag}=env://{text}`");
        self.gathered.warnings.push(warning);
        format!("env://{text}")
    }

    fn look_up(&mut self, selection: String) -> Literal {
        self.gathered.look_ups.push(LookUp { flag: self.flag.to_owned(), selection });
        Literal::LookUp(self.gathered.look_ups.len() - 1)
    }
}

fn call(before: &str, text: &str, after: &str) -> String {
    let mut selection = before.to_owned();
    write_text(text, &mut selection);
    selection.push_str(after);
    selection
}

fn boolean(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "t" | "true" => Ok(true),
        "0" | "f" | "false" => Ok(false),
        _ => Err("it is neither true nor false".into()),
    }
}

fn float(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "not a number")?;
    if number.is_finite() { Ok(number) } else { Err("not a finite number".into()) }
}

fn member(members: &[String], text: &str) -> Result<String, String> {
    let text = text.trim_matches(['"', '\'']);
    let exact = members.iter().find(|member| *member == text);
    let found = exact.or_else(|| members.iter().find(|member| super::name::matches(text, member)));
    found.cloned().ok_or_else(|| format!("value should be one of {}", members.join(",")))
}

fn build_arg(text: &str) -> Result<Literal, String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok(Literal::Object(vec![
            ("name", Literal::Text(name.to_owned())),
            ("value", Literal::Text(value.to_owned())),
        ])),
        _ => Err("it is not of the form NAME=value".into()),
    }
}

fn port_forward(text: &str) -> Result<Literal, String> {
    let ports = text.split_once(':').and_then(|(frontend, backend)| {
        Some((frontend.parse::<u16>().ok()?, backend.parse::<u16>().ok()?))
    });
    let Some((frontend, backend)) = ports else {
        return Err("it is not of the form frontend:backend with two ports".into());
    };
    Ok(Literal::Object(vec![
        ("frontend", Literal::Int(frontend.into())),
        ("backend", Literal::Int(backend.into())),
    ]))
}

fn host_path(text: &str) -> &str {
    text.strip_prefix("file://").unwrap_or(text)
}

/// Whether a text names something in a git repository elsewhere: a URL, or `user@host:path`.
fn is_git_address(text: &str) -> bool {
    let is_scp = text.split_once(':').is_some_and(|(user, _)| {
        user.contains('@') && !user.contains('/') && !text.starts_with(['.', '/', '~'])
    });
    is_scp || (text.contains("://") && !text.starts_with("file://"))
}

fn service(text: &str) -> Result<String, String> {
    let form = || "it is not of the form tcp://host:port or udp://host:port".to_owned();
    let (scheme, rest) = text.split_once("://").ok_or_else(form)?;
    let protocol = match scheme {
        "tcp" => "TCP",
        "udp" => "UDP",
        _ => return Err(form()),
    };
    let (host, port) = rest.rsplit_once(':').ok_or_else(form)?;
    let port: u16 = port.parse().map_err(|_| form())?;
    let ports =
        format!(", ports: [{{frontend: {port}, backend: {port}, protocol: {protocol}}}]){{id}}}}");
    Ok(call("host{service(host: ", host, &ports))
}

/// Splits comma-separated values.
pub(crate) fn split(text: &str) -> Result<Vec<String>, String> {
    if text.is_empty() {
        return Ok(vec![]);
    }
    let mut items = vec![];
    let mut rest = text;
    loop {
        let (item, after) = if rest.starts_with('"') { quoted(rest)? } else { unquoted(rest) };
        items.push(item);
        match after.strip_prefix(',') {
            Some(next) => rest = next,
            None => return Ok(items),
        }
    }
}

fn unquoted(text: &str) -> (String, &str) {
    let end = text.find(',').unwrap_or(text.len());
    (text[..end].to_owned(), &text[end..])
}

fn quoted(text: &str) -> Result<(String, &str), String> {
    let mut item = String::new();
    let mut rest = &text[1..];
    loop {
        let end = rest.find('"').ok_or("a quote is not closed")?;
        item.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        if let Some(after) = rest.strip_prefix('"') {
            item.push('"');
            rest = after;
            continue;
        }
        if !rest.is_empty() && !rest.starts_with(',') {
            return Err("something follows a closing quote".into());
        }
        return Ok((item, rest));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comma_separated_values() {
        let check = |text: &str, expected: &[&str]| assert_eq!(split(text).unwrap(), expected);
        check("", &[]);
        check("a", &["a"]);
        check("sh,-c,echo hi > /out; cat /out", &["sh", "-c", "echo hi > /out; cat /out"]);
        check("a,\"b,c\",d", &["a", "b,c", "d"]);
        check("\"say \"\"hi\"\"\",x", &["say \"hi\"", "x"]);
        check("python3,-c,print(\"x\")", &["python3", "-c", "print(\"x\")"]);
        check("a,", &["a", ""]);
        check("a,\"b\nc\"", &["a", "b\nc"]);
        assert!(split("\"open").unwrap_err().contains("not closed"));
        assert!(split("\"a\"b").unwrap_err().contains("follows"));
    }

    fn one(kind: ValueKind, text: &str) -> String {
        let mut gathered = Gathered::default();
        let flag_type = FlagType { kind, list: false };
        match read("x", &flag_type, &[text.to_owned()], &mut gathered) {
            Ok(Literal::LookUp(index)) => gathered.look_ups[index].selection.clone(),
            Ok(literal) => {
                let mut out = String::new();
                literal.write(&[], &mut out);
                out
            }
            Err(error) => error,
        }
    }

    #[test]
    fn single_values() {
        let modes = || ValueKind::Enum(vec!["SHARED".into(), "LOCKED".into()]);
        let bad = |value: &str, reason: &str| {
            format!("invalid argument \"{value}\" for \"--x\" flag: {reason}")
        };
        for (kind, text, expected) in [
            (ValueKind::Int, "-42", "-42".to_owned()),
            (ValueKind::Int, "4.2", bad("4.2", "not a whole number")),
            (ValueKind::Float, "1e3", "1000.0".to_owned()),
            (ValueKind::Float, "NaN", bad("NaN", "not a finite number")),
            (ValueKind::Bool, "False", "false".to_owned()),
            (ValueKind::Bool, "no", bad("no", "it is neither true nor false")),
            (modes(), "locked", "LOCKED".to_owned()),
            (modes(), "'Shared'", "SHARED".to_owned()),
            (modes(), "open", bad("open", "value should be one of SHARED,LOCKED")),
            (ValueKind::Platform, "linux/arm64", "\"linux/arm64\"".to_owned()),
            (ValueKind::Platform, "current", "defaultPlatform".to_owned()),
            (ValueKind::BuildArg, "A=b=c", "{name: \"A\", value: \"b=c\"}".to_owned()),
            (ValueKind::BuildArg, "=b", bad("=b", "it is not of the form NAME=value")),
            (ValueKind::PortForward, "80:8080", "{frontend: 80, backend: 8080}".to_owned()),
            (
                ValueKind::PortForward,
                "80",
                bad("80", "it is not of the form frontend:backend with two ports"),
            ),
            (
                ValueKind::Later("Module".into()),
                "x",
                bad("x", "values of type Module are not available yet"),
            ),
        ] {
            assert_eq!(one(kind, text), expected);
        }
    }

    #[test]
    fn objects_are_looked_up() {
        for (kind, text, expected) in [
            (
                ObjectKind::Container,
                "deb://bookworm",
                "container{from(address: \"deb://bookworm\"){sync}}",
            ),
            (ObjectKind::Directory, "./src", "host{directory(path: \"./src\"){sync}}"),
            (ObjectKind::Directory, "file:///a b", "host{directory(path: \"/a b\"){sync}}"),
            (
                ObjectKind::Directory,
                "https://git.example/o/r#main",
                "address(value: \"https://git.example/o/r#main\"){directory{sync}}",
            ),
            (
                ObjectKind::Directory,
                "git@git.example:o/r.git",
                "address(value: \"git@git.example:o/r.git\"){directory{sync}}",
            ),
            (
                ObjectKind::File,
                "https://git.example/o/r#main:a",
                "address(value: \"https://git.example/o/r#main:a\"){file{sync}}",
            ),
            (ObjectKind::GitRepository, "./r", "address(value: \"./r\"){gitRepository{id}}"),
            (ObjectKind::GitRef, "./r#v1", "address(value: \"./r#v1\"){gitRef{id}}"),
            (
                ObjectKind::Volume,
                "engine-volume://v",
                "address(value: \"engine-volume://v\"){volume{id}}",
            ),
            (ObjectKind::EnvFile, "file://.env", "host{file(path: \".env\"){asEnvFile{id}}}"),
            (ObjectKind::EnvFile, "", "it is empty"),
            (
                ObjectKind::Directory,
                "./odd@name:x",
                "host{directory(path: \"./odd@name:x\"){sync}}",
            ),
            (ObjectKind::File, "~/x", "host{file(path: \"~/x\"){sync}}"),
            (ObjectKind::Secret, "env://TOKEN", "secret(uri: \"env://TOKEN\"){id}"),
            (ObjectKind::Secret, "file:x", "secret(uri: \"file://x\"){id}"),
            (ObjectKind::Secret, "TOKEN", "secret(uri: \"env://TOKEN\"){id}"),
            (ObjectKind::CacheVolume, "apt", "cacheVolume(key: \"apt\"){id}"),
            (ObjectKind::CacheVolume, "", "it is empty"),
            (ObjectKind::Socket, "unix:///run/s", "host{unixSocket(path: \"/run/s\"){id}}"),
            (
                ObjectKind::Service,
                "tcp://localhost:80",
                "host{service(host: \"localhost\", ports: [{frontend: 80, backend: 80, protocol: TCP}]){id}}",
            ),
            (ObjectKind::Service, "http://x", "it is not of the form tcp://host:port"),
        ] {
            let got = one(ValueKind::Object(kind), text);
            assert!(got.contains(expected), "{kind:?} {text}: {got}");
        }
    }

    #[test]
    fn repeated_lists_add_up_and_repeated_values_replace() {
        let read = |list, values: &[&str]| {
            let values: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
            let flag_type = FlagType { kind: ValueKind::Int, list };
            let mut out = String::new();
            let literal = read("n", &flag_type, &values, &mut Gathered::default()).unwrap();
            literal.write(&[], &mut out);
            out
        };
        assert_eq!(read(true, &["1,2", "3", ""]), "[1, 2, 3]");
        assert_eq!(read(false, &["1", "2"]), "2");
    }
}
