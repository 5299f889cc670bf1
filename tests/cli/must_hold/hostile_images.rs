//! Images that want out, want more or are not what they say: refused or confined, nothing outside the
//! root is touched, and the engine goes on.

use crate::core::image_files::{archive, archive_of, archive_with, layer};
use image::tar::{Entry, Kind, Writer};
use image::{Compression, Digest, Encoder};
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::Path;
use testkit::registry::Registry;
use testkit::{Random, Session, State, rounds};

/// A layer of any entries, files with one byte each.
fn entries(entries: &[Entry]) -> Vec<u8> {
    let mut writer = Writer::new(vec![]);
    for entry in entries {
        writer.entry(entry, &mut std::io::repeat(b'x')).unwrap();
    }
    writer.finish().unwrap()
}

fn file(path: &str) -> Entry {
    Entry { size: 1, ..Entry::new(path, Kind::File, 0o644) }
}

fn directory(path: &str) -> Entry {
    Entry::new(path, Kind::Directory, 0o755)
}

fn link(path: &str, target: &str) -> Entry {
    Entry::new(path, Kind::Symlink(target.into()), 0o777)
}

fn hard_link(path: &str, target: &str) -> Entry {
    Entry::new(path, Kind::HardLink(target.into()), 0o644)
}

/// A layer whose bytes are changed by hand; the checksum of the block is made right again.
fn patched(mut layer: Vec<u8>, block: usize, change: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let header = &mut layer[block * 512..(block + 1) * 512];
    change(header);
    header[148..156].fill(b' ');
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    layer
}

/// A PAX record before one file.
fn with_record(key: &str, value: &[u8]) -> Vec<u8> {
    let body = [key.as_bytes(), b"=", value, b"\n"].concat();
    let length = (1..).find(|length| length.to_string().len() + 1 + body.len() == *length).unwrap();
    let record = [format!("{length} ").as_bytes(), &body].concat();
    let mut about = Writer::new(vec![]);
    let entry = Entry { size: record.len() as u64, ..Entry::new("pax", Kind::File, 0o644) };
    about.entry(&entry, &mut &record[..]).unwrap();
    let mut about = about.finish().unwrap();
    about.truncate(about.len() - 1024);
    let about = patched(about, 0, |header| header[156] = b'x');
    [about, entries(&[file("named")])].concat()
}

