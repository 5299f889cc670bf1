//! Archives of both forms are found and read; bogus ones are refused.

use super::*;
use crate::tar::{Entry, Kind, Writer};
use crate::{Compression, Descriptor, Error, Family, ImageConfig, Index, Manifest, Platform, Role};
use std::io::{Cursor, Read};

fn config(diff_ids: usize) -> Vec<u8> {
    let mut config = ImageConfig { platform: amd64(), ..ImageConfig::default() };
    config.rootfs.diff_ids = vec![Digest::of(b"plain"); diff_ids];
    config.to_bytes()
}

fn amd64() -> Platform {
    Platform::parse("linux/amd64")
}

/// A layout of one image with one layer for each platform.
fn layout(platforms: &[&str]) -> Contents {
    let mut blobs = vec![];
    let mut add = |media_type: &str, bytes: Vec<u8>| {
        let descriptor = Descriptor::of(media_type, &bytes);
        let (digest, size) = (descriptor.digest, descriptor.size);
        blobs.push(Blob { digest, size, source: Source::Bytes(bytes) });
        descriptor
    };
    let family = Family::Oci;
    let mut top = vec![];
    for platform in platforms {
        let layer =
            add(family.media_type(Role::Layer(Compression::None)), platform.as_bytes().to_vec());
        let config = add(family.media_type(Role::Config), config(1));
        let manifest = Manifest::new(family, config, vec![layer]);
        let mut descriptor = add(family.media_type(Role::Manifest), manifest.to_bytes());
        descriptor.platform = Some(Platform::parse(platform));
        top.push(descriptor);
    }
    if platforms.len() > 1 {
        top = vec![add(family.media_type(Role::Index), Index::new(family, top).to_bytes())];
    }
    Contents { top, blobs, docker: None }
}

fn bytes(contents: Contents) -> Vec<u8> {
    let mut stream = Stream::new(contents);
    let size = stream.size();
    let mut bytes = vec![];
    stream.read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes.len() as u64, size);
    bytes
}

fn image(bytes: &[u8], tag: &str) -> Result<Found, Error> {
    Archive::open(Cursor::new(bytes))?.image(tag, &amd64())
}

fn plain(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = Writer::new(vec![]);
    for (name, contents) in files {
        let size = contents.len() as u64;
        let entry = Entry { size, ..Entry::new(*name, Kind::File, 0o644) };
        writer.entry(&entry, &mut &contents[..]).unwrap();
    }
    writer.finish().unwrap()
}

#[test]
fn a_layout_reads_back_and_is_the_same_every_time() {
    let archive = bytes(layout(&["linux/amd64"]));
    assert_eq!(archive, bytes(layout(&["linux/amd64"])));
    let found = image(&archive, "").unwrap();
    assert_eq!(found.config, config(1));
    let layer = &found.layers[0];
    let at = layer.offset as usize;
    assert_eq!(&archive[at..at + layer.size as usize], b"linux/amd64");
    assert_eq!(layer.digest, Some(Digest::of(b"linux/amd64")));
}

#[test]
fn the_platform_is_picked() {
    let archive = bytes(layout(&["linux/arm64", "linux/amd64"]));
    let found = image(&archive, "").unwrap();
    assert_eq!(found.layers[0].digest, Some(Digest::of(b"linux/amd64")));
    let archive = bytes(layout(&["linux/arm64", "linux/s390x"]));
    let said = image(&archive, "").unwrap_err().to_string();
    assert!(said.contains("linux/arm64, linux/s390x"), "{said}");
}

#[test]
fn what_docker_saves_is_read() {
    let manifest =
        br#"[{"Config":"c.json","RepoTags":["app:1"],"Layers":["a/layer.tar","b/layer.tar"]},
        {"Config":"c.json","RepoTags":null,"Layers":[]}]"#;
    let mut writer = Writer::new(vec![]);
    let files: [(&str, &[u8]); 3] =
        [("c.json", b"{}"), ("a/layer.tar", b"layer"), ("manifest.json", manifest)];
    for (name, contents) in files {
        let size = contents.len() as u64;
        let entry = Entry { size, ..Entry::new(name, Kind::File, 0o644) };
        writer.entry(&entry, &mut &contents[..]).unwrap();
    }
    let link = Kind::Symlink(b"../a/layer.tar".to_vec());
    writer.entry(&Entry::new("b/layer.tar", link, 0o777), &mut &b""[..]).unwrap();
    let archive = writer.finish().unwrap();
    for tag in ["1", "app:1"] {
        let found = image(&archive, tag).unwrap();
        assert_eq!(found.layers.len(), 2);
        assert_eq!(found.layers[0].offset, found.layers[1].offset);
    }
    let said = image(&archive, "").unwrap_err().to_string();
    assert!(said.contains("several images, name one: app:1"), "{said}");
    let said = image(&archive, "2").unwrap_err().to_string();
    assert!(said.contains("no image `2`; there are: app:1"), "{said}");
}

#[test]
fn bogus_archives_are_refused() {
    let mut swapped = layout(&["linux/amd64"]);
    for blob in &mut swapped.blobs {
        if let Source::Bytes(bytes) = &mut blob.source
            && bytes.starts_with(b"{\"schema")
        {
            bytes[1] = b' ';
        }
    }
    let index = |manifest: &str| {
        let digest = Digest::of(b"x");
        let text = format!(
            r#"{{"schemaVersion":2,"manifests":[{{"mediaType":"{manifest}","digest":"{digest}","size":1}}]}}"#
        );
        plain(&[("index.json", text.as_bytes()), (&blob_name(&digest), b"x")])
    };
    let large = vec![b' '; crate::MAX_DOCUMENT_BYTES as usize + 1];
    let cases: &[(&str, Vec<u8>, &str)] = &[
        ("nothing", vec![], "holds no image"),
        ("garbage", vec![1; 4096], "no archive"),
        ("no image", plain(&[("a", b"b")]), "neither"),
        ("wrong bytes", bytes(swapped), "as promised"),
        ("no document", index(Family::Oci.media_type(Role::Manifest)), "cannot be read"),
        ("large index", plain(&[("index.json", &large)]), "larger than"),
        ("lacking", plain(&[("manifest.json", br#"[{"Config":"c","Layers":[]}]"#)]), "lacks `c`"),
        (
            "climbing",
            plain(&[("manifest.json", br#"[{"Config":"../../etc/passwd","Layers":[]}]"#)]),
            "lacks `etc/passwd`",
        ),
        ("wrong shape", plain(&[("manifest.json", b"{}")]), "cannot be read"),
    ];
    for (name, bytes, reason) in cases {
        let said = image(bytes, "").err().unwrap_or_else(|| panic!("{name} was taken")).to_string();
        assert!(said.contains(reason), "{name}: {said}");
    }
}

#[test]
fn links_in_a_circle_end() {
    let mut writer = Writer::new(vec![]);
    for (name, target) in [("index.json", "b"), ("b", "index.json")] {
        let link = Kind::Symlink(target.as_bytes().to_vec());
        writer.entry(&Entry::new(name, link, 0o777), &mut &b""[..]).unwrap();
    }
    let said = image(&writer.finish().unwrap(), "").unwrap_err().to_string();
    assert!(said.contains("lacks"), "{said}");
}
