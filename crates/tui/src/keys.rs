//! [`Keys`]: bytes from a terminal become keys.
//!
//! A key may come in pieces. What begins like the sequence of an arrow and does not go on is the
//! escape key: [`Keys::settle`] says so once time has passed.

/// A key that was pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Up,
    Down,
    Left,
    Right,
    Home,
    End,
    PageUp,
    PageDown,
    Enter,
    Escape,
    Backspace,
    Character(char),
}

/// Reads keys.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    pending: Vec<u8>,
}

/// Longest sequence that is waited for.
const MAX_SEQUENCE: usize = 16;

impl Keys {
    /// Takes bytes and gives the keys that are complete.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<Key> {
        self.pending.extend_from_slice(bytes);
        let mut keys = vec![];
        while let Some((key, length)) = first(&self.pending) {
            keys.extend(key);
            self.pending.drain(..length);
        }
        keys
    }

    /// Time has passed: what began and did not go on is over.
    pub(crate) fn settle(&mut self) -> Option<Key> {
        let pending = std::mem::take(&mut self.pending);
        (pending == [0x1b]).then_some(Key::Escape)
    }
}

/// The first key and how many bytes it took; none while it is not complete.
fn first(bytes: &[u8]) -> Option<(Option<Key>, usize)> {
    let one = |key| Some((Some(key), 1));
    match bytes {
        [] => None,
        [0x1b] => None,
        [0x1b, b'[' | b'O', rest @ ..] => {
            let end = rest.iter().position(|byte| (0x40..=0x7e).contains(byte));
            match end {
                Some(end) => Some((sequence(&rest[..=end]), end + 3)),
                None if bytes.len() > MAX_SEQUENCE => Some((None, bytes.len())),
                None => None,
            }
        }
        [0x1b, 0x1b, ..] => one(Key::Escape),
        // Alt with a key: we have no use for it.
        [0x1b, _, ..] => Some((None, 2)),
        [b'\r' | b'\n', ..] => one(Key::Enter),
        [0x7f | 0x08, ..] => one(Key::Backspace),
        [byte, ..] if *byte < 0x20 => Some((None, 1)),
        _ => character(bytes),
    }
}

/// The key of what stands between `ESC [` and its end.
fn sequence(rest: &[u8]) -> Option<Key> {
    let (last, parameters) = rest.split_last()?;
    match (last, parameters.split(|byte| *byte == b';').next()?) {
        (b'A', _) => Some(Key::Up),
        (b'B', _) => Some(Key::Down),
        (b'C', _) => Some(Key::Right),
        (b'D', _) => Some(Key::Left),
        (b'H', _) | (b'~', b"1" | b"7") => Some(Key::Home),
        (b'F', _) | (b'~', b"4" | b"8") => Some(Key::End),
        (b'~', b"5") => Some(Key::PageUp),
        (b'~', b"6") => Some(Key::PageDown),
        _ => None,
    }
}

fn character(bytes: &[u8]) -> Option<(Option<Key>, usize)> {
    let text = match std::str::from_utf8(&bytes[..bytes.len().min(4)]) {
        Ok(text) => text,
        Err(error) if error.valid_up_to() > 0 => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).ok()?
        }
        // The rest of the character is on its way, or it is none.
        Err(error) => return error.error_len().map(|length| (None, length)),
    };
    let character = text.chars().next()?;
    Some((Some(Key::Character(character)), character.len_utf8()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use Key::*;

    fn keys(pieces: &[&[u8]]) -> Vec<Key> {
        let mut keys = Keys::default();
        let mut read: Vec<Key> = pieces.iter().flat_map(|piece| keys.push(piece)).collect();
        read.extend(keys.settle());
        read
    }

    #[test]
    fn reads_characters_and_sequences() {
        assert_eq!(keys(&[b"q/"]), [Character('q'), Character('/')]);
        assert_eq!(keys(&[b"\x1b[A\x1bOB\x1b[C\x1b[D"]), [Up, Down, Right, Left]);
        assert_eq!(keys(&[b"\x1b[H\x1b[4~\x1b[5~\x1b[6~"]), [Home, End, PageUp, PageDown]);
        assert_eq!(keys(&[b"\r\x7f\n"]), [Enter, Backspace, Enter]);
        assert_eq!(keys(&["é日👩".as_bytes()]), ['é', '日', '👩'].map(Character));
    }

    #[test]
    fn a_key_may_come_in_pieces() {
        assert_eq!(keys(&[b"\x1b", b"[", b"A"]), [Up]);
        assert_eq!(keys(&[b"\xc3", b"\xa9"]), [Character('é')]);
    }

    #[test]
    fn a_lone_escape_is_the_escape_key() {
        assert_eq!(keys(&[b"\x1b"]), [Escape]);
        assert_eq!(keys(&[b"\x1b\x1b[A"]), [Escape, Up]);
    }

    #[test]
    fn what_has_no_meaning_is_passed_over() {
        assert_eq!(
            keys(&[b"\x01\x1b[15~\x1bx\x1b[<0;1;1Mz\xffy"]),
            [Character('z'), Character('y')]
        );
        assert_eq!(keys(&[b"\x1b[", &[b'0'; 40], b"a"]), [Character('a')]);
    }
}
