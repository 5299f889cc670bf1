//! How much room one tree takes, inode by inode.
//!
//! Layers share files by hard links. A file whose names are all in this tree is the tree's own; one
//! that has names elsewhere too is listed, so that it can be counted once among all trees.

use crate::state::StateDir;
use crate::view::join;
use rustix::fs::{AtFlags, Dir, FileType, Stat, fstat, statat};
use rustix::io::Errno;
use std::collections::HashMap;

/// Size of the unit in which a file system counts.
const BLOCK: u64 = 512;

/// What one tree takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Measure {
    /// Bytes that go when the tree goes.
    pub(crate) own: u64,
    /// Inodes that have names outside the tree, with their bytes.
    pub(crate) shared: Vec<(u64, u64)>,
}

struct Linked {
    seen: u64,
    links: u64,
    bytes: u64,
}

impl Measure {
    /// Measures a tree below the state folder. What vanishes meanwhile is not counted.
    pub(crate) fn of(state: &StateDir, path: &[u8]) -> Result<Self, Errno> {
        let mut own = bytes_of(&fstat(state.open_directory(path)?)?);
        let mut linked: HashMap<u64, Linked> = HashMap::new();
        let mut ahead = vec![path.to_vec()];
        while let Some(path) = ahead.pop() {
            // A tree may nest deeper than a path can say; what is below is not worth an error.
            let Ok(directory) = state.open_directory(&path) else { continue };
            for entry in Dir::read_from(&directory)? {
                let entry = entry?;
                let name = entry.file_name();
                if matches!(name.to_bytes(), b"." | b"..") {
                    continue;
                }
                let Ok(stat) = statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) else {
                    continue;
                };
                let bytes = bytes_of(&stat);
                if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
                    own += bytes;
                    ahead.push(join(&path, name.to_bytes()));
                } else if stat.st_nlink <= 1 {
                    own += bytes;
                } else {
                    let links = crate::metadata::Metadata::from(&stat).links;
                    let fresh = Linked { seen: 0, links, bytes };
                    linked.entry(stat.st_ino).or_insert(fresh).seen += 1;
                }
            }
        }
        let mut shared = vec![];
        for (inode, file) in linked {
            match file.seen >= file.links {
                true => own += file.bytes,
                false => shared.push((inode, file.bytes)),
            }
        }
        shared.sort_unstable();
        Ok(Self { own, shared })
    }

    /// As it is stored: 16 bytes a shared inode.
    pub(crate) fn encode_shared(&self) -> Vec<u8> {
        let pair = |(inode, bytes): &(u64, u64)| [inode.to_le_bytes(), bytes.to_le_bytes()];
        self.shared.iter().flat_map(pair).flatten().collect()
    }

    /// What was stored; none if it cannot be read.
    pub(crate) fn decode(own: u64, shared: &[u8]) -> Option<Self> {
        let (numbers, []) = shared.as_chunks::<8>() else { return None };
        let (pairs, []) = numbers.as_chunks::<2>() else { return None };
        let pair = |[inode, bytes]: &[[u8; 8]; 2]| {
            (u64::from_le_bytes(*inode), u64::from_le_bytes(*bytes))
        };
        Some(Self { own, shared: pairs.iter().map(pair).collect() })
    }
}

/// Bytes that an inode takes on the disk.
pub(crate) fn bytes_of(stat: &Stat) -> u64 {
    stat.st_blocks as u64 * BLOCK
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn an_inode_counts_once_and_shared_ones_are_listed() {
        let folder = tempfile::tempdir().unwrap();
        let state = StateDir::open(folder.path()).unwrap();
        let tree = folder.path().join("tmp/tree");
        fs::create_dir_all(tree.join("a")).unwrap();
        fs::write(tree.join("a/own"), vec![1; 10_000]).unwrap();
        fs::hard_link(tree.join("a/own"), tree.join("second name")).unwrap();
        fs::write(tree.join("shared"), vec![1; 20_000]).unwrap();
        fs::hard_link(tree.join("shared"), folder.path().join("tmp/elsewhere")).unwrap();
        let size = |path: &str| fs::symlink_metadata(tree.join(path)).unwrap().blocks() * 512;
        let measure = Measure::of(&state, b"tmp/tree").unwrap();
        assert_eq!(measure.own, size("") + size("a") + size("a/own"));
        let inode = fs::metadata(tree.join("shared")).unwrap().ino();
        assert_eq!(measure.shared, [(inode, size("shared"))]);
        let decoded = Measure::decode(measure.own, &measure.encode_shared());
        assert_eq!(decoded, Some(measure.clone()));
        assert_eq!(Measure::decode(1, &[0; 17]), None);
    }
}
