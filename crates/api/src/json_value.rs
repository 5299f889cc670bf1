//! `JSONValue`: a JSON document as a value, to look into and to build.
//!
//! The names in an object are sorted: equal documents are equal texts. Documents nest at most
//! [`MAX_DEPTH`] deep, so that nothing which walks one runs out of stack.

use crate::scalars::Json;
use graph::{Args, Builder, Context, Object, Op, Ref, Root};
use protocol::Error;
use serde::Serialize as _;
use serde_json::ser::{PrettyFormatter, Serializer};
use serde_json::{Map, Value};
use std::sync::Arc;

/// How deep a document may nest; the parser has the same limit.
const MAX_DEPTH: usize = 127;

pub(crate) fn install(builder: &mut Builder) {
    builder
        .install::<MakeJson>()
        .install::<NewString>()
        .install::<NewInteger>()
        .install::<NewBoolean>()
        .install::<WithContents>()
        .install::<Contents>()
        .install::<Field>()
        .install::<Fields>()
        .install::<WithField>()
        .install::<AsString>()
        .install::<AsInteger>()
        .install::<AsBoolean>()
        .install::<AsArray>();
}

/// A JSON document.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct JsonValue(Arc<Value>);

impl Object for JsonValue {
    const TYPE: &'static str = "JSONValue";
}

impl JsonValue {
    /// Reads a document.
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        parse(text).map(Self::of)
    }

    fn of(value: Value) -> Self {
        Self(Arc::new(value))
    }

    /// The value at a path of names; the document itself at the empty path.
    fn at(&self, path: &[String]) -> Result<&Value, Error> {
        let mut value = &*self.0;
        for (depth, name) in path.iter().enumerate() {
            let Value::Object(fields) = value else {
                return Err(wrong_kind(&shown(&path[..depth]), value, "an object"));
            };
            let missing = || Error::user(format!("there is no field {}", shown(&path[..=depth])));
            value = fields.get(name).ok_or_else(missing)?;
        }
        Ok(value)
    }

    /// The document with another value at a path; objects on the way are made where there is nothing.
    fn with(&self, path: &[String], value: Value) -> Result<Self, Error> {
        if path.len() + depth(&value) > MAX_DEPTH {
            return Err(Error::user(format!("the JSON nests more than {MAX_DEPTH} deep")));
        }
        let mut document = (*self.0).clone();
        let mut place = &mut document;
        for (depth, name) in path.iter().enumerate() {
            if place.is_null() {
                *place = Value::Object(Map::new());
            }
            if !place.is_object() {
                return Err(wrong_kind(&shown(&path[..depth]), place, "an object"));
            }
            // An object has just been made of what was null, so this adds a field.
            place = &mut place[name.as_str()];
        }
        *place = value;
        Ok(Self::of(document))
    }
}

/// Reads a JSON document, or says where it is none.
pub(crate) fn parse(text: &str) -> Result<Value, Error> {
    serde_json::from_str(text).map_err(|error| Error::user(format!("invalid JSON: {error}")))
}

/// How deep a value nests. It recurses as deep as the value, which is bounded.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// A path for a message.
fn shown(path: &[String]) -> String {
    if path.is_empty() { "the JSON value".to_owned() } else { format!("`{}`", path.join(".")) }
}

fn wrong_kind(what: &str, value: &Value, wanted: &str) -> Error {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.is_i64() => "an integer",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    };
    Error::user(format!("{what} is {kind}, not {wanted}"))
}

/// Declares an operation whose result is a pure function of the document.
macro_rules! pure {
    ($op:ident, $name:literal, $output:ty, |$self:ident, $json:ident| $body:expr) => {
        impl Op for $op {
            type Parent = JsonValue;
            type Output = $output;
            const NAME: &'static str = $name;

            async fn run(&self, $json: &JsonValue, _: &Context) -> Result<$output, Error> {
                let $self = self;
                $body
            }
        }
    };
}

/// A JSON value: null, to begin with.
#[derive(Args)]
struct MakeJson {}

impl Op for MakeJson {
    type Parent = Root;
    type Output = JsonValue;
    const NAME: &'static str = "json";

    async fn run(&self, _: &Root, _: &Context) -> Result<JsonValue, Error> {
        Ok(JsonValue::of(Value::Null))
    }
}

/// A JSON string.
#[derive(Args)]
struct NewString {
    /// The text.
    value: String,
}

pure!(NewString, "newString", JsonValue, |op, _json| {
    Ok(JsonValue::of(Value::from(op.value.as_str())))
});

/// A JSON number that is an integer.
#[derive(Args)]
struct NewInteger {
    /// The number.
    value: i64,
}

pure!(NewInteger, "newInteger", JsonValue, |op, _json| Ok(JsonValue::of(Value::from(op.value))));

/// A JSON boolean.
#[derive(Args)]
struct NewBoolean {
    /// Whether it is true.
    value: bool,
}

pure!(NewBoolean, "newBoolean", JsonValue, |op, _json| Ok(JsonValue::of(Value::from(op.value))));

/// A JSON value read from a text.
#[derive(Args)]
struct WithContents {
    /// The text.
    contents: Json,
}

