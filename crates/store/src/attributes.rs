//! Extended attributes that belong to the tree.
//!
//! File capabilities, access lists and what users set travel with an entry; the marks that overlay
//! keeps for itself and the labels of the host's security module do not.

use rustix::fs::{XattrFlags, fgetxattr, flistxattr, fsetxattr};
use rustix::io::Errno;
use std::os::fd::OwnedFd;

const MARKS: [&[u8]; 2] = [b"trusted.overlay.", b"user.overlay."];
const LABELS: [&[u8]; 2] = [b"security.selinux", b"security.ima"];
/// The kernel's limit for the list of names and for one value.
const LARGEST: usize = 64 * 1024;

/// Name and value of one attribute.
pub(crate) type Attribute = (Vec<u8>, Vec<u8>);

/// Attributes of an open file or directory, sorted by name.
pub(crate) fn read(file: &OwnedFd) -> Result<Vec<Attribute>, Errno> {
    read_where(file, is_ours)
}

/// Digest of all attributes that say what an entry is in its layer, overlay's own marks included.
pub(crate) fn digest(file: &OwnedFd) -> Result<[u8; 16], Errno> {
    let mut hasher = blake3::Hasher::new();
    for (name, value) in read_where(file, |name| !name.is_empty() && !is_label(name))? {
        for part in [&name, &value] {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
        }
    }
    let digest = hasher.finalize();
    Ok(*digest.as_bytes().first_chunk().expect("a digest has 32 bytes"))
}

fn read_where(file: &OwnedFd, keep: fn(&[u8]) -> bool) -> Result<Vec<Attribute>, Errno> {
    // Nearly no file has any, and a short buffer is enough to learn that.
    let mut short = [0_u8; 256];
    let names = match flistxattr(file, &mut short) {
        Ok(length) => short[..length].to_vec(),
        Err(Errno::RANGE) => {
            let mut long = vec![0; LARGEST];
            let length = flistxattr(file, &mut long[..])?;
            long.truncate(length);
            long
        }
        Err(Errno::OPNOTSUPP) => return Ok(vec![]),
        Err(errno) => return Err(errno),
    };
    let mut attributes = vec![];
    for name in names.split(|byte| *byte == 0).filter(|name| keep(name)) {
        let mut value = vec![0; LARGEST];
        let length = fgetxattr(file, name, &mut value[..])?;
        value.truncate(length);
        attributes.push((name.to_vec(), value));
    }
    attributes.sort();
    Ok(attributes)
}

/// Gives one file or directory the attributes of another.
pub(crate) fn copy(from: &OwnedFd, to: &OwnedFd) -> Result<(), Errno> {
    for (name, value) in read(from)? {
        match fsetxattr(to, name, &value, XattrFlags::empty()) {
            Err(Errno::OPNOTSUPP) => {}
            other => other?,
        }
    }
    Ok(())
}

/// Sets attributes that came from a stranger: those that programs use, and no others.
pub(crate) fn write(file: &OwnedFd, attributes: &[Attribute]) -> Result<(), Errno> {
    const ALLOWED: [&[u8]; 4] =
        [b"user.", b"security.capability", b"system.posix_acl_access", b"system.posix_acl_default"];
    let allowed = |name: &[u8]| is_ours(name) && ALLOWED.iter().any(|one| name.starts_with(one));
    for (name, value) in attributes.iter().filter(|(name, _)| allowed(name)) {
        match fsetxattr(file, &name[..], value, XattrFlags::empty()) {
            Err(Errno::OPNOTSUPP) => {}
            other => other?,
        }
    }
    Ok(())
}

fn is_ours(name: &[u8]) -> bool {
    let is_mark = MARKS.iter().any(|prefix| name.starts_with(prefix));
    !name.is_empty() && !is_mark && !is_label(name)
}

fn is_label(name: &[u8]) -> bool {
    LABELS.iter().any(|prefix| name.starts_with(prefix))
}
