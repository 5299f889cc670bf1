//! What callers of older versions of the API expect.
//!
//! There is one schema for everybody. A session may say which version its client was written for, and
//! the few answers that have changed since ask here; a session that says nothing gets the newest.

use graph::Context;
use protocol::session::ClientSettings;

/// Whether the caller expects the answers of a version before this one, given as major and minor.
pub(crate) fn is_before(cx: &Context, version: (u64, u64)) -> bool {
    cx.get::<ClientSettings>().is_ok_and(|settings| is_older(&settings.compat, version))
}

/// Whether names of directories end with a slash.
pub(crate) fn marks_directories(cx: &Context) -> bool {
    !is_before(cx, (0, 17))
}

/// What is no version counts as the newest.
fn is_older(text: &str, version: (u64, u64)) -> bool {
    let mut numbers = text.trim_start_matches('v').split('.').map(|part| part.parse().ok());
    match (numbers.next().flatten(), numbers.next().flatten()) {
        (Some(major), Some(minor)) => (major, minor) < version,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_number() {
        for (text, expected) in [
            ("0.16.3", true),
            ("v0.9.11", true),
            ("0.17.0", false),
            ("0.100.0", false),
            ("1.0.0-beta.10", false),
            ("", false),
            ("main", false),
            ("0", false),
        ] {
            assert_eq!(is_older(text, (0, 17)), expected, "{text}");
        }
    }
}
