//! The stat index: what a directory of the host looked like when it was last taken in.
//!
//! One file a directory and selection, kept as a blob. Each directory is a block of rows sorted by
//! name, and a row of a directory says where its block is, so that a walk finds the rows of what it
//! lists without searching. A changed directory gets a new block at the end, and so do the
//! directories above it; the blocks of all others stay where they are. When more than half of the
//! bytes belong to nobody the index is written anew.
//!
//! ```text
//! head      magic, version, all numbers little-endian (see `Head::write`), the layers of the snapshot
//! blocks    device of the directory, number of rows, rows
//! row       kind, length of the name, mode; then
//!             of a directory: place of its block
//!             else: size, mtime, ctime, inode, digest of the contents
//!           and the name
//! checksum  blake3 of all bytes before it
//! ```

use crate::metadata::Kind;
use crate::snapshot::{LayerId, LayerRef, Snapshot};
use protocol::Digest;
use std::collections::VecDeque;
use std::io::{self, Write};

const MAGIC: &[u8; 8] = b"intake 1";
const CHECKSUM: usize = 32;
/// Bytes of a block before its rows.
pub(super) const BLOCK_HEAD: usize = 12;
/// Timestamps of a file system that counts whole seconds, or two, are not trusted before so much
/// time has passed.
const COARSE: i64 = 2_000_000_000;

/// An index that was read.
pub(super) struct Index {
    bytes: Vec<u8>,
    /// Where the blocks begin.
    blocks: usize,
    pub(super) head: Head,
}

/// The blocks of an index, and those that come after them.
#[derive(Clone, Copy)]
pub(super) struct Blocks<'a> {
    pub(super) old: &'a [u8],
    pub(super) new: &'a [u8],
}

/// What an index says of the tree as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    /// An entry that changed before this time, in nanoseconds since the epoch, would have another
    /// time if it had changed again since it was read.
    pub(super) trusted_before: i64,
    /// Permission bits of the root.
    pub(super) mode: u32,
    /// Where the block of the root is.
    pub(super) root: u64,
    /// Entries of the tree, and the bytes of its files.
    pub(super) entries: u64,
    pub(super) size: u64,
    /// The same of all layers that the tree is made of, what newer ones hide counted in.
    pub(super) stored: u64,
    pub(super) stored_size: u64,
    /// Bytes of blocks that are in use.
    pub(super) used: u64,
    /// Digest of the tree.
    pub(super) digest: Option<Digest>,
    /// The tree in the store.
    pub(super) snapshot: Snapshot,
}

/// What was seen of an entry that is no directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) size: u64,
    pub(super) mtime: i64,
    pub(super) ctime: i64,
    pub(super) inode: u64,
}

/// One entry of a directory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row<'a> {
    pub(super) name: &'a [u8],
    pub(super) kind: Kind,
    pub(super) mode: u32,
    pub(super) what: What,
}

/// The part of a row that depends on its kind.
#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    /// A directory and the place of its block.
    Directory(u64),
    /// A file or a link.
    Leaf(Stamp, Digest),
}

/// The rows of a directory.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    rest: &'a [u8],
    left: u32,
}

impl Index {
    /// Nothing: everything is new to it.
    pub(super) fn empty() -> Self {
        Self { bytes: vec![], blocks: 0, head: Head::default() }
    }

    /// Reads an index; none when it is damaged or of another version.
    pub(super) fn read(mut bytes: Vec<u8>) -> Option<Self> {
        let end = bytes.len().checked_sub(CHECKSUM)?;
        let sum = blake3::hash(&bytes[..end]);
        if sum.as_bytes() != &bytes[end..] {
            return None;
        }
        bytes.truncate(end);
        let (head, blocks) = Head::read(&bytes)?;
        Some(Self { bytes, blocks, head })
    }

    /// All blocks, with new ones after them.
    pub(super) fn with<'a>(&'a self, new: &'a [u8]) -> Blocks<'a> {
        Blocks { old: self.bytes.get(self.blocks..).unwrap_or_default(), new }
    }

