//! The deb822 format: one paragraph of fields a source.

use super::{Error, SignedBy, Source, plain_uri};
use crate::control::{Paragraph, paragraphs, says_yes};

/// Reads a `.sources` file. `file` names it in errors.
pub fn parse(file: &str, text: &str) -> Result<Vec<Source>, Error> {
    let paragraphs = paragraphs(text);
    paragraphs.iter().enumerate().map(|(number, paragraph)| read(file, number, paragraph)).collect()
}

fn read(file: &str, number: usize, paragraph: &Paragraph) -> Result<Source, Error> {
    let required = |field: &'static str| {
        let words = paragraph.words(field);
        if !words.is_empty() {
            return Ok(words);
        }
        let reason = format!("there is no `{field}`");
        Err(Error::Malformed { file: file.to_owned(), entry: number + 1, reason })
    };
    let suites = required("Suites")?;
    let flat = suites.iter().all(|suite| suite.ends_with('/'));
    Ok(Source {
        enabled: paragraph.get("Enabled").is_none_or(|value| says_yes(value.trim())),
        types: required("Types")?,
        uris: required("URIs")?.iter().map(|uri| plain_uri(uri)).collect(),
        components: if flat { vec![] } else { required("Components")? },
        suites,
        architectures: paragraph.words("Architectures"),
        signed_by: SignedBy::parse(paragraph.get("Signed-By").unwrap_or_default()),
        trusted: paragraph.is_yes("Trusted"),
    })
}
