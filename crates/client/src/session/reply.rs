//! A GraphQL reply turned into data or one [`Error`].
//!
//! Replies are all or nothing. Where there are several errors their messages are shown together and
//! the first one decides whose they are.

use http::StatusCode;
use protocol::{Error, ErrorKind, ExecFailure, PathSegment};
use serde::Deserialize;
use serde_json::{Map, Value};

#[derive(Deserialize)]
struct Reply {
    #[serde(default)]
    data: Option<Value>,
    #[serde(default)]
    errors: Vec<ReplyError>,
}

#[derive(Deserialize)]
struct ReplyError {
    message: String,
    #[serde(default)]
    path: Vec<PathSegment>,
    #[serde(default)]
    extensions: Map<String, Value>,
}

/// The `data` of a reply.
pub(super) fn data(status: StatusCode, body: &[u8]) -> Result<Value, Error> {
    let Ok(reply) = read(body) else {
        let text = String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned();
        let message = format!("the engine answered {status} with text that is no GraphQL: {text}");
        return Err(Error::environment(message));
    };
    if reply.errors.is_empty() {
        return Ok(reply.data.unwrap_or_default());
    }
    Err(one(reply.errors))
}

/// A reply nests as deep as the chain that was asked for, which passes the usual limit of 128. The
/// engine bounds the depth of documents, so its replies are bounded too.
fn read(body: &[u8]) -> serde_json::Result<Reply> {
    let mut reader = serde_json::Deserializer::from_slice(body);
    reader.disable_recursion_limit();
    Reply::deserialize(&mut reader)
}

fn one(errors: Vec<ReplyError>) -> Error {
    let messages: Vec<&str> = errors.iter().map(|error| error.message.as_str()).collect();
    let message = messages.join("\n");
    let mut errors = errors.into_iter();
    let first = errors.next().map(single).unwrap_or_else(|| Error::internal(""));
    let mut whole = Error { message, ..first };
    for hint in errors.flat_map(|error| single(error).hints) {
        if !whole.hints.contains(&hint) {
            whole.hints.push(hint);
        }
    }
    whole
}

fn single(error: ReplyError) -> Error {
    let extensions = &error.extensions;
    let name = extensions.get("_type").and_then(Value::as_str).unwrap_or_default();
    let hints = extensions.get("hints").cloned().unwrap_or_default();
    let mut plain = Error::new(kind(name), error.message);
    plain.path = error.path;
    plain.hints = serde_json::from_value(hints).unwrap_or_default();
    if name != EXEC_TYPE {
        return plain;
    }
    match serde_json::from_value::<ExecFailure>(Value::Object(error.extensions)) {
        Ok(failure) => plain.with_exec(failure),
        Err(_) => plain,
    }
}

/// How an error of [`ErrorKind::Exec`] is called in replies, which published clients look for.
const EXEC_TYPE: &str = "EXEC_ERROR";

fn kind(name: &str) -> ErrorKind {
    if name == EXEC_TYPE {
        return ErrorKind::Exec;
    }
    // Plain replies carry no kind; what reached GraphQL and failed there is most likely the request.
    serde_json::from_value(Value::from(name)).unwrap_or(ErrorKind::User)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(body: &Value) -> Result<Value, Error> {
        data(StatusCode::OK, body.to_string().as_bytes())
    }

    #[test]
    fn data_is_given() {
        assert_eq!(read(&json!({ "data": { "a": 1 } })).unwrap(), json!({ "a": 1 }));
    }

    #[test]
    fn a_reply_to_a_long_chain_is_read() {
        let body = format!("{{\"data\":{}1{}}}", "{\"a\":".repeat(900), "}".repeat(900));
        assert!(data(StatusCode::OK, body.as_bytes()).unwrap().is_object());
    }

    #[test]
    fn kind_hints_and_path_are_kept() {
        let error = read(&json!({ "data": null, "errors": [{
            "message": "m", "path": ["a", 0],
            "extensions": { "_type": "NOT_IMPLEMENTED", "hints": ["h"] },
        }] }))
        .unwrap_err();
        assert_eq!((error.kind, error.hints), (ErrorKind::NotImplemented, vec!["h".to_owned()]));
        assert_eq!(error.path, [PathSegment::Key("a".into()), PathSegment::Index(0)]);
    }

    #[test]
    fn an_exec_failure_is_kept_whole() {
        let error = read(&json!({ "errors": [{ "message": "exit code: 3", "extensions": {
            "_type": "EXEC_ERROR", "cmd": ["false"], "exitCode": 3, "stdout": "o", "stderr": "e",
        } }] }))
        .unwrap_err();
        assert_eq!(error.kind, ErrorKind::Exec);
        let expected = ExecFailure {
            cmd: vec!["false".into()],
            exit_code: 3,
            stdout: "o".into(),
            stderr: "e".into(),
        };
        assert_eq!(error.exec.as_deref(), Some(&expected));
    }

    #[test]
    fn several_errors_become_one() {
        let error = read(&json!({ "errors": [
            { "message": "first", "extensions": { "_type": "ENVIRONMENT" } },
            { "message": "second" },
        ] }))
        .unwrap_err();
        assert_eq!((error.kind, error.message.as_str()), (ErrorKind::Environment, "first\nsecond"));
    }

    #[test]
    fn what_is_no_reply_is_shown() {
        let error = data(StatusCode::BAD_GATEWAY, b"the engine is gone").unwrap_err();
        assert_eq!(error.kind, ErrorKind::Environment);
        assert!(error.message.contains("502") && error.message.contains("the engine is gone"));
    }
}
