//! Extended attributes that belong to the tree.
//!
//! File capabilities, access lists and what users set travel with an entry; the marks that overlay
//! keeps for itself and the labels of the host's security module do not.

use rustix::fs::{XattrFlags, fgetxattr, flistxattr, fsetxattr};
use rustix::io::Errno;
use std::os::fd::OwnedFd;

const NOT_OURS: [&[u8]; 4] =
    [b"trusted.overlay.", b"user.overlay.", b"security.selinux", b"security.ima"];
/// The kernel's limit for the list of names and for one value.
const LARGEST: usize = 64 * 1024;

/// Name and value of one attribute.
pub(crate) type Attribute = (Vec<u8>, Vec<u8>);

/// Attributes of an open file or directory, sorted by name.
pub(crate) fn read(file: &OwnedFd) -> Result<Vec<Attribute>, Errno> {
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
    for name in names.split(|byte| *byte == 0).filter(|name| is_ours(name)) {
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

fn is_ours(name: &[u8]) -> bool {
    !name.is_empty() && !NOT_OURS.iter().any(|prefix| name.starts_with(prefix))
}
