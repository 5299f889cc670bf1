//! Services: containers in the background, who reaches them, and the caller's machine on either side.

mod binding;
mod dying;
mod everywhere;
mod host;
mod registry;
mod starting;
mod up;

use serde_json::{Value, json};
use testkit::Session;

/// A server that says a word to whoever connects, as fields of a container.
fn says(word: &str, port: u16) -> String {
    let line = json!(format!("exec nc -ll -p {port} -e echo {word}"));
    format!(r#"withExposedPort(port: {port}) {{ asService(args: ["sh", "-c", {line}]) {{ id }} }}"#)
}

/// The id of a service that a chain of fields on a container with the static root file system makes.
#[track_caller]
fn service(session: &Session, chain: &str) -> String {
    let id = session.leaf(&session.on_container(chain));
    id.as_str().expect("an id is text").to_owned()
}

/// The document of fields of a service.
fn on_service(id: &str, fields: &str) -> String {
    format!("{{ loadServiceFromID(id: {}) {{ {fields} }} }}", json!(id))
}

/// The chain of a command in a container that has a service under an alias.
fn bound(alias: &str, id: &str, line: &str, field: &str) -> String {
    let (id, line) = (json!(id), json!(line));
    format!(
        r#"withServiceBinding(alias: "{alias}", service: {id}) {{
            withExec(args: ["sh", "-c", {line}]) {{ {field} }} }}"#
    )
}

/// Something that is different every time, so that no command is known already.
fn fresh() -> String {
    let uuid = std::fs::read_to_string("/proc/sys/kernel/random/uuid").unwrap();
    uuid.trim().to_owned()
}

/// One field of a service.
#[track_caller]
fn ask(session: &Session, id: &str, field: &str) -> Value {
    session.leaf(&on_service(id, field))
}
