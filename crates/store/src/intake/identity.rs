//! The digest of a tree from what the index knows: no file is opened.

use super::index::{Blocks, Head, Rows, What};
use crate::digest::{add_entry, plain_contents};
use crate::metadata::{Kind, Metadata};
use protocol::{Digest, DigestBuilder};

/// The same digest that `Store::tree_digest` gives for the tree; none when the blocks are damaged.
pub(super) fn of_tree(head: &Head, blocks: Blocks<'_>) -> Option<Digest> {
    let directory = plain_contents(&Digest::of(b""));
    let mut digest = Digest::builder("tree");
    let mut path = vec![];
    add(&mut digest, &path, (Kind::Directory, head.mode), &directory);
    let mut ahead: Vec<(usize, Rows<'_>)> = vec![(0, blocks.block(head.root)?.1)];
    while let Some((length, rows)) = ahead.last_mut() {
        path.truncate(*length);
        let Some(row) = rows.next() else {
            ahead.pop();
            continue;
        };
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(row.name);
        match row.what {
            What::Leaf(_, contents) => add(&mut digest, &path, (row.kind, row.mode), &contents),
            What::Directory(place) => {
                add(&mut digest, &path, (row.kind, row.mode), &directory);
                ahead.push((path.len(), blocks.block(place)?.1));
            }
        }
    }
    Some(digest.finish())
}

fn add(digest: &mut DigestBuilder, path: &[u8], (kind, mode): (Kind, u32), contents: &Digest) {
    let metadata = Metadata { kind, mode, ..Metadata::empty_root() };
    add_entry(digest, path, &metadata, contents);
}
