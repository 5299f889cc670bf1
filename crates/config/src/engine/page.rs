//! The reference page of `engine.toml`, made from the tables of keys.

use super::keys::{KEYS, Key, REGISTRY_KEYS};
use std::fmt::Write;

const HEAD: &str = "\
# `engine.toml`

Settings of the engine. The file is looked for beside the user's settings
(`$XDG_CONFIG_HOME/ci-tool/engine.toml`, or `~/.config/ci-tool/engine.toml`);
`CITOOL_ENGINE_CONFIG` names another one. The engine reads it when it starts. A key that is
not in these tables is an error.

Durations are written like `90s`, `10m` or `1h30m`, sizes like `512MiB` or `2GB`. Where a share is
allowed, `75%` is three quarters of the file system that holds the state folder.

";

const CACHE: &str = "
## The cache

[The cache](../guide/cache.md) says what is kept and what goes when. An example that gives the cache a disk
of its own, up to nine tenths of it, and lets it throw away what a month has not seen:

```toml
max-used-space = \"90%\"
target-space = \"80%\"
min-free-space = \"2GB\"
keep-duration = \"30d\"
```

";

const REGISTRIES: &str = "\
## Registries

A table's name is the registry as it stands in an address: `registry.example`, `localhost:5000`, `docker.io`.

";

const REGISTRY_EXAMPLES: &str = "
A mirror for everything that has no registry in its address, and a registry of one's own that has a private
certificate authority and wants a password:

```toml
[registry.\"docker.io\"]
mirrors = [\"mirror.example:5000\"]

[registry.\"registry.example\"]
ca = \"/etc/ssl/own-ca.pem\"
username = \"builder\"
password-file = \"/etc/ci-tool/registry-password\"
```
";

/// The reference page of `engine.toml`.
pub fn reference_markdown() -> String {
    let mut page = String::from(HEAD);
    table(&mut page, KEYS);
    page.push_str(CACHE);
    page.push_str(REGISTRIES);
    table(&mut page, REGISTRY_KEYS);
    page.push_str(REGISTRY_EXAMPLES);
    page
}

fn table(page: &mut String, keys: &[Key]) {
    page.push_str("| key | value | default | meaning |\n|---|---|---|---|\n");
    for key in keys {
        let default = match key.default {
            "" => "none".to_owned(),
            text => format!("`{text}`"),
        };
        writeln!(page, "| `{}` | {} | {default} | {} |", key.name, key.form.in_table(), key.doc)
            .expect("writing to a string does not fail");
    }
}
