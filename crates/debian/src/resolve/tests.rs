//! Small archives and what is chosen from them.

use super::*;
use crate::index::Index;
use crate::release::Rank;

/// `name [version] [!essential|!required] | Field: value | ...` a line.
fn index(lines: &str) -> Index {
    let mut text = String::new();
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let mut parts = line.split(';');
        let mut head = parts.next().unwrap().split_whitespace();
        let name = head.next().unwrap();
        let version = head.next().unwrap_or("1");
        text.push_str(&format!("Package: {name}\nVersion: {version}\nArchitecture: amd64\n"));
        text.push_str(&format!("Filename: {name}.deb\nSize: 1\nSHA256: {}\n", "0".repeat(64)));
        for field in parts {
            text.push_str(&format!("{}\n", field.trim()));
        }
        text.push('\n');
    }
    Index::parse(&text).unwrap()
}

fn archives(lists: &[&str]) -> Archives {
    let mut archives = Archives::new("amd64");
    lists.iter().for_each(|list| archives.push(index(list), Rank::Usual));
    archives
}

fn show(archives: &Archives, result: Result<Selection, Error>) -> String {
    match result {
        Err(error) => format!("error: {error}"),
        Ok(selection) => {
            let show = |chosen: &Chosen| {
                let package = archives.package(chosen.id);
                let manual = if chosen.automatic { "" } else { "*" };
                format!("{}{manual}={}", package.name(), package.version())
            };
            selection.packages.iter().map(show).collect::<Vec<_>>().join(" ")
        }
    }
}

fn check(list: &str, names: &[&str], expect: &str) {
    let archives = archives(&[list]);
    let result = extend(&archives, &Selection::default(), names);
    assert_eq!(show(&archives, result), expect, "{names:?} of {list}");
}

#[test]
fn dependencies_come_first() {
    check("a; Depends: b, c\nb; Pre-Depends: c\nc", &["a"], "c=1 b=1 a*=1");
    check("a; Depends: b\nb; Depends: a", &["a"], "b=1 a*=1");
}

#[test]
fn alternatives_take_the_first_that_works() {
    check("a; Depends: x | b | c\nb\nc", &["a"], "b=1 a*=1");
    check("a; Depends: b | c\nb\nc", &["a", "c"], "c*=1 a*=1");
    check("a; Depends: b (>= 2) | c\nb\nc", &["a"], "c=1 a*=1");
    check("a; Depends: b | c\nb; Depends: none\nc", &["a"], "c=1 a*=1");
    check("a; Depends: d, b | c\nd; Conflicts: b\nb\nc", &["a"], "d=1 c=1 a*=1");
}

#[test]
fn virtual_packages() {
    check("a; Depends: v\nz; Provides: v", &["a"], "z=1 a*=1");
    check("a; Depends: v (>= 2)\ny; Provides: v\nz; Provides: v (= 2)", &["a"], "z=1 a*=1");
    check("a; Depends: v\ny; Provides: v\nz; Provides: v; Priority: required", &["a"], "z=1 a*=1");
    check("a; Depends: v\nv\nz; Provides: v; Priority: required", &["a"], "v=1 a*=1");
    check("z; Provides: v", &["v"], "z*=1");
    check(
        "y; Provides: v\nz; Provides: v",
        &["v"],
        "error: `v` is a virtual package provided by `y`, `z`",
    );
}

#[test]
fn qualifiers() {
    check("a; Depends: b:any\nb; Multi-Arch: allowed", &["a"], "b=1 a*=1");
    check("a; Depends: b:native, c:amd64\nb\nc", &["a"], "b=1 c=1 a*=1");
    let list = "a; Depends: b:any\nb; Multi-Arch: same";
    check(list, &["a"], "error: `b:any` cannot be installed, but `a` depends on it");
    let list = "a; Depends: b:i386\nb";
    check(list, &["a"], "error: `b:i386` cannot be installed, but `a` depends on it");
}

#[test]
fn errors_name_the_chain() {
    check(
        "a; Depends: b\nb; Depends: c (>= 2) | d\nc",
        &["a"],
        "error: `c (>= 2) | d` cannot be installed, but `a` -> `b` depends on it",
    );
    check(
        "a; Depends: b, c\nb\nc; Breaks: b (<= 1)",
        &["a"],
        "error: `c` conflicts with `b`; `a` -> `c` needs it",
    );
    check(
        "a; Conflicts: v\nb; Provides: v",
        &["a", "b"],
        "error: `b` conflicts with `a`; `b` needs it",
    );
}

#[test]
fn a_package_may_exclude_what_it_provides_itself() {
    check("a; Conflicts: v; Provides: v", &["a"], "a*=1");
}

#[test]
fn an_unknown_name_brings_near_ones() {
    let archives = archives(&["python3\npython3-pip\ncurl"]);
    let error = extend(&archives, &Selection::default(), &["pyton3"]).unwrap_err();
    assert_eq!(error.to_string(), "there is no package `pyton3`");
    assert!(matches!(error, Error::Unknown { near, .. } if near == ["python3"]));
}

#[test]
fn the_newest_version_of_the_highest_rank_wins() {
    let mut archives = archives(&["a 1\nb 1", "a 3\na 2"]);
    archives.push(index("a 9\nc 9"), Rank::Later);
    let result = extend(&archives, &Selection::default(), &["a", "b", "c"]);
    assert_eq!(show(&archives, result), "a*=3 b*=1 c*=9");
}

#[test]
fn a_base_is_what_is_required_and_apt_and_is_not_listed_again() {
    let list =
        "x; Essential: yes; Depends: lib\nlib\ny; Priority: required\napt\nn; Depends: lib, m\nm";
    let archives = archives(&[list]);
    let base = base(&archives);
    assert_eq!(show(&archives, base.clone()), "lib=1 x*=1 apt*=1 y*=1");
    assert_eq!(base.as_ref().unwrap().essential, 2, "what is essential needs `lib`");
    let more = extend(&archives, &base.unwrap(), &["n", "x"]);
    assert_eq!(show(&archives, more), "m=1 n*=1");
}
