//! A small index, parsed, stored and looked into.

use super::*;

const TEXT: &str = "Package: b\nVersion: 1:2-3\nArchitecture: amd64\nEssential: yes\n\
    Priority: required\nMulti-Arch: same\nDepends: a (>= 1),\n c | d\nProvides: v (= 1), w\n\
    Description: long\n text of it\nFilename: pool/b.deb\nSize: 4294967297\nInstalled-Size: 7\n\
    SHA256: 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n\n\
    Package: a\nVersion: 1\nArchitecture: all\nProvides: v\nFilename: pool/a.deb\nSize: 1\n\
    SHA256: ff112233445566778899aabbccddeeff00112233445566778899aabbccddee00\n";

#[test]
fn fields_are_kept_and_survive_being_stored() {
    let parsed = Index::parse(TEXT).unwrap();
    let index = Index::from_bytes(parsed.as_bytes().to_vec()).unwrap();
    assert_eq!(parsed, index);
    assert_eq!(index.len(), 2);
    let package = index.named("b").next().unwrap();
    assert_eq!((package.version(), package.architecture()), ("1:2-3", "amd64"));
    assert_eq!(package.depends(), "a (>= 1),\n c | d");
    assert_eq!((package.size(), package.installed_size()), (4_294_967_297, 7));
    assert_eq!(package.filename(), "pool/b.deb");
    assert_eq!((package.sha256()[0], package.sha256()[31]), (0, 0xff));
    assert!(package.essential());
    assert_eq!(package.priority(), Priority::Required);
    assert_eq!(package.multi_arch(), MultiArch::Same);
    let other = index.named("a").next().unwrap();
    assert_eq!((other.priority(), other.essential()), (Priority::Optional, false));
}

#[test]
fn lookups_by_name_and_by_provided_name() {
    let index = Index::parse(TEXT).unwrap();
    assert_eq!(index.named("c").count(), 0);
    let names = |name| index.providers(name).map(|package| package.name()).collect::<Vec<_>>();
    assert_eq!(names("v"), ["a", "b"]);
    assert_eq!(names("w"), ["b"]);
    assert!(names("a").is_empty());
}

#[test]
fn incomplete_and_damaged_indexes_are_refused() {
    let error = Index::parse("Package: x\nVersion: 1\nArchitecture: all\n").unwrap_err();
    assert_eq!(error.to_string(), "package `x` of the index has no valid `Filename`");
    let bytes = Index::parse(TEXT).unwrap().as_bytes().to_vec();
    assert!(Index::from_bytes(bytes[..100].to_vec()).is_err());
    assert!(Index::from_bytes(b"debidx00".to_vec()).is_err());
    assert!(Index::parse("").unwrap().is_empty());
}
