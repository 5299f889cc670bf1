//! Tables over both formats and over the choice for a suite.

use super::*;

const DEB822: &str = "# a comment\nTypes: deb deb-src\n# one inside\nURIs: http://archive.example/debian/\n\
    Suites: stable stable-updates\nComponents: main contrib\nSigned-By: /keys/archive.gpg\n\n\
    Enabled: no\nTypes: deb\nURIs: http://off.example/\nSuites: stable\nComponents: main\n\n\
    Types: deb\nURIs: http://security.example/debian\nSuites:\n stable-security\nComponents: main\n\
    Signed-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n abc\n -----END PGP PUBLIC KEY BLOCK-----\n\n\
    Types: deb\nURIs: http://other.example/\nSuites: stable\nComponents: main\nArchitectures: arm64\n";

#[test]
fn deb822_fields() {
    let sources = parse_deb822("x.sources", DEB822).unwrap();
    assert_eq!(sources.len(), 4);
    assert_eq!(sources[0].types, ["deb", "deb-src"]);
    assert_eq!(sources[0].uris, ["http://archive.example/debian"]);
    assert_eq!(sources[0].signed_by.keyrings, ["/keys/archive.gpg"]);
    assert!(!sources[1].enabled);
    let block = sources[2].signed_by.inline.as_deref().unwrap();
    assert_eq!(block.lines().nth(1), Some(""), "a dot is an empty line");
    assert_eq!(sources[3].architectures, ["arm64"]);
}

#[test]
fn one_line_forms() {
    let text = "# no\ndeb http://a.example/debian stable main contrib # tail\n\
        deb [arch=amd64,arm64 signed-by=/k.gpg trusted=yes lang=none] http://b.example/x stable main\n\
        deb-src http://a.example/debian stable main\ndeb http://flat.example/ ./\n";
    let sources = parse_one_line("sources.list", text).unwrap();
    assert_eq!(sources.len(), 4);
    assert_eq!(sources[0].components, ["main", "contrib"]);
    assert_eq!(sources[1].architectures, ["amd64", "arm64"]);
    assert_eq!(sources[1].signed_by.keyrings, ["/k.gpg"]);
    assert!(sources[1].trusted);
    assert_eq!(sources[2].types, ["deb-src"]);
}

#[test]
fn malformed_entries_are_named() {
    let table = [
        ("deb http://a.example", "entry 1: there is no suite"),
        ("\nrpm http://a.example x", "entry 2: the type is neither"),
        ("deb [arch=x http://a.example x main", "entry 1: the `[` of the options"),
        ("deb http://a.example stable", "entry 1: there is no component"),
    ];
    for (text, expect) in table {
        let error = parse_one_line("f", text).unwrap_err().to_string();
        assert!(error.contains(expect), "{text}: {error}");
    }
    let error = parse_deb822("f", "Types: deb\nSuites: s\nComponents: main\n").unwrap_err();
    assert_eq!(error.to_string(), "`f`: entry 1: there is no `URIs`");
}

fn chosen(suite: &str) -> Vec<String> {
    let sources = parse_deb822("x.sources", DEB822).unwrap();
    let archives = select(&sources, suite, "amd64").unwrap();
    archives.iter().map(|a| format!("{} {} {}", a.uri, a.suite, a.components.join("+"))).collect()
}

#[test]
fn a_suite_takes_its_own_sources_and_those_with_a_dash() {
    let expect = [
        "http://archive.example/debian stable main+contrib",
        "http://archive.example/debian stable-updates main+contrib",
        "http://security.example/debian stable-security main",
    ];
    assert_eq!(chosen("stable"), expect);
    assert_eq!(chosen("stable-updates"), expect[1..2]);
}

#[test]
fn an_unnamed_suite_is_looked_for_at_the_first_uri() {
    assert_eq!(chosen("sta"), ["http://archive.example/debian sta main"]);
    assert!(matches!(select(&[], "stable", "amd64"), Err(Error::NoSource { .. })));
}

#[test]
fn equal_sources_are_one_archive_with_all_components() {
    let text = "deb http://a.example/ s main\ndeb http://a.example s main contrib\n";
    let archives = select(&parse_one_line("f", text).unwrap(), "s", "amd64").unwrap();
    assert_eq!(archives.len(), 1);
    assert_eq!(archives[0].components, ["main", "contrib"]);
}

#[test]
fn an_archive_written_out_reads_back_as_itself() {
    let sources = parse_deb822("x.sources", DEB822).unwrap();
    for archive in select(&sources, "stable", "amd64").unwrap() {
        let again = parse_deb822("y", &archive.to_deb822()).unwrap();
        assert_eq!(select(&again, &archive.suite, "amd64").unwrap(), [archive]);
    }
}
