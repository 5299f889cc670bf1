//! What is wrong with an image, as the caller reads it.

use protocol::{Error, ErrorKind};

/// A failure of a registry.
pub(super) fn of_registry(error: registry::Error) -> Error {
    let kind = match &error {
        registry::Error::Reference { .. } | registry::Error::NotFound { .. } => ErrorKind::User,
        _ => ErrorKind::Environment,
    };
    let hint = error.hint();
    let converted = Error::new(kind, error.to_string());
    match hint {
        Some(hint) => converted.with_hint(hint),
        None => converted,
    }
}

/// A failure of what is in an image; `name` says which.
pub(super) fn of_image(name: &str) -> impl Fn(image::Error) -> Error + '_ {
    move |error| {
        let kind = match &error {
            image::Error::Io(_) => ErrorKind::Environment,
            _ => ErrorKind::User,
        };
        let converted = Error::new(kind, format!("image `{name}`: {error}"));
        match error {
            image::Error::Platform { .. } => {
                converted.with_hint("ask for one of them, e.g. with container(platform: ...)")
            }
            _ => converted,
        }
    }
}

/// A digest in the words of the registry's crate.
pub(super) fn named(digest: &image::Digest) -> registry::Digest {
    digest.to_string().parse().expect("both write a sha256 in the same way")
}

/// A digest in the words of the formats' crate. Only sha256 can be checked there.
pub(super) fn checked(digest: &registry::Digest) -> Result<image::Digest, Error> {
    let wrong = |error: image::ParseDigestError| Error::user(error.to_string());
    digest.as_str().parse().map_err(wrong)
}
