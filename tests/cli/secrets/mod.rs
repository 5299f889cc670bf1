//! Secrets: where they come from, who sees them, and what is kept of them.

mod everywhere;
mod output;
mod providers;
mod uses;

use serde_json::{Value, json};
use testkit::Session;

/// `core container with-rootfs <static root> with-secret-variable --name=T <flag> with-exec <args> stdout`.
pub(crate) fn words(flag: &str, args: &str) -> Vec<String> {
    let rootfs = format!("--directory={}", testkit::busybox().display());
    let exec = format!("--args={args}");
    let words = ["core", "container", "with-rootfs", &rootfs, "with-secret-variable", "--name=T"];
    words.into_iter().chain([flag, "with-exec", &exec, "stdout"]).map(str::to_owned).collect()
}

/// The id of a secret of the session.
fn secret(session: &Session, plaintext: &str) -> Value {
    let text = json!(plaintext);
    session.leaf(&format!(r#"{{ setSecret(name: "s", plaintext: {text}) {{ id }} }}"#))
}

/// The id of a secret at an address.
fn kept(session: &Session, uri: &str) -> Value {
    session.leaf(&format!("{{ secret(uri: {}) {{ id }} }}", json!(uri)))
}

/// `withSecretVariable(name: "S", ...) { <rest> }`.
fn with_variable(secret: &Value, rest: &str) -> String {
    format!(r#"withSecretVariable(name: "S", secret: {secret}) {{ {rest} }}"#)
}

/// Output of a shell script that has a secret in `S`.
fn shell(session: &Session, secret: &Value, script: &str) -> String {
    let exec = format!(r#"withExec(args: ["sh", "-c", {}]) {{ stdout }}"#, json!(script));
    session.container(&with_variable(secret, &exec))
}
