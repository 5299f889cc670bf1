//! [`Literal`]: a value as a GraphQL document writes it.

use std::fmt::Write as _;

/// A value of an argument.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Literal {
    Text(String),
    Int(i64),
    Float(f64),
    Bool(bool),
    /// A member of an enum, written bare.
    Name(String),
    List(Vec<Literal>),
    Object(Vec<(&'static str, Literal)>),
    /// The answer of the look-up with this number.
    LookUp(usize),
}

impl Literal {
    /// Writes the value; `answers` are those of the look-ups.
    pub(crate) fn write(&self, answers: &[String], out: &mut String) {
        match self {
            Self::Text(text) => write_text(text, out),
            Self::Int(number) => {
                let _ = write!(out, "{number}");
            }
            Self::Float(number) => {
                let _ = write!(out, "{number:?}");
            }
            Self::Bool(flag) => {
                let _ = write!(out, "{flag}");
            }
            Self::Name(name) => out.push_str(name),
            Self::List(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    out.push_str(if index == 0 { "" } else { ", " });
                    item.write(answers, out);
                }
                out.push(']');
            }
            Self::Object(entries) => {
                out.push('{');
                for (index, (name, value)) in entries.iter().enumerate() {
                    let _ = write!(out, "{}{name}: ", if index == 0 { "" } else { ", " });
                    value.write(answers, out);
                }
                out.push('}');
            }
            Self::LookUp(index) => {
                write_text(answers.get(*index).map_or("", String::as_str), out);
            }
        }
    }
}

/// Writes a string literal.
pub(crate) fn write_text(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            control if control.is_control() => {
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(literal: &Literal) -> String {
        let mut out = String::new();
        literal.write(&["ID=".into()], &mut out);
        out
    }

    #[test]
    fn writes_graphql() {
        let list = Literal::List(vec![Literal::Int(-1), Literal::Float(2.0), Literal::Bool(true)]);
        for (literal, expected) in [
            (Literal::Text("a\"\\\n\t\u{1}\u{85}é".into()), r#""a\"\\\n\t\u0001\u0085é""#),
            (list, "[-1, 2.0, true]"),
            (Literal::Name("ANY".into()), "ANY"),
            (
                Literal::Object(vec![("a", Literal::Int(1)), ("b", Literal::Text("x".into()))]),
                r#"{a: 1, b: "x"}"#,
            ),
            (Literal::LookUp(0), r#""ID=""#),
        ] {
            assert_eq!(text(&literal), expected);
        }
    }
}
