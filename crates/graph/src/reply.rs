//! The bytes of a failed reply, and the error that unfinished parts of the schema answer.
//!
//! Published clients are picky: no `extensions` but the five keys of a failed command, and always all
//! or nothing. Our own command line asks for the kind and the hints of every error besides.

use crate::document::Refusal;
use crate::{Error, ErrorKind, ExecFailure};
use protocol::PathSegment;
use serde::Serialize;
use serde_json::Value as Json;
use serde_json::value::to_value;

/// A part of the schema that does not work yet.
pub(crate) fn not_implemented(what: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::NotImplemented, format!("{what} is not implemented yet"))
}

/// Keys in the order in which they are written.
#[derive(Serialize)]
struct Reply {
    errors: [Entry; 1],
    data: (),
}

#[derive(Serialize)]
struct Entry {
    message: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    path: Vec<PathSegment>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    locations: Vec<Location>,
    #[serde(skip_serializing_if = "Extensions::is_empty")]
    extensions: Extensions,
}

#[derive(Serialize)]
struct Location {
    line: usize,
    column: usize,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Extensions {
    #[serde(rename = "_type", skip_serializing_if = "Option::is_none")]
    kind: Option<Json>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    exec: Option<ExecFailure>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hints: Option<Vec<String>>,
}

impl Extensions {
    fn is_empty(&self) -> bool {
        self.kind.is_none()
    }

    /// The five keys of a failed command; with `kinds` the kind and the hints of any error.
    fn of(error: &Error, kinds: bool) -> Self {
        let mut made = Self::default();
        if let Some(exec) = &error.exec {
            made.kind = Some(Json::from("EXEC_ERROR"));
            made.exec = Some((**exec).clone());
        } else if kinds {
            let kind = if error.kind == ErrorKind::Exec {
                Some(Json::from("EXEC_ERROR"))
            } else {
                to_value(error.kind).ok()
            };
            made.kind = kind;
        }
        if kinds {
            made.hints = Some(error.hints.clone());
        }
        made
    }
}

/// Longest message; a value of a request may stand in it, and that may be of any length.
const MAX_MESSAGE_BYTES: usize = 16 << 10;

/// A message without its middle, if it is longer than anybody reads.
fn shortened(message: String) -> String {
    if message.len() <= MAX_MESSAGE_BYTES {
        return message;
    }
    let kept = MAX_MESSAGE_BYTES / 2 - 32;
    let head = message.floor_char_boundary(kept);
    let tail = message.ceil_char_boundary(message.len() - kept);
    let omitted = tail - head;
    format!("{} [omitting {omitted} bytes] {}", &message[..head], &message[tail..])
}

/// The reply to a request that failed.
pub(crate) fn failure(refusal: Refusal, kinds: bool) -> Vec<u8> {
    let extensions = Extensions::of(&refusal.error, kinds);
    let locations = refusal.location.map(|(line, column)| Location { line, column });
    let entry = Entry {
        message: shortened(refusal.error.message),
        path: refusal.error.path,
        locations: locations.into_iter().collect(),
        extensions,
    };
    serde_json::to_vec(&Reply { errors: [entry], data: () })
        .expect("strings, numbers and maps with string keys are always JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(error: Error, location: Option<(usize, usize)>, kinds: bool, expect: &str) {
        let bytes = failure(Refusal { error, location }, kinds);
        assert_eq!(String::from_utf8(bytes).unwrap(), expect);
    }

    #[test]
    fn a_message_loses_its_middle_before_it_is_too_long() {
        let short = "é".repeat(MAX_MESSAGE_BYTES / 2);
        assert_eq!(shortened(short.clone()), short);
        let long = shortened(format!("begin {short} end"));
        assert!(long.len() <= MAX_MESSAGE_BYTES, "{}", long.len());
        assert!(long.starts_with("begin é") && long.ends_with("é end"), "{long}");
        assert!(long.contains("[omitting "), "{long}");
    }

    fn exec() -> Error {
        let cmd = vec!["sh".into(), "-c".into(), "exit 3".into()];
        let exec = ExecFailure { cmd, exit_code: 3, stdout: "o".into(), stderr: "e\n".into() };
        let mut error = Error::user("process did not complete: exit code: 3").with_exec(exec);
        error.path = vec![PathSegment::Key("a".into()), PathSegment::Index(2)];
        error
    }

    #[test]
    fn a_plain_error_has_no_extensions() {
        check(
            Error::user("no \"x\"").with_hint("try y"),
            Some((1, 3)),
            false,
            r#"{"errors":[{"message":"no \"x\"","locations":[{"line":1,"column":3}]}],"data":null}"#,
        );
    }

    #[test]
    fn a_failed_command_has_exactly_five_keys() {
        check(
            exec(),
            None,
            false,
            "{\"errors\":[{\"message\":\"process did not complete: exit code: 3\",\
             \"path\":[\"a\",2],\"extensions\":{\"_type\":\"EXEC_ERROR\",\
             \"cmd\":[\"sh\",\"-c\",\"exit 3\"],\"exitCode\":3,\"stdout\":\"o\",\
             \"stderr\":\"e\\n\"}}],\"data\":null}",
        );
    }

    #[test]
    fn kinds_and_hints_are_told_to_who_asks() {
        check(
            Error::user("no").with_hint("try y"),
            None,
            true,
            r#"{"errors":[{"message":"no","extensions":{"_type":"USER","hints":["try y"]}}],"data":null}"#,
        );
        check(
            not_implemented("`A.b`"),
            None,
            true,
            "{\"errors\":[{\"message\":\"`A.b` is not implemented yet\",\
             \"extensions\":{\"_type\":\"NOT_IMPLEMENTED\",\"hints\":[]}}],\"data\":null}",
        );
        let bytes = failure(Refusal { error: exec(), location: None }, true);
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.contains(r#""stderr":"e\n","hints":[]"#), "{text}");
    }
}
