//! What `engine.toml` means, key by key.

use super::*;

#[test]
fn an_empty_file_is_all_defaults() {
    assert_eq!(parse("").unwrap(), Engine::default());
}

#[test]
fn the_table_has_the_true_defaults() {
    for key in KEYS.iter().filter(|key| !key.default.is_empty()) {
        let quote = if key.form == Form::Flag { "" } else { "\"" };
        let text = format!("{} = {quote}{}{quote}", key.name, key.default);
        assert_eq!(parse(&text).unwrap(), Engine::default(), "{text}");
    }
}

const EVERY_KEY: &str = r#"
        idle-timeout = "1m"
        grace = "500ms"
        runtime = "/opt/crun"
        network = "host"
        subnet = "172.20.0.0/16"
        ca-certificates = "/own.pem"
        listen = "tcp://[::]:7433"
        tls-cert = "/c.pem"
        tls-key = "/k.pem"
        tls-client-ca = "/clients.pem"
        listen-plain = true
        memory-limit = "2GiB"
        pids-limit = 100
        cpu-limit = 1.5
        max-used-space = "50.5%"
        min-free-space = "1GB"
        reserved-space = "2GB"
        target-space = "40%"
        keep-duration = "2d"
        gc = false
        debian-mirror = "http://archive.example/debian/"
        debian-keyring = "/k.gpg"
        debian-refresh = "7d"
        debian-cache = "/cache"
        proxy = "http://proxy.example:3128"
        log-level = "info,sandbox=debug"
        [registry."docker.io"]
        mirrors = ["mirror.example:5000/hub/", "localhost"]

        [registry."[::1]:5000"]
        http = true
        insecure = true
        ca = "/ca.pem"
        username = "me"
        password-file = "/password"
"#;

#[test]
fn every_key_is_set() {
    let engine = parse(EVERY_KEY).unwrap();
    let hub = Registry {
        mirrors: vec!["mirror.example:5000/hub".into(), "localhost".into()],
        ..Registry::default()
    };
    let own = Registry {
        mirrors: Vec::new(),
        http: true,
        insecure: true,
        ca: Some("/ca.pem".into()),
        username: Some("me".into()),
        password_file: Some("/password".into()),
    };
    let expected = Engine {
        idle_timeout: Duration::from_secs(60),
        grace: Duration::from_millis(500),
        runtime: "/opt/crun".into(),
        network: Network::Host,
        subnet: Some((Ipv4Addr::new(172, 20, 0, 0), 16)),
        ca_certificates: Some("/own.pem".into()),
        listen: Some("[::]:7433".parse().unwrap()),
        tls_cert: Some("/c.pem".into()),
        tls_key: Some("/k.pem".into()),
        tls_client_ca: Some("/clients.pem".into()),
        listen_plain: true,
        memory_limit: Some(2 << 30),
        pids_limit: Some(100),
        cpu_limit: Some(1.5),
        max_used_space: Amount::Share(50.5),
        min_free_space: Some(Amount::Bytes(1_000_000_000)),
        reserved_space: Some(Amount::Bytes(2_000_000_000)),
        target_space: Some(Amount::Share(40.0)),
        keep_duration: Duration::from_secs(2 * 86_400),
        gc: false,
        registries: BTreeMap::from([("docker.io".into(), hub), ("[::1]:5000".into(), own)]),
        debian_mirror: Some("http://archive.example/debian".into()),
        debian_keyring: Some("/k.gpg".into()),
        debian_refresh: Duration::from_secs(7 * 86_400),
        debian_cache: Some("/cache".into()),
        proxy: Some("http://proxy.example:3128".into()),
        log_level: "info,sandbox=debug".into(),
    };
    assert_eq!(engine, expected);
}