    /// Where new blocks begin.
    pub(super) fn end(&self) -> usize {
        self.bytes.len() - self.blocks
    }

    /// Device of a directory and its rows.
    pub(super) fn block(&self, place: u64) -> Option<(u64, Rows<'_>)> {
        self.with(&[]).block(place)
    }

    /// Whether a row with this stamp still says the truth about an entry with the same stamp.
    pub(super) fn trusts(&self, stamp: &Stamp) -> bool {
        let newest = stamp.mtime.max(stamp.ctime);
        let coarse = if newest % 1_000_000_000 == 0 { COARSE } else { 0 };
        newest.saturating_add(coarse) < self.head.trusted_before
    }
}

impl<'a> Blocks<'a> {
    /// How many bytes there are.
    pub(super) fn len(&self) -> usize {
        self.old.len() + self.new.len()
    }

    /// The device of a directory and its rows.
    pub(super) fn block(&self, place: u64) -> Option<(u64, Rows<'a>)> {
        let place = usize::try_from(place).ok()?;
        let mut rest = match place.checked_sub(self.old.len()) {
            Some(place) => self.new.get(place..)?,
            None => &self.old[place..],
        };
        let device = take_u64(&mut rest)?;
        let left = take_u32(&mut rest)?;
        Some((device, Rows { rest, left }))
    }

    /// Only the blocks that are in use, those of a directory after its own; none when they are
    /// damaged.
    pub(super) fn compacted(&self, head: &mut Head) -> Option<Vec<u8>> {
        let mut bytes = Vec::with_capacity(head.used as usize);
        let mut next = length(self.block(head.root)?.1);
        let mut ahead = VecDeque::from([head.root]);
        while let Some(place) = ahead.pop_front() {
            let (device, rows) = self.block(place)?;
            begin_block(&mut bytes, device, rows.left);
            for mut row in rows {
                if let What::Directory(below) = &mut row.what {
                    ahead.push_back(*below);
                    let place = next;
                    next += length(self.block(*below)?.1);
                    *below = place;
                }
                row.write(&mut bytes);
            }
        }
        head.root = 0;
        Some(bytes)
    }

    /// Writes an index with these blocks.
    pub(super) fn write(&self, head: &Head, to: &mut impl Write) -> io::Result<()> {
        let mut sum = blake3::Hasher::new();
        let mut start = vec![];
        head.write(&mut start);
        for part in [&start, self.old, self.new] {
            sum.update(part);
            to.write_all(part)?;
        }
        to.write_all(sum.finalize().as_bytes())
    }
}

/// How many bytes the block with these rows takes.
fn length(mut rows: Rows<'_>) -> u64 {
    let all = rows.rest.len();
    rows.by_ref().for_each(drop);
    (BLOCK_HEAD + all - rows.rest.len()) as u64
}

/// Adds the head of a block.
pub(super) fn begin_block(bytes: &mut Vec<u8>, device: u64, rows: u32) {
    bytes.extend_from_slice(&device.to_le_bytes());
    bytes.extend_from_slice(&rows.to_le_bytes());
}

impl Row<'_> {
    /// How many bytes the row takes.
    pub(super) fn length(&self) -> usize {
        let fixed = match self.what {
            What::Directory(_) => 12,
            What::Leaf(..) => 68,
        };
        fixed + self.name.len()
    }

    /// Adds the row to the block that was begun last.
    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        let kind = match self.kind {
            Kind::Directory => 0,
            Kind::File => 1,
            _ => 2,
        };
        // The system takes no longer names.
        bytes.extend_from_slice(&[kind, self.name.len().min(255) as u8]);
        bytes.extend_from_slice(&(self.mode as u16).to_le_bytes());
        match &self.what {
            What::Directory(place) => bytes.extend_from_slice(&place.to_le_bytes()),
            What::Leaf(stamp, digest) => {
                bytes.extend_from_slice(&stamp.size.to_le_bytes());
                bytes.extend_from_slice(&stamp.mtime.to_le_bytes());
                bytes.extend_from_slice(&stamp.ctime.to_le_bytes());
                bytes.extend_from_slice(&stamp.inode.to_le_bytes());
                bytes.extend_from_slice(digest.as_bytes());
            }
        }
        bytes.extend_from_slice(self.name);
    }
}

