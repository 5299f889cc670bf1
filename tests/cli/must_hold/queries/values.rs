//! Values for arguments: some that fit, some that are hostile, some of another type.
//!
//! Everything that reaches the caller's machine is tame: an export to a hostile path would be carried
//! out. Addresses name ports on which nobody listens.

use super::make::Maker;
use protocol::schema::{Argument, TypeKind, TypeRef};
use serde_json::{Map, Value as Json};

/// A value in a document or among its variables.
#[derive(Clone, Debug)]
pub(super) enum Literal {
    /// Text in quotes.
    Text(String),
    /// Anything else, as it stands.
    Raw(String),
    List(Vec<Literal>),
    Object(Vec<(String, Literal)>),
}

const TEXTS: &[&str] = &["a", "a/b.txt", ".", "/", "x y", "", "b.txt", "A=b", "1", "linux/amd64"];

/// Texts of which each has broken something somewhere.
const HOSTILE: &[&str] = &[
    "../../../etc/passwd",
    "a/../../../b",
    "/proc/self/root/etc",
    "/dev/full",
    "//",
    "a\0b",
    "\0",
    "\n",
    "\r\n\r\n",
    "\u{1b}[2J\u{1b}]0;x\u{7}",
    "\u{feff}a",
    "\u{202e}txt.exe",
    "\u{10ffff}\u{fffd}",
    "~root/x",
    "${X} $X $(reboot) `id`",
    "%s%n%x",
    "-rf",
    "--help",
    "'; drop table x; --",
    "<script>",
    "{{.}}",
    "(a+)+$",
    "(((((((((((((((((((((((((((((((((((a",
    "[",
    "{a,b",
    "**/**/**/**/**/**/**/*",
    "!",
    "\\",
    "sha256:zz",
    "@@ -1,99999999999999999999 +0,0 @@",
    "--- a\n+++ ../../b\n@@ -0,0 +1 @@\n+x\n",
    "A=${A}",
    "A=${B}\nB=${A}",
    "{\"a\":[[[[[[",
    "1e999",
    "-1",
    "root:x:0:0",
    "99999999999999999999:1",
    "windows98/z80",
    "FROM scratch\nRUN --mount=type=cache,target=/ x",
    "null",
];

/// What may be named on the caller's machine.
const TAME: &[&str] =
    &["present", "present/a.txt", "missing", "out/x", "a\0b", "", "present/../present", "a\nb"];

/// Images, repositories, files and servers elsewhere: nobody listens on these ports.
const ADDRESSES: &[&str] = &[
    "",
    ":",
    "://",
    "localhost:1/x",
    "localhost:1/x@sha256:zz",
    "UPPER/Case:tag",
    "a b",
    "deb://",
    "deb://bookworm+../x",
    "http://localhost:1/x",
    "http://[::1",
    "http://user:pass@localhost:1/",
    "ssh://localhost:1/x",
    "file:///missing",
    "ext::sh",
    "-u",
    "tcp://localhost:1",
    "tcp://localhost",
    "udp://localhost:99999",
    "unix://missing",
    "env://NOT_SET",
    "file://missing",
    "op://x/y/z",
    "engine-volume://../x",
    "sshfs://a@localhost:1/x",
    "x#y:z",
];

const NUMBERS: &[&str] = &[
    "0",
    "1",
    "-1",
    "7",
    "420",
    "511",
    "65536",
    "2147483648",
    "-2147483649",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "99999999999999999999999999",
    "1e30",
    "-0.0",
    "1e999",
];

/// Commands that end soon.
const COMMANDS: &[&[&str]] =
    &[&["true"], &["false"], &["cat"], &["sh", "-c", "exit 3"], &["no-such-program"], &[]];

/// Arguments whose text is a place elsewhere.
const PLACES: &[&str] = &["address", "url", "uri", "value", "endpoint", "image"];

