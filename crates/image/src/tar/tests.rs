//! Archives that are written here read back here and elsewhere; hostile ones are refused.

use super::*;
use crate::Error;
use std::io::Read;

fn written(entries: &[(Entry, &[u8])]) -> Vec<u8> {
    let mut writer = Writer::new(vec![]);
    for (entry, contents) in entries {
        writer.entry(entry, &mut &contents[..]).unwrap();
    }
    writer.finish().unwrap()
}

fn read(bytes: &[u8]) -> Result<Vec<(Entry, Vec<u8>)>, Error> {
    let mut reader = Reader::new(bytes);
    let mut entries = vec![];
    while let Some(entry) = reader.next_entry()? {
        let mut contents = vec![];
        reader.contents().read_to_end(&mut contents)?;
        entries.push((entry, contents));
    }
    reader.finish()?;
    Ok(entries)
}

fn samples() -> Vec<(Entry, &'static [u8])> {
    let file = |path: &[u8], size| Entry { size, ..Entry::new(path, Kind::File, 0o644) };
    let long = vec![b'p'; 300];
    let mut odd = file(b"odd", 3);
    (odd.uid, odd.gid, odd.mtime) = (3_000_000, u32::MAX - 1, -5);
    odd.mode = 0o4755;
    odd.xattrs = vec![(b"security.capability".to_vec(), vec![1, 0, 0, 2])];
    vec![
        (Entry::new(&b"d/"[..], Kind::Directory, 0o1777), b""),
        (file(b"d/empty", 0), b""),
        (file(b"d/f", 5), b"hello"),
        (file(&long, 512), &[7; 512]),
        (file("d/\u{e4}".as_bytes(), 1), b"x"),
        (Entry::new(&b"s"[..], Kind::Symlink(b"../../etc/passwd".to_vec()), 0o777), b""),
        (Entry::new(&b"s2"[..], Kind::Symlink(long.clone()), 0o777), b""),
        (Entry::new(&b"h"[..], Kind::HardLink(b"d/f".to_vec()), 0o644), b""),
        (Entry::new(&b"pipe"[..], Kind::Fifo, 0o600), b""),
        (Entry::new(&b"null"[..], Kind::Character { major: 1, minor: 3 }, 0o666), b""),
        (Entry::new(&b"sda"[..], Kind::Block { major: 8, minor: 0 }, 0o660), b""),
        (odd, b"odd"),
    ]
}

#[test]
fn what_is_written_reads_back_and_is_the_same_every_time() {
    let samples = samples();
    let bytes = written(&samples);
    assert_eq!(bytes, written(&samples));
    let expected: Vec<_> =
        samples.into_iter().map(|(entry, contents)| (entry, contents.to_vec())).collect();
    assert_eq!(read(&bytes).unwrap(), expected);
}

#[test]
fn another_reader_sees_the_same() {
    let samples = samples();
    let bytes = written(&samples);
    let mut archive = ::tar::Archive::new(&bytes[..]);
    let mut count = 0;
    for (entry, (sample, contents)) in archive.entries().unwrap().zip(&samples) {
        let mut entry = entry.unwrap();
        assert_eq!(entry.path_bytes(), sample.path);
        let mut found = vec![];
        entry.read_to_end(&mut found).unwrap();
        assert_eq!(found, *contents);
        count += 1;
    }
    assert_eq!(count, samples.len());
}

#[test]
fn another_writer_is_understood() {
    for gnu in [true, false] {
        let mut builder = ::tar::Builder::new(vec![]);
        let path = "long/".repeat(40) + "name";
        let mut header = if gnu { ::tar::Header::new_gnu() } else { ::tar::Header::new_ustar() };
        header.set_size(4);
        header.set_mode(0o600);
        header.set_mtime(12345);
        builder.append_data(&mut header, &path, &b"data"[..]).unwrap();
        let mut link = ::tar::Header::new_gnu();
        link.set_entry_type(::tar::EntryType::Symlink);
        link.set_size(0);
        builder.append_link(&mut link, "link", "t/".repeat(100)).unwrap();
        let entries = read(&builder.into_inner().unwrap()).unwrap();
        assert_eq!(entries[0].0.path, path.as_bytes());
        assert_eq!((entries[0].0.mode, entries[0].0.mtime), (0o600, 12345));
        assert_eq!(entries[0].1, b"data");
        assert_eq!(entries[1].0.kind, Kind::Symlink("t/".repeat(100).into_bytes()));
    }
}

