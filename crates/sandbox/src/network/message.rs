//! Netlink messages: how they are put together, sent and answered.
//!
//! A message is a fixed header, a header of its family, and attributes, each with a length and a kind,
//! everything padded to four bytes. What the numbers mean is told in `link` and `firewall`.

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};
use std::os::fd::OwnedFd;
use std::time::Duration;

/// The kernel answers at once; only a bug makes it not answer at all.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);
/// Bytes of the header that every message begins with.
const HEAD: usize = 16;
/// Longest datagram that the kernel answers with.
const MAX_ANSWER: usize = 64 * 1024;

/// Flag: this is a request.
const REQUEST: u16 = 1;
/// Flag: answer even if all is well.
const ACKNOWLEDGE: u16 = 4;
/// Flag: list everything.
const DUMP: u16 = 0x300;
/// Flag: fail if it exists.
pub(crate) const EXCLUSIVE: u16 = 0x200;
/// Flag: make it if it does not exist.
pub(crate) const CREATE: u16 = 0x400;
/// Flag: put it at the end.
pub(crate) const APPEND: u16 = 0x800;

/// Kind of an answer: an error, or the word that there was none.
const ERROR: u16 = 2;
/// Kind of an answer: the end of a list.
const DONE: u16 = 3;

/// Messages that are sent together.
#[derive(Default)]
pub(crate) struct Batch {
    bytes: Vec<u8>,
    /// How many of them the kernel will answer.
    answers: usize,
}

/// Where attributes are written to.
pub(crate) struct Attributes<'a>(&'a mut Vec<u8>);

impl Batch {
    /// Adds a message that will be answered.
    pub(crate) fn add(
        &mut self,
        kind: u16,
        flags: u16,
        header: &[u8],
        attributes: impl FnOnce(&mut Attributes<'_>),
    ) {
        self.answers += 1;
        self.push(kind, flags | ACKNOWLEDGE, header, attributes);
    }

    /// Adds a message that will not be answered.
    pub(crate) fn mark(&mut self, kind: u16, header: &[u8]) {
        self.push(kind, 0, header, |_| {});
    }

    fn push(
        &mut self,
        kind: u16,
        flags: u16,
        header: &[u8],
        attributes: impl FnOnce(&mut Attributes<'_>),
    ) {
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        self.bytes.extend_from_slice(&(flags | REQUEST).to_ne_bytes());
        self.bytes.extend_from_slice(&[0; 8]);
        self.bytes.extend_from_slice(header);
        attributes(&mut Attributes(&mut self.bytes));
        let length = (self.bytes.len() - begin) as u32;
        self.bytes[begin..begin + 4].copy_from_slice(&length.to_ne_bytes());
    }
}

impl Attributes<'_> {
    /// Adds an attribute.
    pub(crate) fn bytes(&mut self, kind: u16, value: &[u8]) {
        self.nest(kind, |inner| inner.0.extend_from_slice(value));
    }

    /// Adds a number as this machine writes it, as routes and links want it.
    pub(crate) fn number(&mut self, kind: u16, value: u32) {
        self.bytes(kind, &value.to_ne_bytes());
    }

    /// Adds a number with its highest byte first, as the firewall wants it.
    pub(crate) fn big_number(&mut self, kind: u16, value: u32) {
        self.bytes(kind, &value.to_be_bytes());
    }

    /// Adds a text with a zero at its end.
    pub(crate) fn text(&mut self, kind: u16, value: &str) {
        self.nest(kind, |inner| {
            inner.0.extend_from_slice(value.as_bytes());
            inner.0.push(0);
        });
    }

    /// Adds an attribute that consists of attributes.
    pub(crate) fn nest(&mut self, kind: u16, fill: impl FnOnce(&mut Attributes<'_>)) {
        let begin = self.0.len();
        self.0.extend_from_slice(&[0; 2]);
        self.0.extend_from_slice(&kind.to_ne_bytes());
        fill(&mut Attributes(self.0));
        let length = (self.0.len() - begin) as u16;
        self.0[begin..begin + 2].copy_from_slice(&length.to_ne_bytes());
        self.0.resize(padded(self.0.len()), 0);
    }

    /// Adds bytes that are no attribute: the header of what is nested here.
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }
}

/// A socket to the kernel. It speaks about the network namespace that it was opened in, whoever uses
/// it later.
#[derive(Debug)]
pub(crate) struct Socket(OwnedFd);

impl Socket {
    /// Opens one in the network namespace of this thread. No protocol means links and routes.
    pub(crate) fn open(protocol: Option<Protocol>) -> Result<Socket, Errno> {
        let (family, kind) = (AddressFamily::NETLINK, SocketType::RAW);
        let socket = socket_with(family, kind, SocketFlags::CLOEXEC, protocol)?;
        rustix::net::sockopt::set_socket_timeout(
            &socket,
            rustix::net::sockopt::Timeout::Recv,
            Some(ANSWER_LIMIT),
        )?;
        Ok(Socket(socket))
    }

