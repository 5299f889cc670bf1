//! Every argument that is a path inside a tree, and a test that none of the schema is forgotten.

use protocol::schema::TypeKind;
use std::collections::BTreeSet;

/// The arguments, each with a query that has `PATH` there and looks at what comes of it: a chain on a container, or a whole
/// document.
pub(super) const FIELDS: &[(&str, &str)] = &[
    (
        "Container.withNewFile(path)",
        r#"withNewFile(path: PATH, contents: "x") { rootfs { entries } }"#,
    ),
    ("Container.withFile(path)", "withFile(path: PATH, source: FILE) { rootfs { entries } }"),
    ("Container.withFiles(path)", "withFiles(path: PATH, sources: [FILE]) { rootfs { entries } }"),
    (
        "Container.withDirectory(path)",
        "withDirectory(path: PATH, source: DIRECTORY) { rootfs { entries } }",
    ),
    (
        "Container.withDirectory(include)",
        r#"withDirectory(path: "/in", source: DIRECTORY, include: [PATH]) { rootfs { glob(pattern: "in/**") } }"#,
    ),
    (
        "Container.withDirectory(exclude)",
        r#"withDirectory(path: "/in", source: DIRECTORY, exclude: [PATH]) { rootfs { glob(pattern: "in/**") } }"#,
    ),
    (
        "Container.withSymlink(linkName)",
        r#"withSymlink(target: "/d", linkName: PATH) { rootfs { entries } }"#,
    ),
    (
        "Container.withSymlink(target)",
        r#"withSymlink(target: PATH, linkName: "/d/l") { file(path: "/d/l") { contents } }"#,
    ),
    ("Container.withoutFile(path)", "withoutFile(path: PATH) { rootfs { entries } }"),
    ("Container.withoutFiles(paths)", "withoutFiles(paths: [PATH]) { rootfs { entries } }"),
    ("Container.withoutDirectory(path)", "withoutDirectory(path: PATH) { rootfs { entries } }"),
    ("Container.file(path)", "file(path: PATH) { contents }"),
    ("Container.file(path)", "file(path: PATH) { size }"),
    ("Container.file(path)", "file(path: PATH) { digest(excludeMetadata: true) }"),
    (
        "Container.file(path)",
        r#"file(path: PATH) { search(pattern: "root", limit: 10) { matchedLines } }"#,
    ),
    (
        "Container.file(path)",
        r#"file(path: PATH) { chown(owner: "7") { withReplaced(search: "a", replacement: "b", all: true) { contents } } }"#,
    ),
    ("Container.directory(path)", "directory(path: PATH) { entries }"),
    (
        "Container.directory(path)",
        "directory(path: PATH) { withTimestamps(timestamp: 1) { digest } }",
    ),
    ("Container.exists(path)", "exists(path: PATH)"),
    ("Container.stat(path)", "stat(path: PATH) { name size }"),
    ("Directory.entries(path)", "rootfs { entries(path: PATH) }"),
    ("Directory.file(path)", "rootfs { file(path: PATH) { contents } }"),
    ("Directory.directory(path)", "rootfs { directory(path: PATH) { entries } }"),
    ("Directory.exists(path)", "rootfs { exists(path: PATH, doNotFollowSymlinks: true) }"),
    ("Directory.stat(path)", "rootfs { stat(path: PATH) { name size } }"),
    (
        "Directory.withNewFile(path)",
        r#"rootfs { withNewFile(path: PATH, contents: "x") { entries } }"#,
    ),
    ("Directory.withNewDirectory(path)", "rootfs { withNewDirectory(path: PATH) { entries } }"),
    ("Directory.withFile(path)", "rootfs { withFile(path: PATH, source: FILE) { entries } }"),
    ("Directory.withFiles(path)", "rootfs { withFiles(path: PATH, sources: [FILE]) { entries } }"),
    (
        "Directory.withDirectory(path)",
        "rootfs { withDirectory(path: PATH, source: DIRECTORY) { entries } }",
    ),
    (
        "Directory.withDirectory(include)",
        r#"rootfs { withDirectory(path: "in", source: DIRECTORY, include: [PATH]) { glob(pattern: "in/**") } }"#,
    ),
    (
        "Directory.withDirectory(exclude)",
        r#"rootfs { withDirectory(path: "in", source: DIRECTORY, exclude: [PATH]) { glob(pattern: "in/**") } }"#,
    ),
    (
        "Directory.withSymlink(linkName)",
        r#"rootfs { withSymlink(target: "/d", linkName: PATH) { entries } }"#,
    ),
    (
        "Directory.withSymlink(target)",
        r#"rootfs { withSymlink(target: PATH, linkName: "d/l") { file(path: "d/l") { contents } } }"#,
    ),
    ("Directory.withoutFile(path)", "rootfs { withoutFile(path: PATH) { entries } }"),
    ("Directory.withoutFiles(paths)", "rootfs { withoutFiles(paths: [PATH]) { entries } }"),
    ("Directory.withoutDirectory(path)", "rootfs { withoutDirectory(path: PATH) { entries } }"),
    ("Directory.chown(path)", r#"rootfs { chown(path: PATH, owner: "7:7") { entries } }"#),
    ("Directory.findUp(start)", r#"rootfs { findUp(name: "secret", start: PATH) }"#),
    ("Directory.findUp(name)", r#"rootfs { findUp(name: PATH, start: "/d") }"#),
    ("Directory.glob(pattern)", "rootfs { glob(pattern: PATH) }"),
    (
        "Directory.filter(include)",
        r#"rootfs { directory(path: "d") { filter(include: [PATH]) { entries } } }"#,
    ),
    (
        "Directory.filter(exclude)",
        r#"rootfs { directory(path: "d") { filter(exclude: [PATH]) { entries } } }"#,
    ),
    (
        "Directory.search(paths)",
        r#"rootfs { search(pattern: "[a-z]", paths: [PATH], limit: 10) { matchedLines } }"#,
    ),
    (
        "Directory.search(globs)",
        r#"rootfs { directory(path: "d") { search(pattern: "[a-z]", globs: [PATH], limit: 10) { matchedLines } } }"#,
    ),
    (
        "Directory.dockerBuild(dockerfile)",
        "rootfs { dockerBuild(dockerfile: PATH) { rootfs { entries } } }",
    ),
    (
        "Container.build(dockerfile)",
        "build(context: DIRECTORY, dockerfile: PATH) { rootfs { entries } }",
    ),
    (
        "File.search(paths)",
        r#"file(path: "/bin/busybox") { search(pattern: "x", paths: [PATH], limit: 1) { filePath } }"#,
    ),
    (
        "File.search(globs)",
        r#"file(path: "/bin/busybox") { search(pattern: "x", globs: [PATH], limit: 1) { filePath } }"#,
    ),
    (
        "File.withName(name)",
        r#"withFile(path: "/d/", source: FILE) { file(path: "/d/f") { withName(name: PATH) { name contents } } }"#,
    ),
    ("Query.file(name)", r#"{ file(name: PATH, contents: "x") { name contents } }"#),
    (
        "Container.withMountedDirectory(path)",
        r#"withMountedDirectory(path: PATH, source: DIRECTORY) { withExec(args: ["touch", "/tmp/x"]) { exitCode } }"#,
    ),
    (
        "Container.withMountedFile(path)",
        r#"withMountedFile(path: PATH, source: FILE) { withExec(args: ["touch", "/tmp/x"]) { exitCode } }"#,
    ),
    (
        "Container.withMountedTemp(path)",
        r#"withMountedTemp(path: PATH) { withExec(args: ["touch", "/tmp/x"]) { exitCode } }"#,
    ),
    (
        "Container.withMountedCache(path)",
        r#"withMountedCache(path: PATH, cache: CACHE) { withExec(args: ["touch", "/tmp/x"]) { exitCode } }"#,
    ),
    (
        "Container.withMountedSecret(path)",
        r#"withMountedSecret(path: PATH, source: SECRET) { withExec(args: ["touch", "/tmp/x"]) { exitCode } }"#,
    ),
    (
        "Container.withMountedVolume(path)",
        r#"withMountedVolume(path: PATH, volume: VOLUME) { withExec(args: ["touch", "/tmp/x"]) { exitCode } }"#,
    ),
    (
        "Container.withUnixSocket(path)",
        r#"withUnixSocket(path: PATH, source: SOCKET) { withExec(args: ["touch", "/tmp/x"]) { exitCode } }"#,
    ),
    (
        "Container.withoutMount(path)",
        r#"withMountedTemp(path: "/t") { withoutMount(path: PATH) { mounts } }"#,
    ),
    (
        "Container.withoutUnixSocket(path)",
        r#"withUnixSocket(path: "/s", source: SOCKET) { withoutUnixSocket(path: PATH) { mounts } }"#,
    ),
    (
        "Container.withWorkdir(path)",
        r#"withWorkdir(path: PATH) { withExec(args: ["sh", "-c", ": > made-here"], expect: ANY) { exitCode } }"#,
    ),
    (
        "Container.withExec(redirectStdout)",
        r#"withExec(args: ["echo", "x"], redirectStdout: PATH) { rootfs { entries } }"#,
    ),
    (
        "Container.withExec(redirectStderr)",
        r#"withExec(args: ["sh", "-c", "echo x >&2"], redirectStderr: PATH) { rootfs { entries } }"#,
    ),
    // Some paths have no end.
    (
        "Container.withExec(redirectStdin)",
        r#"withExec(args: ["head", "-c", "1000"], redirectStdin: PATH) { stdout }"#,
    ),
    ("Container.withExec(args)", "withExec(args: [PATH], expect: ANY) { exitCode }"),
    ("Query.engineVolume(subdir)", r#"{ engineVolume(name: "hostile", subdir: PATH) { id } }"#),
    ("GitRef.log(paths)", "{ loadGitRefFromID(id: GIT_REF) { log(paths: [PATH]) { sha } } }"),
    (
        "Host.directory(include)",
        r#"{ host { directory(path: "project", include: [PATH]) { glob(pattern: "**") } } }"#,
    ),
    (
        "Host.directory(exclude)",
        r#"{ host { directory(path: "project", exclude: [PATH]) { glob(pattern: "**") } } }"#,
    ),
    (
        "Address.directory(include)",
        r#"{ address(value: "project") { directory(include: [PATH]) { glob(pattern: "**") } } }"#,
    ),
    (
        "Address.directory(exclude)",
        r#"{ address(value: "project") { directory(exclude: [PATH]) { glob(pattern: "**") } } }"#,
    ),
    (
        "Address.file(include)",
        r#"{ address(value: "project/a") { file(include: [PATH]) { contents } } }"#,
    ),
    (
        "Address.file(exclude)",
        r#"{ address(value: "project/a") { file(exclude: [PATH]) { contents } } }"#,
    ),
];

/// Paths on the caller's own machine, which lead where the caller says.
const OF_THE_CALLER: &[&str] = &[
    "Changeset.export(path)",
    "Container.export(path)",
    "Directory.export(path)",
    "File.export(path)",
    "Host.directory(path)",
    "Host.file(path)",
    "Host.findUp(name)",
    "Host.setSecretFile(path)",
    "Host.unixSocket(path)",
];

/// Arguments whose names sound like paths, and that name something else: a stage, a regular expression, fields of a value.
const SOMETHING_ELSE: &[&str] = &[
    "Container.build(target)",
    "Directory.dockerBuild(target)",
    "Directory.search(pattern)",
    "File.search(pattern)",
    "JSONValue.field(path)",
    "JSONValue.withField(path)",
];

/// Names of arguments that are texts of another sort in every field. Where one of these is looked up in a tree as well, the field
/// has a row of its own.
const TEXTS: &[&str] = &[
    "accessor",
    "address",
    "alias",
    "args",
    "cacheKey",
    "checksum",
    "cmd",
    "contents",
    "description",
    "devices",
    "digest",
    "endpoint",
    "err",
    "host",
    "hostname",
    "httpAuthUsername",
    "id",
    "indent",
    "interval",
    "key",
    "maxUsedSpace",
    "message",
    "minFreeSpace",
    "moduleName",
    "name",
    "namespace",
    "owner",
    "patch",
    "patterns",
    "plaintext",
    "prefix",
    "replacement",
    "reservedSpace",
    "scheme",
    "search",
    "sshKnownHosts",
    "startInterval",
    "startPeriod",
    "stdin",
    "tag",
    "targetSpace",
    "timeout",
    "uri",
    "url",
    "username",
    "value",
];

/// Every text argument of what works, as `Type.field(argument)` and its name alone.
fn text_arguments() -> BTreeSet<(String, String)> {
    let schema = e2e::schema().unwrap();
    let objects = schema.types.iter().filter(|(_, kind)| kind.kind == TypeKind::Object);
    let mut found = BTreeSet::new();
    for (type_name, kind) in objects {
        for field in kind.fields.iter().filter(|field| field.implemented) {
            for argument in
                field.args.iter().filter(|argument| argument.type_ref.base() == "String")
            {
                let whole = format!("{type_name}.{}({})", field.name, argument.name);
                found.insert((whole, argument.name.clone()));
            }
        }
    }
    found
}

#[test]
fn no_argument_is_forgotten() {
    let known = text_arguments();
    let row = |whole: &str| FIELDS.iter().any(|(name, _)| *name == whole);
    for (whole, name) in &known {
        let listed = [OF_THE_CALLER, SOMETHING_ELSE].concat().contains(&whole.as_str());
        assert!(
            row(whole) || listed || TEXTS.contains(&name.as_str()),
            "`{whole}` takes a text: give it a row, or say what it is if it is no path"
        );
        assert!(!(row(whole) && listed), "`{whole}` is one or the other");
    }
    let rows = FIELDS.iter().map(|(name, _)| *name);
    for name in rows.chain(OF_THE_CALLER.iter().copied()).chain(SOMETHING_ELSE.iter().copied()) {
        assert!(
            known.iter().any(|(whole, _)| whole == name),
            "`{name}` does not work or is no more"
        );
    }
}
