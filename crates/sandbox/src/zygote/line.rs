//! [`Line`]: a network namespace that serves one container after the other.
//!
//! Making a network namespace, plugging it in and taking it down again is half of what a short command
//! costs, most of it under locks of the whole kernel. What is left of a command in there when it has ended are its
//! connections and nothing else, because it has no right to change addresses, routes or rules. So a namespace without
//! a socket, closed ones included that the kernel still remembers, is as good as new. One in which a
//! command had every capability is not used again.

use crate::container::Reach;
use rustix::fs::{Mode, OFlags, openat};
use rustix::io::{Errno, pread};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Files of the process that tell: the namespace itself, and its sockets. Without IPv6 the last is
/// not there.
const FILES: [&str; 3] = ["self/ns/net", "self/net/sockstat", "self/net/sockstat6"];
/// Counts that must be zero; the others are those of the whole machine.
const COUNTS: [&str; 3] = ["used", "inuse", "tw"];

/// A network namespace with what tells whether somebody is in it.
pub(crate) struct Line {
    namespace: OwnedFd,
    sockets: Vec<OwnedFd>,
    /// Where it is plugged into the engine's network, if it is.
    place: Option<u32>,
}

impl Line {
    /// What a container sends to the zygote about its own, from its `/proc`.
    pub(crate) fn files(proc: BorrowedFd<'_>) -> Vec<OwnedFd> {
        let open = |path| openat(proc, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
        FILES.into_iter().map_while(|path| open(path).ok()).collect()
    }

    /// The line of a container that sent these; none if it could not.
    pub(super) fn new(files: Vec<OwnedFd>, place: Option<u32>) -> Option<Line> {
        let mut files = files.into_iter();
        let (namespace, sockets) = (files.next()?, files.collect::<Vec<_>>());
        (!sockets.is_empty()).then_some(Line { namespace, sockets, place })
    }

    pub(crate) fn namespace(&self) -> BorrowedFd<'_> {
        self.namespace.as_fd()
    }

    /// Where it is plugged into the engine's network, if it is.
    pub(crate) fn place(&self) -> Option<u32> {
        self.place
    }

    /// The same as what a container can reach.
    pub(super) fn reach(&self) -> Reach<'_> {
        Reach::Again(self)
    }

    /// Whether no socket is left in it.
    pub(super) fn is_quiet(&self) -> bool {
        self.sockets.iter().all(|file| read(file).is_ok_and(|text| is_quiet(&text)))
    }
}

fn read(file: &OwnedFd) -> Result<String, Errno> {
    let mut buffer = [0; 1024];
    let length = pread(file, &mut buffer[..], 0)?;
    Ok(String::from_utf8_lossy(&buffer[..length]).into_owned())
}

/// Lines are a name and then names with numbers: `TCP: inuse 0 orphan 0 tw 0 alloc 2 mem 62`.
fn is_quiet(text: &str) -> bool {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let counted = |pair: &&[&str]| COUNTS.contains(&pair[0]);
    let mut counts = words.windows(2).filter(counted).peekable();
    counts.peek().is_some() && counts.all(|pair| pair[1] == "0")
}

#[cfg(test)]
mod tests {
    use super::is_quiet;

    #[test]
    fn sockets_of_any_kind_are_seen() {
        let quiet =
            "sockets: used 0\nTCP: inuse 0 orphan 3 tw 0 alloc 2 mem 62\nUDP: inuse 0 mem 256\n";
        assert!(is_quiet(quiet));
        assert!(is_quiet("TCP6: inuse 0\nFRAG6: inuse 0 memory 0\n"));
        for (from, to) in [("used 0", "used 1"), ("tw 0", "tw 1"), ("UDP: inuse 0", "UDP: inuse 2")]
        {
            assert!(!is_quiet(&quiet.replace(from, to)), "{to}");
        }
        assert!(!is_quiet(""), "what says nothing says nothing good");
    }
}