impl Maker<'_> {
    /// A value for an argument of a field.
    pub(super) fn argument(&mut self, owner: &str, field: &str, argument: &Argument) -> Literal {
        let texts = match (owner, field, argument.name.as_str()) {
            ("Host", ..) | (_, "export", "path") => TAME,
            (_, _, name) if PLACES.contains(&name) => ADDRESSES,
            (_, "withExec", "args") if self.random.below(2) == 0 => {
                let command = self.random.pick(COMMANDS);
                return Literal::List(command.iter().map(text).collect());
            }
            _ => TEXTS,
        };
        self.value(&argument.type_ref, argument.expected.as_deref(), texts)
    }

    fn value(&mut self, type_ref: &TypeRef, expected: Option<&str>, texts: &[&str]) -> Literal {
        if self.random.below(50) == 0 {
            return self.of_another_type();
        }
        match type_ref {
            TypeRef::NonNull(inner) => self.value(inner, expected, texts),
            TypeRef::List(inner) => {
                let count = match self.random.below(40) {
                    0 => 300,
                    count => count % 4,
                };
                Literal::List((0..count).map(|_| self.value(inner, expected, texts)).collect())
            }
            TypeRef::Named(name) => self.named(name, expected, texts),
        }
    }

    fn named(&mut self, name: &str, expected: Option<&str>, texts: &[&str]) -> Literal {
        let schema = self.schema;
        match name {
            "Int" | "Float" => raw(self.random.pick(NUMBERS)),
            "Boolean" => raw(self.random.pick(&["true", "false"])),
            "ID" => text(self.id(expected)),
            _ => match schema.types.get(name).map(|found| (found.kind, found)) {
                Some((TypeKind::Enum, found)) => raw(&self.random.pick(&found.members).name),
                Some((TypeKind::Input, found)) => Literal::Object(
                    found
                        .inputs
                        .iter()
                        .map(|input| {
                            let value =
                                self.value(&input.type_ref, input.expected.as_deref(), texts);
                            (input.name.clone(), value)
                        })
                        .collect(),
                ),
                _ => self.text(texts),
            },
        }
    }

    /// Text: of these, or hostile where hostile text can do no harm.
    fn text(&mut self, texts: &[&str]) -> Literal {
        if texts != TEXTS || self.random.below(2) == 0 {
            return text(self.random.pick(texts));
        }
        match self.random.below(40) {
            0 => text("a".repeat(256)),
            1 => text("a/".repeat(2100)),
            2 => text("x".repeat(70_000)),
            _ => text(self.random.pick(HOSTILE)),
        }
    }

    fn of_another_type(&mut self) -> Literal {
        match self.random.below(8) {
            0 => raw("null"),
            1 => raw("NAME"),
            2 => raw(self.random.pick(NUMBERS)),
            3 => text(""),
            4 => Literal::List(vec![Literal::List(vec![]), raw("null")]),
            5 => Literal::Object(vec![("a".into(), raw("1")), ("a".into(), raw("2"))]),
            6 => text(self.id(None)),
            _ => raw("$undeclared"),
        }
    }

    /// An id: right, of another type, or damaged.
    pub(super) fn id(&mut self, expected: Option<&str>) -> String {
        let fits = |kind: &str| expected.is_none_or(|wanted| wanted == kind);
        let right: Vec<String> =
            self.objects.iter().filter(|(kind, _)| fits(kind)).map(|(_, id)| id.clone()).collect();
        if !right.is_empty() && self.random.below(15) > 0 {
            return self.random.pick(&right).clone();
        }
        let objects = self.objects.clone();
        let (_, other) = self.random.pick(&objects);
        match self.random.below(6) {
            0 => String::new(),
            1 => other[..other.len() / 2].to_owned(),
            2 => "A".repeat(5000),
            3 => "!!not base64!!".to_owned(),
            4 => {
                let mut bytes = other.clone().into_bytes();
                self.random.damage(&mut bytes);
                String::from_utf8_lossy(&bytes).into_owned()
            }
            _ => other.clone(),
        }
    }
}

pub(super) fn text(value: impl std::fmt::Display) -> Literal {
    Literal::Text(value.to_string())
}

pub(super) fn raw(value: impl std::fmt::Display) -> Literal {
    Literal::Raw(value.to_string())
}

impl Literal {
    /// As it stands in a document.
    pub(super) fn write(&self, into: &mut String) {
        match self {
            Self::Text(text) => *into += &Json::from(text.as_str()).to_string(),
            Self::Raw(text) => *into += text,
            Self::List(items) => {
                into.push('[');
                items.iter().for_each(|item| {
                    item.write(into);
                    into.push(' ');
                });
                into.push(']');
            }
            Self::Object(fields) => {
                into.push('{');
                for (name, value) in fields {
                    *into += &format!("{name}: ");
                    value.write(into);
                    into.push(' ');
                }
                into.push('}');
            }
        }
    }

    /// As it stands among variables.
    pub(super) fn json(&self) -> Json {
        match self {
            Self::Text(text) => Json::from(text.as_str()),
            Self::Raw(text) => {
                serde_json::from_str(text).unwrap_or_else(|_| Json::from(text.as_str()))
            }
            Self::List(items) => items.iter().map(Self::json).collect(),
            Self::Object(fields) => {
                let fields = fields.iter().map(|(name, value)| (name.clone(), value.json()));
                Json::Object(fields.collect::<Map<_, _>>())
            }
        }
    }
}
