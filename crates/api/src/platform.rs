//! `os/arch[/variant]`, checked when it is given.

use protocol::Error;

const SYSTEMS: &[&str] = &["linux", "windows", "darwin", "freebsd"];
const ARCHITECTURES: &[&str] =
    &["amd64", "arm64", "arm", "386", "ppc64le", "s390x", "riscv64", "mips64le", "loong64"];

/// The platform of this engine.
pub(crate) fn current() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "linux/amd64",
        "aarch64" => "linux/arm64",
        "riscv64" => "linux/riscv64",
        _ => "linux/unknown",
    }
}

/// The normal form of a platform, or an error that names it.
pub(crate) fn normalise(text: &str) -> Result<String, Error> {
    let unknown = || {
        Error::user(format!("`{text}`: unknown operating system or architecture"))
            .with_hint(format!("write a platform as os/arch, e.g. {}", current()))
    };
    let mut parts = text.trim().split('/');
    let (first, second, variant) = (parts.next(), parts.next(), parts.next());
    if parts.next().is_some() {
        return Err(unknown());
    }
    let (system, architecture) = match (first, second) {
        (Some(one), None) if SYSTEMS.contains(&one) => {
            (one, current().split('/').nth(1).unwrap_or_default())
        }
        (Some(one), None) => ("linux", architecture(one)),
        (Some(system), Some(arch)) => (system, architecture(arch)),
        _ => return Err(unknown()),
    };
    if !SYSTEMS.contains(&system) || !ARCHITECTURES.contains(&architecture) {
        return Err(unknown());
    }
    match variant {
        Some("") => Err(unknown()),
        Some("v8") if architecture == "arm64" => Ok(format!("{system}/{architecture}")),
        Some(variant) => Ok(format!("{system}/{architecture}/{variant}")),
        None => Ok(format!("{system}/{architecture}")),
    }
}

fn architecture(name: &str) -> &str {
    match name {
        "x86_64" | "x86-64" => "amd64",
        "aarch64" => "arm64",
        "armhf" | "armel" => "arm",
        "i386" | "i686" => "386",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_forms() {
        for (text, expected) in [
            ("linux/amd64", Some("linux/amd64")),
            ("linux/x86_64", Some("linux/amd64")),
            ("linux/arm64/v8", Some("linux/arm64")),
            ("linux/arm/v7", Some("linux/arm/v7")),
            ("arm64", Some("linux/arm64")),
            ("windows98", None),
            ("linux/z80", None),
            ("", None),
            ("linux/amd64/a/b", None),
            ("linux/amd64/", None),
        ] {
            assert_eq!(normalise(text).ok().as_deref(), expected, "{text}");
        }
        assert!(normalise("x/y").unwrap_err().message.contains("unknown operating system"));
    }
}