    /// Sends messages and waits for all answers. The first error counts.
    pub(crate) fn run(&self, batch: &Batch) -> Result<(), Errno> {
        self.send(&batch.bytes)?;
        let (mut missing, mut result) = (batch.answers, Ok(()));
        let mut buffer = vec![0; MAX_ANSWER];
        while missing > 0 {
            let length = self.receive(&mut buffer)?;
            for (kind, body) in messages(&buffer[..length]) {
                if kind == ERROR {
                    missing = missing.saturating_sub(1);
                    result = result.and(code(body));
                }
            }
        }
        result
    }

    /// Asks for one thing, or with `list` for all, and gives the bodies of the answers.
    pub(crate) fn ask(
        &self,
        kind: u16,
        list: bool,
        header: &[u8],
        attributes: impl FnOnce(&mut Attributes<'_>),
    ) -> Result<Vec<Vec<u8>>, Errno> {
        let mut batch = Batch::default();
        batch.push(kind, if list { DUMP } else { ACKNOWLEDGE }, header, attributes);
        self.send(&batch.bytes)?;
        let mut buffer = vec![0; MAX_ANSWER];
        let mut answers = Vec::new();
        loop {
            let length = self.receive(&mut buffer)?;
            for (kind, body) in messages(&buffer[..length]) {
                match kind {
                    ERROR => return code(body).map(|()| answers),
                    DONE => return Ok(answers),
                    _ => answers.push(body.to_vec()),
                }
            }
        }
    }

    fn send(&self, bytes: &[u8]) -> Result<(), Errno> {
        rustix::io::retry_on_intr(|| send(&self.0, bytes, SendFlags::empty())).map(|_| ())
    }

    fn receive(&self, buffer: &mut [u8]) -> Result<usize, Errno> {
        let received = rustix::io::retry_on_intr(|| {
            recv(&self.0, &mut *buffer, RecvFlags::empty()).map(|(_, length)| length)
        });
        match received {
            Ok(0) => Err(Errno::PIPE),
            Err(Errno::AGAIN) => Err(Errno::TIMEDOUT),
            received => received,
        }
    }
}

/// The messages of a datagram: kind and body.
fn messages(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let head = bytes.get(..HEAD)?;
        let length = u32::from_ne_bytes(head[..4].try_into().ok()?) as usize;
        let kind = u16::from_ne_bytes(head[4..6].try_into().ok()?);
        let body = bytes.get(HEAD..length)?;
        bytes = bytes.get(padded(length)..).unwrap_or_default();
        Some((kind, body))
    })
}

/// What an [`ERROR`] says.
fn code(body: &[u8]) -> Result<(), Errno> {
    let code = body.get(..4).and_then(|code| code.try_into().ok()).map(i32::from_ne_bytes);
    match code {
        Some(0) => Ok(()),
        Some(code) => Err(Errno::from_raw_os_error(-code)),
        None => Err(Errno::BADMSG),
    }
}

/// The attributes in a body after its header: kind and value.
pub(crate) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?));
        // The two highest bits say how the value is to be read, not what it is.
        let kind = u16::from_ne_bytes(bytes.get(2..4)?.try_into().ok()?) & 0x3fff;
        let value = bytes.get(4..length)?;
        bytes = bytes.get(padded(length)..).unwrap_or_default();
        Some((kind, value))
    })
}

fn padded(length: usize) -> usize {
    length.next_multiple_of(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_padded_and_knows_its_length() {
        let mut batch = Batch::default();
        batch.add(16, CREATE, &[1, 2, 3, 4], |attributes| {
            attributes.text(3, "lo");
            attributes.nest(5, |inner| inner.number(1, 7));
        });
        let found: Vec<_> = messages(&batch.bytes).collect();
        assert_eq!((found.len(), found[0].0), (1, 16));
        let inside: Vec<_> = attributes(&found[0].1[4..]).collect();
        assert_eq!(inside[0], (3, &b"lo\0"[..]));
        assert_eq!(attributes(inside[1].1).next(), Some((1, &7u32.to_ne_bytes()[..])));
    }

    #[test]
    fn what_is_cut_short_ends_the_list() {
        assert_eq!(messages(&[0; 7]).count(), 0);
        assert_eq!(messages(&[255; 40]).count(), 0);
        assert_eq!(attributes(&[9, 0, 1, 0, 1]).count(), 0);
        assert_eq!(attributes(&[0, 0, 1, 0]).count(), 0);
    }

    #[test]
    fn the_loopback_is_found_and_a_wrong_request_is_an_error() {
        let socket = Socket::open(None).unwrap();
        let header = [0; 16];
        let links = socket.ask(18, true, &header, |_| {}).unwrap();
        let named = |link: &Vec<u8>| attributes(&link[16..]).any(|found| found == (3, b"lo\0"));
        assert!(links.iter().any(named));
        let unknown = socket.ask(18, false, &header, |request| request.text(3, "no-such-link"));
        assert_eq!(unknown.unwrap_err(), Errno::NODEV);
    }
}