/// Archives that must be refused, each with a word of the reason.
fn refused() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let one = |entry: Entry| archive(vec![entries(&[entry])]);
    let raw = |layer: Vec<u8>| archive(vec![layer]);
    let plain = layer(&[("f".to_owned(), "f".to_owned())]);
    let wrong = vec![Digest::of(b"something else")];
    let mut gzip = Encoder::new(vec![], Compression::Gzip).unwrap();
    gzip.write_all(&plain).unwrap();
    let mut cut = gzip.finish().unwrap();
    cut.truncate(cut.len() - 9);
    let config = |text: &str| archive_with(vec![plain.clone()], text.as_bytes());
    vec![
        ("climbing", one(file("../../../../escaped")), "climbs"),
        ("climbing inside", one(file("a/../../escaped")), "climbs"),
        ("hard link out", one(hard_link("l", "../../../../etc/passwd")), "climbs"),
        ("hard link to nothing", one(hard_link("l", "etc/passwd")), "no such file"),
        (
            "hard link to a directory",
            raw(entries(&[directory("d"), hard_link("l", "d")])),
            "directory",
        ),
        ("root replaced", one(link("./", "/etc")), "root"),
        ("mark of nothing", one(file(".wh.")), "hides no name"),
        ("mark of the parent", one(file("a/.wh...")), "hides no name"),
        ("mark as a directory", one(file(".wh.a/b")), "lies in a mark"),
        ("root hidden", one(file(".wh..wh..opq")), "not supported"),
        ("long name", one(file(&"n".repeat(300))), "255"),
        ("nul in a path", raw(with_record("path", b"a\0b")), "NUL"),
        ("negative size", raw(with_record("size", b"-1")), "size"),
        ("size past the end", raw(with_record("size", b"1099511627776")), "middle"),
        (
            "sparse by record",
            raw(with_record("GNU.sparse.realsize", b"9223372036854775807")),
            "sparse",
        ),
        ("sparse by kind", raw(patched(plain.clone(), 0, |header| header[156] = b'S')), "sparse"),
        (
            "unknown kind",
            raw(patched(plain.clone(), 0, |header| header[156] = b'Z')),
            "unknown kind",
        ),
        ("wrong checksum", raw([&[b'x'; 512][..], &plain].concat()), "checksum"),
        ("cut", raw(plain[..700].to_vec()), "middle"),
        ("cut while compressed", archive_of(vec![cut], vec![Digest::of(&plain)]), "deflate"),
        ("other contents", archive_of(vec![plain.clone()], wrong), "as promised"),
        ("another compression", raw(b"\xfd7zXZ\0 and more".repeat(100)), "xz"),
        ("garbage", raw(vec![b'?'; 4096]), "checksum"),
        ("no configuration", config("null"), "configuration"),
        ("wrong shape", config(r#"{"rootfs":{"type":"layers","diff_ids":{}}}"#), "configuration"),
        (
            "no layers named",
            config(r#"{"rootfs":{"type":"layers","diff_ids":[]}}"#),
            "names 0 layers",
        ),
        ("empty file", vec![], "no image"),
        ("no archive", b"<html>".repeat(1000), "no archive"),
    ]
}

fn import(session: &Session, path: &Path, chain: &str) -> String {
    let file =
        session.leaf(&format!("{{ host {{ file(path: {}) {{ id }} }} }}", json!(path.to_str())));
    format!("{{ container {{ import(source: {file}) {{ {chain} }} }} }}")
}

#[test]
fn hostile_archives_are_refused_and_the_engine_goes_on() {
    let state = State::new();
    let session = Session::start(&state);
    for (name, bytes, reason) in refused() {
        let path = state.file(&format!("{name}.tar"), bytes);
        let document = import(&session, &path, "rootfs { entries }");
        let said = session.error(&document);
        assert!(said.contains(reason), "{name}: {said}");
        assert!(said.len() < 1000, "{name}: {said}");
        drop(std::fs::remove_file(path));
        assert_eq!(
            session.shell(&format!("echo after {}", name.len())),
            format!("after {}\n", name.len())
        );
    }
    assert!(state.half_made().is_empty(), "{:?}", state.half_made());
}

#[test]
fn the_same_by_way_of_a_registry() {
    let registry = Registry::start();
    let state = State::new();
    let session = Session::start(&state);
    for (number, (name, bytes, reason)) in refused().into_iter().enumerate() {
        let path = state.file("hostile.tar", bytes);
        let address = format!("{}/h{number}:1", registry.address());
        let (from, to) = (format!("oci-archive:{}", path.display()), format!("docker://{address}"));
        let copied = state
            .program(Path::new("skopeo"))
            .args(["copy", "--dest-tls-verify=false", &from, &to])
            .run();
        // Some are too broken for another program to push.
        if !copied.status.success() {
            continue;
        }
        let said = session.error(&format!(
            "{{ container {{ from(address: {}) {{ rootfs {{ entries }} }} }} }}",
            json!(address)
        ));
        assert!(said.contains(reason), "{name}: {said}");
    }
    assert_eq!(session.shell("echo after"), "after\n");
}

#[test]
fn what_leads_out_stays_inside() {
    let state = State::new();
    let outside = state.file("outside", "untouched");
    let folder = state.workdir();
    let session = Session::start(&state);
    let out = folder.to_str().unwrap();
    let below = entries(&[link("lower", out), directory("real")]);
    let above = entries(&[
        link("abs", out),
        file("abs/outside"),
        link("up", "../../../../../../../.."),
        file("up/escaped"),
        link("chain", "abs"),
        file("chain/deeper/outside"),
        file("lower/outside"),
        hard_link("again", "abs"),
        file(".wh.real"),
        Entry::new("null", Kind::Character { major: 1, minor: 3 }, 0o666),
        Entry::new("whiteout", Kind::Character { major: 0, minor: 0 }, 0o666),
        Entry::new("disk", Kind::Block { major: 8, minor: 0 }, 0o666),
    ]);
    let path = state.file("confined.tar", archive(vec![below, above]));
    let found = session.leaf(&import(&session, &path, "rootfs { entries }"));
    let found: Vec<&str> =
        found.as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    assert!(found.contains(&"escaped"), "`..` stops at the root: {found:?}");
    assert!(
        !found.iter().any(|name| ["real/", "null", "disk", "whiteout"].contains(name)),
        "{found:?}"
    );
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "untouched");
    let names: Vec<_> =
        std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(!Path::new("/escaped").exists());
}

#[test]
fn bombs_end_at_the_quota() {
    let state = State::on_disk(
        256,
        "max-used-space = \"100MB\"\nmin-free-space = \"16MB\"\nreserved-space = \"1MB\"\n",
    );
    let session = Session::start(&state);
    // Many times the quota out of a few kilobytes.
    let size = 256_u64 << 20;
    let mut zeros = Encoder::new(vec![], Compression::Zstd).unwrap();
    let mut plain = image::Hashed::new(std::io::sink());
    let mut tar = Writer::new(Both(&mut zeros, &mut plain));
    let entry = Entry { size, ..Entry::new("zeros", Kind::File, 0o644) };
    tar.entry(&entry, &mut std::io::repeat(0)).unwrap();
    tar.finish().unwrap();
    let diff_id = plain.finish().1;
    let archive = archive_of(vec![zeros.finish().unwrap()], vec![diff_id]);
    assert!(archive.len() < 1 << 20, "{}", archive.len());
    let path = state.file("bomb.tar", archive);
    let said = session.error(&import(&session, &path, "rootfs { entries }"));
    assert!(said.contains("space") || said.contains("room") || said.contains("full"), "{said}");
    assert_eq!(session.shell("echo after"), "after\n");
}

/// Writes to two at once.
struct Both<'a, A, B>(&'a mut A, &'a mut B);

impl<A: std::io::Write, B: std::io::Write> std::io::Write for Both<'_, A, B> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write_all(bytes)?;
        self.1.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn random_damage_is_never_taken_for_an_image() {
    let mut random = Random::new("hostile images");
    let state = State::new();
    let session = Session::start(&state);
    let files: Vec<(String, String)> =
        (0..20).map(|number| (format!("d/f{number}"), "text ".repeat(number * 40))).collect();
    let good = archive(vec![layer(&files), entries(&[file("d/.wh.f1"), link("d/l", "f2")])]);
    let path = state.file("good.tar", &good);
    let find = r#"rootfs { entries(path: "d") }"#;
    let expected = session.leaf(&import(&session, &path, find));
    for round in 0..rounds() {
        let mut bytes = good.clone();
        for _ in 0..=random.below(3) {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] ^= 1 << random.below(8);
        }
        if random.below(4) == 0 {
            bytes.truncate(random.below(bytes.len() as u64) as usize);
        }
        let path = state.file(&format!("damaged{round}.tar"), &bytes);
        let reply = session.send(&import(&session, &path, find)).json();
        // Padding and names of the archive itself may change without anything that counts.
        let taken = &reply["data"]["container"]["import"]["rootfs"]["entries"];
        assert!(taken == &Value::Null || *taken == expected, "round {round}: {reply}");
        std::fs::remove_file(path).unwrap();
    }
    assert_eq!(session.shell("echo after"), "after\n");
}
