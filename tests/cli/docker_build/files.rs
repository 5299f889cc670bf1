//! What instructions do to files.

use super::World;
use serde_json::json;
use testkit::Web;

const BASE: &str = "ARG BASE\nFROM $BASE\n";

#[test]
fn copies_go_where_they_are_told() {
    let world = World::new();
    let files = [
        ("a.txt", "a"),
        ("b.txt", "b"),
        ("d/one", "1"),
        ("d/e/two", "2"),
        ("x y", "s"),
        ("literal[1]", "l"),
    ];
    let dockerfile = format!(
        "{BASE}WORKDIR /w\nCOPY a.txt plain\nCOPY a.txt into/\nCOPY *.txt all/\nCOPY d tree\nCOPY d/ /abs/tree/\n\
         COPY [\"x y\", \"sp ace\"]\nCOPY nothing* a.txt some/\nCOPY d/one .\nCOPY literal[[]1] /q\nRUN mkdir /there\nCOPY a.txt /there\n"
    );
    let script = "cd /w; find . -type f | sort; cat plain sp\\ ace /abs/tree/e/two /there/a.txt /q; stat -c %a /w/tree";
    let expected = "./all/a.txt\n./all/b.txt\n./into/a.txt\n./one\n./plain\n./some/a.txt\n./sp ace\n./tree/e/two\n./tree/one\nas2al755\n";
    assert_eq!(world.shell(&dockerfile, &files, script), expected);
}

#[test]
fn owners_and_permissions_of_copies() {
    let world = World::new();
    let files = [("f", "f"), ("d/g", "g"), ("d/e/h", "h")];
    let dockerfile = format!(
        "{BASE}COPY f /plain\nCOPY --chown=guest f /by/name\nCOPY --chown=7 f /by/number\nCOPY --chown=:8 f /by/group\n\
         COPY --chown=5:guest --chmod=0640 d /tree\nUSER 12\nWORKDIR /mine/deep\nUSER guest\nWORKDIR /its\nCOPY f rooted\nUSER 0\n"
    );
    let script = "stat -c '%u:%g %a %n' /plain /by /by/name /by/number /by/group /tree /tree/g /tree/e /tree/e/h /mine /mine/deep /its /its/rooted";
    let text = world.shell(&dockerfile, &files, script);
    let expected = "0:0 644 /plain\n1000:1000 755 /by\n1000:1000 644 /by/name\n7:7 644 /by/number\n0:8 644 /by/group\n\
        5:1000 755 /tree\n5:1000 640 /tree/g\n5:1000 640 /tree/e\n5:1000 640 /tree/e/h\n12:12 755 /mine\n12:12 755 /mine/deep\n1000:1000 755 /its\n0:0 644 /its/rooted\n";
    assert_eq!(text, expected);
}

#[test]
fn links_are_followed_where_they_are_named() {
    let world = World::new();
    let folder = world.context(&[
        ("real/file", "content"),
        (
            "Dockerfile",
            "ARG BASE\nFROM $BASE\nCOPY link /l\nCOPY dirlink /d\nCOPY real /r\nCOPY l* /many/\n",
        ),
    ]);
    std::os::unix::fs::symlink("real/file", folder.join("link")).unwrap();
    std::os::unix::fs::symlink("real", folder.join("dirlink")).unwrap();
    std::os::unix::fs::symlink("file", folder.join("real/inner")).unwrap();
    let script = "cat /l /d/file; test -L /l || echo file; readlink /d/inner; readlink /r/inner; cat /many/link";
    let text = world.session.leaf(&world.document_in(&folder, "", &super::exec(script)));
    assert_eq!(text, "contentcontentfile\nfile\nfile\ncontent");
}

#[test]
fn what_the_ignore_file_names_is_not_there() {
    let world = World::new();
    let files = [
        (
            ".dockerignore",
            "# c\n*.log\nnode_modules\n!node_modules/keep\n/docs/**\n!docs/readme\nDockerfile\n.dockerignore\n",
        ),
        ("a.log", ""),
        ("sub/b.log", ""),
        ("node_modules/x", ""),
        ("node_modules/keep/y", ""),
        ("docs/a/b", ""),
        ("docs/readme", ""),
    ];
    let dockerfile = format!("{BASE}COPY . /c\n");
    let script = "cd /c; find . -type f | sort";
    assert_eq!(
        world.shell(&dockerfile, &files, script),
        "./docs/readme\n./node_modules/keep/y\n./sub/b.log\n"
    );
    // The one of another Dockerfile goes before the common one.
    let other =
        [("o.dockerfile", dockerfile.as_str()), ("o.dockerfile.dockerignore", "*\n!a.log\n")];
    let all: Vec<_> = files.iter().chain(&other).copied().collect();
    let document = world.document(&all, "dockerfile: \"o.dockerfile\"", &super::exec(script));
    assert_eq!(world.session.leaf(&document), "./a.log\n");
    let said = world.error(&format!("{BASE}COPY a.log /x\n"), &files);
    assert!(said.contains("Dockerfile:3: `COPY a.log /x`: \"a.log\": not found"), "{said}");
}