impl<'a> Rows<'a> {
    fn take(&mut self) -> Option<Row<'a>> {
        let [kind, length] = take::<2>(&mut self.rest)?;
        let mode = u16::from_le_bytes(take(&mut self.rest)?).into();
        let (kind, what) = match kind {
            0 => (Kind::Directory, What::Directory(take_u64(&mut self.rest)?)),
            other => {
                let stamp = Stamp {
                    size: take_u64(&mut self.rest)?,
                    mtime: take_u64(&mut self.rest)? as i64,
                    ctime: take_u64(&mut self.rest)? as i64,
                    inode: take_u64(&mut self.rest)?,
                };
                let digest = Digest::from_bytes(take(&mut self.rest)?);
                let kind = if other == 1 { Kind::File } else { Kind::Symlink };
                (kind, What::Leaf(stamp, digest))
            }
        };
        let (name, rest) = self.rest.split_at_checked(length.into())?;
        self.rest = rest;
        Some(Row { name, kind, mode, what })
    }
}

impl<'a> Iterator for Rows<'a> {
    type Item = Row<'a>;

    fn next(&mut self) -> Option<Row<'a>> {
        self.left = self.left.checked_sub(1)?;
        self.take()
    }
}

impl Head {
    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(MAGIC);
        let numbers = [
            self.trusted_before as u64,
            self.mode.into(),
            self.root,
            self.entries,
            self.size,
            self.stored,
            self.stored_size,
            self.used,
        ];
        numbers.iter().for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
        let digest = self.digest.unwrap_or(Digest::from_bytes([0; 32]));
        bytes.extend_from_slice(digest.as_bytes());
        bytes.extend_from_slice(&(self.snapshot.layers().len() as u32).to_le_bytes());
        for layer in self.snapshot.layers() {
            bytes.extend_from_slice(layer.id.as_bytes());
        }
    }

    fn read(bytes: &[u8]) -> Option<(Self, usize)> {
        let mut rest = bytes.strip_prefix(MAGIC)?;
        let mut head = Self {
            trusted_before: take_u64(&mut rest)? as i64,
            mode: take_u64(&mut rest)? as u32,
            root: take_u64(&mut rest)?,
            entries: take_u64(&mut rest)?,
            size: take_u64(&mut rest)?,
            stored: take_u64(&mut rest)?,
            stored_size: take_u64(&mut rest)?,
            used: take_u64(&mut rest)?,
            digest: Some(Digest::from_bytes(take(&mut rest)?)),
            snapshot: Snapshot::empty(),
        };
        let mut layers = vec![];
        for _ in 0..take_u32(&mut rest)? {
            layers.push(LayerRef::whole(LayerId::from_bytes(take(&mut rest)?)));
        }
        head.snapshot = layers.into_iter().collect();
        Some((head, bytes.len() - rest.len()))
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, left) = rest.split_first_chunk::<N>()?;
    *rest = left;
    Some(*taken)
}

fn take_u64(rest: &mut &[u8]) -> Option<u64> {
    take(rest).map(u64::from_le_bytes)
}