#[test]
fn what_is_wrong_is_named() {
    for (text, message) in [
        (
            "idle-timeout = 10",
            "key `idle-timeout` wants a duration such as `\"10m\"`, not a whole number",
        ),
        ("idle-timeout = \"10\"", "key `idle-timeout`: `10` is no duration"),
        ("network = \"cni\"", "key `network`: `cni` is none of `bridge`, `none` and `host`"),
        ("subnet = \"10.0.0.0\"", "key `subnet`: `10.0.0.0` is no range such as `10.50.0.0/16`"),
        ("subnet = \"10.0.0.0/28\"", "key `subnet`: `10.0.0.0/28` is no range such as"),
        (
            "subnet = \"10.1.1.0/16\"",
            "key `subnet`: `10.1.1.0` is not the first address of a range",
        ),
        ("subnet = \"9.0.0.0/16\"", "key `subnet`: `9.0.0.0/16` is not for private use"),
        ("listen = \"0.0.0.0:1\"", "key `listen`: `0.0.0.0:1` is not like `tcp://0.0.0.0:7433`"),
        ("listen = \"tcp://host\"", "key `listen`: `tcp://host` is not like"),
        ("network = true", "key `network` wants one of its words, in quotes, not true or false"),
        ("memory-limit = \"0B\"", "key `memory-limit`: must be more than nothing"),
        ("memory-limit = \"lots\"", "key `memory-limit`: `lots` is no size"),
        ("pids-limit = 0", "key `pids-limit`: must be at least 1"),
        ("pids-limit = -1", "key `pids-limit`: must be at least 1"),
        ("pids-limit = 1.5", "key `pids-limit` wants a whole number, not a number"),
        ("cpu-limit = 0", "key `cpu-limit`: must be at least 0.01"),
        ("cpu-limit = nan", "key `cpu-limit`: must be at least 0.01"),
        (
            "debian-mirror = \"archive.example\"",
            "key `debian-mirror`: must begin with one of `http://`, `https://`, `file://`, `/`",
        ),
        ("debian-cache = \"cache\"", "key `debian-cache`: must be an absolute path"),
        ("proxy = \"/file\"", "key `proxy`: must begin with one of `http://`, `https://`"),
        ("idle-timeout", "not valid TOML"),
        (
            "max-used-space = 20",
            "key `max-used-space` wants a size such as `\"20GB\"` or `\"75%\"`, not a whole number",
        ),
        ("max-used-space = \"101%\"", "key `max-used-space`: a share is more than 0%"),
        ("target-space = \"-1%\"", "key `target-space`: a share is more than 0%"),
        ("gc = \"yes\"", "key `gc` wants true or false, without quotes, not a text"),
        (
            "registry = \"r.example\"",
            "key `registry` wants tables such as `[registry.\"host:5000\"]`, not a text",
        ),
        (
            "[registry.\"https://r.example\"]",
            "key `registry.\"https://r.example\"`: the name of the table must be a host",
        ),
        (
            "[registry.\"r.example\"]\nmirror = \"m.example\"",
            "unknown key `registry.\"r.example\".mirror`; known keys are `mirrors`, `http`",
        ),
        (
            "[registry.\"r.example\"]\nmirrors = \"m.example\"",
            "key `registry.\"r.example\".mirrors` wants a list of texts such as",
        ),
        (
            "[registry.\"r.example\"]\nmirrors = [\"http://m.example\"]",
            "key `registry.\"r.example\".mirrors`: `http://m.example` must be a host",
        ),
        (
            "[registry.\"r.example\"]\nusername = \"me\"",
            "key `registry.\"r.example\"`: `username` and `password-file` belong together",
        ),
        (
            "[network]\nmode = \"host\"",
            "key `network` wants one of its words, in quotes, not a table",
        ),
    ] {
        let error = parse(text).unwrap_err().to_string();
        assert!(error.starts_with(message), "{text}: {error}");
    }
}

#[test]
fn an_unknown_key_is_an_error_that_names_the_known_ones() {
    let error = parse("memory_limit = \"1GiB\"").unwrap_err().to_string();
    assert!(
        error.starts_with("unknown key `memory_limit`; known keys are `idle-timeout`"),
        "{error}"
    );
    for key in KEYS {
        assert!(error.contains(&format!("`{}`", key.name)), "{error}");
    }
}

#[test]
fn the_reference_page_has_a_row_for_every_key() {
    let page = reference_markdown();
    for key in KEYS.iter().chain(REGISTRY_KEYS) {
        assert!(page.contains(&format!("| `{}` |", key.name)), "{}", key.name);
        assert!(!key.doc.is_empty() && key.doc.ends_with('.'), "{}", key.name);
    }
    assert!(page.contains("| `network` | `bridge` or `none` or `host` | `bridge` |"));
    assert!(page.contains("| `pids-limit` | whole number | none |"));
}

#[test]
fn the_examples_of_the_reference_page_are_sound() {
    let page = reference_markdown();
    let examples: Vec<&str> = page.split("```toml\n").skip(1).collect();
    assert_eq!(examples.len(), 2);
    for example in examples {
        let text = example.split("```").next().unwrap();
        assert_ne!(parse(text).unwrap(), Engine::default(), "{text}");
    }
}