#[test]
fn files_stand_in_the_dockerfile_itself() {
    let world = World::new();
    let dockerfile = format!(
        "{BASE}ARG WHO=world\nCOPY <<EOF <<-\"RAW\" /d/\nhello $WHO it's\nEOF\n\t$WHO\n\tRAW\nCOPY --chmod=755 <<run.sh /run.sh\n#!/bin/sh\necho ran\nrun.sh\n\
         RUN <<EOF\nx=1\necho $x > /out\nif true; then\n  echo $WHO >> /out\nfi\nEOF\n\
         RUN cat <<A > /two && cat <<'B' >> /two\na$WHO\nA\nb$WHO\nB\n\
         RUN <<-script\n\t#!/bin/awk -f\n\tBEGIN {{ print \"awk\" > \"/awk\" }}\n\tscript\n"
    );
    let script = "cat /d/EOF /d/RAW /out /two /awk; /run.sh; ls -d /.heredoc 2>/dev/null";
    let expected = "hello world it's\n$WHO\n1\nworld\naworld\nb$WHO\nawk\nran\n";
    assert_eq!(world.shell(&dockerfile, &[], &format!("{script}; true")), expected);
}

#[test]
fn archives_are_unpacked_by_add_alone() {
    let world = World::new();
    let folder = world.context(&[
        ("Dockerfile", "ARG BASE\nFROM $BASE\nADD t.tar.gz t.tar /one/\nADD t.tar.xz /xz\nADD t.tar.zst /zst\nCOPY t.tar /plain.tar\nADD --unpack=false t.tar /kept/\nADD no.tar.gz /no/\nADD text /text\n"),
        ("tree/f", "file"),
        ("text", "text"),
        ("no.tar.gz", "no archive"),
    ]);
    std::os::unix::fs::symlink("f", folder.join("tree/l")).unwrap();
    for (name, flag) in
        [("t.tar", ""), ("t.tar.gz", "-z"), ("t.tar.xz", "-J"), ("t.tar.zst", "--zstd")]
    {
        let mut tar = std::process::Command::new("tar");
        tar.current_dir(&folder)
            .arg("-cf")
            .arg(name)
            .args(Some(flag).filter(|flag| !flag.is_empty()));
        tar.args(["--owner=12", "--group=13", "--mode=640", "tree/f", "tree/l"]);
        assert!(tar.status().unwrap().success(), "{name}");
    }
    let script = "for d in one xz zst; do cat /$d/tree/f; readlink /$d/tree/l; stat -c '%u:%g %a' /$d/tree/f; done; cat /text /no/no.tar.gz; ls /kept; test -f /plain.tar";
    let text = world.session.leaf(&world.document_in(&folder, "", &super::exec(script)));
    let each = "filef\n12:13 640\n".repeat(3);
    assert_eq!(text, format!("{each}textno archivet.tar\n"));
}

#[test]
fn parents_and_exclusions() {
    let world = World::new();
    let files = [("a/b/c.txt", "c"), ("a/b/d.md", "d"), ("a/e.txt", "e"), ("x/y/z.txt", "z")];
    let dockerfile = format!(
        "{BASE}COPY --parents a/b/*.txt x /p/\nCOPY --parents a/./b /q/\nCOPY --exclude=*.md --exclude=e.txt a /r/\nCOPY --link --exclude=**/*.txt a /s/\nCOPY --exclude=*.md a/b/* /t/\n"
    );
    let script = "for d in p q r s t; do cd /$d; find . -type f | sort; done";
    let expected =
        "./a/b/c.txt\n./x/y/z.txt\n./b/c.txt\n./b/d.md\n./b/c.txt\n./b/d.md\n./b/d.md\n./c.txt\n";
    // A pattern without a slash is about the top of what is copied.
    assert_eq!(world.shell(&dockerfile, &files, script), expected);
}

#[test]
fn later_stages_take_from_earlier_ones_and_from_images() {
    let world = World::new();
    let dockerfile = format!(
        "ARG BASE\nFROM $BASE AS one\nRUN mkdir /o && echo one > /o/f\nFROM $BASE AS two\nRUN exit 3\nFROM scratch AS three\nCOPY --from=0 /o /three\n\
         FROM one\nCOPY --from=three /three/f /t\nCOPY --from={} /etc/passwd /p\nCOPY --from=ONE /o/f /u\n",
        world.base()
    );
    assert_eq!(
        world.shell(&dockerfile, &[], "cat /t /u /o/f; head -n 1 /p"),
        "one\none\none\nroot:x:0:0::/root:/bin/sh\n"
    );
    let target = |name: &str| {
        world.document(
            &super::with(&dockerfile, &[]),
            &format!("target: \"{name}\""),
            "rootfs { entries }",
        )
    };
    assert_eq!(world.session.leaf(&target("three")), json!(["three/"]));
    assert!(world.session.error(&target("two")).contains("exit code: 3"));
    assert!(
        world.session.error(&target("four")).contains("target stage \"four\" could not be found")
    );
}

#[test]
fn files_of_web_servers_are_added() {
    let world = World::new();
    let web = Web::start(|_| Web::answer("200 OK", &[], "from the web"));
    let sum = "c8e0bd87d8a3d9d3dd0fc8e7b4ff3d0b5e0dbd8c6a64a0ec28d0a8ff8ae4ab1f";
    let url = web.url("/dir/tool.bin?x=1");
    let dockerfile = format!("{BASE}ADD {url} /named\nADD --chmod=755 --chown=5 {url} /into/\n");
    let script = "cat /named; stat -c '%a %u' /named /into/tool.bin";
    assert_eq!(world.shell(&dockerfile, &[], script), "from the web600 0\n755 5\n");
    let said = world.error(&format!("{BASE}ADD --checksum=sha256:{sum} {url} /x\n"), &[]);
    assert!(said.contains("http checksum mismatch"), "{said}");
}
