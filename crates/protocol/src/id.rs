//! [`Id`]: the text form of an object that clients hold.
//!
//! Standard base64 of a tiny protobuf: field 2 is a message whose field 1 is the handle (a varint)
//! and whose field 2 is a message of the type name (field 1) and the constant true (field 3).
//! Written by hand: two nested messages do not earn a protobuf library.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::fmt;
use std::str::FromStr;

/// A handle on a call, with the name of the type it makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Id {
    /// 63 bits of the call's digest, never zero.
    pub handle: u64,
    /// Name of the object type.
    pub type_name: String,
}

/// The text is not an id of ours.
#[derive(Debug, thiserror::Error)]
#[error("malformed id")]
pub struct ParseIdError;

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut type_part = vec![0x0a];
        put_varint(&mut type_part, self.type_name.len() as u64);
        type_part.extend_from_slice(self.type_name.as_bytes());
        type_part.extend_from_slice(&[0x18, 1]);
        let mut inner = vec![0x08];
        put_varint(&mut inner, self.handle);
        inner.push(0x12);
        put_varint(&mut inner, type_part.len() as u64);
        inner.extend_from_slice(&type_part);
        let mut outer = vec![0x12];
        put_varint(&mut outer, inner.len() as u64);
        outer.extend_from_slice(&inner);
        f.write_str(&STANDARD.encode(outer))
    }
}

impl FromStr for Id {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        let bytes = STANDARD.decode(text).map_err(|_| ParseIdError)?;
        let mut outer = Reader(&bytes);
        outer.tag(0x12)?;
        let mut inner = Reader(outer.bytes()?);
        inner.tag(0x08)?;
        let handle = inner.varint()?;
        inner.tag(0x12)?;
        let mut type_part = Reader(inner.bytes()?);
        type_part.tag(0x0a)?;
        let name = type_part.bytes()?;
        let type_name = String::from_utf8(name.to_vec()).map_err(|_| ParseIdError)?;
        if handle == 0 || type_name.is_empty() {
            return Err(ParseIdError);
        }
        Ok(Self { handle, type_name })
    }
}

fn put_varint(into: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        into.push(value as u8 | 0x80);
        value >>= 7;
    }
    into.push(value as u8);
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn tag(&mut self, expected: u8) -> Result<(), ParseIdError> {
        match self.0.split_first() {
            Some((first, rest)) if *first == expected => {
                self.0 = rest;
                Ok(())
            }
            _ => Err(ParseIdError),
        }
    }

    fn varint(&mut self) -> Result<u64, ParseIdError> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let (first, rest) = self.0.split_first().ok_or(ParseIdError)?;
            self.0 = rest;
            value |= u64::from(first & 0x7f) << shift;
            if first & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(ParseIdError)
    }

    fn bytes(&mut self) -> Result<&'a [u8], ParseIdError> {
        let length = usize::try_from(self.varint()?).map_err(|_| ParseIdError)?;
        let (head, rest) = self.0.split_at_checked(length).ok_or(ParseIdError)?;
        self.0 = rest;
        Ok(head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips() {
        for handle in [1, 127, 128, u64::MAX >> 1] {
            let id = Id { handle, type_name: "Container".into() };
            assert_eq!(id.to_string().parse::<Id>().unwrap(), id);
        }
    }

    #[test]
    fn has_the_documented_bytes() {
        let id = Id { handle: 5, type_name: "File".into() };
        let bytes = STANDARD.decode(id.to_string()).unwrap();
        assert_eq!(bytes, b"\x12\x0c\x08\x05\x12\x08\x0a\x04File\x18\x01");
    }

    #[test]
    fn refuses_what_is_not_an_id() {
        for text in ["", "x", "AAAA", "EgA=", "====", "ContainerID"] {
            assert!(text.parse::<Id>().is_err(), "{text}");
        }
    }
}
