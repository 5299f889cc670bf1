//! The one-line format: `deb [option=value ...] uri suite [component ...]`.

use super::{Error, SignedBy, Source, plain_uri};
use crate::control::says_yes;

/// Reads a `sources.list`. `file` names it in errors.
pub fn parse(file: &str, text: &str) -> Result<Vec<Source>, Error> {
    let mut sources = vec![];
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let source = parse_line(line).map_err(|reason| Error::Malformed {
            file: file.to_owned(),
            entry: number + 1,
            reason: reason.to_owned(),
        })?;
        sources.push(source);
    }
    Ok(sources)
}

fn parse_line(line: &str) -> Result<Source, &'static str> {
    let (kind, rest) = line.split_once(char::is_whitespace).ok_or("there is no URI")?;
    if kind != "deb" && kind != "deb-src" {
        return Err("the type is neither `deb` nor `deb-src`");
    }
    let rest = rest.trim_start();
    let (options, rest) = match rest.strip_prefix('[') {
        Some(rest) => rest.split_once(']').ok_or("the `[` of the options is never closed")?,
        None => ("", rest),
    };
    let mut words = rest.split_whitespace();
    let uri = words.next().ok_or("there is no URI")?;
    let suite = words.next().ok_or("there is no suite")?;
    let mut source = Source {
        enabled: true,
        types: vec![kind.to_owned()],
        uris: vec![plain_uri(uri)],
        suites: vec![suite.to_owned()],
        components: words.map(str::to_owned).collect(),
        architectures: vec![],
        signed_by: SignedBy::default(),
        trusted: false,
    };
    options.split_whitespace().for_each(|option| set(&mut source, option));
    if source.components.is_empty() && !suite.ends_with('/') {
        return Err("there is no component");
    }
    Ok(source)
}

fn set(source: &mut Source, option: &str) {
    let Some((name, value)) = option.split_once('=') else { return };
    match name.trim_end_matches(['+', '-']) {
        "arch" if !name.ends_with('-') => {
            source.architectures.extend(value.split(',').map(str::to_owned));
        }
        "signed-by" => source.signed_by = SignedBy::parse(value),
        "trusted" => source.trusted = says_yes(value),
        _ => {}
    }
}
