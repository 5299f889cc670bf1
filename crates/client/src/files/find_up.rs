//! The nearest entry of a name, upwards from the working directory.

use super::{MAX_NAME_BYTES, shortened};
use protocol::Error;
use protocol::attach::FindUpReply;
use std::path::Path;

/// Looks in the working directory, then in each directory above it. Directories that may not be
/// looked into count as having no such entry.
pub(super) fn find(workdir: &Path, name: &str) -> Result<FindUpReply, Error> {
    let fits = !name.is_empty() && name.len() <= MAX_NAME_BYTES && !name.contains(['/', '\0']);
    if !fits || name == "." || name == ".." {
        let name = shortened(name);
        return Err(Error::user(format!("`{name}` is no name of a file or directory")));
    }
    let mut relative = String::new();
    for directory in workdir.ancestors() {
        if directory.join(name).symlink_metadata().is_ok() {
            return Ok(FindUpReply { path: Some(format!("{relative}{name}")) });
        }
        relative.push_str("../");
    }
    Ok(FindUpReply { path: None })
}
