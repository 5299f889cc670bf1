//! The reply of a chain as it is printed.

use super::plan::{End, Plan};
use protocol::Digest;
use serde_json::{Map, Value};

/// How many hex digits of a digest are shown.
const DIGEST_DIGITS: usize = 16;

/// The result of a chain as text.
pub(crate) fn text(plan: &Plan, data: &Value) -> String {
    match &plan.end {
        End::Root => super::chain::ROOT.to_owned(),
        End::Void => String::new(),
        End::Value | End::Export => plain(&result(data, &plan.path)),
        End::Object(type_name) => objects(type_name, &result(data, &plan.path)),
    }
}

/// The result of a chain as JSON. Objects have no form of their own in JSON, so they stay text.
pub(crate) fn json(plan: &Plan, data: &Value) -> String {
    match &plan.end {
        End::Value | End::Export => {}
        End::Root | End::Void | End::Object(_) => return text(plan, data),
    }
    let value = result(data, &plan.path);
    if !passes_list(data, &plan.path) {
        return pretty(&value);
    }
    let field = plan.path.last().cloned().unwrap_or_default();
    pretty(&name_leaves(value, &field))
}

/// The ids of the changesets that a chain ends in, if it does.
pub(crate) fn changesets(plan: &Plan, data: &Value) -> Option<Vec<String>> {
    if plan.end != End::Object("Changeset".to_owned()) {
        return None;
    }
    let mut ids = vec![];
    collect(&result(data, &plan.path), &mut ids);
    Some(ids)
}

fn collect(value: &Value, ids: &mut Vec<String>) {
    match value {
        Value::String(id) => ids.push(id.clone()),
        Value::Array(items) => items.iter().for_each(|item| collect(item, ids)),
        _ => {}
    }
}

/// Whether the changes that were asked about beside the result are none.
pub(crate) fn is_empty(plan: &Plan, data: &Value) -> bool {
    let above = &plan.path[..plan.path.len().saturating_sub(1)];
    result(data, above)["isEmpty"] == Value::Bool(true)
}

/// JSON with four spaces of indent, sorted keys and a newline at the end.
pub(crate) fn pretty(value: &Value) -> String {
    let mut out = vec![];
    let formatter = serde_json::ser::PrettyFormatter::with_indent(b"    ");
    let mut serializer = serde_json::Serializer::with_formatter(&mut out, formatter);
    serde::Serialize::serialize(&sorted(value), &mut serializer)
        .expect("a JSON value has a JSON form");
    out.push(b'\n');
    String::from_utf8(out).expect("JSON is UTF-8")
}

/// An object as it is told: its type and the start of the blake3 digest of its id.
pub(crate) fn object_name(type_name: &str, id: &str) -> String {
    let digest = Digest::of(id.as_bytes()).to_string();
    format!("{type_name}@blake3:{}", &digest[..DIGEST_DIGITS])
}

/// Follows response keys down to the result; lists on the way make a list of results.
pub(super) fn result(data: &Value, path: &[String]) -> Value {
    let mut value = data;
    for (index, key) in path.iter().enumerate() {
        if let Value::Array(items) = value {
            return Value::Array(items.iter().map(|item| result(item, &path[index..])).collect());
        }
        value = &value[key];
    }
    value.clone()
}

/// Whether a list of objects lies above the last key.
fn passes_list(data: &Value, path: &[String]) -> bool {
    let mut value = data;
    for key in path {
        if value.is_array() {
            return true;
        }
        value = &value[key];
    }
    false
}

fn name_leaves(value: Value, field: &str) -> Value {
    match value {
        Value::Array(items) => {
            Value::Array(items.into_iter().map(|item| name_leaves(item, field)).collect())
        }
        leaf => Value::Object(Map::from_iter([(field.to_owned(), leaf)])),
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(|item| plain(item) + "\n").collect(),
        other => other.to_string(),
    }
}

fn objects(type_name: &str, value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        // Objects without an id have nothing to tell them apart.
        Value::String(name) if name == type_name => name.clone(),
        Value::String(id) => object_name(type_name, id),
        Value::Array(items) => {
            items.iter().map(|item| format!("- {}\n", objects(type_name, item))).collect()
        }
        other => other.to_string(),
    }
}

/// The same value with the keys of every object in order, whatever order the map keeps.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut keys: Vec<&String> = fields.keys().collect();
            keys.sort();
            keys.into_iter().map(|key| (key.clone(), sorted(&fields[key]))).collect()
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        other => other.clone(),
    }
}
