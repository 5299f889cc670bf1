//! PAX records: values that do not fit into a header, as `<length> <key>=<value>\n`.

use crate::Error;

/// Where programs put extended attributes.
const XATTR: &[u8] = b"SCHILY.xattr.";
/// What programs that write sparse files begin their keys with.
const SPARSE: &[u8] = b"GNU.sparse.";

/// The values that are used here.
#[derive(Default)]
pub(super) struct Records {
    pub(super) path: Option<Vec<u8>>,
    pub(super) link: Option<Vec<u8>>,
    pub(super) size: Option<u64>,
    pub(super) uid: Option<u64>,
    pub(super) gid: Option<u64>,
    pub(super) mtime: Option<(i64, u32)>,
    pub(super) xattrs: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Records {
    /// Reads the records before one entry.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let mut records = Self::default();
        for_each(bytes, &mut |key, value| records.take(key, value))?;
        Ok(records)
    }

    fn take(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        let wrong = || damaged(format!("a record has no valid {}", String::from_utf8_lossy(key)));
        match key {
            b"path" => self.path = Some(name(value)?),
            b"linkpath" => self.link = Some(name(value)?),
            b"size" => self.size = Some(decimal(value).ok_or_else(wrong)?),
            b"uid" => self.uid = Some(decimal(value).ok_or_else(wrong)?),
            b"gid" => self.gid = Some(decimal(value).ok_or_else(wrong)?),
            b"mtime" => self.mtime = Some(time(value).ok_or_else(wrong)?),
            _ if key.starts_with(SPARSE) => {
                return Err(damaged("sparse files are not supported".to_owned()));
            }
            _ => {
                if let Some(name) = key.strip_prefix(XATTR) {
                    if name.is_empty() || name.contains(&0) {
                        return Err(damaged("an extended attribute has no name".to_owned()));
                    }
                    self.xattrs.retain(|(other, _)| other != name);
                    self.xattrs.push((name.to_vec(), value.to_vec()));
                }
            }
        }
        Ok(())
    }
}

/// Reads records that are for all entries after them. They are ignored as other programs do, and
/// refused where a program that does not ignore them would see another archive.
pub(super) fn check_global(bytes: &[u8]) -> Result<(), Error> {
    for_each(bytes, &mut |key, _| {
        if matches!(key, b"path" | b"linkpath" | b"size") || key.starts_with(SPARSE) {
            let message = "a record for the whole archive changes every entry";
            return Err(damaged(message.to_owned()));
        }
        Ok(())
    })
}

type Take<'a> = dyn FnMut(&[u8], &[u8]) -> Result<(), Error> + 'a;

fn for_each(mut bytes: &[u8], take: &mut Take<'_>) -> Result<(), Error> {
    let wrong = || damaged("a record is cut or has a wrong length".to_owned());
    while !bytes.is_empty() {
        let space = bytes.iter().take(20).position(|byte| *byte == b' ').ok_or_else(wrong)?;
        let length = decimal(&bytes[..space]).ok_or_else(wrong)?;
        let length = usize::try_from(length).map_err(|_| wrong())?;
        if length <= space + 1 || length > bytes.len() {
            return Err(wrong());
        }
        let (record, rest) = bytes.split_at(length);
        let (b'\n', record) = record[space + 1..].split_last().ok_or_else(wrong)? else {
            return Err(wrong());
        };
        let equals = record.iter().position(|byte| *byte == b'=').ok_or_else(wrong)?;
        take(&record[..equals], &record[equals + 1..])?;
        bytes = rest;
    }
    Ok(())
}

/// Adds a record. Its length counts its own digits.
pub(super) fn push(bytes: &mut Vec<u8>, key: &[u8], value: &[u8]) {
    let rest = key.len() + value.len() + 3;
    let mut length = rest + 1;
    while length.to_string().len() + rest != length {
        length = length.to_string().len() + rest;
    }
    bytes.extend_from_slice(length.to_string().as_bytes());
    bytes.push(b' ');
    bytes.extend_from_slice(key);
    bytes.push(b'=');
    bytes.extend_from_slice(value);
    bytes.push(b'\n');
}

/// Adds the record of an extended attribute.
pub(super) fn push_xattr(bytes: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    push(bytes, &[XATTR, name].concat(), value);
}

fn damaged(reason: String) -> Error {
    Error::Tar(reason)
}

fn name(value: &[u8]) -> Result<Vec<u8>, Error> {
    if value.contains(&0) {
        return Err(damaged("a record holds a path with a NUL byte".to_owned()));
    }
    Ok(value.to_vec())
}

/// Digits only: no sign, no space, nothing that one reader takes and another does not.
fn decimal(value: &[u8]) -> Option<u64> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// Seconds with a fraction, e.g. `-1.5`.
fn time(value: &[u8]) -> Option<(i64, u32)> {
    let (negative, digits) = match value.strip_prefix(b"-") {
        Some(rest) => (true, rest),
        None => (false, value),
    };
    let mut parts = digits.splitn(2, |byte| *byte == b'.');
    let seconds = i64::try_from(decimal(parts.next()?)?).ok()?;
    let mut nanoseconds = 0_u32;
    if let Some(fraction) = parts.next() {
        if !fraction.iter().all(u8::is_ascii_digit) {
            return None;
        }
        for place in 0..9 {
            let digit = fraction.get(place).map_or(0, |digit| digit - b'0');
            nanoseconds = nanoseconds * 10 + u32::from(digit);
        }
    }
    match (negative, nanoseconds) {
        (false, _) => Some((seconds, nanoseconds)),
        (true, 0) => Some((-seconds, 0)),
        (true, _) => Some((-seconds - 1, 1_000_000_000 - nanoseconds)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_read_back_whatever_their_length() {
        for length in 0..1100 {
            let mut bytes = vec![];
            let path = vec![b'a'; length];
            push(&mut bytes, b"path", &path);
            push_xattr(&mut bytes, b"user.x", b"a\0=\nb");
            let records = Records::parse(&bytes).unwrap();
            assert_eq!(records.path, Some(path));
            assert_eq!(records.xattrs, [(b"user.x".to_vec(), b"a\0=\nb".to_vec())]);
        }
    }

    #[test]
    fn what_is_no_record_is_refused() {
        for bytes in [
            &b"x"[..],
            b"6 a=b",
            b"7 a=b\n",
            b"5 a=b\n",
            b"0 a=b\n",
            b"-6 a=b\n",
            b"99999999999999999999 a=b\n",
            b"10 path=a\0\n",
            b"12 size=-1 \n",
            b"11 size=+1\n",
            b"22 GNU.sparse.major=1\n",
        ] {
            assert!(Records::parse(bytes).is_err(), "{:?}", String::from_utf8_lossy(bytes));
        }
        assert!(check_global(b"13 comment=x\n").is_ok());
        assert!(check_global(b"10 path=x\n").is_err());
    }

    #[test]
    fn times() {
        for (text, expected) in [
            ("0", Some((0, 0))),
            ("1.5", Some((1, 500_000_000))),
            ("1.1234567891", Some((1, 123_456_789))),
            ("-1.5", Some((-2, 500_000_000))),
            ("-3", Some((-3, 0))),
            ("1.x", None),
            ("", None),
            ("--1", None),
        ] {
            assert_eq!(time(text.as_bytes()), expected, "{text}");
        }
    }
}
