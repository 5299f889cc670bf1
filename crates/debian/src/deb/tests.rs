//! Packages made on the spot, good and hostile.

use super::*;
use std::io::Write;

fn tar(entries: &[(&str, tar::EntryType, &str)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(vec![]);
    for (path, kind, contents) in entries {
        let mut header = tar::Header::new_gnu();
        header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_entry_type(*kind);
        header.set_mode(0o104_755);
        header.set_mtime(7);
        header.set_uid(1);
        header.set_gid(2);
        let data = match kind {
            tar::EntryType::Symlink | tar::EntryType::Link => {
                header.as_old_mut().linkname[..contents.len()].copy_from_slice(contents.as_bytes());
                ""
            }
            _ => contents,
        };
        header.set_size(data.len() as u64);
        header.set_cksum();
        builder.append(&header, data.as_bytes()).unwrap();
    }
    builder.into_inner().unwrap()
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = liblzma::write::XzEncoder::new(vec![], 0);
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn deb(members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut builder = ar::Builder::new(vec![]);
    for (name, bytes) in members {
        let header = ar::Header::new(name.as_bytes().to_vec(), bytes.len() as u64);
        builder.append(&header, &bytes[..]).unwrap();
    }
    builder.into_inner().unwrap()
}

fn control() -> Vec<u8> {
    use tar::EntryType::{Directory, Regular};
    tar(&[
        ("./", Directory, ""),
        ("./control", Regular, "Package: demo\nVersion: 1\nArchitecture: all\n"),
        ("./postinst", Regular, "#!/bin/sh\n"),
        ("./conffiles", Regular, "/etc/demo\n"),
    ])
}

fn package(data: &[(&str, tar::EntryType, &str)]) -> Vec<u8> {
    let version = b"2.0\n".to_vec();
    deb(&[
        ("debian-binary", version),
        ("control.tar.xz", xz(&control())),
        ("_extra", vec![1]),
        ("data.tar.zst", zstd::encode_all(&tar(data)[..], 1).unwrap()),
    ])
}

fn unpack(bytes: &[u8]) -> Result<Vec<(Entry, String)>, Error> {
    let mut entries = vec![];
    Deb::open(bytes)?.unpack(&mut |entry, reader| {
        let mut contents = String::new();
        reader.read_to_string(&mut contents)?;
        entries.push((entry.clone(), contents));
        Ok::<(), Error>(())
    })?;
    Ok(entries)
}

#[test]
fn control_and_data_are_read() {
    use tar::EntryType::{Directory, Fifo, Link, Regular, Symlink};
    let bytes = package(&[
        ("./", Directory, ""),
        ("./usr/", Directory, ""),
        ("./usr/a", Regular, "hello"),
        ("./usr/b", Symlink, "../x"),
        ("./usr/c", Link, "./usr/a"),
        ("./usr/p", Fifo, ""),
    ]);
    let deb = Deb::open(&bytes[..]).unwrap();
    assert_eq!(deb.control().fields.get("Package"), Some("demo"));
    assert_eq!(deb.control().file("postinst").unwrap().mode, 0o755);
    assert_eq!(deb.control().file_text("conffiles"), "/etc/demo\n");
    let entries = unpack(&bytes).unwrap();
    let kinds: Vec<_> =
        entries.iter().map(|(e, c)| (e.path.as_str(), &e.kind, c.as_str())).collect();
    let (link, hard) = (Kind::Symlink("../x".into()), Kind::HardLink("usr/a".into()));
    let expect = [
        ("usr", &Kind::Directory, ""),
        ("usr/a", &Kind::File, "hello"),
        ("usr/b", &link, ""),
        ("usr/c", &hard, ""),
        ("usr/p", &Kind::Pipe, ""),
    ];
    assert_eq!(kinds, expect);
    let file = &entries[1].0;
    let expect = (0o4755, 1, 2, 7, 5);
    assert_eq!((file.mode, file.uid, file.gid, file.mtime, file.size), expect);
}

#[test]
fn paths_out_of_the_root_are_refused() {
    use tar::EntryType::{Link, Regular};
    for (path, kind, contents) in [
        ("/etc/passwd", Regular, ""),
        ("../x", Regular, ""),
        ("./a/../../x", Regular, ""),
        ("./a", Link, "/etc/passwd"),
        ("./a", Link, "../x"),
    ] {
        let error = unpack(&package(&[(path, kind, contents)])).unwrap_err();
        assert!(matches!(error, Error::Path(_)), "{path}: {error}");
    }
}

#[test]
fn broken_packages_are_named() {
    let data = || xz(&tar(&[]));
    let control = || xz(&control());
    let table = [
        (deb(&[("data.tar.xz", data())]), "no `control.tar`"),
        (deb(&[("control.tar.xz", control())]), "no `data.tar`"),
        (deb(&[("control.tar.xz", xz(&tar(&[])))]), "no `control`"),
        (deb(&[("control.tar.xz", control()), ("data.tar.bz2", data())]), "`data.tar.bz2`"),
        (b"not a package".to_vec(), "cannot be read"),
        (deb(&[("control.tar.xz", control()), ("data.tar.xz", data()[..20].to_vec())]), "read"),
    ];
    for (bytes, expect) in table {
        let error = unpack(&bytes).unwrap_err().to_string();
        assert!(error.contains(expect), "{expect}: {error}");
    }
}

#[test]
fn the_digest_covers_what_nobody_read() {
    let mut reader = Hashing::new(&b"abc"[..]);
    reader.read_exact(&mut [0; 1]).unwrap();
    let digest = reader.finish().unwrap();
    assert_eq!(digest[..4], [0xba, 0x78, 0x16, 0xbf]);
}