pure!(WithContents, "withContents", JsonValue, |op, _json| JsonValue::parse(&op.contents.0));

/// The value as a text.
#[derive(Args)]
struct Contents {
    /// Spread it over several lines.
    #[arg(default = "false")]
    pretty: bool,
    /// What a line begins with for each level, where it is spread over several.
    #[arg(default = "\"  \"")]
    indent: String,
}

pure!(Contents, "contents", Json, |op, json| {
    if !op.pretty {
        return Ok(Json(json.0.to_string()));
    }
    let mut text = vec![];
    let formatter = PrettyFormatter::with_indent(op.indent.as_bytes());
    let written = json.0.serialize(&mut Serializer::with_formatter(&mut text, formatter));
    let unwritable = |error: String| Error::internal(format!("JSON cannot be written: {error}"));
    written.map_err(|error| unwritable(error.to_string()))?;
    Ok(Json(String::from_utf8(text).map_err(|error| unwritable(error.to_string()))?))
});

/// The value of a field of an object.
#[derive(Args)]
struct Field {
    /// Names of fields, from the outermost on; none is the value itself.
    path: Vec<String>,
}

pure!(Field, "field", JsonValue, |op, json| json.at(&op.path).cloned().map(JsonValue::of));

/// Names of the fields of an object, sorted.
#[derive(Args)]
struct Fields {}

pure!(Fields, "fields", Vec<String>, |_op, json| match &*json.0 {
    Value::Object(fields) => Ok(fields.keys().cloned().collect()),
    other => Err(wrong_kind("the JSON value", other, "an object")),
});

/// Sets a field of an object. Objects on the way are made where there is nothing.
#[derive(Args)]
struct WithField {
    /// Names of fields, from the outermost on; none is the value itself.
    path: Vec<String>,
    /// The value of the field.
    value: Ref<JsonValue>,
}

pure!(WithField, "withField", JsonValue, |op, json| json.with(&op.path, (*op.value.0).clone()));

/// The text of a string.
#[derive(Args)]
struct AsString {}

pure!(AsString, "asString", String, |_op, json| match &*json.0 {
    Value::String(text) => Ok(text.clone()),
    other => Err(wrong_kind("the JSON value", other, "a string")),
});

/// The number, if it is an integer.
#[derive(Args)]
struct AsInteger {}

pure!(AsInteger, "asInteger", i64, |_op, json| {
    json.0.as_i64().ok_or_else(|| wrong_kind("the JSON value", &json.0, "an integer of 64 bits"))
});

/// Whether the value is true.
#[derive(Args)]
struct AsBoolean {}

pure!(AsBoolean, "asBoolean", bool, |_op, json| {
    json.0.as_bool().ok_or_else(|| wrong_kind("the JSON value", &json.0, "a boolean"))
});

/// The elements of an array.
#[derive(Args)]
struct AsArray {}

pure!(AsArray, "asArray", Vec<JsonValue>, |_op, json| match &*json.0 {
    Value::Array(items) => Ok(items.iter().cloned().map(JsonValue::of).collect()),
    other => Err(wrong_kind("the JSON value", other, "an array")),
});

#[cfg(test)]
mod tests {
    use super::*;

    fn path(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn fields_are_found_and_set() {
        let json = JsonValue::parse(r#"{"b": {"c": [1]}, "a": "x"}"#).unwrap();
        assert_eq!(*json.at(&[]).unwrap(), *json.0);
        assert_eq!(json.at(&path(&["b", "c"])).unwrap().to_string(), "[1]");
        let made = json.with(&path(&["n", "m"]), Value::from(2)).unwrap();
        assert_eq!(made.0.to_string(), r#"{"a":"x","b":{"c":[1]},"n":{"m":2}}"#);
        assert_eq!(json.0["n"], Value::Null, "the value before is untouched");
        let whole = json.with(&[], Value::from(true)).unwrap();
        assert_eq!(whole.0.to_string(), "true");
    }

    #[test]
    fn what_is_of_another_kind_is_named() {
        let json = JsonValue::parse(r#"{"a": "x"}"#).unwrap();
        let error = json.at(&path(&["a", "b"])).unwrap_err();
        assert_eq!(error.message, "`a` is a string, not an object");
        let error = json.at(&path(&["a0", "b"])).unwrap_err();
        assert_eq!(error.message, "there is no field `a0`");
        let error = json.with(&path(&["a", "b"]), Value::Null).unwrap_err();
        assert_eq!(error.message, "`a` is a string, not an object");
        assert!(parse("{").unwrap_err().message.contains("invalid JSON"));
    }

    #[test]
    fn depth_is_bounded() {
        let deep = |levels: usize| path(&vec!["x"; levels]);
        let null = JsonValue::of(Value::Null);
        let made = null.with(&deep(MAX_DEPTH), Value::Null).unwrap();
        assert!(JsonValue::parse(&made.0.to_string()).is_ok());
        assert!(null.with(&deep(MAX_DEPTH + 1), Value::Null).is_err());
        assert!(null.with(&deep(1), (*made.0).clone()).is_err());
        assert!(JsonValue::parse(&"[".repeat(10_000)).is_err());
    }
}
