//! Files that git-lfs keeps elsewhere: a commit has a pointer to them, and the work tree what it points to.
//!
//! Its filter is part of a user's configuration, which is not read here. So git takes each of these files for changed, and
//! we look whether it is.

use crate::changeset::is_executable;
use crate::content_digest::sum;
use protocol::Error;
use store::View;

/// Longest text that is a pointer.
const LONGEST: u64 = 1024;
/// The line that a pointer begins with.
const VERSION: &str = "version https://git-lfs.github.com/spec/v1";

/// What a pointer says of a file.
#[derive(Debug, PartialEq)]
struct Pointer<'a> {
    /// Sha256 in hex digits.
    digest: &'a str,
    size: u64,
}

impl<'a> Pointer<'a> {
    /// Reads a pointer; none if the text is something else. One with extensions is: its file went through other
    /// programs as well.
    fn parse(text: &'a str) -> Option<Self> {
        let mut lines = text.strip_suffix('\n')?.split('\n');
        let (version, digest, size) = (lines.next()?, lines.next()?, lines.next()?);
        let digest = digest.strip_prefix("oid sha256:")?;
        let size = size.strip_prefix("size ")?.parse().ok()?;
        (version == VERSION && lines.next().is_none()).then_some(Self { digest, size })
    }
}

/// Whether a file of the work tree is what the commit points to, and nothing else of it has changed.
pub(super) fn is_kept(commit: &View, work_tree: &View, path: &[u8]) -> Result<bool, Error> {
    let (Some(before), Some(after)) = (commit.entry_at(path)?, work_tree.entry_at(path)?) else {
        return Ok(false);
    };
    let files = before.is_file() && after.is_file();
    if !files || is_executable(&before) != is_executable(&after) {
        return Ok(false);
    }
    let text = commit.contents_at(path, LONGEST)?.and_then(|bytes| String::from_utf8(bytes).ok());
    let pointer = text.as_deref().and_then(Pointer::parse);
    let Some(pointer) = pointer.filter(|pointer| pointer.size == after.size) else {
        return Ok(false);
    };
    let Some(file) = work_tree.read_at(path)? else { return Ok(false) };
    let sum =
        sum(file).map_err(store::Error::from_read(String::from_utf8_lossy(path).into_owned()))?;
    Ok(sum == pointer.digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_pointers_are_pointers() {
        let digest = "4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393";
        let pointer = format!("{VERSION}\noid sha256:{digest}\nsize 12345\n");
        assert_eq!(Pointer::parse(&pointer), Some(Pointer { digest, size: 12345 }));
        let extended = pointer.replace("oid", "ext-0-foo sha256:00\noid");
        for other in
            ["", "text\n", &pointer[..pointer.len() - 1], &extended, &(pointer.clone() + "x\n")]
        {
            assert_eq!(Pointer::parse(other), None, "{other:?}");
        }
    }
}
