//! What a user reads of a call: `container.withExec(args: ["true"])`.

use super::bind::UNIQUE;
use crate::literal::write_string;
use crate::{Call, Value};
use std::borrow::Cow;
use std::fmt::Write as _;

/// Longest text of one string, and of the whole name.
const MAX_STRING: usize = 256;
const MAX_NAME: usize = 2048;

/// The name of a call: the type of its receiver, its field and its arguments.
pub(super) fn name_of(call: &Call) -> String {
    name_without(call, &|text| text)
}

/// The same without what `conceal` takes out of texts. It sees texts before they are cut: of a secret that
/// is cut in half, half would be shown.
pub(super) fn name_without(call: &Call, conceal: &dyn Fn(String) -> String) -> String {
    let mut name = String::new();
    if let Some(receiver) = call.receiver() {
        lower_camel_case(&mut name, receiver.returns());
        name.push('.');
    }
    name.push_str(call.field());
    let mut shown = call.args().iter().filter(|(key, _)| **key != *UNIQUE).peekable();
    if shown.peek().is_none() {
        return name;
    }
    name.push('(');
    for (index, (key, value)) in shown.enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        // Writing into a string does not fail.
        let _ = write!(name, "{comma}{key}: ");
        write_value(&mut name, value, conceal);
    }
    name.push(')');
    name
}

fn write_value(name: &mut String, value: &Value, conceal: &dyn Fn(String) -> String) {
    if name.len() > MAX_NAME {
        if !name.ends_with('…') {
            name.push('…');
        }
        return;
    }
    let written = match value {
        Value::Null => write!(name, "null"),
        Value::Bool(value) => write!(name, "{value}"),
        Value::Int(number) => write!(name, "{number}"),
        Value::Float(number) => write!(name, "{number:?}"),
        Value::String(text) => {
            let text = without_password(text);
            match text.char_indices().nth(MAX_STRING) {
                Some(_) => write_string(name, &cut(&conceal(text.into_owned()))),
                None => write_string(name, &text),
            }
        }
        Value::Enum(member) => write!(name, "{member}"),
        Value::Call(call) => write!(name, "{}", call.returns()),
        Value::Sealed(_) => write!(name, "***"),
        Value::List(items) => {
            write_all(name, ("[", "]"), items.iter().map(|item| ("", item)), conceal);
            Ok(())
        }
        Value::Object(fields) => {
            let entries = fields.iter().map(|(key, value)| (&**key, value));
            write_all(name, ("{", "}"), entries, conceal);
            Ok(())
        }
    };
    debug_assert!(written.is_ok(), "writing into a string does not fail");
}

fn write_all<'a>(
    name: &mut String,
    (open, close): (&str, &str),
    entries: impl Iterator<Item = (&'a str, &'a Value)>,
    conceal: &dyn Fn(String) -> String,
) {
    name.push_str(open);
    for (index, (key, value)) in entries.enumerate() {
        if name.len() > MAX_NAME {
            write_value(name, value, conceal);
            break;
        }
        name.push_str(if index == 0 { "" } else { ", " });
        if !key.is_empty() {
            name.push_str(key);
            name.push_str(": ");
        }
        write_value(name, value, conceal);
    }
    name.push_str(close);
}

/// A url without the password in it, which nobody has told us is a secret.
fn without_password(text: &str) -> Cow<'_, str> {
    let Some((scheme, rest)) = text.split_once("://") else { return Cow::Borrowed(text) };
    let (authority, tail) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let user =
        authority.rsplit_once('@').and_then(|(user, host)| Some((user.split_once(':')?.0, host)));
    match user {
        Some((user, host)) if !scheme.contains(char::is_whitespace) => {
            Cow::Owned(format!("{scheme}://{user}:***@{host}{tail}"))
        }
        _ => Cow::Borrowed(text),
    }
}

/// The beginning of a long text.
fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_STRING) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// `GitRef` as `gitRef`, `JSONValue` as `jsonValue`.
fn lower_camel_case(into: &mut String, name: &str) {
    let letters: Vec<char> = name.chars().collect();
    for (index, letter) in letters.iter().enumerate() {
        let next_is_lower = letters.get(index + 1).is_some_and(|next| next.is_lowercase());
        if !letter.is_uppercase() || (index > 0 && next_is_lower) {
            into.extend(&letters[index..]);
            return;
        }
        into.extend(letter.to_lowercase());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Digest;
    use std::sync::Arc;

    fn check(field: &str, args: Vec<(&str, Value)>, expect: &str) {
        let receiver = Call::new(None, "container", vec![], "Container", None);
        let args = args.into_iter().map(|(name, value)| (name.into(), value)).collect();
        let call = Call::new(Some(receiver), field, args, "Container", None);
        assert_eq!(name_of(&call), expect);
    }

    #[test]
    fn shows_field_and_arguments() {
        let text = |text: &str| Value::String(text.into());
        check("withExec", vec![], "container.withExec");
        check(
            "withExec",
            vec![
                ("args", Value::List(vec![text("echo"), text("a\"b")])),
                ("expect", Value::Enum("ANY".into())),
            ],
            r#"container.withExec(args: ["echo", "a\"b"], expect: ANY)"#,
        );
        let port = Value::Object(vec![("backend".into(), Value::Int(80))]);
        check("up", vec![("port", port)], "container.up(port: {backend: 80})");
        let directory = Call::new(None, "directory", vec![], "Directory", None);
        check(
            "with",
            vec![("source", Value::Call(directory))],
            "container.with(source: Directory)",
        );
    }

    #[test]
    fn hides_what_is_sealed_and_cuts_what_is_long() {
        check("s", vec![("a", Value::Sealed(Digest::of(b"x")))], "container.s(a: ***)");
        let long: Arc<str> = "ü".repeat(300).into();
        let expect = format!("container.s(a: \"{}…\")", "ü".repeat(256));
        check("s", vec![("a", Value::String(long))], &expect);
        let many = Value::List((0..10_000).map(Value::Int).collect());
        let call = Call::new(None, "f", vec![("a".into(), many)], "T", None);
        assert!(name_of(&call).len() < 2100);
    }

    #[test]
    fn passwords_of_urls_are_not_shown() {
        for (url, shown) in [
            ("https://ann:hunter22@host/a?b", "https://ann:***@host/a?b"),
            ("https://:hunter22@host", "https://:***@host"),
            ("https://ann@host/a:b@c", "https://ann@host/a:b@c"),
            ("ssh://git@host:22/a", "ssh://git@host:22/a"),
            ("a b: c@d", "a b: c@d"),
        ] {
            let expect = format!("container.s(a: \"{shown}\")");
            check("s", vec![("a", Value::String(url.into()))], &expect);
        }
    }

    #[test]
    fn what_is_concealed_goes_before_a_text_is_cut() {
        let text: Arc<str> = format!("{}secret", "x".repeat(253)).into();
        let call = Call::new(None, "f", vec![("a".into(), Value::String(text))], "T", None);
        let name = name_without(&call, &|text| text.replace("secret", "***"));
        assert_eq!(name, format!("f(a: \"{}***\")", "x".repeat(253)));
    }

    #[test]
    fn types_are_written_like_fields() {
        let expectations = [
            ("Container", "container"),
            ("LLM", "llm"),
            ("JSONValue", "jsonValue"),
            ("GitRef", "gitRef"),
        ];
        for (name, expect) in expectations {
            let mut made = String::new();
            lower_camel_case(&mut made, name);
            assert_eq!(made, expect);
        }
    }
}