/// An entry of any kind with contents whatever the kind, and a right checksum.
fn raw(kind: u8, path: &[u8], size: u64, contents: &[u8]) -> Vec<u8> {
    let header = header::Header {
        path: path.to_vec(),
        link: vec![],
        kind,
        mode: 0o644,
        uid: 0,
        gid: 0,
        size,
        mtime: 0,
        major: 0,
        minor: 0,
    };
    let mut bytes = header.to_block().to_vec();
    bytes.extend_from_slice(contents);
    bytes.extend_from_slice(writer::padding(contents.len() as u64));
    bytes
}

fn records(pairs: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = vec![];
    pairs.iter().for_each(|(key, value)| pax::push(&mut bytes, key.as_bytes(), value));
    raw(b'x', b"pax", bytes.len() as u64, &bytes)
}

#[test]
fn hostile_archives_are_refused() {
    let file = raw(b'0', b"f", 1, b"x");
    let mut wrong_sum = file.clone();
    wrong_sum[0] = b'g';
    let mut cut = file.clone();
    cut.truncate(700);
    let mut no_format = file.clone();
    no_format[257] = b'X';
    let cases: &[(&str, Vec<u8>, &str)] = &[
        ("checksum", wrong_sum, "checksum"),
        ("cut in the padding", cut, "middle"),
        ("cut in a header", file[..100].to_vec(), "middle of a header"),
        ("garbage", vec![b'x'; 2048], "checksum"),
        ("format", no_format, "checksum"),
        ("sparse", raw(b'S', b"f", 0, b""), "sparse"),
        ("unknown kind", raw(b'V', b"f", 0, b""), "unknown kind `V`"),
        ("huge record", raw(b'x', b"f", 1 << 30, b""), "larger than"),
        ("huge long name", raw(b'L', b"f", 1 << 20, b""), "larger than"),
        ("record at the end", records(&[("path", b"x")]), "ends after a record"),
        ("nul in a path", [records(&[("path", b"a\0b")]), file.clone()].concat(), "NUL"),
        ("negative size", [records(&[("size", b"-1")]), file.clone()].concat(), "valid size"),
        (
            "huge size",
            [records(&[("size", b"9223372036854775808")]), file.clone()].concat(),
            "more bytes",
        ),
        ("size past the end", [records(&[("size", b"4096")]), file.clone()].concat(), "middle"),
        ("two records", [records(&[]), records(&[]), file.clone()].concat(), "different things"),
        (
            "record and long name",
            [records(&[("path", b"a")]), raw(b'L', b"n", 2, b"b\0"), file.clone()].concat(),
            "different things",
        ),
        ("link to nothing", raw(b'2', b"l", 0, b""), "link to nothing"),
        ("empty path", raw(b'0', b"", 0, b""), "no path"),
        (
            "attribute without a name",
            [records(&[("SCHILY.xattr.", b"v")]), file.clone()].concat(),
            "no name",
        ),
        ("user", [records(&[("uid", b"4294967295")]), file.clone()].concat(), "nobody"),
    ];
    for (name, bytes, reason) in cases {
        let said = read(bytes).err().unwrap_or_else(|| panic!("{name} was taken")).to_string();
        assert!(said.contains(reason), "{name}: {said}");
    }
}

#[test]
fn a_size_of_a_link_hides_no_entry() {
    // A reader that took the link's size for contents would pass over the file.
    let mut link = header_of_link(512);
    link.extend(raw(b'0', b"seen", 1, b"x"));
    let entries = read(&link).unwrap();
    assert_eq!(entries.len(), 2);
    assert_eq!(entries[1].0.path, b"seen");
}

fn header_of_link(size: u64) -> Vec<u8> {
    let header = header::Header {
        path: b"link".to_vec(),
        link: b"to".to_vec(),
        kind: b'2',
        mode: 0o777,
        uid: 0,
        gid: 0,
        size,
        mtime: 0,
        major: 0,
        minor: 0,
    };
    header.to_block().to_vec()
}

#[test]
fn random_bytes_never_panic_and_never_loop() {
    let good = written(&samples());
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    for _ in 0..2000 {
        let mut bytes = good.clone();
        for _ in 0..4 {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            let at = (seed >> 8) as usize % bytes.len();
            bytes[at] = seed as u8;
        }
        let _ = read(&bytes);
    }
}