fn take_u32(rest: &mut &[u8]) -> Option<u32> {
    take(rest).map(u32::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> (Head, Vec<u8>) {
        let stamp = Stamp { size: 3, mtime: -5, ctime: 7, inode: 11 };
        let leaf = What::Leaf(stamp, Digest::of(b"abc"));
        let mut blocks = vec![];
        begin_block(&mut blocks, 42, 0);
        let below = blocks.len() as u64;
        begin_block(&mut blocks, 42, 2);
        Row { name: b"dir", kind: Kind::Directory, mode: 0o755, what: What::Directory(0) }
            .write(&mut blocks);
        Row { name: b"\xff", kind: Kind::File, mode: 0o4644, what: leaf }.write(&mut blocks);
        let head = Head {
            root: below,
            entries: 2,
            digest: Some(Digest::of(b"tree")),
            snapshot: Snapshot::empty().push(LayerRef::whole(LayerId::random())),
            trusted_before: 10_000_000_001,
            ..Head::default()
        };
        (head, blocks)
    }

    fn blocks<'a>(old: &'a [u8], new: &'a [u8]) -> Blocks<'a> {
        Blocks { old, new }
    }

    fn write(head: &Head, all: &[u8]) -> Vec<u8> {
        let mut bytes = vec![];
        // A block may begin where the new ones do.
        blocks(&all[..BLOCK_HEAD], &all[BLOCK_HEAD..]).write(head, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn an_index_reads_back() {
        let (head, all) = sample();
        let index = Index::read(write(&head, &all)).unwrap();
        assert_eq!(index.head, head);
        let (device, rows) = index.block(head.root).unwrap();
        let rows: Vec<Row<'_>> = rows.collect();
        assert_eq!((device, rows.len()), (42, 2));
        assert!(matches!(rows[0].what, What::Directory(0)));
        assert_eq!((rows[1].name, rows[1].mode), (&b"\xff"[..], 0o4644));
        let What::Leaf(stamp, digest) = rows[1].what else { panic!("a file") };
        assert_eq!((stamp.mtime, digest), (-5, Digest::of(b"abc")));
    }

    #[test]
    fn blocks_that_nobody_uses_are_left_out() {
        let (mut head, all) = sample();
        let mut padded = vec![0; 100];
        padded.extend_from_slice(&all);
        // The block of the root is written anew, so that its row for `dir` is right.
        let mut root = vec![];
        begin_block(&mut root, 42, 2);
        for mut row in blocks(&all, &[]).block(head.root).unwrap().1 {
            if let What::Directory(place) = &mut row.what {
                *place = 100;
            }
            let before = root.len();
            row.write(&mut root);
            assert_eq!(root.len() - before, row.length());
        }
        head.root = padded.len() as u64;
        let compact = blocks(&padded, &root).compacted(&mut head).unwrap();
        assert_eq!((head.root, compact.len()), (0, all.len()));
        let compact = blocks(&compact, &[]);
        let rows: Vec<Row<'_>> = compact.block(0).unwrap().1.collect();
        let What::Directory(below) = rows[0].what else { panic!("a directory") };
        assert_eq!(compact.block(below).unwrap().1.count(), 0);
    }

    #[test]
    fn damage_is_noticed() {
        let (head, all) = sample();
        let whole = write(&head, &all);
        for place in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[place] ^= 1;
            assert!(Index::read(bytes).is_none(), "byte {place}");
            assert!(Index::read(whole[..place].to_vec()).is_none(), "{place} bytes");
        }
    }

    #[test]
    fn an_entry_that_may_have_changed_again_is_not_trusted() {
        let (head, all) = sample();
        let index = Index::read(write(&head, &all)).unwrap();
        let stamp = |mtime, ctime| Stamp { mtime, ctime, ..Stamp::default() };
        assert!(index.trusts(&stamp(9_999_999_999, 10_000_000_000 - 1)));
        assert!(!index.trusts(&stamp(10_000_000_001, 1)), "as new as the index");
        assert!(!index.trusts(&stamp(1, 10_000_000_001)), "as new as the index");
        assert!(!index.trusts(&stamp(9_000_000_000, 9_000_000_000)), "whole seconds");
        assert!(index.trusts(&stamp(8_000_000_000, 8_000_000_000)));
    }
}
